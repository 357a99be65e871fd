//! Members that did not answer: each of them costs seconds, so few are asked at once, and each only now and then. Those
//! that answer do not wait for them.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use parking_lot::Mutex;

/// How long one that did not answer is not asked again, in seconds.
const REST_SECONDS: i64 = 15;
/// How many that did not answer are asked in one reconcile.
const ASKED_AT_ONCE: usize = 8;

/// What members did not answer, by the UID of the plane and the name; clones are the same.
#[derive(Clone, Default)]
pub(crate) struct Silences(Arc<Mutex<BTreeMap<(String, String), Silence>>>);

#[derive(Clone)]
struct Silence {
    why: String,
    asked: Timestamp,
}

impl Silences {
    /// Those of a plane that are not asked now, and what was said of them last: the ones asked a moment ago, and of the
    /// others all but a few, those that were asked longest ago.
    pub(super) fn resting(&self, plane: &str, now: Timestamp) -> BTreeMap<String, String> {
        let silences = self.0.lock();
        let mut own: Vec<(&String, &Silence)> =
            silences.iter().filter(|((of, _), _)| of == plane).map(|((_, name), silence)| (name, silence)).collect();
        own.sort_by_key(|(_, silence)| silence.asked);
        let is_due = |silence: &Silence| now.duration_since(silence.asked).as_secs() >= REST_SECONDS;
        let due = own.iter().filter(|(_, silence)| is_due(silence)).count().min(ASKED_AT_ONCE);
        own.into_iter().skip(due).map(|(name, silence)| (name.clone(), silence.why.clone())).collect()
    }

    /// Whether it did not answer when it was asked last.
    pub(super) fn is_silent(&self, plane: &str, member: &str) -> bool {
        self.0.lock().contains_key(&(plane.to_owned(), member.to_owned()))
    }

    /// It was asked, and answered; or it did not, and why.
    pub(super) fn asked(&self, plane: &str, member: &str, answer: Result<(), &String>, now: Timestamp) {
        let key = (plane.to_owned(), member.to_owned());
        match answer {
            Ok(()) => drop(self.0.lock().remove(&key)),
            Err(why) => drop(self.0.lock().insert(key, Silence { why: why.clone(), asked: now })),
        }
    }

    /// Keeps those of a plane for whose members `stays` holds.
    pub(in crate::karmada_deployment) fn retain(&self, plane: &str, stays: impl Fn(&str) -> bool) {
        self.0.lock().retain(|(of, name), _| of != plane || stays(name));
    }
}

#[cfg(test)]
mod tests {
    use jiff::{SignedDuration, Timestamp};

    use super::{ASKED_AT_ONCE, Silences};

    #[test]
    fn a_member_that_does_not_answer_is_asked_now_and_then_and_few_of_many_at_once() {
        let begin: Timestamp = "2026-11-27T00:00:00Z".parse().unwrap();
        let after = |seconds: i64| begin + SignedDuration::from_secs(seconds);
        let (silences, why) = (Silences::default(), "no route".to_owned());
        for number in 0..20 {
            silences.asked("p", &format!("m{number:02}"), Err(&why), after(number));
        }
        silences.asked("other", "m00", Err(&why), begin);
        assert_eq!(silences.resting("p", after(14)).len(), 20, "all were asked a moment ago");
        let first = silences.resting("p", after(15));
        assert_eq!(first.len(), 19, "the first is asked again");
        assert!(!first.contains_key("m00") && first["m01"] == "no route");
        let later = silences.resting("p", after(100));
        assert_eq!(later.len(), 20 - ASKED_AT_ONCE, "of many a few at once");
        assert!(later.contains_key("m08") && !later.contains_key("m07"), "{later:?}");
        silences.asked("p", "m08", Ok(()), after(100));
        assert!(!silences.is_silent("p", "m08") && silences.is_silent("p", "m09"));
        silences.retain("p", |_| false);
        assert!(silences.resting("p", after(0)).is_empty());
        assert!(silences.is_silent("other", "m00"));
    }
}
