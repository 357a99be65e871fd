//! Withdraws runs that are in the way of machines that leave: what has not begun never does, and a join that works for
//! nobody else ends. A backup that has not begun is taken by another run, on the machines that stay.

use crds::PlaybookRun;
use crds::step::{Effect, Intent};

use super::super::act::Act;
use super::super::part_wanted::Basis;
use super::super::proposal::{Proposal, Round};
use super::super::state::PlaneState;
use crate::attempts;

pub(super) fn propose(state: &PlaneState<'_>, _: &Basis<'_>, _: &Round) -> Proposal {
    let is_for_who_stays = |run: &&PlaybookRun| {
        let intent = run.spec.intent;
        !run.spec.cancel && (intent.spec().effect == Effect::Provisions || intent == Intent::Backup)
    };
    let runs = state.active.iter().copied().filter(is_for_who_stays);
    Proposal::acts(runs.filter_map(|run| withdraw(state, run)).collect())
}

fn withdraw(state: &PlaneState<'_>, run: &PlaybookRun) -> Option<Act> {
    let leaves = |host: &String| state.is_leaving(host);
    if !run.spec.hosts.iter().any(leaves) {
        return None;
    }
    let held = state.object.status.iter().flat_map(|status| &status.operations);
    let token = run.status.as_ref().map_or(0, |status| status.token);
    let granted = token > 0 || held.into_iter().any(|held| Some(&held.run) == run.metadata.name.as_ref());
    match granted {
        false if run.spec.intent == Intent::Backup => Some(Act::DeleteRun(Box::new(run.clone()))),
        // What a person asked for is canceled, and not forgotten.
        false if attempts::targets(run).is_empty() => Some(Act::CancelRun(Box::new(run.clone()))),
        false => Some(Act::DeleteRun(Box::new(run.clone()))),
        true if run.spec.intent == Intent::Join && run.spec.hosts.iter().all(leaves) => {
            Some(Act::CancelRun(Box::new(run.clone())))
        }
        true => None,
    }
}
