//! Resets machines that leave: they are cleaned, over and over until they are, the later the longer between.

use crds::ObjectExt;
use crds::step::{Intent, Step};
use jiff::Timestamp;

use crate::attempts::Failure;
use crate::cleaning::{Cleaning, CleaningObserved, cleaning};
use crate::cluster_deployment::action::Action;
use crate::cluster_deployment::proposal::{Proposal, Round};
use crate::cluster_deployment::request::{Attempt, Request, Target};
use crate::cluster_deployment::state::{ClusterMachine, ClusterState};
use crate::hooks;

/// Where the resets stand.
#[derive(Default)]
pub(in crate::cluster_deployment) struct Resets<'a> {
    /// Runs to make.
    pub actions: Vec<Action>,
    /// Machines that could not be cleaned, and when it is tried again.
    pub later: Vec<(ClusterMachine<'a>, Timestamp, Failure)>,
}

pub(super) fn propose(state: &ClusterState<'_>, _: &Round) -> Proposal {
    let resets = look(state);
    let proposal = Proposal { pending: !resets.later.is_empty(), ..Proposal::actions(resets.actions) };
    resets.later.iter().fold(proposal, |proposal, (_, at, _)| proposal.at(state, *at))
}

/// Which machines are cleaned now, and which later.
pub(in crate::cluster_deployment) fn look<'a>(state: &ClusterState<'a>) -> Resets<'a> {
    let Cleaning { batches, later } = cleaning(&CleaningObserved {
        now: state.observed.now,
        leaving: &state.leaving,
        runs: state.observed.runs,
        active: &state.active,
        terms: &state.terms,
        is_deleting: state.deployment.is_deleting(),
    });
    let run = |(attempt, targets): &(Attempt, Vec<Target<'_>>)| {
        let request = Request::new(Intent::Reset, vec![Step::Reset], targets, *attempt);
        Action::create(request.around(hooks::around_reset).run(state))
    };
    Resets { actions: batches.iter().map(run).collect(), later }
}
