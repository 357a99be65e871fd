//! The lock of a cluster: which runs may work on it now, and with which token. It knows runs and Hosts, and nothing of
//! the object in whose status it is kept. Exclusive runs are alone; Shared ones stand side by side when they work on
//! different Hosts; Separate ones stand beside all that work on other Hosts. Nobody overtakes a run that was made
//! before and is in its way.

pub mod tokens;

use crds::lock::{LockMode, Operation};
use crds::{ObjectExt, PlaybookRun};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use crate::attempts;

/// Runs that hold the lock at once: fewer than the status takes.
const MOST: usize = 60;

/// No token is above this. What a machine or an executor tells is not always true, and must not use up the numbers.
pub const HIGHEST: i64 = 1 << 53;

/// What the lock is from now on.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Lock {
    /// The runs that hold it.
    pub operations: Vec<Operation>,
    /// The highest token given out; none: it is not known, and nothing is given out.
    pub last_token: Option<i64>,
    /// The runs that wait for it, in order.
    pub queue: Vec<Queued>,
}

/// A run that waits for the lock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Queued {
    /// Its name.
    pub run: String,
    /// The runs that are in its way: holders, and those that are before it in the queue.
    pub behind: Vec<String>,
}

/// What is asked of the lock.
#[derive(Clone, Debug, PartialEq)]
pub struct Claimant {
    /// Name of the run.
    pub run: String,
    /// Alone, or beside others.
    pub mode: LockMode,
    /// Its Hosts.
    pub hosts: Vec<String>,
    /// Nothing more comes of it.
    pub over: bool,
    /// The token that it works with already; 0: none.
    pub token: i64,
    /// Whether it may be granted now, if nothing conflicts.
    pub may_start: bool,
    /// When it was made, and began: the order of the queue.
    pub made: (Option<Timestamp>, Option<Timestamp>),
}

impl Claimant {
    /// A run, how it would hold the cluster, and whether anything but the lock keeps it from starting.
    pub fn new(run: &PlaybookRun, mode: LockMode, may_start: bool) -> Self {
        let status = run.status.as_ref();
        Self {
            run: run.name().to_owned(),
            mode,
            hosts: run.spec.hosts.clone(),
            over: attempts::is_over(run),
            token: status.map(|status| status.token).filter(|token| (1..=HIGHEST).contains(token)).unwrap_or_default(),
            may_start: may_start && !run.spec.cancel,
            made: (
                run.created_at().map(|time| time.0),
                status.and_then(|status| status.started_at.as_ref()).map(|time| time.0),
            ),
        }
    }

    fn conflicts(&self, mode: LockMode, hosts: &[String]) -> bool {
        let alone = match (self.mode, mode) {
            (LockMode::Separate, _) | (_, LockMode::Separate) | (LockMode::Shared, LockMode::Shared) => false,
            (LockMode::Exclusive, _) | (_, LockMode::Exclusive) => true,
        };
        alone || self.hosts.iter().any(|host| hosts.contains(host))
    }

    fn operation(&self, token: i64, started_at: Timestamp) -> Operation {
        Operation {
            run: self.run.clone(),
            mode: self.mode,
            hosts: self.hosts.clone(),
            token,
            started_at: Time(started_at),
        }
    }
}

/// Decides from the lock as it stands and all runs of the cluster. A run that is over or gone lets go. A run that works
/// with a token, and that the lock does not know (a status that was lost), takes its place again before anyone else,
/// also while the last token is not known.
pub fn decide(held: &[Operation], last_token: Option<i64>, runs: &[Claimant], now: Timestamp) -> Lock {
    let find = |name: &str| runs.iter().find(|run| run.run == name);
    // A worker that joins is a part of the cluster from the moment that this is installed.
    let holds_on = |held: &Operation| {
        let run = find(&held.run).filter(|run| !run.over)?;
        Some(Operation { mode: run.mode, ..held.clone() })
    };
    let mut operations: Vec<Operation> = held.iter().filter_map(holds_on).collect();
    let seen = runs.iter().map(|run| run.token).chain(held.iter().map(|held| held.token));
    let mut last_token = last_token.map(|last_token| seen.fold(last_token, i64::max));
    let holds = |operations: &[Operation], run: &Claimant| operations.iter().any(|held| held.run == run.run);

    for run in runs.iter().filter(|run| !run.over && run.token > 0) {
        if !holds(&operations, run) {
            operations.push(run.operation(run.token, run.made.1.unwrap_or(now)));
        }
    }
    let mut queue: Vec<&Claimant> = runs.iter().filter(|run| !run.over && !holds(&operations, run)).collect();
    queue.sort_by(|a, b| (a.made.0, &a.run).cmp(&(b.made.0, &b.run)));
    let mut before: Vec<&Claimant> = Vec::new();
    let mut waiting: Vec<Queued> = Vec::new();
    // One that may not start (paused, canceled) does not keep others from theirs.
    for run in queue.into_iter().filter(|run| run.may_start) {
        let holders =
            operations.iter().filter(|held| run.conflicts(held.mode, &held.hosts)).map(|held| held.run.clone());
        let earlier =
            before.iter().filter(|other| run.conflicts(other.mode, &other.hosts)).map(|other| other.run.clone());
        let behind: Vec<String> = holders.chain(earlier).collect();
        match last_token.as_mut() {
            Some(last_token) if behind.is_empty() && operations.len() < MOST => {
                *last_token = last_token.saturating_add(1);
                operations.push(run.operation(*last_token, now));
            }
            _ => {
                before.push(run);
                waiting.push(Queued { run: run.run.clone(), behind });
            }
        }
    }
    Lock { operations, last_token, queue: waiting }
}

#[cfg(test)]
mod tests {
    use super::{Claimant, Lock, Queued, decide};
    use crds::lock::LockMode::{self, Exclusive, Separate, Shared};
    use jiff::{SignedDuration, Timestamp};
    use proptest::prelude::*;

    fn claimant(run: &str, mode: LockMode, hosts: &[&str], made: i64) -> Claimant {
        Claimant {
            run: run.into(),
            mode,
            hosts: hosts.iter().map(|host| (*host).to_owned()).collect(),
            over: false,
            token: 0,
            may_start: true,
            made: (Some(Timestamp::UNIX_EPOCH + SignedDuration::from_secs(made)), None),
        }
    }

    fn holders(lock: &Lock) -> Vec<(&str, i64)> {
        lock.operations.iter().map(|held| (held.run.as_str(), held.token)).collect()
    }

    fn first(runs: &[Claimant]) -> Lock {
        decide(&[], Some(0), runs, Timestamp::UNIX_EPOCH)
    }

    #[test]
    fn an_exclusive_run_is_alone_and_shared_ones_stand_side_by_side_on_different_hosts() {
        let lock = first(&[
            claimant("a", Shared, &["x"], 0),
            claimant("b", Shared, &["y"], 1),
            claimant("c", Exclusive, &["z"], 2),
        ]);
        assert_eq!(holders(&lock), [("a", 1), ("b", 2)]);
        let lock = first(&[claimant("a", Shared, &["x"], 0), claimant("b", Shared, &["x"], 1)]);
        assert_eq!(holders(&lock), [("a", 1)]);
        let lock = first(&[claimant("a", Exclusive, &["x"], 0), claimant("b", Shared, &["y"], 1)]);
        assert_eq!(holders(&lock), [("a", 1)]);
    }

    #[test]
    fn a_separate_run_stands_beside_all_on_other_hosts_until_it_is_a_shared_one() {
        let mut runs = [
            claimant("a", Exclusive, &["x"], 0),
            claimant("b", Separate, &["y"], 1),
            claimant("c", Separate, &["x"], 2),
            claimant("d", Exclusive, &["z"], 3),
        ];
        let lock = first(&runs);
        assert_eq!(holders(&lock), [("a", 1), ("b", 2)]);
        runs[0].over = true;
        runs[1].mode = Shared;
        let lock = decide(&lock.operations, lock.last_token, &runs, Timestamp::UNIX_EPOCH);
        assert_eq!(holders(&lock), [("b", 2), ("c", 3)]);
        assert_eq!(lock.operations[0].mode, Shared);
        assert_eq!(lock.queue, [Queued { run: "d".into(), behind: vec!["b".into()] }]);
    }

    #[test]
    fn nobody_overtakes_a_run_that_waits() {
        let lock = first(&[
            claimant("c", Shared, &["y"], 2),
            claimant("b", Exclusive, &["z"], 1),
            claimant("a", Shared, &["x"], 0),
        ]);
        assert_eq!(holders(&lock), [("a", 1)]);
    }

    #[test]
    fn a_run_that_is_over_or_gone_lets_go_and_its_token_is_never_given_again() {
        let mut runs = vec![claimant("a", Exclusive, &["x"], 0), claimant("b", Exclusive, &["x"], 1)];
        let lock = first(&runs);
        runs[0].over = true;
        let next = decide(&lock.operations, lock.last_token, &runs, Timestamp::UNIX_EPOCH);
        assert_eq!(holders(&next), [("b", 2)]);
        let gone = decide(&next.operations, next.last_token, &[], Timestamp::UNIX_EPOCH);
        assert_eq!((holders(&gone), gone.last_token), (vec![], Some(2)));
    }

    #[test]
    fn what_may_not_start_is_not_granted_and_keeps_nobody_out() {
        let mut paused = claimant("a", Exclusive, &["x"], 0);
        paused.may_start = false;
        let lock = first(&[paused, claimant("b", Exclusive, &["x"], 1)]);
        assert_eq!(holders(&lock), [("b", 1)]);
    }

    #[test]
    fn a_lost_lock_is_rebuilt_from_the_tokens_of_the_runs() {
        let mut working = claimant("a", Exclusive, &["x"], 0);
        working.token = 41;
        let mut old = claimant("z", Shared, &["q"], 0);
        (old.over, old.token) = (true, 57);
        let lock = first(&[working, old, claimant("b", Shared, &["y"], 1)]);
        assert_eq!(holders(&lock), [("a", 41)]);
        assert_eq!(lock.last_token, Some(57));
    }

    #[test]
    fn while_the_last_token_is_not_known_nothing_is_given_out_and_who_works_keeps_its_place() {
        let mut working = claimant("a", Shared, &["x"], 0);
        working.token = 41;
        let runs = [working, claimant("b", Shared, &["y"], 1)];
        let lock = decide(&[], None, &runs, Timestamp::UNIX_EPOCH);
        assert_eq!((holders(&lock), lock.last_token), (vec![("a", 41)], None));
        assert_eq!(lock.queue.len(), 1);
        let opened = decide(&lock.operations, Some(50), &runs, Timestamp::UNIX_EPOCH);
        assert_eq!(holders(&opened), [("a", 41), ("b", 51)]);
    }

    #[test]
    fn who_waits_for_whom_is_told_in_order() {
        let lock = first(&[
            claimant("a", Shared, &["x"], 0),
            claimant("b", Exclusive, &["z"], 1),
            claimant("c", Shared, &["y"], 2),
        ]);
        let queue: Vec<(&str, Vec<&str>)> = lock
            .queue
            .iter()
            .map(|queued| {
                let behind = queued.behind.iter().map(String::as_str).collect();
                (queued.run.as_str(), behind)
            })
            .collect();
        assert_eq!(queue, [("b", vec!["a"]), ("c", vec!["b"])]);
    }

    proptest! {
        #[test]
        fn at_no_time_do_two_runs_hold_one_host(
            runs in proptest::collection::vec((0usize..3, proptest::collection::btree_set(0u8..5, 1..3), 0i64..4, any::<bool>()), 0..12),
            over in proptest::collection::vec(0usize..12, 0..24),
        ) {
            let mut runs: Vec<Claimant> = runs
                .into_iter()
                .enumerate()
                .map(|(index, (mode, hosts, made, may_start))| {
                    let hosts: Vec<String> = hosts.iter().map(|host| format!("h{host}")).collect();
                    let hosts: Vec<&str> = hosts.iter().map(String::as_str).collect();
                    let modes = [Exclusive, Shared, Separate];
                    Claimant { may_start, ..claimant(&format!("r{index}"), modes[mode], &hosts, made) }
                })
                .collect();
            let mut lock = Lock { last_token: Some(0), ..Lock::default() };
            for end in over.into_iter().map(Some).chain([None]) {
                let before = lock.last_token;
                lock = decide(&lock.operations, lock.last_token, &runs, Timestamp::UNIX_EPOCH);
                prop_assert!(lock.last_token >= before);
                for (index, a) in lock.operations.iter().enumerate() {
                    for b in &lock.operations[index + 1..] {
                        prop_assert!(a.mode == Shared && b.mode == Shared || a.mode == Separate || b.mode == Separate);
                        prop_assert!(a.hosts.iter().all(|host| !b.hosts.contains(host)));
                        prop_assert_ne!(a.token, b.token);
                    }
                }
                let again = decide(&lock.operations, lock.last_token, &runs, Timestamp::UNIX_EPOCH);
                prop_assert_eq!(&again, &lock);
                if let Some(run) = end.and_then(|end| runs.get_mut(end)) {
                    run.over = true;
                }
            }
        }
    }
}
