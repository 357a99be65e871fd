//! Histories that keep the promise, and histories that break it in one place.

use proptest::prelude::*;

use super::*;
use crate::Fence;
use crate::process_owner::Worker;
use crate::record::{Event, Of, Open, Record};

/// A line: who (token, process), and what.
fn record(token: i64, pid: u32, event: Event) -> Record {
    Record {
        event,
        at: "2026-01-01T00:00:00.000Z".into(),
        monotonic: 0,
        boot: "b".into(),
        cluster: "a".into(),
        host: "h".into(),
        run: "ns/r".into(),
        step: "etcd".into(),
        attempt: 0,
        fence: Fence { epoch: 1, token },
        pid,
        rc: None,
        of: (event == Event::Quiet).then_some(Of::Lower),
        signal: None,
        reason: None,
        processes: Vec::new(),
        highest: None,
        open: Vec::new(),
    }
}

fn raised(token: i64) -> Record {
    record(token, 1, Event::Raised)
}

fn quiet(token: i64) -> Record {
    record(token, 1, Event::Quiet)
}

fn begin(token: i64, pid: u32) -> Record {
    record(token, pid, Event::Begin)
}

fn end(token: i64, pid: u32) -> Record {
    record(token, pid, Event::End)
}

fn ended(token: i64, pid: i32) -> Record {
    Record {
        processes: vec![Worker { pid, command: "sh".into(), fence: "1-1".into() }],
        ..record(token, 1, Event::Ended)
    }
}

fn after_a_restart(record: Record) -> Record {
    Record { boot: "c".into(), ..record }
}

fn text(records: &[Record]) -> String {
    records.iter().map(|record| serde_json::to_string(record).unwrap() + "\n").collect()
}

/// The violations, a line each.
fn wrong(records: &[Record]) -> Vec<String> {
    read("", &text(records)).violations.iter().map(ToString::to_string).collect()
}

#[test]
fn one_run_after_the_other_is_as_it_should_be() {
    let records = [
        raised(1),
        quiet(1),
        begin(1, 10),
        begin(1, 11),
        end(1, 11),
        end(1, 10),
        raised(2),
        quiet(2),
        begin(2, 10),
        end(2, 10),
    ];
    let report = read("", &text(&records));
    assert_eq!(report.violations, []);
    assert_eq!((report.commands, report.open.len()), (3, 0));
    assert_eq!(report.highest, Some(Fence { epoch: 1, token: 2 }));
}

#[test]
fn a_run_that_waits_and_ends_what_was_left_is_as_it_should_be() {
    let waits = record(2, 1, Event::Waits);
    let first = [raised(1), quiet(1), begin(1, 10)];
    let by_itself = [raised(2), waits.clone(), end(1, 10), quiet(2), begin(2, 11)];
    let asked = [raised(2), waits.clone(), ended(2, 10), end(1, 10), quiet(2), begin(2, 11)];
    let killed = [raised(2), waits, ended(2, 10), quiet(2), begin(2, 10)];
    for rest in [&by_itself[..], &asked, &killed] {
        assert_eq!(wrong(&[&first[..], rest].concat()), [""; 0]);
    }
}

#[test]
fn two_fences_at_once_are_found() {
    let records = [raised(1), quiet(1), begin(1, 10), raised(2), begin(2, 11)];
    assert_eq!(
        wrong(&records),
        [
            "log:5: a command of fence 1-2 began before the machine was quiet",
            "log:5: command 10 of fence 1-1 was at work while fence 1-2 had the machine",
        ]
    );
}

#[test]
fn a_guard_that_says_quiet_too_early_is_found_out() {
    let records = [raised(1), quiet(1), begin(1, 10), raised(2), ended(2, 10), quiet(2), end(1, 10)];
    assert_eq!(wrong(&records), ["log:7: command 10 of fence 1-1 was at work while fence 1-2 had the machine"]);
}

#[test]
fn a_fence_that_goes_down_is_found() {
    let down = "log:3: fence 1-1 acted after 1-2 was taken";
    let unraised = "log:3: a command began under fence 1-3, which was never raised";
    assert_eq!(wrong(&[raised(2), quiet(2), raised(1)]), [down]);
    assert_eq!(wrong(&[raised(2), quiet(2), begin(1, 10)])[0], down);
    assert_eq!(wrong(&[raised(2), quiet(2), quiet(1)]), [down]);
    assert_eq!(wrong(&[raised(2), quiet(2), begin(3, 10)])[0], unraised);
}

#[test]
fn a_lower_token_of_a_higher_epoch_is_higher() {
    let mut next = [raised(1), quiet(1), begin(1, 10), end(1, 10)];
    for record in &mut next {
        record.fence.epoch = 2;
    }
    assert_eq!(wrong(&[&[raised(41), quiet(41)], &next[..]].concat()), [""; 0]);
}

#[test]
fn a_command_that_went_away_by_itself_is_found() {
    let unfinished = "log:3: command 10 of fence 1-1 (step \"etcd\") has no end, and nobody ended it";
    let start = [raised(1), quiet(1), begin(1, 10)];
    assert_eq!(wrong(&[&start[..], &[raised(2), quiet(2)]].concat()), [unfinished]);
    assert_eq!(wrong(&[&start[..], &[begin(1, 10)]].concat()), [unfinished]);
    let left = Record { of: Some(Of::This), ..quiet(1) };
    assert_eq!(wrong(&[&start[..], &[left]].concat()), [unfinished]);
}

#[test]
fn an_end_without_a_begin_is_found() {
    assert_eq!(wrong(&[raised(1), quiet(1), end(1, 10)]), ["log:3: command 10 of fence 1-1 ended and never began"]);
    assert_eq!(
        wrong(&[raised(1), quiet(1), begin(1, 10), end(2, 10)]),
        ["log:4: command 10 of fence 1-2 ended and never began"]
    );
}

#[test]
fn what_is_still_at_work_is_no_violation() {
    let report = read("", &text(&[raised(1), quiet(1), begin(1, 10)]));
    assert_eq!(report.violations, []);
    assert_eq!(report.open.iter().map(|open| open.pid).collect::<Vec<_>>(), [10]);
}

#[test]
fn a_restart_of_the_machine_ends_everything() {
    let records = [
        raised(1),
        quiet(1),
        begin(1, 10),
        after_a_restart(raised(2)),
        after_a_restart(quiet(2)),
        after_a_restart(begin(2, 10)),
        after_a_restart(end(2, 10)),
    ];
    assert_eq!(wrong(&records), [""; 0]);
}

#[test]
fn a_line_that_a_loss_of_power_tore_is_told_apart() {
    let torn = "{\"event\":\"beg\n";
    let (before, after) = (text(&[raised(1), quiet(1)]), text(&[begin(1, 10)]));
    let restarted = text(&[after_a_restart(begin(1, 10))]);
    let report = read("", &format!("{before}{torn}{restarted}"));
    assert_eq!((report.violations.len(), report.torn.len()), (0, 1));
    let report = read("", &format!("{before}{torn}{after}"));
    assert_eq!((report.violations.len(), report.torn.len()), (1, 0));
    assert_eq!(report.violations[0].place, Place { file: "log", line: 3 });
}

#[test]
fn what_was_refused_is_counted() {
    let report = read("", &text(&[raised(2), quiet(2), record(1, 9, Event::Refused)]));
    assert_eq!((report.violations.len(), report.refused.len()), (0, 1));
}

#[test]
fn a_log_that_was_turned_over_tells_what_must_be_known() {
    let rotated = Record {
        highest: Some(Fence { epoch: 1, token: 2 }),
        of: Some(Of::Lower),
        open: vec![Open {
            pid: 10,
            fence: Fence { epoch: 1, token: 2 },
            boot: "b".into(),
            step: "etcd".into(),
            ended: false,
        }],
        ..record(2, 11, Event::Rotated)
    };
    let older = [raised(2), quiet(2), begin(2, 10)];
    let newer = [rotated, begin(2, 11), end(2, 10), end(2, 11)];
    assert_eq!(wrong(&newer), [""; 0]);
    assert_eq!(read(&text(&older), &text(&newer)).violations, []);
    assert_eq!(read(&text(&[raised(3)]), &text(&newer)).violations.len(), 2 + 1);
}

/// Events on a machine that keeps the promise.
#[derive(Debug, Clone)]
enum Turn {
    /// A command begins.
    Begin,
    /// The oldest command ends.
    End,
    /// A new run takes the machine: what is left ends by itself, or is ended.
    Take {
        by_itself: bool,
    },
    Restart,
}

fn turns() -> impl Strategy<Value = Vec<Turn>> {
    let turn = prop_oneof![
        4 => Just(Turn::Begin),
        3 => Just(Turn::End),
        1 => any::<bool>().prop_map(|by_itself| Turn::Take { by_itself }),
        1 => Just(Turn::Restart),
    ];
    prop::collection::vec(turn, 1..60)
}

fn history(turns: &[Turn]) -> Vec<Record> {
    let mut records = vec![raised(1), quiet(1)];
    let (mut token, mut pid, mut boot) = (1, 10, 0);
    let mut running: Vec<u32> = Vec::new();
    for turn in turns {
        let before = records.len();
        match turn {
            Turn::Begin => {
                pid += 1;
                running.push(pid);
                records.push(begin(token, pid));
            }
            Turn::End if running.is_empty() => (),
            Turn::End => records.push(end(token, running.remove(0))),
            Turn::Take { by_itself } => {
                records.push(raised(token + 1));
                for pid in running.drain(..) {
                    records.push(if *by_itself { end(token, pid) } else { ended(token + 1, pid.cast_signed()) });
                }
                token += 1;
                records.push(quiet(token));
            }
            Turn::Restart => {
                boot += 1;
                running.clear();
            }
        }
        for record in &mut records[before..] {
            record.boot = boot.to_string();
        }
    }
    for record in &mut records[..2] {
        record.boot = "0".into();
    }
    records
}

proptest! {
    #[test]
    fn a_machine_that_keeps_the_promise_is_never_accused(turns in turns()) {
        let records = history(&turns);
        prop_assert_eq!(wrong(&records), Vec::<String>::new());
    }

    /// Also when the log was turned over anywhere, and the older part is lost.
    #[test]
    fn turning_over_hides_nothing_and_invents_nothing(turns in turns(), at in any::<prop::sample::Index>()) {
        let records = history(&turns);
        let (older, newer) = records.split_at(at.index(records.len()));
        let before = read("", &text(older));
        let first = Record {
            highest: before.highest,
            of: before.quiet.then_some(Of::Lower),
            open: before.open,
            boot: newer[0].boot.clone(),
            ..record(1, 1, Event::Rotated)
        };
        let newer = text(&[std::slice::from_ref(&first), newer].concat());
        prop_assert_eq!(read("", &newer).violations, vec![]);
        prop_assert_eq!(read(&text(older), &newer).violations, vec![]);
    }

    /// A command of an overtaken run, put anywhere after it was overtaken.
    #[test]
    fn a_command_of_an_overtaken_run_is_always_found(turns in turns(), at in any::<prop::sample::Index>()) {
        let mut records = history(&turns);
        let Some(taken) = records.iter().position(|record| record.fence.token == 2 && record.event == Event::Raised)
        else {
            return Ok(());
        };
        let after = taken + 1 + at.index(records.len() - taken);
        let mut late = begin(1, 9999);
        late.boot = records[after - 1].boot.clone();
        records.insert(after, late);
        prop_assert!(!wrong(&records).is_empty());
    }

    #[test]
    fn no_text_is_a_panic(older in ".*", lines in prop::collection::vec(
        prop_oneof![".*", Just(text(&[raised(1)])), Just(text(&[ended(1, -1)])), Just("{}\n\0\n".to_owned())], 0..8),
    ) {
        let report = read(&older, &lines.join("\n"));
        for violation in report.violations {
            prop_assert!(!violation.to_string().is_empty());
        }
    }
}
