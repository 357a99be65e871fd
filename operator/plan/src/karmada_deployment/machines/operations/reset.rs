//! Resets machines that leave: they are cleaned, over and over until they are, the later the longer between.

use crds::ObjectExt;
use crds::step::{Intent, Step};
use jiff::Timestamp;

use super::super::act::Act;
use super::super::part_wanted::Basis;
use super::super::proposal::{Proposal, Round};
use super::super::state::PlaneState;
use crate::attempts::Failure;
use crate::cleaning::{Cleaning, CleaningObserved, cleaning};
use crate::cluster_machine::ClusterMachine;
use crate::run_request::{Attempt, RunRequest, Target};

/// Where the resets stand.
pub(in super::super) struct Resets<'a> {
    /// Runs to make.
    pub acts: Vec<Act>,
    /// Machines that could not be cleaned, and when it is tried again.
    pub later: Vec<(ClusterMachine<'a>, Timestamp, Failure)>,
}

pub(super) fn propose(state: &PlaneState<'_>, _: &Basis<'_>, _: &Round) -> Proposal {
    let resets = look(state);
    let proposal = Proposal::acts(resets.acts);
    resets.later.iter().fold(proposal, |proposal, (_, at, _)| proposal.at(state, *at))
}

/// Which machines are cleaned now, and which later.
pub(in super::super) fn look<'a>(state: &PlaneState<'a>) -> Resets<'a> {
    let Cleaning { batches, later } = cleaning(&CleaningObserved {
        now: state.now,
        leaving: &state.leaving,
        runs: state.seen.runs,
        active: &state.active,
        terms: &state.terms,
        is_deleting: state.object.is_deleting(),
    });
    let run = |(attempt, targets): &(Attempt, Vec<Target<'_>>)| {
        Act::create(state.request(RunRequest::new(Intent::Reset, vec![Step::Reset], targets, *attempt)))
    };
    Resets { acts: batches.iter().map(run).collect(), later }
}
