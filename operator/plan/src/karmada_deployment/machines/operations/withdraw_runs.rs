//! Withdraws runs that are in the way of machines that leave: what has not begun never does, and a join that works for
//! nobody else ends.

use crds::PlaybookRun;
use crds::step::{Effect, Intent};

use super::super::act::Act;
use super::super::proposal::{Proposal, Round};
use super::super::state::PlaneState;
use super::super::wanted_parts::Basis;
use crate::attempts;

pub(super) fn propose(state: &PlaneState<'_>, _: &Basis<'_>, _: &Round) -> Proposal {
    let provisions = |run: &&PlaybookRun| !run.spec.cancel && run.spec.intent.spec().effect == Effect::Provisions;
    let runs = state.active.iter().copied().filter(provisions);
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
        // What a person asked for is canceled, and not forgotten.
        false if attempts::targets(run).is_empty() => Some(Act::CancelRun(Box::new(run.clone()))),
        false => Some(Act::DeleteRun(Box::new(run.clone()))),
        true if run.spec.intent == Intent::Join && run.spec.hosts.iter().all(leaves) => {
            Some(Act::CancelRun(Box::new(run.clone())))
        }
        true => None,
    }
}
