//! The fence, what a machine remembers of the highest one, and who may pass.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use thiserror::Error;

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
}

/// Whether a run may begin (or end) here, by the highest fence seen. A fence belongs to one run: another one that comes
/// with the same was given its token by a status older than this machine, and what the first one left would not be
/// waited for.
pub fn may_begin(highest: Option<&FenceState>, asked: &FenceState) -> Admission {
    match highest {
        Some(highest) if asked.fence < highest.fence => Admission::Refused(newer(highest, asked.fence)),
        Some(highest) if asked.fence == highest.fence && highest.is_another_run(asked) => {
            Admission::Refused(same(highest, asked.fence))
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
        assert_eq!(may_begin(Some(&fence_state(2, 41, true)), &fence_state(3, 1, false)), Admission::Granted);
    }

    #[test]
    fn a_lower_fence_neither_begins_nor_runs() {
        for lower in [fence_state(2, 40, false), fence_state(1, 99, false)] {
            assert!(matches!(may_begin(Some(&fence_state(2, 41, true)), &lower), Admission::Refused(_)));
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
            let admission = may_begin(Some(&highest), &asked);
            assert_eq!(admission == Admission::Granted, is_granted, "{highest:?} {asked:?}");
        }
        let Admission::Refused(why) = may_begin(Some(&run("fleet/install", "u1")), &run("fleet/install", "u2")) else {
            panic!("granted")
        };
        assert_eq!(
            why,
            "fence 2-41 is that of run fleet/install (UID u1) of cluster a: the token was given twice, by a status that is older than this machine"
        );
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
            let granted = |highest, next| may_begin(Some(&state(highest)), &state(next)) == Admission::Granted;
            prop_assert_eq!(granted(one, other) && granted(other, one), one == other);
        }
    }
}
