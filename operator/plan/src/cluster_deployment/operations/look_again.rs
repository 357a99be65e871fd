//! Looks again for what is not watched: ConfigMaps and Secrets whose content is compared, and whatever else may end a
//! problem.

use crate::Next;
use crate::cluster_deployment::observed::LOOK_AGAIN_SECONDS;
use crate::cluster_deployment::proposal::{Proposal, Round};
use crate::cluster_deployment::state::ClusterState;
use crate::cluster_deployment::up_to_date;

pub(super) fn propose(state: &ClusterState<'_>, round: &Round) -> Proposal {
    let ends_unseen = round.problem.as_ref().is_some_and(|problem| problem.ends_unseen);
    if !up_to_date::compares_content(state) && !ends_unseen {
        return Proposal::default();
    }
    Proposal { requeue: Next::after_seconds(LOOK_AGAIN_SECONDS), ..Proposal::default() }
}
