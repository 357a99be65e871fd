//! The hits of a series that are still pending, and how they are tried again.

use std::collections::BTreeMap;

use super::fault::{Fault, Place};
use super::installation::{Came, Wanted};
use super::schedule::AT_ONCE;
use super::table::Results;
use super::verdict::Verdict;

/// The cells of a series that are still to be hit.
pub struct Pending {
    left: BTreeMap<Place, PendingHit>,
    results: Results,
}

struct PendingHit {
    fault: Fault,
    /// How often it came too late.
    tries: u32,
    /// What to say if it is never hit better.
    best: Verdict,
}

impl Pending {
    /// All of these.
    pub fn new(hits: &BTreeMap<Place, Fault>) -> Self {
        let hit = |fault| PendingHit { fault, tries: 0, best: Verdict::NotHit("it was never tried".into()) };
        Self { left: hits.iter().map(|(place, fault)| (*place, hit(*fault))).collect(), results: Results::new() }
    }

    /// What the next install is asked for.
    pub fn wanted(&self) -> Wanted {
        self.left.iter().map(|(place, hit)| (*place, (hit.fault, hit.tries))).collect()
    }

    /// Takes what came of one: what took hold in the step, or broke a promise, is final. What came too late is tried
    /// earlier; what only grazed its step, at once. Gives what is final now.
    pub fn take(&mut self, place: Place, came: Came) -> Option<(Fault, Verdict)> {
        let mut hit = self.left.remove(&place)?;
        let certain = match came {
            Came::Judged(grazed @ Verdict::Grazed(..)) => {
                let last = hit.tries >= AT_ONCE;
                hit.tries = AT_ONCE;
                hit.best = grazed;
                last
            }
            Came::Judged(verdict) => {
                hit.best = verdict;
                true
            }
            Came::Late(why) => {
                hit.tries += 1;
                hit.learn(why);
                false
            }
            Came::Passed(why) => {
                hit.learn(why);
                false
            }
        };
        if certain {
            self.results.insert((hit.fault, place), hit.best.clone());
            return Some((hit.fault, hit.best));
        }
        self.left.insert(place, hit);
        None
    }

    /// An install ended in the middle, for no reason of its cells.
    pub fn broke_off(&mut self, why: &str) {
        for hit in self.left.values_mut() {
            hit.learn(why.to_owned());
        }
    }

    /// The verdicts of all, after so many installs at most.
    pub fn results(mut self, installs: u32) -> Results {
        for (place, hit) in self.left {
            let verdict = match hit.best {
                Verdict::NotHit(why) => Verdict::NotHit(format!("in {installs} installs; at last: {why}")),
                verdict => verdict,
            };
            self.results.insert((hit.fault, place), verdict);
        }
        self.results
    }
}

impl PendingHit {
    fn learn(&mut self, why: String) {
        if matches!(self.best, Verdict::NotHit(_)) {
            self.best = Verdict::NotHit(why);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{AT_ONCE, Came, Fault, Pending, Place, Verdict};

    const AFTER: Duration = Duration::from_secs(20);

    /// What is asked for after these came, or what is final.
    fn after(came: Vec<Came>) -> Result<u32, Verdict> {
        let mut pending = Pending::new(&[(Place::LONGEST, Fault::HostRebooted)].into());
        for came in came {
            pending.take(Place::LONGEST, came);
        }
        match pending.wanted().get(&Place::LONGEST) {
            Some((_, tries)) => Ok(*tries),
            None => Err(pending.results(6).remove(&(Fault::HostRebooted, Place::LONGEST)).unwrap()),
        }
    }

    fn grazed() -> Verdict {
        Verdict::Grazed(AFTER, Place::all()[6])
    }

    #[test]
    fn what_came_too_late_is_tried_earlier_and_what_was_not_tried_as_before() {
        assert_eq!(after(vec![]), Ok(0));
        assert_eq!(after(vec![Came::Late(String::new())]), Ok(1));
        assert_eq!(after(vec![Came::Passed(String::new())]), Ok(0));
    }

    #[test]
    fn what_grazed_its_step_is_tried_once_more_at_its_beginning() {
        assert_eq!(after(vec![Came::Judged(grazed())]), Ok(AT_ONCE));
        let again = vec![Came::Judged(grazed()), Came::Judged(grazed())];
        assert_eq!(after(again), Err(grazed()));
        let better = vec![Came::Judged(grazed()), Came::Judged(Verdict::Passed(AFTER))];
        assert_eq!(after(better), Err(Verdict::Passed(AFTER)));
    }

    #[test]
    fn a_broken_promise_is_final() {
        let failed = Verdict::Failed(vec!["two runs overlapped".into()]);
        assert_eq!(after(vec![Came::Judged(failed.clone())]), Err(failed));
    }

    #[test]
    fn what_is_never_hit_better_counts_as_it_was_and_what_is_never_hit_not_at_all() {
        let last = |came: Vec<Came>| {
            let mut pending = Pending::new(&[(Place::LONGEST, Fault::HostRebooted)].into());
            for came in came {
                pending.take(Place::LONGEST, came);
            }
            pending.broke_off("the machine does not start");
            pending.results(6).into_values().next().unwrap()
        };
        let late = vec![Came::Judged(grazed()), Came::Late("over".into())];
        assert_eq!(last(late), grazed());
        match last(vec![Came::Late("over".into())]) {
            Verdict::NotHit(why) => assert!(why.contains("does not start"), "{why}"),
            verdict => panic!("{verdict:?}"),
        }
    }
}
