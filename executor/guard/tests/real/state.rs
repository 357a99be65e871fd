//! The state lives through full disks, kills and its own growth.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::thread;
use std::time::Duration;

use guard::log_audit;
use guard::record::Event;

use super::place::{Place, err, eventually, out, started};

#[test]
fn a_full_disk_is_said_in_words_and_costs_nothing_but_time() {
    let Some(place) = Place::small(64) else { return };
    place.begun(1, 1);
    fill(&place);
    let refused = place.begin(1, 2).output().unwrap();
    assert_eq!((out(&refused).as_str(), refused.status.code()), ("", Some(78)));
    assert!(err(&refused).starts_with("clusterwright-guard: failed: "), "{}", err(&refused));
    assert!(err(&refused).contains("make room on this file system"), "{}", err(&refused));
    assert_eq!(place.highest()["token"], 1);

    fs::remove_file(place.file("filling")).unwrap();
    place.begun(1, 2);
    assert!(place.shell(1, 2, "true").status().unwrap().success());
    place.report();
}

#[test]
fn on_a_full_disk_what_could_begin_can_write_its_end() {
    let Some(place) = Place::small(64) else { return };
    place.begun(1, 1);
    let hold = place.file("hold");
    fs::write(&hold, "").unwrap();
    let wait = format!("while [ -e {} ]; do sleep 0.05; done", hold.display());
    let mut running = started(&mut place.shell(1, 1, &wait));
    eventually("the command runs", || place.has(Event::Begin));
    place.unlock(1, 1);
    fill(&place);
    // Commands are let through as long as there is room for their end.
    let refused = (0..1000)
        .map(|_| place.shell(1, 1, "echo ran").output().unwrap())
        .find(|output| !output.status.success())
        .unwrap();
    assert_eq!((out(&refused).as_str(), refused.status.code()), ("", Some(78)));
    fs::remove_file(hold).unwrap();
    assert!(running.wait().unwrap().success());
    assert_eq!(place.report().open, []);
}

fn fill(place: &Place) {
    let mut filling = fs::File::create(place.file("filling")).unwrap();
    for block in [1 << 16, 1 << 12, 1] {
        while filling.write_all(&vec![0; block]).is_ok() {}
    }
}

#[test]
fn a_begin_that_is_killed_at_any_moment_leaves_a_state_that_works() {
    let Some(place) = Place::new() else { return };
    for token in 1..=100 {
        let mut begin = started(&mut place.begin(1, token));
        // Up to what a begin takes here.
        thread::sleep(Duration::from_micros(u64::try_from(token * 7919 % 9000).unwrap()));
        begin.kill().unwrap();
        begin.wait().unwrap();
        let highest = place.highest()["token"].as_i64().unwrap_or_default();
        assert!(highest == token || highest == token - 1, "{highest} after {token}");
        place.begun(1, token);
        assert!(place.shell(1, token, "true").status().unwrap().success());
    }
    assert_eq!(place.report().commands, 100);
}

#[test]
fn a_line_that_was_cut_off_is_dropped() {
    let Some(place) = Place::new() else { return };
    place.begun(1, 1);
    let mut log = OpenOptions::new().append(true).open(place.file("log")).unwrap();
    log.write_all(b"{\"event\":\"begin\",\"at\"").unwrap();
    assert!(place.shell(1, 1, "true").status().unwrap().success());
    assert_eq!(place.report().commands, 1);
    assert_eq!(place.records().len(), 4);
}

#[test]
fn the_log_is_turned_over_without_losing_what_must_be_known() {
    let Some(place) = Place::new() else { return };
    place.begun(1, 1);
    let mut running = started(&mut place.shell(1, 1, "sleep 2"));
    eventually("the command runs", || place.has(Event::Begin));
    place.unlock(1, 1);
    let grow = || {
        let text = fs::read_to_string(place.file("log")).unwrap();
        let refused = text.lines().next().unwrap().replace("\"raised\"", "\"refused\"") + "\n";
        let mut log = OpenOptions::new().append(true).open(place.file("log")).unwrap();
        log.write_all(refused.repeat((4 << 20) / refused.len() + 1).as_bytes()).unwrap();
    };
    // Twice: what the first lines said is gone then.
    for _ in 0..2 {
        grow();
        assert!(place.shell(1, 1, "true").status().unwrap().success());
        assert_eq!(place.records()[0].event, Event::Rotated);
    }
    assert_eq!(place.records()[0].open.len(), 1);
    assert!(running.wait().unwrap().success());
    place.begun(1, 2);
    assert_eq!(place.report().open, []);
    let newest = log_audit::read("", &fs::read_to_string(place.file("log")).unwrap());
    assert_eq!(newest.violations, []);
    for file in ["log", "log.1", "lock"] {
        let mode = fs::metadata(place.file(file)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{file}");
    }
}

#[test]
fn a_state_that_cannot_be_read_is_no_permission() {
    let Some(place) = Place::new() else { return };
    place.begun(1, 1);
    fs::write(place.file("fence"), "{\"epoch\":").unwrap();
    for output in [
        place.shell(1, 1, "echo ran").output().unwrap(),
        place.begin(1, 2).output().unwrap(),
        place.end(1, 1).output().unwrap(),
        place.guard("read").output().unwrap(),
    ] {
        assert_eq!((out(&output).as_str(), output.status.code()), ("", Some(78)));
        assert!(err(&output).contains("remove it and let the run begin again"), "{}", err(&output));
    }
    fs::remove_file(place.file("fence")).unwrap();
    place.begun(1, 2);
}

#[test]
fn whatever_the_umask_everybody_can_read_the_fence_and_nobody_the_log() {
    let Some(place) = Place::new() else { return };
    let begin = format!("umask 077; exec {} \"$@\"", place.file("guard").display());
    let mut shell = std::process::Command::new("/bin/sh");
    shell.args(["-c", &begin, "sh"]).args(place.begin(1, 1).get_args());
    assert!(shell.output().unwrap().status.success());
    let mode = |name: &str| fs::symlink_metadata(place.file(name)).unwrap().permissions().mode() & 0o777;
    for (name, expected) in
        [("fence", 0o644), ("log", 0o600), ("runs", 0o755), ("runs/1-1", 0o755), ("runs/1-1/run.json", 0o644)]
    {
        assert_eq!(mode(name), expected, "{name}");
    }
}
