//! Compares the machines with the store, which may have been set back to an older state: holds all else until every
//! machine was looked at and a person has approved what contradicts, and then adopts what the machines know. Nothing is
//! reset by that.

use crds::conditions::Statement;
use crds::host::{Quarantine, QuarantineReason};
use crds::names::{condition, finalizer};
use crds::{ClusterKind, Host, Machine, ObjectExt, Reason};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use crate::Next;
use crate::cluster_deployment::action::Action;
use crate::cluster_deployment::lane::Lane;
use crate::cluster_deployment::proposal::{Area, Proposal, Round, Severity};
use crate::cluster_deployment::state::ClusterState;
use crate::cluster_deployment::store::{Comparison, path};
use crate::message::{count, cut};
use crate::store::{Contradiction, Differs};

/// All but the lock, which gives out nothing meanwhile, and what is kept of the past.
const BLOCKS: &[Lane] = &[
    Lane::Fencing,
    Lane::Recovery,
    Lane::Install,
    Lane::ControlPlane,
    Lane::Workers,
    Lane::Remediation,
    Lane::Leaving,
];
/// Hosts that are named.
const NAMED: usize = 3;
/// Looks again after this for what nobody tells.
const AGAIN_SECONDS: u64 = 30;

pub(super) fn propose(state: &ClusterState<'_>, _: &Round) -> Proposal {
    let Some(verdict) = verdict(state) else {
        return Proposal::default().condition(condition::STORE_IS_OLDER, None);
    };
    let (actions, stated) = (adopt(state), verdict.statement());
    let Verdict { reason, message, .. } = verdict;
    let proposal = match reason {
        // Nothing is known to be wrong yet.
        Reason::LookingAtMachines => Proposal::default(),
        Reason::AdoptingClaims => Proposal::report(Area::Store, reason, message, Severity::Progressing),
        _ => Proposal::report(Area::Store, reason, message, Severity::Stalled),
    };
    Proposal {
        actions,
        requeue: Next::after_seconds(AGAIN_SECONDS),
        blocks: if state.comparison.holds() { BLOCKS } else { &[] },
        ..proposal.condition(condition::STORE_IS_OLDER, Some(stated))
    }
}

/// What is said of the store.
pub(in super::super) struct Verdict {
    pub reason: Reason,
    pub message: String,
    /// Whether it is known to be older.
    pub known: bool,
}

impl Verdict {
    /// As a condition.
    pub fn statement(&self) -> Statement {
        let known = self.known.then_some(true);
        Statement::new(condition::STORE_IS_OLDER, known, self.reason, cut(self.message.clone()))
    }
}

/// Nothing where nothing speaks against the store.
pub(in super::super) fn verdict(state: &ClusterState<'_>) -> Option<Verdict> {
    let comparison = &state.comparison;
    let (reason, message, known) = if comparison.is_over() {
        return None;
    } else if comparison.contradictions.is_empty() && !comparison.unasked.is_empty() {
        (Reason::LookingAtMachines, looking(comparison), false)
    } else if comparison.is_silence() {
        let message = format!(
            "no operator has worked for a while, and no machine of the cluster answers to be compared with: nothing is done. Bring one back; or, if the metadata cluster was not set back to an older state, {}",
            state.approve(&comparison.value)
        );
        (Reason::NoMachineAnswers, message, false)
    } else if comparison.holds() {
        (Reason::MachineIsNewer, contradicting(state), true)
    } else {
        let message = format!("adopts what {} know", count(comparison.contradictions.len(), "machine"));
        (Reason::AdoptingClaims, message, true)
    };
    Some(Verdict { reason, message, known })
}

fn looking(comparison: &Comparison<'_>) -> String {
    let unasked = &comparison.unasked;
    let named = unasked.iter().take(NAMED).copied().collect::<Vec<_>>().join(", ");
    let more = match unasked.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!(
        "no operator has worked for a while: each machine is looked at before anything is done; waits for {named}{more}"
    )
}

fn contradicting(state: &ClusterState<'_>) -> String {
    let comparison = &state.comparison;
    let found: Vec<String> = comparison.contradictions.iter().take(NAMED).map(Contradiction::message).collect();
    let more = match comparison.contradictions.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!("; and {}", count(more, "more Host")),
    };
    let looks = match comparison.unasked.len() {
        0 => state.approve(&comparison.value),
        unasked => format!("wait until {} more were looked at", count(unasked, "machine")),
    };
    format!(
        "the metadata cluster is older than its machines: {}{more}. Nothing is done to any machine. To adopt what the machines know, {looks}",
        found.join("; ")
    )
}

/// What makes the objects say what the machines do, once that is approved.
pub(in super::super) fn adopt(state: &ClusterState<'_>) -> Vec<Action> {
    let comparison = &state.comparison;
    if comparison.holds() {
        return Vec::new();
    }
    let differing = comparison.contradictions.iter().filter(|found| found.differs != Differs::Token);
    differing.flat_map(|found| of_host(state, found)).collect()
}

fn of_host(state: &ClusterState<'_>, found: &Contradiction<'_>) -> Vec<Action> {
    let (host, cluster) = (found.host, path(state.observed));
    let is_claimed = host.spec.claim_ref.is_some();
    if is_claimed && found.is_of(&cluster) {
        // It serves the same cluster under a claim that is not known here: the Machine keeps it, under a later one.
        let epoch = found.fence.epoch.saturating_add(1);
        return vec![Action::RaiseEpoch { host: Box::new(host.clone()), epoch }];
    }
    let machine = holder(state, host);
    let leaves = machine.filter(|machine| !machine.is_deleting());
    let mut actions: Vec<Action> =
        leaves.map(|machine| Action::DeleteMachine(Box::new(machine.clone()))).into_iter().collect();
    let finalizers = host.metadata.finalizers.iter().flatten();
    actions.push(Action::ReleaseClaim {
        host: Box::new(host.clone()),
        epoch: host.spec.claim_epoch.max(found.fence.epoch),
        finalizers: finalizers.filter(|there| *there != finalizer::HOST).cloned().collect(),
        quarantine: quarantine(state, found, machine),
    });
    actions
}

fn holder<'a>(state: &ClusterState<'a>, host: &Host) -> Option<&'a Machine> {
    let claim = host.spec.claim_ref.as_ref()?;
    state.observed.machines.iter().copied().find(|machine| machine.uid() == claim.uid)
}

/// Neither its cluster nor its role is given: the Node of that name in the cluster may be the machine's own.
fn quarantine(state: &ClusterState<'_>, found: &Contradiction<'_>, machine: Option<&Machine>) -> Quarantine {
    let name = machine.map(|machine| machine.name().to_owned());
    Quarantine {
        reason: QuarantineReason::StoreIsOlder,
        message: cut(format!("the metadata cluster was older than {}", found.message())),
        machine: name.unwrap_or_else(|| "unknown".into()),
        machine_set: None,
        machine_uid: machine.map(|machine| machine.uid().to_owned()),
        cluster_name: None,
        cluster_kind: ClusterKind::default(),
        role: None,
        fence: None,
        since: Time(state.observed.now),
    }
}
