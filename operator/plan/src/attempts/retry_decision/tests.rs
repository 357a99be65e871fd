use jiff::{SignedDuration, Timestamp};
use proptest::prelude::*;

use super::super::{Failure, Outcome, PastAttempt};
use super::{Policy, RetryDecision, Stops, retry_decision};

fn failure(reason: &str) -> Failure {
    Failure {
        reason: reason.into(),
        message: "no".into(),
        retriable: reason != "InputsRefused",
        unreachable: reason == "Unreachable",
        interrupted: matches!(reason, "Unknown" | "DeadlineExceeded" | "NotStarted"),
    }
}

fn tried(attempt: i32, steps_done: usize, outcome: Outcome) -> PastAttempt {
    PastAttempt {
        run: format!("r-{attempt}"),
        attempt,
        wanted: Some("this".into()),
        host_generation: Some(1),
        retry: None,
        asked: None,
        ended: Some(Timestamp::UNIX_EPOCH),
        resumed: false,
        steps_done,
        machines: 1,
        outcome,
    }
}

/// Attempts by what came out, each as far as the number of steps says.
fn attempts(all: &[(&str, usize)]) -> Vec<PastAttempt> {
    let outcome = |reason: &str| match reason {
        "Held" => Outcome::Held,
        "Canceled" => Outcome::Canceled,
        reason => Outcome::Failed(failure(reason)),
    };
    all.iter().zip(0..).map(|((reason, done), attempt)| tried(attempt, *done, outcome(reason))).collect()
}

fn policy() -> Policy {
    Policy { limit: Some(3), wanted: "this".into(), host_generation: Some(1), ..Policy::default() }
}

fn asked(retry: &str) -> Policy {
    Policy { retries: vec![retry.into()], ..policy() }
}

fn at(seconds: i64) -> Timestamp {
    Timestamp::UNIX_EPOCH + SignedDuration::from_secs(seconds)
}

/// When the next attempt is due, in seconds after the last one's end; none: never by itself.
fn due(all: &[(&str, usize)]) -> Option<i64> {
    match retry_decision(&attempts(all), &policy(), at(0)) {
        RetryDecision::Now { .. } => Some(0),
        RetryDecision::Later { at, .. } => Some(at.as_second()),
        RetryDecision::Halted { .. } => None,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_failed_attempt_is_repeated_after_a_delay_that_doubles() {
    let check = |all: &[(&str, usize)], now, expected: Option<i64>| {
        let decision = retry_decision(&attempts(all), &policy(), at(now));
        match decision {
            RetryDecision::Later { at: when, .. } => assert_eq!(Some(when), expected.map(at)),
            RetryDecision::Now { .. } => assert_eq!(expected, None),
            other => panic!("{other:?}"),
        }
    };
    check(&[("TaskFailed", 2)], 0, Some(15));
    check(&[("TaskFailed", 2)], 15, None);
    check(&[("TaskFailed", 2), ("TaskFailed", 2)], 29, Some(30));
    check(&[("TaskFailed", 2), ("TaskFailed", 2)], 30, None);
}

#[test]
fn after_lost_contact_the_next_attempt_comes_sooner() {
    assert_eq!(due(&[("Unknown", 0)]), Some(5));
    assert_eq!(due(&[("Unknown", 0), ("Unknown", 0)]), Some(10));
    assert_eq!(due(&[("DeadlineExceeded", 0)]), Some(15));
}

#[test]
fn an_attempt_that_came_further_does_not_count_and_the_delay_is_short_again() {
    assert_eq!(due(&[("Unknown", 1), ("Unknown", 1)]), Some(10));
    assert_eq!(due(&[("Unknown", 1), ("Unknown", 1), ("Unknown", 2)]), Some(5));
    let step_by_step: Vec<(&str, usize)> = (0..9).map(|step| ("Unknown", step)).collect();
    assert_eq!(due(&step_by_step), Some(5));
    assert_eq!(due(&[("TaskFailed", 1), ("TaskFailed", 4), ("TaskFailed", 4), ("TaskFailed", 4)]), Some(30));
    assert_eq!(due(&[("TaskFailed", 1), ("TaskFailed", 2), ("Unknown", 2), ("Unknown", 2), ("Unknown", 2)]), None);
    // Further than the furthest, and not only than the last: going to and fro is no progress.
    assert_eq!(due(&[("TaskFailed", 4), ("TaskFailed", 1), ("TaskFailed", 4)]), None);
}

#[test]
fn what_was_interrupted_goes_on_where_it_stopped_and_what_failed_begins_anew() {
    let check = |outcome: &str, expected: Option<&str>| {
        let all = attempts(&[("TaskFailed", 1), (outcome, 3)]);
        let RetryDecision::Now { goes_on, attempt, .. } = retry_decision(&all, &asked("1"), at(999)) else {
            panic!("{outcome}");
        };
        assert_eq!((goes_on.as_deref(), attempt), (expected, 2), "{outcome}");
        let newer = Policy { wanted: "that".into(), ..policy() };
        let RetryDecision::Now { goes_on, .. } = retry_decision(&all, &newer, at(999)) else {
            panic!("{outcome}");
        };
        assert_eq!(goes_on, None, "another spec: {outcome}");
    };
    check("Unknown", Some("r-1"));
    check("DeadlineExceeded", Some("r-1"));
    check("Held", Some("r-1"));
    check("Canceled", Some("r-1"));
    check("Unreachable", Some("r-1"));
    check("TaskFailed", None);
    check("NotStarted", None);
}

#[test]
fn an_attempt_that_did_not_begin_passes_on_where_to_begin() {
    let mut all = attempts(&[("Unknown", 2), ("NotStarted", 0)]);
    all[1].resumed = true;
    assert!(matches!(retry_decision(&all, &policy(), at(999)), RetryDecision::Now { goes_on: Some(_), .. }));
}

#[test]
fn what_a_pause_held_counts_for_nothing_and_goes_on_at_once() {
    assert_eq!(due(&[("Held", 1), ("Held", 2), ("Held", 3), ("Held", 3)]), Some(0));
    assert_eq!(due(&[("TaskFailed", 0), ("Held", 0), ("TaskFailed", 0)]), Some(30));
}

#[test]
fn a_retry_that_stood_before_the_first_attempt_or_the_end_of_a_pause_asks_for_no_second_one() {
    let answers = |tried: &[PastAttempt]| match retry_decision(tried, &asked("1"), at(0)) {
        RetryDecision::Now { retry, .. } => retry,
        other => panic!("{other:?}"),
    };
    for before in [attempts(&[]), attempts(&[("Held", 0)])] {
        let number = i32::try_from(before.len()).unwrap();
        let first = PastAttempt { retry: answers(&before), ..tried(number, 0, Outcome::Canceled) };
        assert_eq!(first.retry.as_deref(), Some("1"));
        let all = [before, vec![first]].concat();
        assert!(matches!(retry_decision(&all, &asked("1"), at(9999)), RetryDecision::Halted { cause: None, .. }));
    }
}

#[test]
fn after_the_last_attempt_nothing_is_tried_until_a_person_asks_or_something_changes() {
    let three = attempts(&[("TaskFailed", 0); 3]);
    assert!(matches!(retry_decision(&three, &policy(), at(9999)), RetryDecision::Halted { failures: 3, .. }));
    assert_eq!(
        retry_decision(&three, &asked("1"), at(0)),
        RetryDecision::Now { attempt: 3, retry: Some("1".into()), goes_on: None }
    );
    let mut four = attempts(&[("TaskFailed", 0); 4]);
    four[3].retry = Some("1".into());
    assert!(matches!(retry_decision(&four, &asked("1"), at(9999)), RetryDecision::Halted { .. }));
    assert!(matches!(retry_decision(&four, &asked("1.2"), at(0)), RetryDecision::Now { attempt: 4, .. }));
    // A retry that was used up does not hide another one.
    let both = Policy { retries: vec!["1".into(), "cluster 1".into()], ..policy() };
    assert!(
        matches!(retry_decision(&four, &both, at(0)), RetryDecision::Now { retry: Some(retry), .. } if retry == "cluster 1")
    );
    four[3].asked = Some("run r-3 1".into());
    assert!(
        matches!(retry_decision(&four, &policy(), at(0)), RetryDecision::Now { retry: Some(retry), .. } if retry == "run r-3 1")
    );
    let (mut newer_spec, mut newer_host) = (policy(), policy());
    newer_spec.wanted = "that".into();
    newer_host.host_generation = Some(2);
    for newer in [newer_spec, newer_host] {
        assert!(matches!(retry_decision(&three, &newer, at(0)), RetryDecision::Now { attempt: 3, .. }));
    }
}

#[test]
fn the_limit_is_the_policys() {
    let once = Policy { limit: Some(1), ..policy() };
    assert!(matches!(
        retry_decision(&attempts(&[("TaskFailed", 0)]), &once, at(9999)),
        RetryDecision::Halted { failures: 1, .. }
    ));
    assert!(matches!(
        retry_decision(&attempts(&[("TaskFailed", 0), ("TaskFailed", 1)]), &once, at(9999)),
        RetryDecision::Now { .. }
    ));
}

#[test]
fn what_cannot_help_is_not_tried_again() {
    assert_eq!(due(&[("InputsRefused", 0)]), None);
    assert_eq!(due(&[("Canceled", 3)]), None);
}

#[test]
fn a_machine_that_lets_nobody_in_is_tried_until_it_does() {
    assert_eq!(due(&[("Unreachable", 0); 3]), Some(60));
    assert_eq!(due(&[("Unreachable", 0); 30]), Some(600));
}

#[test]
fn an_attempt_whose_executor_did_not_start_counts_for_no_limit_and_waits_longer_each_time() {
    let waits = ("NotStarted", 0);
    assert_eq!(due(&[waits]), Some(15));
    assert_eq!(due(&[waits; 3]), Some(60));
    assert_eq!(due(&[waits; 20]), Some(600));
    let failed = ("TaskFailed", 0);
    assert!(due(&[waits, waits, failed, failed]).is_some());
    assert_eq!(due(&[waits, failed, failed, failed]), None);
    assert!(due(&[failed, failed, failed, waits]).is_some());
}

#[test]
fn where_it_is_said_a_stop_from_outside_waits_for_a_person() {
    let check = |reason: &str, halted: [bool; 3]| {
        let is_halted = [Stops::None, Stops::Deadline, Stops::All].map(|stops| {
            let policy = Policy { limit: None, stops, ..policy() };
            let decision = retry_decision(&attempts(&[(reason, 0)]), &policy, at(9999));
            matches!(decision, RetryDecision::Halted { .. })
        });
        assert_eq!(is_halted, halted, "{reason}");
    };
    check("DeadlineExceeded", [false, true, true]);
    check("JobDeleted", [false, false, true]);
    check("Canceled", [false, false, true]);
    check("Unknown", [false; 3]);
    check("TaskFailed", [false; 3]);
}

#[test]
fn without_a_limit_it_goes_on_for_ever_and_waits_ten_minutes_at_most() {
    let forever = Policy { limit: None, ..policy() };
    let many = attempts(&[("InputsRefused", 0); 40]);
    assert!(matches!(retry_decision(&many, &forever, at(0)), RetryDecision::Later { at: when, .. } if when == at(600)));
}

proptest! {
    /// Whatever comes out, a machine that can be reached is tried at most (steps + 1) x limit times by itself.
    #[test]
    fn attempts_are_bounded(outcomes in proptest::collection::vec((0usize..5, 0usize..10), 60), limit in 1usize..5) {
        let names = ["TaskFailed", "Unknown", "DeadlineExceeded", "NotStarted", "Canceled"];
        let policy = Policy { limit: Some(limit), ..policy() };
        let mut all: Vec<(&str, usize)> = Vec::new();
        for (outcome, steps) in outcomes {
            match retry_decision(&attempts(&all), &policy, at(9999)) {
                RetryDecision::Now { .. } => all.push((names[outcome], steps)),
                RetryDecision::Halted { .. } => break,
                other => panic!("{other:?}"),
            }
        }
        prop_assert!(all.len() <= 10 * limit, "{all:?}");
    }
}

#[test]
fn a_fault_that_waits_for_other_machines_uses_up_no_attempt_of_the_one_that_joins() {
    let waits = |count: usize| vec![("LoadBalancerPeersUnaware", 2); count];
    for count in [1, 3, 9] {
        assert!(due(&waits(count)).is_some(), "{count}");
    }
    let mixed = [waits(5), vec![("TaskFailed", 2); 2]].concat();
    assert!(due(&mixed).is_some(), "two of three were its own");
    let own = [waits(5), vec![("TaskFailed", 2); 3]].concat();
    assert_eq!(due(&own), None);
    assert_eq!(due(&waits(40)), Some(600), "the later the longer between");
}
