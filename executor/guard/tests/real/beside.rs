//! One command of a run at a time.

use std::fs::File;
use std::process::Stdio;
use std::thread;
use std::time::Duration;

use guard::record::Event;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::place::{Place, assert_refused, eventually, out, started};

/// Is at work until it may end, and writes down both.
fn slow(place: &Place, name: &str) -> String {
    let at = |name: &str| place.file(name).display().to_string();
    format!(
        "echo {name} begins >>{seen}; until [ -e {over} ]; do sleep 0.02; done; echo {name} ends >>{seen}",
        seen = at("seen"),
        over = at("over")
    )
}

fn seen(place: &Place) -> String {
    std::fs::read_to_string(place.file("seen")).unwrap_or_default()
}

#[test]
fn a_command_waits_for_an_unfinished_one_of_its_run() {
    let Some(place) = Place::new() else { return };
    place.begun(1, 1);
    let mut first = started(&mut place.shell(1, 1, &slow(&place, "first")));
    eventually("the first is at work", || !seen(&place).is_empty());
    let mut second = started(&mut place.shell(1, 1, &slow(&place, "second")));
    eventually("the second waits", || place.has(Event::Waits));
    std::fs::write(place.file("over"), "").unwrap();
    assert!(first.wait().unwrap().success() && second.wait().unwrap().success());
    assert_eq!(seen(&place), "first begins\nfirst ends\nsecond begins\nsecond ends\n");
    place.report();
}

#[test]
fn what_is_waited_for_is_written_down_although_another_guard_writes_just_then() {
    let Some(place) = Place::new() else { return };
    place.begun(1, 1);
    let mut first = started(&mut place.shell(1, 1, &slow(&place, "first")));
    eventually("the first is at work", || !seen(&place).is_empty());
    let other = File::options().write(true).open(place.file("lock")).unwrap();
    other.lock().unwrap();
    let mut second = started(&mut place.shell(1, 1, &slow(&place, "second")));
    thread::sleep(Duration::from_millis(300));
    assert!(!place.has(Event::Waits));
    drop(other);
    eventually("the second waits", || place.has(Event::Waits));
    std::fs::write(place.file("over"), "").unwrap();
    assert!(first.wait().unwrap().success() && second.wait().unwrap().success());
}

#[test]
fn a_command_that_waits_hears_its_signal_and_runs_nothing() {
    let Some(place) = Place::new() else { return };
    place.begun(1, 1);
    let mut first = started(&mut place.shell(1, 1, &slow(&place, "first")));
    eventually("the first is at work", || !seen(&place).is_empty());
    let mut second = started(&mut place.hearing_shell(1, 1, &slow(&place, "second")));
    eventually("the second waits", || place.has(Event::Waits));
    kill(Pid::from_raw(i32::try_from(second.id()).unwrap()), Signal::SIGTERM).unwrap();
    assert_eq!(second.wait().unwrap().code(), Some(143));
    std::fs::write(place.file("over"), "").unwrap();
    assert!(first.wait().unwrap().success());
    assert_eq!(seen(&place), "first begins\nfirst ends\n");
}

#[test]
fn a_command_that_is_overtaken_while_it_waits_is_refused() {
    let Some(place) = Place::new() else { return };
    place.begun(1, 1);
    let mut first = started(&mut place.shell(1, 1, &slow(&place, "first")));
    eventually("the first is at work", || !seen(&place).is_empty());
    let second =
        place.shell(1, 1, &slow(&place, "second")).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    eventually("the second waits", || place.has(Event::Waits));
    let next = place.begin(1, 2).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    assert_refused(&second.wait_with_output().unwrap());
    std::fs::write(place.file("over"), "").unwrap();
    assert!(first.wait().unwrap().success());
    assert!({ next }.wait().unwrap().success());
    assert_eq!(seen(&place), "first begins\nfirst ends\n");
    place.report();
}

#[test]
fn what_a_command_left_in_the_background_holds_up_no_other() {
    let Some(place) = Place::new() else { return };
    place.begun(1, 1);
    let background = "setsid sleep 60 >/dev/null 2>&1 </dev/null & echo started";
    assert_eq!(out(&place.shell(1, 1, background).output().unwrap()), "started\n");
    assert_eq!(out(&place.shell(1, 1, "echo next").output().unwrap()), "next\n");
    assert!(!place.has(Event::Waits));
}
