//! Withdraws runs that are in the way of machines that leave, and what has not begun of a change that was edited to one
//! that nobody has approved.

use crds::PlaybookRun;

use crate::cluster_deployment::action::Action;
use crate::cluster_deployment::proposal::{Proposal, Round};
use crate::cluster_deployment::rollout::gate;
use crate::cluster_deployment::state::ClusterState;
use crate::withdrawal::{Withdrawal, withdrawal};

pub(super) fn propose(state: &ClusterState<'_>, _: &Round) -> Proposal {
    let held = state.deployment.status.as_ref().map(|status| status.operations.as_slice()).unwrap_or_default();
    let withdraw = |run: &&PlaybookRun| {
        let how = withdrawal(run, held, |host| state.is_leaving(host), || gate::supersedes(state, run));
        let run = Box::new((*run).clone());
        how.map(|how| match how {
            Withdrawal::Delete => Action::DeleteRun(run),
            Withdrawal::Cancel => Action::CancelRun(run),
        })
    };
    Proposal::actions(state.active.iter().filter_map(withdraw).collect())
}
