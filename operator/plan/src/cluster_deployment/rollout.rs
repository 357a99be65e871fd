//! The rollout of what was changed: what is still to be done to machines that stay, and whether machines may be disrupted
//! for it now. They may once a person has approved it, where that is wanted, and in a maintenance window, where there are
//! any.

mod approval;
pub(super) mod canaries;
mod plan;
pub(super) mod windows;

use crds::cluster_deployment::RolloutPlan;
use crds::step::Intent;
use crds::{PlaybookRun, Reason};
use jiff::Timestamp;

use super::proposal::{Area, Proposal, Severity};
use super::state::ClusterState;
use crate::moment::day_and_clock;
use crate::{attempts, provisioning};
use windows::Windows;

/// What is planned, and why it does not begin, if that is so.
#[derive(Default)]
pub(super) struct Rollout {
    /// None: nothing is to be done.
    pub plan: Option<RolloutPlan>,
    unapproved: Option<Closed>,
    out_of_hours: Option<Closed>,
}

/// What was done to a machine already for the change that is due there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Begun {
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

/// Why no machine is disrupted.
#[derive(Clone)]
struct Closed {
    reason: Reason,
    /// `waits for the maintenance window that opens at 2026-11-26 02:00:00 UTC`.
    why: String,
    severity: Severity,
    /// When that ends by itself.
    opens: Option<Timestamp>,
}

impl Rollout {
    pub fn look(state: &ClusterState<'_>) -> Self {
        let wishes = plan::wishes(state);
        let approval = approval::read(state, &wishes);
        let unapproved = (!wishes.is_empty()).then(|| approval.missing(state)).flatten();
        let out_of_hours = match windows::look(state) {
            Windows::Any | Windows::Open => None,
            Windows::Closed { opens } => Some(Closed {
                reason: Reason::WaitingForWindow,
                why: format!("waits for the maintenance window that opens at {}", day_and_clock(opens)),
                severity: Severity::Progressing,
                opens: Some(opens),
            }),
            Windows::Refused { reason, message } => {
                Some(Closed { reason, why: message, severity: Severity::Stalled, opens: None })
            }
        };
        let plan =
            plan::plan(state).map(|plan| RolloutPlan { digest: approval.digest, approved: approval.approved, ..plan });
        Self { plan, unapproved, out_of_hours }
    }

    /// Whether a run that has not begun was made before what is wanted was changed to what nobody has approved: it would
    /// bring that.
    pub fn supersedes(&self, state: &ClusterState<'_>, run: &PlaybookRun) -> bool {
        let rolls_out = [Intent::Upgrade, Intent::Configure].contains(&run.spec.intent);
        let is_ours = !attempts::targets(run).is_empty();
        let wanted = || provisioning::wanted(state.deployment);
        self.unapproved.is_some() && rolls_out && is_ours && attempts::wanted_of(run) != Some(&wanted())
    }

    /// Why a machine is not disrupted now, as a report on `what`; none: it may be. What has begun on a machine is
    /// finished out of hours, too; where it was only drained, what is done to it must be approved all the same.
    pub fn gate(&self, state: &ClusterState<'_>, begun: Begun, area: Area, what: &str) -> Option<Proposal> {
        let closed = match begun {
            Begun::Nothing => self.unapproved.as_ref().or(self.out_of_hours.as_ref()),
            Begun::Drained => self.unapproved.as_ref(),
            Begun::Tried => None,
        }?;
        let message = format!("{what}: {}", closed.why);
        let proposal = Proposal::report(area, closed.reason, message, closed.severity).standing_aside();
        Some(closed.opens.into_iter().fold(proposal, |proposal, opens| proposal.at(state, opens)))
    }
}
