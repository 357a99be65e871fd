//! The gate before each machine that is disrupted for a change.

use crds::PlaybookRun;
use crds::step::Intent;

use crate::attempts;
use crate::cluster_deployment::proposal::{Area, Proposal, Severity};
use crate::cluster_deployment::state::ClusterState;

/// What was done to a machine already for the change that is due there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::cluster_deployment) enum Begun {
    Nothing,
    /// Its Node is drained.
    Drained,
    /// A run for this very change was on it.
    Tried,
}

impl Begun {
    pub fn new(is_tried: bool, is_drained: bool) -> Self {
        match (is_tried, is_drained) {
            (true, _) => Begun::Tried,
            (false, true) => Begun::Drained,
            (false, false) => Begun::Nothing,
        }
    }
}

/// Why a machine is not disrupted now, as a report on `what`; none: it may be. What has begun on a machine is finished
/// out of hours, too; where it was only drained, what is done to it must be approved all the same.
pub(in crate::cluster_deployment) fn gate(
    state: &ClusterState<'_>,
    begun: Begun,
    area: Area,
    what: &str,
) -> Option<Proposal> {
    let rollout = &state.rollout;
    let closed = match begun {
        Begun::Nothing => [&rollout.unapproved, &rollout.unwell, &rollout.out_of_hours].into_iter().flatten().next(),
        Begun::Drained => rollout.unapproved.as_ref(),
        Begun::Tried => None,
    }?;
    let severity = if closed.passes { Severity::Progressing } else { Severity::Stalled };
    let proposal = Proposal::report(area, closed.reason, format!("{what}: {}", closed.why), severity);
    let proposal = proposal.standing_aside();
    Some(closed.opens.into_iter().fold(proposal, |proposal, opens| proposal.at(state, opens)))
}

/// Whether a run that has not begun was made before what is wanted was changed to what nobody has approved: it would
/// bring that.
pub(in crate::cluster_deployment) fn supersedes(state: &ClusterState<'_>, run: &PlaybookRun) -> bool {
    let rolls_out = [Intent::Upgrade, Intent::Configure].contains(&run.spec.intent);
    let is_ours = || !attempts::targets(run).is_empty();
    let is_old = || attempts::wanted_of(run) != Some(&state.terms.wanted);
    state.rollout.unapproved.is_some() && rolls_out && is_ours() && is_old()
}
