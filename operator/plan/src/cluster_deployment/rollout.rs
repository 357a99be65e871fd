//! The rollout of what was changed: what is still to be done to machines that stay, and whether machines may be
//! disrupted for it now. They may once a person has approved it, where that is wanted, and in a maintenance window,
//! where there are any.

mod approval;
pub(super) mod canaries;
pub(super) mod gate;
pub(super) mod look;
mod plan;
pub(super) mod windows;

use crds::Reason;
use crds::cluster_deployment::RolloutPlan;
use jiff::Timestamp;

/// What is planned, and why it does not begin, if that is so.
#[derive(Default)]
pub(super) struct Rollout {
    /// None: nothing is to be done.
    pub plan: Option<RolloutPlan>,
    /// A person has yet to approve it.
    unapproved: Option<Closed>,
    /// No maintenance window is open.
    out_of_hours: Option<Closed>,
    /// The cluster is not well enough for it.
    unwell: Option<Closed>,
}

impl Rollout {
    /// Whether a machine may be disrupted for it now.
    pub fn is_open(&self) -> bool {
        self.unapproved.is_none() && self.out_of_hours.is_none() && self.unwell.is_none()
    }
}

/// Why no machine is disrupted.
struct Closed {
    reason: Reason,
    /// `waits for the maintenance window that opens at 2026-11-26 02:00:00 UTC`.
    why: String,
    /// Whether that ends by itself; else when somebody acts.
    passes: bool,
    /// When, if that is known.
    opens: Option<Timestamp>,
}
