use crds::machine::BlockedPod;
use jiff::Timestamp;

use super::{BATCH, Drain, DrainLimit, DrainObserved, PodSeen, Progress, Refusal, drain};

const NOW: i64 = 1_000_000;

fn pods(names: &[&str], refused: &[&str]) -> Drain {
    let pod = |name: &&str| PodSeen {
        namespace: "default".into(),
        name: (*name).into(),
        uid: format!("uid-{name}"),
        ..PodSeen::default()
    };
    let refusal = |name: &&str| Refusal {
        uid: format!("uid-{name}"),
        budgets: vec!["web".into()],
        retry_after_seconds: 10,
        ..Refusal::default()
    };
    Drain { pods: Ok(names.iter().map(pod).collect()), refusals: refused.iter().map(refusal).collect() }
}

/// Drains a Node for 300 s; what is said after so many of them.
fn after(seconds: i64, seen: Option<Drain>, blocked: &[BlockedPod]) -> Progress {
    let since = (seconds > 0).then(|| time(NOW - seconds));
    within(Some(DrainLimit { since, seconds: 300, then: "the upgrade waits" }), seen, blocked)
}

fn within(limit: Option<DrainLimit<'_>>, seen: Option<Drain>, blocked: &[BlockedPod]) -> Progress {
    drain(&DrainObserved { now: time(NOW), node: "n1", pods: seen.as_ref(), blocked, limit })
}

fn time(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

#[test]
fn without_a_limit_pods_are_waited_for_until_they_are_gone() {
    let Progress::UnderWay(goes_on) = within(None, Some(pods(&["a"], &["a"])), &[]) else { panic!("it goes on") };
    assert_eq!(goes_on.message, "1 Pod is left: default/a (PodDisruptionBudget web)");
}

#[test]
fn a_node_is_drained_when_none_of_its_pods_is_left_or_when_its_time_is_over() {
    let check = |seconds, seen, expected: &str| {
        let said = match after(seconds, seen, &[]) {
            Progress::Over(statement) => format!("{:?}: {}", statement.status, statement.message),
            Progress::UnderWay(goes_on) => {
                format!("{} asked, {}: {}", goes_on.evict.len(), goes_on.reason, goes_on.message)
            }
        };
        assert!(said.starts_with(expected), "{said}, and not {expected}");
    };
    let unread = || Some(Drain { pods: Err("no answer within 5 s".into()), refusals: Vec::new() });
    check(0, None, "0 asked, Draining: drains Node n1");
    check(
        10,
        Some(pods(&["a", "b"], &[])),
        "2 asked, Draining: 2 Pods are left: default/a, default/b; goes on without",
    );
    check(
        10,
        Some(pods(&["a", "b"], &["b"])),
        "2 asked, PodsBlocked: 2 Pods are left: default/b (PodDisruptionBudget web), default/a",
    );
    check(10, unread(), "0 asked, PodsUnknown: the Pods of Node n1 cannot be read: no answer within 5 s; tried again");
    check(10, Some(pods(&[], &[])), "Some(true): no Pod is left on Node n1");
    check(400, Some(pods(&[], &[])), "Some(true): no Pod is left on Node n1");
    check(300, Some(pods(&["a"], &[])), "Some(false): after 300 s 1 Pod is left: default/a; the upgrade waits");
    check(300, unread(), "Some(false): after 300 s the Pods of Node n1 could still not be read");
}

#[test]
fn who_was_in_the_way_last_is_named_when_the_time_is_over() {
    let Progress::UnderWay(goes_on) = after(10, Some(pods(&["a"], &["a"])), &[]) else { panic!("it is under way") };
    assert_eq!(goes_on.next, crate::Next::after_seconds(10), "the API wants to be left alone for so long");
    let Progress::Over(statement) = after(300, Some(pods(&["a"], &[])), &goes_on.blocked) else { panic!("it is over") };
    assert_eq!(statement.message, "after 300 s 1 Pod is left: default/a (PodDisruptionBudget web); the upgrade waits");
}

#[test]
fn pods_that_are_held_keep_no_others_waiting() {
    let names: Vec<String> = (0..BATCH + 5).map(|number| format!("p{number}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let seen = pods(&names, &[]);
    let asked: std::collections::BTreeSet<String> = (0..3)
        .flat_map(|look| super::batch(seen.pods.as_ref().unwrap(), Timestamp::from_second(NOW + look * 5).unwrap()))
        .map(|pod| pod.name)
        .collect();
    assert_eq!(asked.len(), names.len());
}
