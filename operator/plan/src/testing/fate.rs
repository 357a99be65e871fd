//! What becomes of a run, or of one host in it.

use crds::Reason;
use crds::playbook_run::RunPhase;

/// What becomes of one host in a run, or of the run; the number is how many steps are done by then.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Fate {
    Well,
    Fails,
    FailsAfter(usize),
    /// What it is given does not work there, and was put back.
    Refuses,
    Unreachable,
    /// It does not accept SSH logins, for this reason.
    Denied(Reason),
    /// Contact with the whole run is lost.
    Lost(usize),
    /// The whole run's time is over.
    Deadline(usize),
    /// The executor never came up.
    NotStarted,
    /// A person cancels the whole run.
    Canceled,
}

impl Fate {
    /// How the whole run ends, if it does not end by itself.
    pub(super) fn cut_off(self) -> Option<(RunPhase, Reason, usize)> {
        match self {
            Fate::Lost(done) => Some((RunPhase::Unknown, Reason::ContactLost, done)),
            Fate::Deadline(done) => Some((RunPhase::DeadlineExceeded, Reason::DeadlineExceeded, done)),
            Fate::NotStarted => Some((RunPhase::Failed, Reason::NotStarted, 0)),
            Fate::Canceled => Some((RunPhase::Canceled, Reason::Canceled, 1)),
            Fate::Well | Fate::Fails | Fate::FailsAfter(_) | Fate::Refuses | Fate::Unreachable | Fate::Denied(_) => {
                None
            }
        }
    }
}
