//! How often a status is written that differs in its messages alone. Nothing is decided by them, and nobody reads as
//! fast as they change: with each task of a run, of each of its machines, in each set.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use serde::Serialize;
use serde_json::Value;

/// What was written long ago is forgotten once there is so much of it.
const MANY: usize = 4096;

/// When each object's status was written last, by UID.
#[derive(Debug)]
pub(crate) struct Pace {
    interval: Duration,
    last: Mutex<HashMap<String, Instant>>,
}

impl Pace {
    /// A status whose messages alone have changed is written no more often than this.
    pub fn new(interval: Duration) -> Self {
        Self { interval, last: Mutex::default() }
    }

    /// How long the new status has to wait; `None`: it is written now.
    pub fn wait<S: Serialize>(&self, uid: &str, old: Option<&S>, new: &S, now: Instant) -> Option<Duration> {
        let due = *self.last.lock().get(uid)? + self.interval;
        let wait = due.checked_duration_since(now).filter(|wait| !wait.is_zero())?;
        differ_in_messages(old?, new).then_some(wait)
    }

    /// Notes that a status was written.
    pub fn written(&self, uid: &str, now: Instant) {
        let mut last = self.last.lock();
        if last.len() >= MANY {
            last.retain(|_, at| now.duration_since(*at) < self.interval);
        }
        last.insert(uid.to_owned(), now);
    }
}

/// Whether they differ, and in messages alone.
fn differ_in_messages<S: Serialize>(old: &S, new: &S) -> bool {
    let (Ok(old), Ok(new)) = (serde_json::to_value(old), serde_json::to_value(new)) else { return false };
    old != new && without_messages(old) == without_messages(new)
}

fn without_messages(value: Value) -> Value {
    match value {
        Value::Object(fields) => {
            let kept = fields.into_iter().filter(|(name, _)| name != "message");
            Value::Object(kept.map(|(name, value)| (name, without_messages(value))).collect())
        }
        Value::Array(values) => Value::Array(values.into_iter().map(without_messages).collect()),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use serde_json::{Value, json};

    use super::Pace;

    fn status(message: &str, ready: &str) -> Value {
        json!({"message": message, "conditions": [{"type": "Ready", "status": ready, "message": message}]})
    }

    #[test]
    fn messages_alone_wait_for_their_turn_and_all_else_is_written_at_once() {
        let (pace, begun) = (Pace::new(Duration::from_secs(2)), Instant::now());
        let old = status("task 1 of 9", "False");
        let wait = |uid: &str, new: &Value, after: u64| {
            pace.wait(uid, Some(&old), new, begun + Duration::from_millis(after)).map(|wait| wait.as_millis())
        };
        let (next, other) = (status("task 2 of 9", "False"), status("task 2 of 9", "True"));
        assert_eq!(wait("a", &next, 0), None, "nothing was written yet");
        pace.written("a", begun);
        assert_eq!(wait("a", &next, 500), Some(1500));
        assert_eq!(wait("a", &other, 500), None);
        assert_eq!(wait("a", &old, 500), None, "nothing is left to be written");
        assert_eq!(wait("b", &next, 500), None);
        assert_eq!(wait("a", &next, 2000), None);
        assert_eq!(pace.wait("a", None, &next, begun), None, "an object without a status gets one");
        let always = Pace::new(Duration::ZERO);
        always.written("a", begun);
        assert_eq!(always.wait("a", Some(&old), &next, begun), None);
    }

    #[test]
    fn what_was_written_long_ago_is_forgotten() {
        let (pace, begun) = (Pace::new(Duration::from_secs(2)), Instant::now());
        for number in 0..super::MANY {
            pace.written(&number.to_string(), begun);
        }
        pace.written("late", begun + Duration::from_secs(3));
        assert_eq!(pace.last.lock().len(), 1);
    }
}
