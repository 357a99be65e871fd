//! The end of a cluster: it leaves the Karmada control planes that it is a member of, runs are canceled, machines are
//! deleted and cleaned (or let go as they are), workers first, then control planes, then etcd; and then it goes. A
//! protected cluster waits for the annotation `delete-confirmed` before any of it.

use crds::ClusterDeployment;
use crds::Conditions;
use crds::ObjectExt;
use crds::Reason;
use crds::cluster_deployment::DeletionPolicy;
use crds::names::{annotation, condition};
use crds::step::{Intent, Role};

use super::action::Action;
use super::membership;
use super::operations::reset::{self, Resets};
use super::request::describe;
use super::state::{ClusterMachine, ClusterState};
use crate::lock::tokens::Tokens;
use crate::moment::clock;
use crate::store::verdict::Verdict;
use crate::{Next, attempts, message};

/// What follows the generation in `delete-confirmed` when what cannot be cleaned is to be let go, too.
const FORCE: &str = "force";

/// How often it is looked whether the cluster has left the planes that it is a member of, in seconds.
const MEMBERSHIP_SECONDS: u64 = 10;

/// What is to be done.
pub(super) struct Deletion {
    pub actions: Vec<Action>,
    pub next: Next,
    pub reason: Reason,
    pub message: String,
}

impl Deletion {
    fn waits(reason: Reason, message: String) -> Self {
        Self { actions: Vec::new(), next: Next::OnChange, reason, message }
    }
}

/// A deletion that waits until the machines were compared with the store.
pub(super) fn held(verdict: &Verdict) -> Deletion {
    Deletion { next: Next::after_seconds(30), ..Deletion::waits(verdict.reason, verdict.message.clone()) }
}

pub(super) fn plan(state: &ClusterState<'_>, tokens: &Tokens) -> Deletion {
    if !is_confirmed(state.deployment) {
        let message = format!(
            "spec.deletionProtection is true, nothing is touched: to delete the cluster all the same, {}; a deletion cannot be taken back",
            confirm(state, "")
        );
        return Deletion::waits(Reason::DeletionProtected, message);
    }
    if state.live.is_empty() && state.leaving.is_empty() && state.active.is_empty() {
        return Deletion {
            actions: vec![Action::RemoveFinalizer],
            ..Deletion::waits(Reason::MachinesReleased, "every machine is given back".into())
        };
    }
    if let Some(message) = membership::waits_for(state.observed).filter(|_| !is_forced(state.deployment)) {
        let message = format!("{message}; to delete the cluster all the same, {}", confirm(state, FORCE));
        let next = Next::after_seconds(MEMBERSHIP_SECONDS);
        return Deletion { next, ..Deletion::waits(Reason::WaitingForUnjoin, message) };
    }
    cancel_runs(state)
        .or_else(|| delete_machines(state))
        .or_else(|| clean_machines(state, tokens))
        .unwrap_or_else(|| wait_for_machines(state))
}

fn cancel_runs(state: &ClusterState<'_>) -> Option<Deletion> {
    let in_the_way = || {
        let runs = state.active.iter().copied();
        runs.filter(|run| run.spec.intent != Intent::Reset)
    };
    let first = in_the_way().next()?;
    let running = in_the_way().filter(|run| !run.spec.cancel);
    let message = format!("cancels run {} ({})", first.name(), describe(state, first));
    Some(Deletion {
        actions: running.map(|run| Action::CancelRun(Box::new(run.clone()))).collect(),
        ..Deletion::waits(Reason::CancelingRuns, message)
    })
}

fn delete_machines(state: &ClusterState<'_>) -> Option<Deletion> {
    let delete = |machine: &ClusterMachine<'_>| Action::DeleteMachine(Box::new(machine.machine.clone()));
    let message = format!("deletes {}", message::count(state.live.len(), "machine"));
    (!state.live.is_empty()).then(|| Deletion {
        actions: state.live.iter().map(delete).collect(),
        ..Deletion::waits(Reason::DeletingMachines, message)
    })
}

/// Reset runs on the machines, where the policy asks for them; none: all that can be cleaned are.
fn clean_machines(state: &ClusterState<'_>, tokens: &Tokens) -> Option<Deletion> {
    if state.deployment.spec.deletion_policy != DeletionPolicy::Reset {
        return None;
    }
    if state.deployment.spec.paused && state.active.is_empty() {
        let message = "paused: set spec.paused to false to let the deletion go on";
        return Some(Deletion::waits(Reason::Paused, message.into()));
    }
    if let Some(lost) = tokens.lost() {
        return Some(Deletion { next: lost.next, ..Deletion::waits(lost.reason, lost.message.clone()) });
    }
    let resets = reset::look(state);
    if let Some(run) = state.active.first() {
        return Some(Deletion {
            actions: resets.actions,
            ..Deletion::waits(Reason::CleaningMachines, describe(state, run))
        });
    }
    if !resets.later.is_empty() {
        return clean_again(state, resets);
    }
    let role = state.first_role_to_leave();
    let now = state.leaving.iter();
    let now = now.filter(|machine| Some(machine.machine.spec.role) == role).count();
    let message = format!("cleans {}", message::count(now, &format!("{} machine", role.map_or("", Role::name))));
    (!resets.actions.is_empty())
        .then(|| Deletion { actions: resets.actions, ..Deletion::waits(Reason::CleaningMachines, message) })
}

/// Resets that failed are tried again; a person may have such machines forgotten.
fn clean_again(state: &ClusterState<'_>, resets: Resets<'_>) -> Option<Deletion> {
    let (machine, at, cause) = resets.later.iter().min_by_key(|(_, at, _)| *at)?;
    let others = match resets.later.len() {
        1 => String::new(),
        more => format!(" (and {} more)", more - 1),
    };
    let mut actions = resets.actions;
    if is_forced(state.deployment) {
        let failed = resets.later.iter().map(|(machine, _, _)| machine);
        actions.extend(failed.filter_map(|machine| force(state, machine)));
    }
    let message = format!(
        "cannot clean Host {}{others}: {}: {}; tried again at {}; to forget such machines (their Hosts are quarantined), {}",
        machine.host_name().unwrap_or_default(),
        cause.reason,
        cause.message,
        clock(*at),
        confirm(state, FORCE)
    );
    Some(Deletion { actions, next: state.until(*at), ..Deletion::waits(Reason::ResetFailed, message) })
}

fn wait_for_machines(state: &ClusterState<'_>) -> Deletion {
    let first = state.leaving.first();
    let first = first.map(|machine| format!("{}: {}", machine.title(), machine.says()));
    let message =
        format!("waits for {} to go: {}", message::count(state.leaving.len(), "machine"), first.unwrap_or_default());
    Deletion::waits(Reason::WaitingForMachines, message)
}

/// Whether the deletion may begin, or has begun. The deletion itself counts as a change of the object, so the
/// generation that was confirmed before it is one lower.
fn is_confirmed(deployment: &ClusterDeployment) -> bool {
    let deleting = deployment.condition(condition::DELETING);
    let has_begun =
        deleting.is_some_and(|deleting| deleting.status == "True" && deleting.reason != Reason::DeletionProtected);
    !deployment.spec.deletion_protection || has_begun || confirmation(deployment).is_some()
}

/// Whether a person said that what cannot be cleaned is to be let go.
fn is_forced(deployment: &ClusterDeployment) -> bool {
    confirmation(deployment).and_then(|value| value.split_once('.')).map(|(_, word)| word) == Some(FORCE)
}

fn confirmation(deployment: &ClusterDeployment) -> Option<&str> {
    let value = deployment.annotation(annotation::DELETE_CONFIRMED)?;
    let generation = deployment.generation();
    let meant_for = value.split('.').next()?.parse::<i64>().ok()?;
    (generation - 1..=generation).contains(&meant_for).then_some(value)
}

/// What a person types to confirm it.
fn confirm(state: &ClusterState<'_>, word: &str) -> String {
    let dot = if word.is_empty() { "" } else { "." };
    state.annotate(annotation::DELETE_CONFIRMED, &format!("{}{dot}{word}", state.generation()))
}

/// Asks that a machine be forgotten; nothing where that was asked already.
fn force(state: &ClusterState<'_>, member: &ClusterMachine<'_>) -> Option<Action> {
    let asked = attempts::names_generation(&member.machine.metadata, annotation::FORCE_REMOVE);
    let busy = member.host_name().is_some_and(|host| state.active_on(host).is_some());
    (!asked && !busy).then(|| Action::ForceRemoveMachine(Box::new(member.machine.clone())))
}
