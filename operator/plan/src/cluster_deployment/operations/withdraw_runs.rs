//! Withdraws runs that are in the way of machines that leave: what has not begun never does, and a join that works for
//! nobody else ends. So is what has not begun of a change that was edited to one that nobody has approved. A backup
//! that has not begun is taken by another run, on the machines that stay.

use crds::PlaybookRun;
use crds::step::{Effect, Intent};

use crate::attempts;
use crate::cluster_deployment::action::Action;
use crate::cluster_deployment::proposal::{Proposal, Round};
use crate::cluster_deployment::request::brings_machines;
use crate::cluster_deployment::rollout::gate;
use crate::cluster_deployment::state::ClusterState;

pub(super) fn propose(state: &ClusterState<'_>, _: &Round) -> Proposal {
    let runs = state.active.iter().copied();
    let runs = runs.filter(|run| !run.spec.cancel && is_for_who_stays(run));
    Proposal::actions(runs.filter_map(|run| withdraw(state, run)).collect())
}

/// Whether it does something with machines that is of no use to one that leaves.
fn is_for_who_stays(run: &PlaybookRun) -> bool {
    let intent = run.spec.intent;
    intent.spec().effect == Effect::Provisions || intent == Intent::Backup
}

fn withdraw(state: &ClusterState<'_>, run: &PlaybookRun) -> Option<Action> {
    let leaves = |host: &String| state.is_leaving(host);
    if !run.spec.hosts.iter().any(leaves) && !gate::supersedes(state, run) {
        return None;
    }
    let held = state.deployment.status.iter().flat_map(|status| &status.operations);
    let token = run.status.as_ref().map_or(0, |status| status.token);
    let granted = token > 0 || held.into_iter().any(|held| Some(&held.run) == run.metadata.name.as_ref());
    match granted {
        false if run.spec.intent == Intent::Backup => Some(Action::DeleteRun(Box::new(run.clone()))),
        // The lock never lets it begin. Its other machines get another one; what a person asked for is canceled, and
        // not forgotten.
        false if attempts::targets(run).is_empty() => Some(Action::CancelRun(Box::new(run.clone()))),
        false => Some(Action::DeleteRun(Box::new(run.clone()))),
        true if brings_machines(run) && run.spec.hosts.iter().all(leaves) => {
            Some(Action::CancelRun(Box::new(run.clone())))
        }
        true => None,
    }
}
