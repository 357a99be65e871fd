//! A command does not notice that the guard is there.

use std::io::{Read, Write};
use std::process::Stdio;
use std::thread;
use std::time::Duration;

use guard::record::Event;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::place::{Place, err, eventually, out, started};

#[test]
fn environment_directory_arguments_outputs_and_exit_code_pass() {
    let Some(place) = Place::new() else { return };
    place.begun(1, 1);
    let mut shell = place.shell(1, 1, "echo \"$CANARY $PWD $0 $1\"; echo wrong >&2; umask; exit 7");
    shell.args(["name", "argument"]).env("CANARY", "a b").current_dir("/var/lib");
    let output = shell.output().unwrap();
    let lines = out(&output);
    assert!(lines.starts_with("a b /var/lib name argument\n00"), "{lines}");
    assert_eq!((err(&output).as_str(), output.status.code()), ("wrong\n", Some(7)));
    assert_eq!(place.records().last().unwrap().rc, Some(7));
    place.report();
}

#[test]
fn input_passes_as_it_is_and_output_too() {
    let Some(place) = Place::new() else { return };
    place.begun(1, 1);
    // A megabyte of every byte there is, a zero first.
    let bytes: Vec<u8> = (0..1u32 << 20).map(|at| (at.wrapping_mul(31) >> 3) as u8).collect();
    let mut shell = place.shell(1, 1, "cat").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut input = shell.stdin.take().unwrap();
    let sent = bytes.clone();
    let writer = thread::spawn(move || input.write_all(&sent).unwrap());
    let mut received = Vec::new();
    shell.stdout.take().unwrap().read_to_end(&mut received).unwrap();
    writer.join().unwrap();
    assert!(shell.wait().unwrap().success());
    assert!(received == bytes);
}

#[test]
fn input_that_nobody_closes_does_not_hold_the_command() {
    let Some(place) = Place::new() else { return };
    place.begun(1, 1);
    let mut shell = place.shell(1, 1, "true").stdin(Stdio::piped()).spawn().unwrap();
    let input = shell.stdin.take();
    eventually("it ends", || shell.try_wait().unwrap().is_some());
    drop(input);
}

#[test]
fn signals_reach_the_command_and_its_answer_comes_back() {
    let Some(place) = Place::new() else { return };
    place.begun(1, 1);
    for signal in [Signal::SIGTERM, Signal::SIGHUP, Signal::SIGINT] {
        let name = signal.as_str().trim_start_matches("SIG");
        let ready = place.file(name);
        let command = format!("trap 'exit 9' {name}; touch {}; while :; do sleep 0.05; done", ready.display());
        let mut shell = started(&mut place.hearing_shell(1, 1, &command));
        eventually("it listens", || ready.exists());
        kill(Pid::from_raw(i32::try_from(shell.id()).unwrap()), signal).unwrap();
        assert_eq!(shell.wait().unwrap().code(), Some(9), "{signal}");
    }
    place.report();
}

#[test]
fn a_command_that_dies_of_a_signal_is_told_as_a_shell_tells_it() {
    let Some(place) = Place::new() else { return };
    place.begun(1, 1);
    assert_eq!(place.shell(1, 1, "kill -KILL $$").status().unwrap().code(), Some(137));
    assert_eq!(place.records().last().unwrap().rc, Some(137));
}

#[test]
fn a_signal_that_is_to_be_ignored_is_ignored_by_the_command_too() {
    let Some(place) = Place::new() else { return };
    place.begun(1, 1);
    let link = place.file("runs/1-1/etcd");
    let script = format!("trap '' HUP; exec {} -c 'kill -HUP $$; echo lives'", link.display());
    let output = std::process::Command::new("/bin/sh").args(["-c", &script]).output().unwrap();
    assert_eq!(out(&output), "lives\n");
}

#[test]
fn a_pipe_that_breaks_is_the_commands_business_and_its_end_is_written() {
    let Some(place) = Place::new() else { return };
    place.begun(1, 1);
    let mut shell = place
        .shell(1, 1, "sleep 0.2; echo there; echo there >&2; sleep 0.1; exit 3")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop((shell.stdin.take(), shell.stdout.take(), shell.stderr.take()));
    shell.wait().unwrap();
    assert!(place.has(Event::End));
    assert_eq!(place.report().open, []);
}

#[test]
fn a_guard_that_is_hung_up_on_writes_the_end_of_its_command() {
    let Some(place) = Place::new() else { return };
    place.begun(1, 1);
    let mut shell = started(&mut place.hearing_shell(1, 1, "sleep 60"));
    eventually("it runs", || place.has(Event::Begin));
    kill(Pid::from_raw(i32::try_from(shell.id()).unwrap()), Signal::SIGHUP).unwrap();
    shell.wait().unwrap();
    assert_eq!(place.records().last().unwrap().rc, Some(129));
    assert_eq!(place.report().open, []);
}

#[test]
fn what_a_command_says_is_in_no_record() {
    let Some(place) = Place::new() else { return };
    place.begun(1, 1);
    let mut shell = started(&mut place.shell(1, 1, "exec sleep 60 # canary-secret"));
    eventually("one runs", || place.report().open.len() == 1);
    place.unlock(1, 1);
    let mut other = started(place.shell(1, 1, "sh -c 'sleep 60; true' canary-secret").env("KEY", "canary-secret"));
    eventually("both run", || place.report().open.len() == 2);
    thread::sleep(Duration::from_millis(100));
    let begin = place.begin(1, 2).args(["--wait-seconds", "0"]).output().unwrap();
    shell.wait().unwrap();
    other.wait().unwrap();
    let log = std::fs::read_to_string(place.file("log")).unwrap();
    assert!(!out(&begin).contains("canary") && !log.contains("canary"), "{log}");
}

#[test]
fn many_commands_at_once_are_all_written_down() {
    let Some(place) = Place::new() else { return };
    place.begun(1, 1);
    let mut running: Vec<_> = (0..40).map(|_| started(&mut place.shell(1, 1, "true"))).collect();
    for command in &mut running {
        assert!(command.wait().unwrap().success());
    }
    assert_eq!(place.report().commands, 40);
}
