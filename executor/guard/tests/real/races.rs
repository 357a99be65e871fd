//! Guards that are stopped at any moment, and runs that follow each other while they sleep.

use std::fs;
use std::thread;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::place::{Place, answer, started};

/// A guard is stopped somewhere on its way from its start to its command's end. A newer run begins (waiting a moment,
/// or ending what it finds), and the guard is woken up before or after. Never does its command act once the newer run
/// has begun.
#[test]
fn a_guard_stopped_anywhere_never_acts_after_it_was_overtaken() {
    let Some(place) = Place::new() else { return };
    let out = place.file("out");
    fs::write(&out, "").unwrap();
    place.begun(1, 1);
    for token in 1..=80 {
        let command = format!("echo {token} >> {}", out.display());
        let mut late = started(&mut place.shell(1, token, &command));
        let pid = Pid::from_raw(i32::try_from(late.id()).unwrap());
        thread::sleep(Duration::from_micros(u64::try_from(token * 7919 % 4000).unwrap()));
        let _ = kill(pid, Signal::SIGSTOP);
        // Half of them are woken up while the newer run waits for them, the others are ended.
        let woken = (token % 2 == 0).then(|| {
            thread::spawn(move || {
                thread::sleep(Duration::from_millis(20));
                let _ = kill(pid, Signal::SIGCONT);
            })
        });
        let wait = if woken.is_some() { "20" } else { "0" };
        answer(place.begin(1, token + 1).args(["--wait-seconds", wait, "--kill-after-seconds", "1"]));
        let then = fs::read_to_string(&out).unwrap();
        let _ = kill(pid, Signal::SIGCONT);
        late.wait().unwrap();
        if let Some(woken) = woken {
            woken.join().unwrap();
        }
        assert_eq!(fs::read_to_string(&out).unwrap(), then, "the command of {token} acted late");
    }
    place.report();
}

/// Runs overtake each other in a storm of commands; each command says when it begins and ends, and none of two runs
/// meet.
#[test]
fn commands_of_two_runs_never_meet() {
    let Some(place) = Place::new() else { return };
    let out = place.file("out");
    place.begun(1, 1);
    for token in 1..=15 {
        let command = format!("echo {token} >> {0}; sleep 0.0{1}; echo {token} >> {0}", out.display(), token % 5);
        let mut storm: Vec<_> = (0..4).map(|_| started(&mut place.shell(1, token, &command))).collect();
        thread::sleep(Duration::from_micros(u64::try_from(token * 7919 % 5000).unwrap()));
        place.begun(1, token + 1);
        for command in &mut storm {
            command.wait().unwrap();
        }
    }
    let order: Vec<i64> = fs::read_to_string(&out).unwrap().lines().map(|line| line.parse().unwrap()).collect();
    assert!(order.is_sorted(), "{order:?}");
    place.report();
}
