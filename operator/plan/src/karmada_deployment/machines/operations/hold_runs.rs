//! Holds runs while the plane is paused: those that work are asked to hold before their next step.

use crds::PlaybookRun;

use super::super::act::Act;
use super::super::part_wanted::Basis;
use super::super::proposal::{Proposal, Round};
use super::super::state::PlaneState;

pub(super) fn propose(state: &PlaneState<'_>, _: &Basis<'_>, round: &Round) -> Proposal {
    let paused = state.object.spec.paused;
    let holds = |run: &PlaybookRun| {
        let name = run.metadata.name.as_ref();
        round.lock.operations.iter().any(|held| Some(&held.run) == name)
    };
    let differs = |run: &&&PlaybookRun| run.spec.paused != paused && (!paused || holds(run));
    let runs = state.active.iter().filter(differs);
    Proposal::acts(runs.map(|run| Act::HoldRun { run: Box::new((*run).clone()), paused }).collect())
}
