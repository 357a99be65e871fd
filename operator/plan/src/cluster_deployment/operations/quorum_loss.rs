//! Recovers etcd from the loss of the majority of its members' machines. Nothing is done until a person approves; then
//! one machine that still answers carries on alone, from its own data, and the others are made anew.

mod asking;
mod recovery;
mod report;

use std::cmp::Reverse;

use crds::Conditions;
use crds::PlaybookRun;
use crds::Reason;
use crds::names::condition;
use crds::step::{Role, Step};
use jiff::{SignedDuration, Timestamp};

use crate::approval::{self, What};
use crate::cluster_deployment::proposal::{Proposal, Round};
use crate::cluster_deployment::state::{ClusterMachine, ClusterState};
use crate::departure::{self, EtcdMembership};
use crate::message::count;
use crate::moment::after;

use report::lost;

/// Silence shorter than this is no reason to ask machines.
const PATIENCE: SignedDuration = SignedDuration::from_secs(60);
/// Recoveries that are kept, the newest.
const KEEP: usize = 8;

pub(super) fn propose(state: &ClusterState<'_>, _: &Round) -> Proposal {
    let membership = state.membership();
    match (state.installed.as_ref(), membership.etcd_role(), trouble_since(state)) {
        (Some(_), Some(role), Some(since)) => {
            let recovery = recovery::goes_on(state, role, since);
            recovery.unwrap_or_else(|| look(state, &membership, role, since))
        }
        _ => Proposal::default(),
    }
}

/// The runs that made one member the only one.
pub(super) fn keeps(state: &ClusterState<'_>) -> Vec<String> {
    let recovers = |run: &&PlaybookRun| run.spec.steps.contains(&Step::RecoverEtcd);
    let mut runs: Vec<&PlaybookRun> = state.observed.runs.iter().copied().filter(recovers).collect();
    runs.sort_by_key(|run| Reverse(run.metadata.creation_timestamp.clone()));
    let newest = runs.into_iter().take(KEEP);
    newest.filter_map(|run| run.metadata.name.clone()).collect()
}

fn look(state: &ClusterState<'_>, membership: &EtcdMembership<'_>, role: Role, since: Timestamp) -> Proposal {
    let members: Vec<ClusterMachine<'_>> =
        membership.members().into_iter().filter_map(|machine| state.member(machine)).collect();
    // Those that were forgotten cannot be asked, and count as silent.
    let forgotten = membership.forgotten_members();
    let total = members.len() + forgotten.len();
    if total == 0 {
        return Proposal::default();
    }
    if state.observed.now < after(since, PATIENCE) {
        return Proposal::default().at(state, after(since, PATIENCE));
    }
    let asked = asking::ask(state, &members, since);
    let answers =
        |machine: &ClusterMachine<'_>| asked.answers.get(machine.host_name().unwrap_or_default()) == Some(&true);
    let (alive, silent): (Vec<ClusterMachine<'_>>, Vec<ClusterMachine<'_>>) =
        members.iter().copied().partition(answers);
    let needed = total / 2 + 1;
    if !asked.complete || alive.len() >= needed {
        // It is not known, or not etcd: others say what is wrong, and the machines are asked again.
        return asked.next;
    }
    let forgotten = forgotten.into_iter().map(departure::title_of_forgotten);
    let silent: Vec<String> = silent.iter().map(ClusterMachine::title).chain(forgotten).collect();
    let what = format!(
        "etcd has lost its majority: {} with its members, of which {} answer and {needed} are needed (silent: {})",
        count(total, "machine"),
        alive.len(),
        silent.join(", ")
    );
    let waits = |message| Proposal {
        actions: asked.next.actions.clone(),
        requeue: asked.next.requeue,
        ..lost(role, Reason::QuorumLost, message)
    };
    let Some(survivor) = survivor(state, &alive) else {
        return waits(format!("{what}; none is left to go on from: bring one back, or see spec.recovery"));
    };
    let value = approval_of(state, &survivor, &members, since);
    if approval::is_given(&state.deployment.metadata, &value) {
        return recovery::begin(state, role, survivor, &value, 0, None);
    }
    waits(format!(
        "{what}; nothing is done before you decide: bring a machine back, or let etcd go on with {} alone, from its own data (what only the others had is lost; the others are made anew): {}",
        survivor.title(),
        state.approve(&value)
    ))
}

/// The approval of this loss: who goes on alone, and which machines' data is given up.
fn approval_of(
    state: &ClusterState<'_>,
    survivor: &ClusterMachine<'_>,
    members: &[ClusterMachine<'_>],
    since: Timestamp,
) -> String {
    let since = since.to_string();
    let mut uids: Vec<&str> = members.iter().map(ClusterMachine::uid).collect();
    uids.sort_unstable();
    let acts: Vec<&str> = [since.as_str(), survivor.uid()].into_iter().chain(uids).collect();
    approval::value(What::QuorumLoss, &state.deployment.metadata, &acts)
}

/// Since when the API, or etcd behind it, has not answered.
fn trouble_since(state: &ClusterState<'_>) -> Option<Timestamp> {
    if let Some(since) = state.silent_since() {
        return Some(since);
    }
    state.etcd_problem()?;
    let ready = state.deployment.condition(condition::ETCD_READY)?;
    (ready.status != "True").then_some(ready.last_transition_time.0)
}

/// Who goes on alone: the first control plane if it answers, or else the first that does.
fn survivor<'a>(state: &ClusterState<'_>, alive: &[ClusterMachine<'a>]) -> Option<ClusterMachine<'a>> {
    let status = state.deployment.status.as_ref();
    let first = status.and_then(|status| status.first_control_plane.as_deref());
    let stays = || alive.iter().filter(|machine| machine.deleted_at().is_none());
    let chosen = stays().find(|machine| Some(machine.name()) == first);
    chosen.or_else(|| stays().next()).copied()
}
