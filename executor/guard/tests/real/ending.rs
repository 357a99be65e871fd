//! Processes that are left behind are waited for, then ended.

use std::fs;
use std::path::Path;
use std::thread;
use std::time::Duration;

use guard::record::Event;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::json;

use super::place::{Place, answer, eventually, started};

#[test]
fn a_higher_fence_waits_for_a_running_command() {
    let Some(place) = Place::new() else { return };
    place.begun(1, 1);
    let done = place.file("done");
    let mut running = started(&mut place.shell(1, 1, &format!("sleep 1; touch {}", done.display())));
    eventually("the command runs", || place.has(Event::Begin));
    let answer = place.begun(1, 2);
    assert!(done.exists(), "it did not wait");
    assert!(running.wait().unwrap().success());
    assert_eq!(answer["ended"], json!([]));
    assert!(answer["waitedMilliseconds"].as_u64().unwrap() > 500, "{answer}");
    place.report();
}

/// Each of these tells its process number in the file `pids` once it is ready.
const LEFT: [&str; 6] = [
    "echo $$ >> pids; sleep 60",
    "trap '' TERM; echo $$ >> pids; while :; do sleep 1; done",
    "setsid sh -c 'echo $$ >> pids; sleep 60' & sleep 60",
    // Twice, with all of its files closed, as a daemon does.
    "(setsid sh -c 'sh ./daemon </dev/null >/dev/null 2>&1 &' &); sleep 0.3",
    "echo $$ >> pids; kill -STOP $$",
    "nohup sh -c 'echo $$ >> pids; exec sleep 60' >/dev/null 2>&1 & sleep 0.2",
];

/// It hears nothing but SIGKILL.
const DAEMON: &str = "trap '' TERM HUP; echo $$ >> pids; while :; do sleep 1; done";

#[test]
fn what_goes_on_for_too_long_is_ended_whatever_it_does() {
    let Some(place) = Place::new() else { return };
    place.begun(1, 1);
    fs::write(place.file("daemon"), DAEMON).unwrap();
    let pids = || fs::read_to_string(place.file("pids")).unwrap_or_default();
    let mut running = Vec::new();
    for command in LEFT {
        running.push(started(place.shell(1, 1, command).current_dir(place.file(""))));
        eventually("it is at work", || pids().lines().count() == running.len());
        place.unlock(1, 1);
    }
    let mut begin = place.begin(1, 2);
    let answer = answer(begin.args(["--wait-seconds", "1", "--kill-after-seconds", "1"]));
    let waited = answer["waitedMilliseconds"].as_u64().unwrap();
    assert!((1900..6000).contains(&waited), "{answer}");
    for pid in pids().lines() {
        assert!(is_gone(pid), "{pid} is at work");
    }
    for command in &mut running {
        command.wait().unwrap();
    }
    let mut signals: Vec<_> = place.records().into_iter().filter_map(|record| record.signal).collect();
    // Each again for whatever those that do not listen have started since.
    signals.dedup();
    assert_eq!(signals, ["SIGTERM", "SIGKILL"]);
    assert!(place.shell(1, 2, "true").status().unwrap().success());
    place.report();
}

#[test]
fn an_end_leaves_nothing_of_its_own_run() {
    let Some(place) = Place::new() else { return };
    place.begun(1, 1);
    fs::write(place.file("daemon"), DAEMON).unwrap();
    let mut running = started(place.shell(1, 1, LEFT[3]).current_dir(place.file("")));
    assert!(running.wait().unwrap().success());
    let pid = fs::read_to_string(place.file("pids")).unwrap();
    assert!(!is_gone(pid.trim()));
    let mut end = place.end(1, 1);
    let answer = answer(end.args(["--wait-seconds", "0", "--kill-after-seconds", "0"]));
    assert_eq!(answer["quiet"], true);
    assert!(!answer["ended"].as_array().unwrap().is_empty());
    assert!(is_gone(pid.trim()));
    place.report();
}

#[test]
fn two_that_end_one_run_do_not_end_each_other() {
    let Some(place) = Place::new() else { return };
    place.begun(1, 1);
    let mut running = started(&mut place.shell(1, 1, "sleep 1"));
    eventually("the command runs", || place.has(Event::Begin));
    let mut ends = [started(&mut place.end(1, 1)), started(&mut place.end(1, 1))];
    for end in &mut ends {
        assert!(end.wait().unwrap().success());
    }
    assert!(running.wait().unwrap().success());
    assert!(!place.has(Event::Ended));
    place.report();
}

#[test]
fn a_guard_whose_program_was_replaced_still_counts() {
    let Some(place) = Place::new() else { return };
    place.begun(1, 1);
    let mut running = started(&mut place.shell(1, 1, "env -i /bin/sleep 1"));
    eventually("the command runs", || place.has(Event::Begin));
    place.install();
    let answer = place.begun(1, 2);
    assert!(answer["waitedMilliseconds"].as_u64().unwrap() > 300, "{answer}");
    assert!(running.wait().unwrap().success());
    place.report();
}

#[test]
fn a_guard_that_stands_still_with_the_lock_is_ended() {
    let Some(place) = Place::new() else { return };
    place.begun(1, 1);
    // As a guard that was stopped between its check and its child: by its name it is one, and it has the lock.
    let mut stuck =
        started(&mut place.shell(1, 1, &format!("exec 9>>{}; flock 9; kill -STOP $$", place.file("lock").display())));
    eventually("it has the lock", || state_of(stuck_child(stuck.id())) == Some('T'));
    let mut begin = place.begin(1, 2);
    let answer = answer(begin.args(["--wait-seconds", "1", "--kill-after-seconds", "1"]));
    assert!(!answer["ended"].as_array().unwrap().is_empty());
    stuck.wait().unwrap();
    place.report();
}

#[test]
fn what_stands_still_is_asked_before_it_is_killed() {
    let Some(place) = Place::new() else { return };
    place.begun(1, 1);
    let mut stopped = started(&mut place.shell(1, 1, "trap 'exit 9' TERM; kill -STOP $$; sleep 60"));
    eventually("it stands still", || state_of(stuck_child(stopped.id())) == Some('T'));
    let mut begin = place.begin(1, 2);
    answer(begin.args(["--wait-seconds", "0", "--kill-after-seconds", "60"]));
    assert_eq!(stopped.wait().unwrap().code(), Some(9));
    place.report();
}

#[test]
fn a_run_begins_only_with_the_lock() {
    let Some(place) = Place::new() else { return };
    place.begun(1, 1);
    let mut lock = started(std::process::Command::new("flock").arg(place.file("lock")).args(["sleep", "1"]));
    thread::sleep(Duration::from_millis(200));
    place.begun(1, 2);
    assert!(lock.try_wait().unwrap().is_some(), "it did not wait");
    assert!(place.shell(1, 2, "true").status().unwrap().success());
    place.report();
}

#[test]
fn the_work_of_another_directory_is_not_touched() {
    let (Some(place), Some(other)) = (Place::new(), Place::new()) else {
        return;
    };
    place.begun(1, 1);
    other.begun(1, 1);
    let mut running = started(&mut other.shell(1, 1, "sleep 1"));
    eventually("the command runs", || other.has(Event::Begin));
    let answer = answer(place.begin(9, 9).args(["--wait-seconds", "0", "--kill-after-seconds", "0"]));
    assert_eq!(answer["ended"], json!([]));
    assert!(running.wait().unwrap().success());
}

#[test]
fn a_run_does_not_begin_by_ending_the_connection_it_came_through() {
    let Some(place) = Place::new() else { return };
    place.begun(1, 1);
    // As an sshd that a command of the earlier run started anew.
    let mut sshd = std::process::Command::new("/bin/sh");
    sshd.args(["-c", "\"$@\" && echo lives", "sh"])
        .arg(place.file("guard"))
        .args(place.begin(1, 2).get_args())
        .args(["--wait-seconds", "0"])
        .env(guard::MARK, "1-1")
        .env(guard::FENCED_BY, place.file("").as_os_str().to_str().unwrap().trim_end_matches('/'));
    let output = sshd.output().unwrap();
    assert!(super::place::out(&output).ends_with("lives\n"), "{output:?}");
}

#[test]
fn what_was_stopped_and_wakes_up_late_runs_nothing() {
    let Some(place) = Place::new() else { return };
    place.begun(1, 1);
    let canary = place.file("canary");
    // Nobody gets past the lock while this has it.
    let mut lock = started(std::process::Command::new("flock").arg(place.file("lock")).args(["sleep", "1"]));
    thread::sleep(Duration::from_millis(200));
    let mut late = started(&mut place.shell(1, 1, &format!("touch {}", canary.display())));
    thread::sleep(Duration::from_millis(200));
    let pid = Pid::from_raw(i32::try_from(late.id()).unwrap());
    kill(pid, Signal::SIGSTOP).unwrap();
    lock.wait().unwrap();

    let mut begin = started(&mut place.begin(1, 2));
    eventually("the fence is raised", || place.highest()["token"] == 2);
    thread::sleep(Duration::from_millis(100));
    assert!(begin.try_wait().unwrap().is_none(), "it does not wait for the guard that stands still");
    kill(pid, Signal::SIGCONT).unwrap();
    assert_eq!(late.wait().unwrap().code(), Some(79));
    assert!(begin.wait().unwrap().success());
    assert!(!canary.exists());
    place.report();
}

fn is_gone(pid: &str) -> bool {
    matches!(state_of(pid.parse().unwrap()), None | Some('Z'))
}

fn state_of(pid: u32) -> Option<char> {
    let stat = fs::read_to_string(Path::new("/proc").join(pid.to_string()).join("stat")).ok()?;
    stat.rsplit(')').next()?.trim().chars().next()
}

fn stuck_child(pid: u32) -> u32 {
    let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    children.split_whitespace().next().and_then(|child| child.parse().ok()).unwrap_or_default()
}
