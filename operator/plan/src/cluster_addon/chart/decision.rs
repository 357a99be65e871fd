//! What is done for a chart now.

use crds::Reason;
use crds::cluster_addon::ChartRelease;
use crds::conditions::Statement;
use crds::names::condition;

use crate::Next;
use crate::cluster_addon::action::Action;

/// What was decided.
pub(super) struct Decision {
    pub actions: Vec<Action>,
    pub release: ChartRelease,
    pub applied: Statement,
    /// When to look again, unless all is well.
    pub next: Next,
}

/// What is said of the release.
pub(super) fn stated(status: bool, reason: Reason, message: String) -> Statement {
    Statement::new(condition::APPLIED, status, reason, message)
}
