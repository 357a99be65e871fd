//! Compares the machines with the store, which may have been set back to an older state: holds all else until every
//! machine was looked at and a person has approved what contradicts, and then adopts what the machines know. Nothing is
//! reset by that.

use crds::Reason;
use crds::names::condition;

use crate::Next;
use crate::cluster_deployment::action::Action;
use crate::cluster_deployment::lane::Lane;
use crate::cluster_deployment::proposal::{Area, Proposal, Round, Severity};
use crate::cluster_deployment::state::ClusterState;
use crate::store::adoption;
use crate::store::verdict::{self, Verdict};

/// All but the lock, which gives out nothing meanwhile, and what is kept of the past.
const BLOCKS: &[Lane] = &[
    Lane::Fencing,
    Lane::Recovery,
    Lane::Install,
    Lane::ControlPlane,
    Lane::Workers,
    Lane::Remediation,
    Lane::Leaving,
];
/// Looks again after this for what nobody tells.
const AGAIN_SECONDS: u64 = 30;

pub(super) fn propose(state: &ClusterState<'_>, _: &Round) -> Proposal {
    let Some(verdict) = verdict(state) else {
        return Proposal::default().condition(condition::STORE_IS_OLDER, None);
    };
    let (actions, stated) = (adopt(state), verdict.statement());
    let Verdict { reason, message, .. } = verdict;
    let proposal = match reason {
        // Nothing is known to be wrong yet.
        Reason::LookingAtMachines => Proposal::default(),
        Reason::AdoptingClaims => Proposal::report(Area::Store, reason, message, Severity::Progressing),
        _ => Proposal::report(Area::Store, reason, message, Severity::Stalled),
    };
    Proposal {
        actions,
        requeue: Next::after_seconds(AGAIN_SECONDS),
        blocks: if state.comparison.holds() { BLOCKS } else { &[] },
        ..proposal.condition(condition::STORE_IS_OLDER, Some(stated))
    }
}

/// Nothing where nothing speaks against the store.
pub(in super::super) fn verdict(state: &ClusterState<'_>) -> Option<Verdict> {
    verdict::verdict(&state.comparison, |value| state.approve(value))
}

/// What makes the objects say what the machines do, once that is approved.
pub(in super::super) fn adopt(state: &ClusterState<'_>) -> Vec<Action> {
    let observed = state.observed;
    let adopted = adoption::adopt(&state.comparison, &state.deployment.metadata, observed.machines, observed.now);
    adopted.into_iter().map(Action::Adopt).collect()
}
