//! The shape of every planner's answer: actions to take, the status to show, and when to look again.

use std::time::Duration;

use jiff::Timestamp;

/// When to look at the object again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Next {
    /// When it, or something that it watches, changes.
    #[default]
    OnChange,
    /// After this long, or on a change before.
    After(Duration),
}

impl Next {
    /// After a number of seconds.
    pub fn after_seconds(seconds: u64) -> Self {
        Next::After(Duration::from_secs(seconds))
    }

    /// At this time: times are whole seconds, so a little after.
    pub fn until(at: Timestamp, now: Timestamp) -> Self {
        let seconds = at.duration_since(now).as_secs().max(0);
        Next::after_seconds(u64::try_from(seconds).unwrap_or_default() + 1)
    }

    /// The earlier of both.
    pub fn or_sooner(self, other: Next) -> Next {
        match (self, other) {
            (Next::After(a), Next::After(b)) => Next::After(a.min(b)),
            (Next::After(a), Next::OnChange) | (Next::OnChange, Next::After(a)) => Next::After(a),
            (Next::OnChange, Next::OnChange) => Next::OnChange,
        }
    }
}

/// What a planner answers.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan<Action, Status> {
    /// What to do, in this order; each carries every value that doing it needs.
    pub actions: Vec<Action>,
    /// What to show, computed from what was observed (the actions are not done yet).
    pub status: Status,
    /// When to look again.
    pub next: Next,
    /// What unfinished work waits for; `None` when nothing is unfinished.
    pub waits_for: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::Next;

    #[test]
    fn the_sooner_of_two_wins() {
        let (short, long) = (Next::after_seconds(1), Next::after_seconds(9));
        assert_eq!(long.or_sooner(short), short);
        assert_eq!(long.or_sooner(Next::OnChange), long);
        assert_eq!(Next::OnChange.or_sooner(Next::OnChange), Next::OnChange);
    }
}
