//! Secrets stay secret: canaries in every kind of credential and key, and a look at everything that leaves a run,
//! through the real executor, the real ansible-core and a real sshd on this machine.

#[cfg(test)]
#[path = "real/bench.rs"]
mod bench;
#[cfg(test)]
#[path = "secrets/canaries.rs"]
mod canaries;
#[cfg(test)]
#[path = "secrets/kubeconfigs.rs"]
mod kubeconfigs;
#[cfg(test)]
#[path = "secrets/status.rs"]
mod status;
#[cfg(test)]
#[path = "hostile/watched.rs"]
mod watched;

use std::collections::BTreeSet;
use std::fs;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use canaries::Seat;

#[test]
fn secrets_are_in_no_argument_environment_output_status_or_file_on_a_disk_when_a_run_succeeds_and_when_it_fails() {
    for fails in [false, true] {
        let seat = Seat::new(fails);
        let canaries = &seat.canaries;
        let patches = status::Server::start();
        let mut seen = BTreeSet::new();
        let mut limits = Vec::new();
        let kubeconfig = seat.bench.path().join("kubeconfig");
        fs::write(&kubeconfig, patches.kubeconfig()).unwrap();
        let watched = watched::run(
            &seat.bench,
            &["--run", "n/r"],
            |command| {
                seat.surround(command);
                command.env("KUBECONFIG", &kubeconfig);
            },
            |executor| {
                canaries.look_at_processes(&mut seen);
                limits.push(canaries::core_limit(executor));
            },
        );
        let ran = &watched.ran;
        assert_eq!(ran.code, if fails { 20 } else { 12 }, "{}", ran.text);
        assert!(seen.is_empty(), "in arguments or environments: {seen:?}");
        // The first look may be at a program that has not come to its first statement.
        let limits: BTreeSet<_> = limits.into_iter().skip(1).flatten().collect();
        assert_eq!(limits, BTreeSet::from(["0 0".to_owned()]), "core dumps are not off");

        // The password came to where it belongs, so it was on its way.
        assert!(seat.sudo_heard().contains(&canaries.sudo_password), "sudo heard {:?} {}", seat.sudo_heard(), ran.text);
        if fails {
            assert!(ran.text.contains("[secret]"), "nothing was said that had to be taken out: {}", ran.text);
        }
        canaries.assert_absent("the output", ran.text.as_bytes());
        canaries.assert_absent("the result", ran.result.to_string().as_bytes());
        canaries.assert_absent("the termination message", ran.message.to_string().as_bytes());
        let patches = patches.bodies();
        assert!(patches.len() >= 2, "{} status patches", patches.len());
        for patch in patches {
            canaries.assert_absent("a status patch", &patch);
        }
        canaries.assert_absent_below(&seat.home());
        canaries.assert_absent_below(&seat.bench.path().join("ansible"));
        seat.bench.assert_nothing_left();
    }
}

#[test]
fn keys_of_a_killed_run_lie_in_memory_and_the_next_run_removes_them() {
    let seat = Seat::new(false);
    let mut command = seat.bench.command(&["--verbose"]);
    seat.surround(&mut command);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let begun = Instant::now();
    while seat.sudo_heard().is_empty() {
        assert!(begun.elapsed() < Duration::from_secs(60), "no task has begun");
        std::thread::sleep(Duration::from_millis(20));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    // Ours was not the first process of a container: what was below it is still there.
    for pid in canaries::processes_with(&seat.bench.memory().display().to_string()) {
        let _ = Command::new("kill").args(["-KILL", &pid]).status();
    }
    let places: Vec<_> = fs::read_dir(seat.bench.memory()).unwrap().flatten().collect();
    assert_eq!(places.len(), 1, "{places:?}");
    let kind = Command::new("stat").args(["-f", "-c", "%T"]).arg(places[0].path()).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&kind.stdout).trim(), "tmpfs");
    seat.canaries.assert_absent_below(&seat.home());

    let ran = seat.bench.run(&[]);
    assert_eq!(ran.code, 12, "{}", ran.text);
    seat.bench.assert_nothing_left();
}
