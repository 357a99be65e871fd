//! The fence, what a machine remembers of the highest one, and who may pass.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::comparison::{Comparison, limit};

/// Which run a command belongs to: the epoch first, then the token.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Fence {
    /// How often the Host has been claimed.
    pub epoch: i64,
    /// Grows with each run of one cluster.
    pub token: i64,
}

/// A text that is no fence.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{0:?} is no fence: it is written EPOCH-TOKEN")]
pub struct NoFence(String);

impl fmt::Display for Fence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.epoch, self.token)
    }
}

impl FromStr for Fence {
    type Err = NoFence;

    fn from_str(text: &str) -> Result<Self, NoFence> {
        let number = |text: &str| {
            let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
            digits.then(|| text.parse().ok()).flatten()
        };
        text.split_once('-')
            .and_then(|(epoch, token)| Some(Self { epoch: number(epoch)?, token: number(token)? }))
            .ok_or_else(|| NoFence(text.chars().take(64).collect()))
    }
}

/// The run that has this machine, or was the last to have it: the content of the file `fence`, and of each run's
/// `run.json`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FenceState {
    #[serde(flatten)]
    pub fence: Fence,
    #[serde(default)]
    pub cluster: String,
    #[serde(default)]
    pub host: String,
    /// NAMESPACE/NAME.
    #[serde(default)]
    pub run: String,
    /// The UID of the PlaybookRun: names come again once objects were restored from a backup. Empty where it is not
    /// known.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub uid: String,
    /// The UID of the Machine that has claimed the Host with this epoch. Empty where it is not known.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub claim: String,
    /// The newest comparison that the run was told of, RFC 3339 in UTC. Empty: of none.
    #[serde(default, rename = "comparedSince", skip_serializing_if = "String::is_empty")]
    pub compared_since: String,
    #[serde(default)]
    pub attempt: i64,
    /// Whether its commands are let through: not before the machine was quiet, and not after `end`.
    #[serde(default)]
    pub open: bool,
}

/// Whether a command may pass.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Admission {
    /// It may.
    Granted,
    /// Another run has this machine, or this run has ended on it.
    Refused(String),
    /// The machine's state cannot be right.
    Lost(String),
}

impl FenceState {
    /// Whether the two name different runs; where the UID of either is unknown, by the runs' names.
    fn is_another_run(&self, other: &Self) -> bool {
        let differ = |one: &str, other: &str| !one.is_empty() && !other.is_empty() && one != other;
        match self.uid.is_empty() || other.uid.is_empty() {
            true => differ(&self.run, &other.run),
            false => self.uid != other.uid,
        }
    }

    /// Whether the two are of one epoch and yet of different claims: of two clusters, or of two Machines. What is not
    /// known differs from nothing.
    fn is_another_claim(&self, other: &Self) -> bool {
        let namespace = |run: &str| run.split_once('/').map(|(namespace, _)| namespace.to_owned()).unwrap_or_default();
        let differ = |one: &str, other: &str| !one.is_empty() && !other.is_empty() && one != other;
        self.fence.epoch == other.fence.epoch
            && (differ(&self.cluster, &other.cluster)
                || differ(&namespace(&self.run), &namespace(&other.run))
                || differ(&self.claim, &other.claim))
    }

    /// Whether the store by which a later run of the same epoch was given its token does not know this one.
    fn is_unknown_to(&self, later: &Self, comparisons: &[Comparison]) -> bool {
        let limit = limit(comparisons, &self.compared_since);
        self.fence.epoch == later.fence.epoch
            && self.fence.token < later.fence.token
            && limit.is_some_and(|limit| self.fence.token > limit)
    }
}

/// Whether a run may begin (or end) here, by the highest fence seen. A fence belongs to one run: another one that comes
/// with the same was given its token by a status older than this machine, and what the first one left would not be
/// waited for. An epoch belongs to one claim: who comes with the same for another cluster or Machine was given it by a
/// Host older than this machine, however high its token is. A run that the store does not know was here before it was
/// set back, and this machine did not answer when the others were compared with it: the tokens have grown past that one
/// since, and what it did is known to nobody. `comparisons` are those that the run brings; none for one that ends.
pub fn may_begin(highest: Option<&FenceState>, asked: &FenceState, comparisons: &[Comparison]) -> Admission {
    match highest {
        Some(highest) if asked.fence < highest.fence => Admission::Refused(newer(highest, asked.fence)),
        Some(highest) if asked.fence == highest.fence && highest.is_another_run(asked) => {
            Admission::Refused(same(highest, asked.fence))
        }
        Some(highest) if highest.is_another_claim(asked) => Admission::Refused(claimed(highest, asked.fence)),
        Some(highest) if highest.is_unknown_to(asked, comparisons) => {
            Admission::Refused(unknown(highest, asked.fence, comparisons))
        }
        _ => Admission::Granted,
    }
}

/// Whether this machine is the one that a run means which only takes it as it was left: the highest fence is of exactly
/// that claim, and of the same cluster. What it knows instead is the error.
pub fn is_as_left(highest: Option<&FenceState>, asked: &FenceState, epoch: i64) -> Result<(), String> {
    let namespace = |run: &str| run.split_once('/').map(|(namespace, _)| namespace.to_owned());
    let Some(highest) = highest else {
        return Err(format!(
            "this machine knows of no run, claim epoch {epoch} was expected: it was installed anew, or is another one"
        ));
    };
    if asked.fence.epoch != epoch || highest.fence.epoch != epoch {
        return Err(format!(
            "claim epoch {epoch} was expected, this machine knows {} and the run comes with {}: the Host was claimed since, or is another machine",
            highest.fence.epoch, asked.fence.epoch
        ));
    }
    if highest.cluster != asked.cluster || namespace(&highest.run) != namespace(&asked.run) {
        return Err(format!(
            "cluster {} was expected, this machine was last of cluster {} (run {})",
            asked.cluster, highest.cluster, highest.run
        ));
    }
    Ok(())
}

/// Whether a command of a run may be started here. Only `begin` raises a fence: a command that comes with a higher one
/// than the machine has seen shows that the machine forgot.
pub fn may_run(highest: Option<&FenceState>, fence: Fence) -> Admission {
    match highest {
        Some(highest) if fence < highest.fence => Admission::Refused(newer(highest, fence)),
        Some(highest) if fence == highest.fence && highest.open => Admission::Granted,
        Some(highest) if fence == highest.fence => Admission::Refused(format!(
            "run {} with fence {fence} has ended on this machine, or has not begun",
            highest.run
        )),
        _ => Admission::Lost(format!(
            "fence {fence} was never raised on this machine: its state was lost; let the run begin again"
        )),
    }
}

fn newer(highest: &FenceState, fence: Fence) -> String {
    format!(
        "fence {fence} is lower than {}: run {} of cluster {} has this machine now",
        highest.fence, highest.run, highest.cluster
    )
}

fn same(highest: &FenceState, fence: Fence) -> String {
    let uid = match highest.uid.as_str() {
        "" => String::new(),
        uid => format!(" (UID {uid})"),
    };
    format!(
        "fence {fence} is that of run {}{uid} of cluster {}: the token was given twice, by a status that is older than this machine",
        highest.run, highest.cluster
    )
}

fn claimed(highest: &FenceState, fence: Fence) -> String {
    let claim = match highest.claim.as_str() {
        "" => String::new(),
        claim => format!(" (Machine UID {claim})"),
    };
    format!(
        "claim epoch {} is that of another claim{claim}, by which run {} of cluster {} was here: the epoch was given twice, by a Host that is older than this machine",
        fence.epoch, highest.run, highest.cluster
    )
}

fn unknown(highest: &FenceState, fence: Fence, comparisons: &[Comparison]) -> String {
    let since = match highest.compared_since.as_str() {
        "" => String::new(),
        since => format!(" (compared since {since})"),
    };
    let limit = limit(comparisons, &highest.compared_since).unwrap_or_default();
    format!(
        "run {} of cluster {} was here with fence {}{since}: the status that gave out {fence} knows of no token above {limit} from then, it is older than this machine",
        highest.run, highest.cluster, highest.fence
    )
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn fence(epoch: i64, token: i64) -> Fence {
        Fence { epoch, token }
    }

    fn fence_state(epoch: i64, token: i64, open: bool) -> FenceState {
        FenceState { fence: fence(epoch, token), open, ..FenceState::default() }
    }

    #[test]
    fn the_epoch_counts_before_the_token() {
        assert!(fence(3, 1) > fence(2, 41));
        assert!(fence(2, 42) > fence(2, 41));
        assert_eq!(may_begin(Some(&fence_state(2, 41, true)), &fence_state(3, 1, false), &[]), Admission::Granted);
    }

    #[test]
    fn a_lower_fence_neither_begins_nor_runs() {
        for lower in [fence_state(2, 40, false), fence_state(1, 99, false)] {
            assert!(matches!(may_begin(Some(&fence_state(2, 41, true)), &lower, &[]), Admission::Refused(_)));
            assert!(matches!(may_run(Some(&fence_state(2, 41, true)), lower.fence), Admission::Refused(_)));
        }
    }

    #[test]
    fn an_equal_fence_is_let_in_only_with_the_run_that_has_it() {
        let run = |run: &str, uid: &str| FenceState {
            cluster: "a".into(),
            run: run.into(),
            uid: uid.into(),
            ..fence_state(2, 41, true)
        };
        for (highest, asked, is_granted) in [
            (run("fleet/install", "u1"), run("fleet/install", "u1"), true),
            // Made again, from a backup.
            (run("fleet/install", "u1"), run("fleet/install", "u2"), false),
            (run("fleet/install", "u1"), run("fleet/join", "u2"), false),
            // The state of a guard that knew no UIDs, or an executor that tells none.
            (run("fleet/install", ""), run("fleet/install", "u1"), true),
            (run("fleet/install", ""), run("fleet/join", "u1"), false),
            (run("fleet/install", "u1"), run("fleet/join", ""), false),
            (run("fleet/install", "u1"), run("", ""), true),
        ] {
            let admission = may_begin(Some(&highest), &asked, &[]);
            assert_eq!(admission == Admission::Granted, is_granted, "{highest:?} {asked:?}");
        }
        let again = run("fleet/install", "u2");
        let Admission::Refused(why) = may_begin(Some(&run("fleet/install", "u1")), &again, &[]) else {
            panic!("granted")
        };
        assert_eq!(
            why,
            "fence 2-41 is that of run fleet/install (UID u1) of cluster a: the token was given twice, by a status that is older than this machine"
        );
    }

    #[test]
    fn an_epoch_belongs_to_one_claim_however_high_the_token() {
        let run = |token, cluster: &str, run: &str, claim: &str| FenceState {
            cluster: cluster.into(),
            run: run.into(),
            claim: claim.into(),
            ..fence_state(2, token, true)
        };
        let highest = run(41, "a", "fleet/install", "m1");
        for (asked, is_granted) in [
            (run(42, "a", "fleet/join", "m1"), true),
            // An executor of before, and a run on a machine that nobody has claimed any more.
            (run(42, "a", "fleet/join", ""), true),
            (run(99, "b", "fleet/join", "m2"), false),
            (run(99, "b", "fleet/join", ""), false),
            (run(99, "a", "other/join", ""), false),
            (run(99, "a", "fleet/join", "m2"), false),
        ] {
            assert_eq!(may_begin(Some(&highest), &asked, &[]) == Admission::Granted, is_granted, "{asked:?}");
        }
        let next = FenceState { fence: fence(3, 1), ..run(1, "b", "other/install", "m2") };
        assert_eq!(may_begin(Some(&highest), &next, &[]), Admission::Granted);
        let Admission::Refused(why) = may_begin(Some(&highest), &run(99, "b", "fleet/join", "m2"), &[]) else {
            panic!("granted")
        };
        assert_eq!(
            why,
            "claim epoch 2 is that of another claim (Machine UID m1), by which run fleet/install of cluster a was here: the epoch was given twice, by a Host that is older than this machine"
        );
    }

    /// What becomes of a run with token 125 that brings these comparisons, where the highest fence is of this token and
    /// was told of that comparison.
    fn after(token: i64, told_of: &str, comparisons: &[&str]) -> Admission {
        let state = |token, since: &str| FenceState {
            cluster: "a".into(),
            run: format!("fleet/r{token}"),
            compared_since: since.into(),
            ..fence_state(2, token, false)
        };
        let comparisons: Vec<Comparison> = comparisons.iter().map(|text| text.parse().unwrap()).collect();
        let newest = comparisons.last().map(|comparison| comparison.since.clone()).unwrap_or_default();
        may_begin(Some(&state(token, told_of)), &state(125, &newest), &comparisons)
    }

    #[test]
    fn a_run_that_the_store_does_not_know_is_not_followed_once_the_tokens_have_passed_its_own() {
        let (may, march) = ("2026-05-01T00:00:00Z", "2026-03-01T00:00:00Z");
        let set_back = ["2026-05-01T00:00:00Z=100"];
        let Admission::Refused(why) = after(120, "", &set_back) else { panic!("granted") };
        assert_eq!(
            why,
            "run fleet/r120 of cluster a was here with fence 2-120: the status that gave out 2-125 knows of no token above 100 from then, it is older than this machine"
        );
        let Admission::Refused(why) = after(120, march, &set_back) else { panic!("granted") };
        assert!(why.contains("with fence 2-120 (compared since 2026-03-01T00:00:00Z): the status"), "{why}");
        // Known to it, from before or since.
        assert_eq!(after(100, march, &set_back), Admission::Granted);
        assert_eq!(after(120, may, &set_back), Admission::Granted);
        // It was taken up again once more, and the machine has not answered since before.
        let twice = ["2026-05-01T00:00:00Z=100", "2026-05-02T00:00:00Z=124"];
        assert!(matches!(after(120, march, &twice), Admission::Refused(_)));
        assert_eq!(after(124, may, &twice), Admission::Granted);
        // Of a history that the store has never heard of.
        assert!(matches!(after(120, "2026-06-01T00:00:00Z", &set_back), Admission::Refused(_)));
        // A cluster that was never compared.
        assert_eq!(after(120, "", &[]), Admission::Granted);
        assert_eq!(after(120, march, &[]), Admission::Granted);
    }

    #[test]
    fn the_same_run_and_a_later_claim_are_let_in_whatever_the_store_knows() {
        let comparisons = ["2026-05-01T00:00:00Z=100".parse().unwrap()];
        let highest = FenceState { run: "fleet/install".into(), uid: "u1".into(), ..fence_state(2, 120, true) };
        assert_eq!(may_begin(Some(&highest), &highest, &comparisons), Admission::Granted);
        assert_eq!(may_begin(Some(&highest), &fence_state(3, 1, false), &comparisons), Admission::Granted);
    }

    #[test]
    fn a_fence_of_before_is_read_as_one_that_was_told_of_no_comparison() {
        let before = r#"{"epoch":2,"token":41,"cluster":"a","host":"h","run":"fleet/r","attempt":0,"open":true}"#;
        let read: FenceState = serde_json::from_str(before).unwrap();
        assert_eq!(read.compared_since, "");
        assert!(!serde_json::to_string(&read).unwrap().contains("comparedSince"));
        let told = FenceState { compared_since: "2026-05-01T00:00:00Z".into(), ..read };
        let text = serde_json::to_string(&told).unwrap();
        assert!(text.contains(r#""comparedSince":"2026-05-01T00:00:00Z""#), "{text}");
        assert_eq!(serde_json::from_str::<FenceState>(&text).unwrap(), told);
    }

    #[test]
    fn a_command_does_not_raise_the_fence() {
        assert!(matches!(may_run(None, fence(1, 1)), Admission::Lost(_)));
        assert!(matches!(may_run(Some(&fence_state(1, 1, true)), fence(1, 2)), Admission::Lost(_)));
    }

    #[test]
    fn a_run_passes_between_its_begin_and_its_end_only() {
        assert_eq!(may_run(Some(&fence_state(1, 1, true)), fence(1, 1)), Admission::Granted);
        assert!(matches!(may_run(Some(&fence_state(1, 1, false)), fence(1, 1)), Admission::Refused(_)));
    }

    #[test]
    fn only_the_very_claim_of_the_very_cluster_is_as_it_was_left() {
        let left = |epoch, cluster: &str, run: &str| FenceState {
            cluster: cluster.into(),
            run: run.into(),
            ..fence_state(epoch, 41, false)
        };
        let asked = left(3, "a", "fleet/fence");
        let is = |highest: Option<&FenceState>| is_as_left(highest, &asked, 3);
        assert_eq!(is(Some(&left(3, "a", "fleet/install"))), Ok(()));
        for (highest, part) in [
            (None, "knows of no run"),
            (Some(left(2, "a", "fleet/install")), "knows 2"),
            (Some(left(4, "a", "fleet/install")), "knows 4"),
            (Some(left(3, "b", "fleet/install")), "was last of cluster b"),
            (Some(left(3, "a", "other/install")), "(run other/install)"),
        ] {
            let why = is(highest.as_ref()).unwrap_err();
            assert!(why.contains(part), "{why}");
        }
        // A run of a later claim may not come with the expectation of an earlier one.
        assert!(is_as_left(Some(&left(3, "a", "fleet/r")), &left(4, "a", "fleet/f"), 3).is_err());
    }

    #[test]
    fn what_is_no_fence_is_not_read_as_one() {
        for text in ["", "-", "1", "1-", "-1-2", "1-+2", "1-2-3", "1 -2", "99999999999999999999-1", "a-b"] {
            assert!(text.parse::<Fence>().is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn a_fence_is_read_as_it_is_written(epoch in 0..i64::MAX, token in 0..i64::MAX) {
            let written = fence(epoch, token).to_string();
            prop_assert_eq!(written.parse::<Fence>(), Ok(fence(epoch, token)));
        }

        #[test]
        fn of_two_fences_exactly_the_higher_may_follow(a in 0..4i64, b in 0..4i64, c in 0..4i64, d in 0..4i64) {
            let (one, other) = (fence(a, b), fence(c, d));
            let state = |fence| FenceState { fence, ..FenceState::default() };
            let granted = |highest, next| may_begin(Some(&state(highest)), &state(next), &[]) == Admission::Granted;
            prop_assert_eq!(granted(one, other) && granted(other, one), one == other);
        }
    }
}
