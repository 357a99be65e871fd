//! The end of a cluster: runs are canceled, machines deleted and cleaned (or let go as they are), workers first, then
//! control planes, then etcd; and then it goes. A protected cluster waits for a person's word before any of it.

use crds::ClusterDeployment;
use crds::Conditions;
use crds::ObjectExt;
use crds::Reason;
use crds::cluster_deployment::DeletionPolicy;
use crds::names::{annotation, condition};
use crds::step::{Intent, Role};

use super::action::Action;
use super::operations::reset;
use super::request::describe;
use super::state::{ClusterMachine, ClusterState};
use super::tokens::Tokens;
use crate::moment::clock;
use crate::{Next, attempts, sentence};

/// Reason of `Deleting` of a cluster that is not touched before its deletion is confirmed.
const PROTECTED: Reason = Reason::DeletionProtected;
/// What follows the generation in `delete-confirmed` when what cannot be cleaned is to be let go, too.
const FORCE: &str = "force";

/// What is to be done.
pub(super) struct Deletion {
    pub actions: Vec<Action>,
    pub next: Next,
    pub reason: Reason,
    pub message: String,
}

pub(super) fn plan(state: &ClusterState<'_>, tokens: &Tokens) -> Deletion {
    let waits = |reason, message: String| Deletion {
        actions: Vec::new(),
        next: Next::OnChange,
        reason,
        message,
    };
    if !is_confirmed(state.deployment) {
        let message = format!(
            "spec.deletionProtection is true, nothing is touched: to delete the cluster all the same, {}; a deletion cannot be taken back",
            confirm(state, "")
        );
        return waits(PROTECTED, message);
    }
    if state.live.is_empty() && state.leaving.is_empty() && state.active.is_empty() {
        return Deletion {
            actions: vec![Action::RemoveFinalizer],
            next: Next::OnChange,
            reason: Reason::MachinesReleased,
            message: "every machine is given back".into(),
        };
    }
    let in_the_way: Vec<_> = state
        .active
        .iter()
        .copied()
        .filter(|run| run.spec.intent != Intent::Reset)
        .collect();
    if let Some(first) = in_the_way.first() {
        let running = in_the_way.iter().filter(|run| !run.spec.cancel);
        let actions = running
            .map(|run| Action::CancelRun(Box::new((*run).clone())))
            .collect();
        let name = first.name();
        return Deletion {
            actions,
            ..waits(
                Reason::CancelingRuns,
                format!("cancels run {name} ({})", describe(state, first)),
            )
        };
    }
    if !state.live.is_empty() {
        let actions = state
            .live
            .iter()
            .map(|member| Action::DeleteMachine(Box::new(member.machine.clone())));
        return Deletion {
            actions: actions.collect(),
            ..waits(
                Reason::DeletingMachines,
                format!("deletes {}", sentence::count(state.live.len(), "machine")),
            )
        };
    }
    if state.deployment.spec.deletion_policy == DeletionPolicy::Reset {
        let paused = state.deployment.spec.paused;
        if paused && state.active.is_empty() {
            return waits(
                Reason::Paused,
                "paused: set spec.paused to false to let the deletion go on".into(),
            );
        }
        if let Some(lost) = tokens.lost() {
            return Deletion {
                next: lost.next,
                ..waits(lost.reason, lost.message.clone())
            };
        }
        let resets = reset::look(state);
        if let Some(run) = state.active.first() {
            return Deletion {
                actions: resets.actions,
                ..waits(Reason::CleaningMachines, describe(state, run))
            };
        }
        if let Some((member, at, cause)) = resets.later.iter().min_by_key(|(_, at, _)| *at) {
            let others = match resets.later.len() {
                1 => String::new(),
                more => format!(" (and {} more)", more - 1),
            };
            let mut actions = resets.actions;
            if is_forced(state.deployment) {
                let failed = resets.later.iter().map(|(member, _, _)| member);
                actions.extend(failed.filter_map(|member| force(state, member)));
            }
            return Deletion {
                actions,
                next: state.until(*at),
                reason: Reason::ResetFailed,
                message: format!(
                    "cannot clean Host {}{others}: {}: {}; tried again at {}; to forget such machines (their Hosts are quarantined), {}",
                    member.host_name().unwrap_or_default(),
                    cause.reason,
                    cause.message,
                    clock(*at),
                    confirm(state, FORCE)
                ),
            };
        }
        if !resets.actions.is_empty() {
            let role = first_role(state).map_or("", Role::name);
            let members = state.leaving.iter();
            let now = members.filter(|member| Some(member.machine.spec.role) == first_role(state));
            return Deletion {
                actions: resets.actions,
                ..waits(
                    Reason::CleaningMachines,
                    format!(
                        "cleans {}",
                        sentence::count(now.count(), &format!("{role} machine"))
                    ),
                )
            };
        }
    }
    let first = state
        .leaving
        .first()
        .map(|member| format!("{}: {}", member.title(), member.says()));
    waits(
        Reason::WaitingForMachines,
        format!(
            "waits for {} to go: {}",
            sentence::count(state.leaving.len(), "machine"),
            first.unwrap_or_default()
        ),
    )
}

/// Whether the deletion may begin, or has begun. The deletion itself counts as a change of the object, so the
/// generation that was confirmed before it is one lower.
fn is_confirmed(deployment: &ClusterDeployment) -> bool {
    let deleting = deployment.condition(condition::DELETING);
    let has_begun =
        deleting.is_some_and(|deleting| deleting.status == "True" && deleting.reason != PROTECTED);
    !deployment.spec.deletion_protection || has_begun || confirmation(deployment).is_some()
}

/// Whether a person said that what cannot be cleaned is to be let go.
fn is_forced(deployment: &ClusterDeployment) -> bool {
    confirmation(deployment)
        .and_then(|value| value.split_once('.'))
        .map(|(_, word)| word)
        == Some(FORCE)
}

fn confirmation(deployment: &ClusterDeployment) -> Option<&str> {
    let annotations = deployment.metadata.annotations.as_ref()?;
    let value = annotations.get(annotation::DELETE_CONFIRMED)?;
    let generation = deployment.generation();
    let meant_for = value.split('.').next()?.parse::<i64>().ok()?;
    (generation - 1..=generation)
        .contains(&meant_for)
        .then_some(value.as_str())
}

/// What a person types to confirm it.
fn confirm(state: &ClusterState<'_>, word: &str) -> String {
    let dot = if word.is_empty() { "" } else { "." };
    state.annotate(
        annotation::DELETE_CONFIRMED,
        &format!("{}{dot}{word}", state.generation()),
    )
}

/// Asks that a machine be forgotten; nothing where that was asked already.
fn force(state: &ClusterState<'_>, member: &ClusterMachine<'_>) -> Option<Action> {
    let asked = attempts::names_generation(&member.machine.metadata, annotation::FORCE_REMOVE);
    let busy = member
        .host_name()
        .is_some_and(|host| state.active_on(host).is_some());
    (!asked && !busy).then(|| Action::ForceRemoveMachine(Box::new(member.machine.clone())))
}

/// The machines of this role go now; those of others wait for them.
pub(super) fn first_role(state: &ClusterState<'_>) -> Option<Role> {
    let order = |role: &Role| match role {
        Role::Worker => 0,
        Role::ControlPlane => 1,
        Role::Etcd => 2,
    };
    state
        .leaving
        .iter()
        .map(|member| member.machine.spec.role)
        .min_by_key(order)
}
