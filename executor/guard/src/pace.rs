//! How often the same thing is put back: whoever takes it away again and again may mean it.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

/// So many times within [`WINDOW`].
const LIMIT: usize = 6;
/// Repairs that are older do not count.
const WINDOW: Duration = Duration::from_secs(300);

/// Recent repairs, with their times.
#[derive(Debug, Default)]
pub struct Pace {
    repairs: BTreeMap<String, VecDeque<Duration>>,
}

/// Whether a thing is put back now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Turn {
    /// It is; this was written down.
    Now,
    /// Not before this moment.
    NotBefore(Duration),
}

impl Pace {
    /// Asks for a thing that is gone at `now`, a time since any fixed moment.
    pub fn ask(&mut self, thing: &str, now: Duration) -> Turn {
        let repairs = self.repairs.entry(thing.to_owned()).or_default();
        while repairs.front().is_some_and(|at| *at + WINDOW <= now) {
            repairs.pop_front();
        }
        match repairs.front() {
            Some(first) if repairs.len() >= LIMIT => Turn::NotBefore(*first + WINDOW),
            Some(_) | None => {
                repairs.push_back(now);
                Turn::Now
            }
        }
    }

    /// Forgets the last repair of `thing`: it came to nothing.
    pub fn take_back(&mut self, thing: &str) {
        if let Some(repairs) = self.repairs.get_mut(thing) {
            repairs.pop_back();
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_is_taken_away_again_and_again_is_put_back_six_times_in_five_minutes() {
        let mut pace = Pace::default();
        let at = Duration::from_secs;
        for second in 0..6 {
            assert_eq!(pace.ask("route", at(second)), Turn::Now);
        }
        assert_eq!(pace.ask("route", at(6)), Turn::NotBefore(at(300)));
        assert_eq!(pace.ask("rules", at(6)), Turn::Now);
        assert_eq!(pace.ask("route", at(300)), Turn::Now);
        assert_eq!(pace.ask("route", at(300)), Turn::NotBefore(at(301)));
    }

    #[test]
    fn what_could_not_be_put_back_is_tried_each_time() {
        let mut pace = Pace::default();
        for second in 0..100 {
            assert_eq!(pace.ask("route", Duration::from_secs(second)), Turn::Now);
            pace.take_back("route");
        }
    }

    proptest! {
        #[test]
        fn no_window_has_more_than_the_limit_and_nobody_waits_for_more_than_one(gaps in prop::collection::vec(0..200u64, 1..200)) {
            let (mut pace, mut now, mut done) = (Pace::default(), Duration::ZERO, Vec::new());
            for gap in gaps {
                now += Duration::from_secs(gap);
                match pace.ask("route", now) {
                    Turn::Now => done.push(now),
                    Turn::NotBefore(then) => prop_assert!(then > now && then <= now + WINDOW),
                }
                prop_assert!(done.iter().filter(|at| **at + WINDOW > now).count() <= LIMIT);
            }
        }
    }
}
