//! What was tried on a sick machine.

use crds::remediation_policy::RemediationAction as Action;
use jiff::Timestamp;

use crate::attempts::Failure;

/// Something that was tried.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Effort {
    /// Name of the run.
    pub run: String,
    /// What.
    pub action: Action,
    /// When the run was made.
    pub made: Timestamp,
    /// When it ended.
    pub ended: Timestamp,
    /// The retry that asked for it.
    pub retry: Option<String>,
    /// What came out.
    pub result: EffortResult,
}

/// What came out of an effort.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EffortResult {
    /// Not over yet.
    UnderWay,
    /// It was done.
    Done,
    /// It was tried on the machine, and failed.
    Failed(Failure),
    /// Nothing came to the machine, for a reason that lies elsewhere.
    NotTried(Failure),
    /// A person stopped it.
    Canceled,
    /// It was held at a pause.
    Held,
}
