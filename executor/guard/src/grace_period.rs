//! How long running processes may go on, and what follows.

use std::time::Duration;

/// How long to wait before asking processes to end, and how much longer before ending them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GracePeriod {
    pub wait: Duration,
    pub kill_after: Duration,
}

/// The next act on processes that still run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Act {
    /// Let it go on.
    Wait,
    /// SIGTERM, once to each.
    Terminate,
    /// SIGKILL.
    Kill,
    /// Not even SIGKILL helped: something hangs in the kernel.
    GiveUp,
}

/// How long the kernel may take to end what was killed.
const KILLED: Duration = Duration::from_secs(10);

impl GracePeriod {
    /// The act that is due after so much waiting.
    pub fn act(&self, waited: Duration) -> Act {
        let kill = self.wait + self.kill_after;
        if waited < self.wait {
            Act::Wait
        } else if waited < kill {
            Act::Terminate
        } else if waited < kill + KILLED {
            Act::Kill
        } else {
            Act::GiveUp
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_at_work_is_waited_for_then_asked_then_ended() {
        let grace_period = GracePeriod { wait: Duration::from_secs(45), kill_after: Duration::from_secs(10) };
        for (waited, act) in [
            (0, Act::Wait),
            (44, Act::Wait),
            (45, Act::Terminate),
            (54, Act::Terminate),
            (55, Act::Kill),
            (64, Act::Kill),
            (65, Act::GiveUp),
        ] {
            assert_eq!(grace_period.act(Duration::from_secs(waited)), act, "after {waited} s");
        }
    }

    #[test]
    fn no_patience_at_all_kills_at_once() {
        let grace_period = GracePeriod { wait: Duration::ZERO, kill_after: Duration::ZERO };
        assert_eq!(grace_period.act(Duration::ZERO), Act::Kill);
    }
}
