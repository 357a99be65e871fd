//! Who leads: decided from the Lease as this candidate has seen it, by a clock of its own. The times written in the
//! Lease are for people: clocks of two machines are never compared. A Lease expires when its holder was silent for its
//! duration, measured from the moment at which this candidate first saw the very record that it still sees. The holder
//! counts from the moment at which it sent its last renewal, and stops sooner (the renew deadline): so that its time is
//! over before another's can begin, as long as no clock runs half as fast again as another.

#[cfg(test)]
mod simulation;
mod times;

pub use times::{Moment, Times};

/// What the Lease says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// Its resourceVersion: another one is another record.
    pub version: String,
    /// Who holds it; `None`: it was released.
    pub holder: Option<String>,
    /// How long its holder may be silent; `None`: it does not say.
    pub lease_seconds: Option<u64>,
    /// How often it changed hands.
    pub transitions: i32,
}

/// What to do now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Read the Lease.
    Look,
    /// Write ourselves in, under the condition that the record is still the one seen.
    Acquire(Write),
    /// Write ourselves in once more, under the same condition.
    Renew(Write),
    /// Nothing before this moment.
    WaitUntil(Moment),
    /// It was ours and is not any more: everything is to be dropped.
    Lost(Loss),
}

/// A write of the Lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Write {
    /// The record that it replaces; `None`: there is no Lease, it is made.
    pub version: Option<String>,
    /// How often the Lease has changed hands after it.
    pub transitions: i32,
}

/// Why a Lease was lost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Loss {
    /// Another one holds it.
    Taken(String),
    /// No renewal succeeded before the renew deadline: another one may hold it.
    Silent {
        /// The renew deadline.
        seconds: u64,
    },
    /// The store was set back to an older state: what was seen of it is newer than it is.
    SetBack,
}

impl std::fmt::Display for Loss {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Loss::Taken(holder) => write!(f, "{holder} holds it"),
            Loss::Silent { seconds } => {
                write!(f, "no renewal succeeded for {seconds} s, so another may hold it")
            }
            Loss::SetBack => f.write_str(
                "the metadata cluster was set back to an older state: it is read anew, and its machines are asked",
            ),
        }
    }
}

impl std::error::Error for Loss {}

/// The Lease as last seen.
#[derive(Clone, Debug)]
struct Seen {
    /// `None`: there was none.
    record: Option<Record>,
    /// From when on it is free to take, counted from when this very record was seen first, after the answer came.
    free_at: Moment,
}

/// One who holds the Lease or wants to.
#[derive(Clone, Debug)]
pub struct Candidate {
    /// A name that no other process has, nor an earlier one of this Pod.
    me: String,
    times: Times,
    seen: Option<Seen>,
    /// A write failed: what was seen may not be so any more.
    in_doubt: bool,
    /// When the last write of ours that succeeded was sent.
    held: Option<Moment>,
    /// When to act next.
    due: Moment,
}

impl Candidate {
    /// One that has seen nothing yet.
    pub fn new(me: impl Into<String>, times: Times) -> Self {
        Self { me: me.into(), times, seen: None, in_doubt: false, held: None, due: Moment::default() }
    }

    /// Until when the Lease is ours, by our own clock; `None`: it never was.
    pub fn holds_until(&self) -> Option<Moment> {
        self.held.map(|sent| sent + self.times.renew_deadline())
    }

    /// The record as last seen.
    pub fn record(&self) -> Option<&Record> {
        self.seen.as_ref()?.record.as_ref()
    }

    /// What to do now.
    pub fn decide(&self, now: Moment) -> Decision {
        let holder = self.record().and_then(|record| record.holder.as_deref());
        if let Some(until) = self.holds_until() {
            let seconds = self.times.renew_deadline().as_secs();
            return match holder {
                Some(holder) if holder != self.me => Decision::Lost(Loss::Taken(holder.to_owned())),
                _ if now >= until => Decision::Lost(Loss::Silent { seconds }),
                _ if now < self.due => Decision::WaitUntil(self.due.min(until)),
                _ if self.in_doubt => Decision::Look,
                _ => Decision::Renew(self.write()),
            };
        }
        match &self.seen {
            Some(seen) if !self.in_doubt && now >= seen.free_at => Decision::Acquire(self.write()),
            _ if now >= self.due => Decision::Look,
            Some(seen) if !self.in_doubt => Decision::WaitUntil(self.due.min(seen.free_at)),
            _ => Decision::WaitUntil(self.due),
        }
    }

    fn write(&self) -> Write {
        let record = self.record();
        let changes_hands = record.and_then(|record| record.holder.as_deref()) != Some(&self.me);
        let transitions = record.map_or(0, |record| record.transitions);
        Write {
            version: record.map(|record| record.version.clone()),
            transitions: transitions.saturating_add(i32::from(changes_hands && record.is_some())),
        }
    }

    /// The Lease was read (`None`: there is none); `answered` is after the answer came. `chance` (0 to 1) spreads those
    /// who look.
    pub fn saw(&mut self, record: Option<Record>, answered: Moment, chance: f64) {
        self.remember(record, answered);
        self.in_doubt = false;
        if self.held.is_none() {
            self.due = answered + self.times.retry(chance);
        }
    }

    /// A write of ours, sent at `sent`, made this record; `answered` is after the answer came.
    pub fn wrote(&mut self, record: Record, sent: Moment, answered: Moment, chance: f64) {
        self.remember(Some(record), answered);
        self.due = sent + self.times.retry(chance);
        // An answer that came too late to begin with is not a beginning.
        let in_time = answered < sent + self.times.renew_deadline();
        self.in_doubt = !in_time;
        if in_time || self.held.is_some() {
            self.held = Some(sent);
        }
    }

    /// A write of ours was refused, since the record is another one.
    pub fn was_refused(&mut self, answered: Moment) {
        self.in_doubt = true;
        self.due = answered;
    }

    /// A request of ours, sent at `sent`, failed, or its answer never came.
    pub fn failed(&mut self, sent: Moment, chance: f64) {
        self.in_doubt = true;
        self.due = sent + self.times.retry(chance);
    }

    fn remember(&mut self, record: Option<Record>, answered: Moment) {
        let version = |record: &Option<Record>| record.as_ref().map(|record| record.version.clone());
        if let Some(seen) = &self.seen
            && version(&seen.record) == version(&record)
        {
            return;
        }
        let lease = self.times.lease_or(record.as_ref().and_then(|record| record.lease_seconds));
        let held = |record: &Record| record.holder.as_ref().is_some_and(|holder| *holder != self.me);
        let free_at = match (&record, self.record()) {
            (Some(record), _) if held(record) => answered + lease,
            // Who held it a moment ago may not know yet that it is gone.
            (None, Some(before)) if held(before) => answered + lease,
            _ => answered,
        };
        self.seen = Some(Seen { record, free_at });
    }
}

#[cfg(test)]
mod tests {
    use super::{Candidate, Decision, Loss, Moment, Record, Times, Write};
    use std::time::Duration;

    fn at(seconds: u64) -> Moment {
        Moment(Duration::from_secs(seconds))
    }

    fn candidate() -> Candidate {
        Candidate::new("me", Times::of_seconds(15, 10, 2).unwrap())
    }

    fn record(version: &str, holder: &str) -> Record {
        Record {
            version: version.into(),
            holder: (!holder.is_empty()).then(|| holder.into()),
            lease_seconds: Some(15),
            transitions: 4,
        }
    }

    fn replacing(version: &str, transitions: i32) -> Write {
        Write { version: Some(version.into()), transitions }
    }

    #[test]
    fn a_lease_that_is_free_is_taken_at_once() {
        let mut me = candidate();
        assert_eq!(me.decide(at(0)), Decision::Look);
        me.saw(None, at(0), 1.0);
        let made = Write { version: None, transitions: 0 };
        assert_eq!(me.decide(at(0)), Decision::Acquire(made));
        me.saw(Some(record("7", "")), at(1), 1.0);
        assert_eq!(me.decide(at(1)), Decision::Acquire(replacing("7", 5)));
    }

    #[test]
    fn a_silent_holder_is_replaced_after_the_leases_duration_as_seen_from_here() {
        let mut me = candidate();
        for seconds in [100, 102, 104] {
            me.saw(Some(record("7", "other")), at(seconds), 1.0);
            assert_eq!(me.decide(at(seconds)), Decision::WaitUntil(at(seconds + 2)));
        }
        me.saw(Some(record("7", "other")), at(114), 1.0);
        assert_eq!(me.decide(at(114)), Decision::WaitUntil(at(115)));
        assert_eq!(me.decide(at(115)), Decision::Acquire(replacing("7", 5)));
    }

    #[test]
    fn any_change_of_the_record_is_a_sign_of_life() {
        let mut me = candidate();
        me.saw(Some(record("7", "other")), at(100), 1.0);
        me.saw(Some(record("8", "other")), at(114), 1.0);
        assert_eq!(me.decide(at(115)), Decision::WaitUntil(at(116)));
        assert_eq!(me.decide(at(116)), Decision::Look);
    }

    #[test]
    fn a_lease_that_vanished_is_waited_for_like_its_holder() {
        let mut me = candidate();
        me.saw(Some(record("7", "other")), at(100), 1.0);
        me.saw(None, at(102), 1.0);
        assert_eq!(me.decide(at(102)), Decision::WaitUntil(at(104)));
        me.saw(None, at(116), 1.0);
        assert_eq!(me.decide(at(116)), Decision::WaitUntil(at(117)));
        assert!(matches!(me.decide(at(117)), Decision::Acquire(_)));
    }

    #[test]
    fn a_holder_renews_every_retry_period() {
        let mut me = candidate();
        me.wrote(record("8", "me"), at(100), at(101), 1.0);
        assert_eq!(me.decide(at(101)), Decision::WaitUntil(at(102)));
        assert_eq!(me.decide(at(102)), Decision::Renew(replacing("8", 4)));
        assert_eq!(me.holds_until(), Some(at(110)));
    }

    #[test]
    fn a_renewal_whose_answer_was_lost_is_found_and_renewed() {
        let mut me = candidate();
        me.wrote(record("8", "me"), at(100), at(100), 1.0);
        me.failed(at(102), 1.0);
        assert_eq!(me.decide(at(104)), Decision::Look);
        me.saw(Some(record("9", "me")), at(104), 1.0);
        assert_eq!(me.holds_until(), Some(at(110)));
        assert_eq!(me.decide(at(104)), Decision::Renew(replacing("9", 4)));
    }

    #[test]
    fn a_lease_that_another_took_is_lost_at_once() {
        let mut me = candidate();
        me.wrote(record("8", "me"), at(100), at(100), 1.0);
        me.was_refused(at(102));
        assert_eq!(me.decide(at(102)), Decision::Look);
        me.saw(Some(record("9", "other")), at(102), 1.0);
        assert_eq!(me.decide(at(102)), Decision::Lost(Loss::Taken("other".into())));
    }

    #[test]
    fn a_lease_that_cannot_be_renewed_is_lost_at_the_renew_deadline() {
        let mut me = candidate();
        me.wrote(record("8", "me"), at(100), at(100), 1.0);
        for seconds in [102, 104, 106, 108] {
            me.failed(at(seconds), 1.0);
        }
        assert_eq!(me.decide(at(108)), Decision::WaitUntil(at(110)));
        assert_eq!(me.decide(at(110)), Decision::Lost(Loss::Silent { seconds: 10 }));
    }

    #[test]
    fn an_answer_that_came_after_a_long_pause_makes_no_leader() {
        let mut me = candidate();
        me.saw(None, at(0), 1.0);
        me.wrote(record("8", "me"), at(0), at(60), 1.0);
        assert_eq!(me.holds_until(), None);
        assert_eq!(me.decide(at(60)), Decision::Look);
        me.saw(Some(record("8", "me")), at(60), 1.0);
        assert_eq!(me.decide(at(60)), Decision::Acquire(replacing("8", 4)));
    }

    #[test]
    fn failures_are_not_repeated_faster_than_the_retry_period() {
        let mut me = candidate();
        me.failed(at(100), 1.0);
        assert_eq!(me.decide(at(101)), Decision::WaitUntil(at(102)));
        assert_eq!(me.decide(at(102)), Decision::Look);
    }
}
