//! Plays steps again on machines that differ from what is wanted, where that is asked for: control planes first, then
//! machines of etcd, then workers, one machine at a time. Where something may restart that serves, it waits for an
//! approval and a maintenance window, as an edit does.

use crds::step::{Intent, Role};
use crds::{ObjectExt, Reason};

use crate::cluster_deployment::action::Action;
use crate::cluster_deployment::drifted;
use crate::cluster_deployment::drifted_machine::Drifted;
use crate::cluster_deployment::lane::{Lane, Needs};
use crate::cluster_deployment::proposal::{Area, Proposal, Round, Severity};
use crate::cluster_deployment::request::{Attempt, Request, Target, describe_as};
use crate::cluster_deployment::rollout::gate::{Begun, gate};
use crate::cluster_deployment::state::{ClusterMachine, ClusterState};
use crate::cluster_deployment::turn;
use crate::departure::is_healthy;

pub(super) fn propose(state: &ClusterState<'_>, round: &Round) -> Proposal {
    if state.drifted.is_empty() || !round.allows(Lane::ControlPlane, Needs::Spec) {
        return Proposal::default();
    }
    let mut closed = None;
    for drifted in &state.drifted {
        match waits_for_word(state, drifted) {
            Some(waits) => closed = closed.or(Some(waits)),
            None => return repair(state, drifted),
        }
    }
    closed.unwrap_or_default()
}

/// The runs by which it is known how often it was tried.
pub(super) fn keeps(state: &ClusterState<'_>) -> Vec<String> {
    drifted::kept(state)
}

fn progressing(message: String) -> Proposal {
    Proposal::report(Area::Drift, Reason::RepairingDrift, message, Severity::Progressing)
}

/// Why it may not begin, if something may restart.
fn waits_for_word(state: &ClusterState<'_>, drifted: &Drifted<'_>) -> Option<Proposal> {
    let what = || format!("{} differs, and is to be repaired ({})", drifted.machine.title(), drifted.named());
    let begun = Begun::new(drifted.attempts > 0, false);
    drifted.is_disruptive().then(|| gate(state, begun, Area::Drift, &what())).flatten()
}

fn repair(state: &ClusterState<'_>, drifted: &Drifted<'_>) -> Proposal {
    let title = drifted.machine.title();
    if let Some(why) = why_not_now(state, &drifted.machine) {
        return progressing(format!("{title} is to be repaired ({}); {why}", drifted.named())).standing_aside();
    }
    let targets: [Target<'_>; 1] = [(drifted.machine, None)];
    let attempt = Attempt::from_start(i32::try_from(drifted.attempts).unwrap_or(i32::MAX));
    let request = Request::new(Intent::Configure, drifted.steps.clone(), &targets, attempt);
    let run = request.named([&drifted.key]).rolling_out(&drifted.key).run(state);
    progressing(format!("repairing {title} ({})", drifted.named())).and(Action::create(run))
}

/// Why nothing is done to a machine now. It may itself be what is not well.
fn why_not_now(state: &ClusterState<'_>, machine: &ClusterMachine<'_>) -> Option<String> {
    if let Some(run) = state.active.first() {
        return Some(describe_as(state, &format!("waits for run {} to end", run.name()), run));
    }
    let is_sick = |other: &ClusterMachine<'_>| other.is_provisioned() && !is_healthy(other.machine);
    let sick = state.live.iter().filter(|other| is_sick(other)).count();
    if sick * 3 > state.live.len() {
        return Some(format!("waits for fewer machines to be unhealthy ({sick} of {} are)", state.live.len()));
    }
    match machine.machine.spec.role {
        Role::Worker => turn::in_the_way(state),
        Role::ControlPlane | Role::Etcd => turn::why_not_now(state, is_sick(machine).then_some(machine)),
    }
}
