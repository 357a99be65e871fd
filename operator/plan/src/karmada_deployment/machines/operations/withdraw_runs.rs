//! Withdraws runs that are in the way of machines that leave.

use crds::PlaybookRun;

use super::super::act::Act;
use super::super::part_wanted::Basis;
use super::super::proposal::{Proposal, Round};
use super::super::state::PlaneState;
use crate::withdrawal::{Withdrawal, withdrawal};

pub(super) fn propose(state: &PlaneState<'_>, _: &Basis<'_>, _: &Round) -> Proposal {
    let held = state.object.status.as_ref().map(|status| status.operations.as_slice()).unwrap_or_default();
    let withdraw = |run: &&PlaybookRun| {
        let how = withdrawal(run, held, |host| state.is_leaving(host), || false);
        let run = Box::new((*run).clone());
        how.map(|how| match how {
            Withdrawal::Delete => Act::DeleteRun(run),
            Withdrawal::Cancel => Act::CancelRun(run),
        })
    };
    Proposal::acts(state.active.iter().filter_map(withdraw).collect())
}
