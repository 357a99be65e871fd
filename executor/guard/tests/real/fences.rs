//! Who may begin and run, and who not.

use std::process::Command;

use guard::record::Event;
use serde_json::json;

use super::place::{Place, answer, assert_refused, err, eventually, out, started, succeeds};

#[test]
fn a_lower_fence_is_refused_and_nothing_of_it_is_run() {
    let Some(place) = Place::new() else { return };
    place.begun(1, 1);
    place.begun(1, 2);
    let canary = place.file("canary");
    let late = place.shell(1, 1, &format!("touch {}", canary.display())).output().unwrap();
    assert_refused(&late);
    assert!(err(&late).contains("run ns/r2 of cluster a has this machine now"), "{}", err(&late));
    assert!(!canary.exists());
    assert_refused(&place.begin(1, 1).output().unwrap());
    assert_refused(&place.end(1, 1).output().unwrap());
    assert_eq!(place.highest()["token"], 2);
    assert_eq!(place.report().refused.len(), 3);
}

#[test]
fn a_machine_that_moves_to_a_cluster_with_low_tokens_works() {
    let Some(place) = Place::new() else { return };
    place.begun(2, 41);
    place.begun(3, 1);
    assert_eq!(out(&place.shell(3, 1, "echo done").output().unwrap()), "done\n");
    assert_refused(&place.shell(2, 41, "true").output().unwrap());
    assert_refused(&place.begin(2, 42).output().unwrap());
    place.report();
}

#[test]
fn a_run_may_begin_again() {
    let Some(place) = Place::new() else { return };
    place.begun(1, 1);
    let mut running = started(&mut place.shell(1, 1, "sleep 2; exit 5"));
    eventually("the command runs", || place.has(Event::Begin));
    let again = place.begun(1, 1);
    assert_eq!(again["ended"], json!([]));
    assert!(again["waitedMilliseconds"].as_u64().unwrap() < 1500);
    assert_eq!(running.wait().unwrap().code(), Some(5));
    place.report();
}

#[test]
fn an_equal_fence_of_another_run_is_refused_and_ends_nothing() {
    let Some(place) = Place::new() else { return };
    succeeds(place.begin(1, 1).args(["--uid", "first"]));
    let mut running = started(&mut place.shell(1, 1, "sleep 2; exit 5"));
    eventually("the command runs", || place.has(Event::Begin));
    // Names come again after a backup was restored, UIDs do not.
    let again = place.begin(1, 1).args(["--uid", "second"]).output().unwrap();
    assert_refused(&again);
    assert!(err(&again).contains("fence 1-1 is that of run ns/r1 (UID first) of cluster a"), "{}", err(&again));
    assert_refused(&place.end(1, 1).args(["--uid", "second"]).output().unwrap());
    assert_eq!(running.wait().unwrap().code(), Some(5));
    succeeds(&mut place.shell(1, 1, "true"));
    succeeds(place.end(1, 1).args(["--uid", "first"]));
    assert_eq!(place.highest()["uid"], "first");
    // The next token is let in.
    succeeds(place.begin(1, 2).args(["--uid", "second"]));
    assert_eq!(place.report().refused.len(), 2);
}

#[test]
fn an_epoch_that_was_given_twice_is_refused_however_high_the_token_and_nothing_of_it_is_run() {
    let Some(place) = Place::new() else { return };
    succeeds(place.begin(2, 1).args(["--claim", "machine-1"]));
    // A metadata cluster of yesterday claims the Host once more, and counts to the same epoch.
    let other = place.begin(2, 99).args(["--claim", "machine-2"]).output().unwrap();
    assert_refused(&other);
    assert!(err(&other).contains("claim epoch 2 is that of another claim (Machine UID machine-1)"), "{}", err(&other));
    let canary = place.file("canary");
    let late = place.shell(2, 99, &format!("touch {}", canary.display())).output();
    assert!(late.is_err() || !late.unwrap().status.success());
    assert!(!canary.exists());
    assert_eq!((&place.highest()["token"], &place.highest()["claim"]), (&json!(1), &json!("machine-1")));
    succeeds(place.begin(2, 2).args(["--claim", "machine-1"]));
    succeeds(place.begin(3, 1).args(["--claim", "machine-2"]));
    place.report();
}

#[test]
fn a_run_that_the_store_does_not_know_is_not_followed_and_nothing_is_run() {
    let Some(place) = Place::new() else { return };
    succeeds(&mut place.begin(2, 120));
    succeeds(&mut place.end(2, 120));
    // The store was set back, and has come past the token meanwhile.
    let mut later = place.begin(2, 125);
    let refused = later.args(["--comparisons", "2026-05-01T00:00:00Z=100"]).output().unwrap();
    assert_refused(&refused);
    assert!(err(&refused).contains("run ns/r120 of cluster a was here with fence 2-120"), "{}", err(&refused));
    assert_eq!(place.highest()["token"], 120);
    assert!(!place.file("runs/2-125").exists());
    assert_eq!(place.report().refused.len(), 1);
    // A person has approved it: this machine's run is known by its token.
    succeeds(place.begin(2, 126).args(["--comparisons", "2026-05-01T00:00:00Z=120"]));
    assert_eq!(place.highest()["comparedSince"], "2026-05-01T00:00:00Z");
    succeeds(&mut place.end(2, 126));
    assert_eq!(place.highest()["comparedSince"], "2026-05-01T00:00:00Z");
    // The operator was away for a while, and nothing else happened.
    succeeds(place.begin(2, 127).args(["--comparisons", "2026-05-02T00:00:00Z=126"]));
    // The next claim begins anew.
    succeeds(place.begin(3, 1).args(["--comparisons", "2026-05-02T00:00:00Z=0"]));
    place.report();
}

#[test]
fn before_the_first_run_the_machine_has_no_fence() {
    let Some(place) = Place::new() else { return };
    assert_eq!(place.highest(), json!({}));
    assert!(!place.file("fence").exists() && !place.file("log").exists());
}

#[test]
fn anybody_may_read_the_fence_and_only_root_changes_it() {
    let Some(place) = Place::new() else { return };
    place.begun(1, 1);
    let mut read = nobody();
    assert_eq!(answer(read.arg(place.file("guard")).arg("read"))["token"], 1);
    let mut end = nobody();
    end.arg(place.file("guard")).args(["end", "--epoch", "1", "--token", "1"]);
    assert_eq!(end.output().unwrap().status.code(), Some(78));
    assert!(!place.has(Event::Refused));
}

#[test]
fn a_user_who_becomes_root_is_let_through_twice_and_written_down_once() {
    let Some(place) = Place::new() else { return };
    place.begun(1, 1);
    let nested = format!(
        "id -u; {} --reuid 0 --regid 0 --clear-groups --reset-env {} -c 'id -u; echo $CLUSTERWRIGHT_FENCE; exit 6'",
        sudo(&place).display(),
        place.file("runs/1-1/etcd").display()
    );
    let mut outer = nobody();
    outer.arg(place.file("runs/1-1/etcd")).arg("-c").arg(&nested);
    let output = outer.output().unwrap();
    assert_eq!((out(&output).as_str(), output.status.code()), ("65534\n0\n1-1\n", Some(6)));
    assert_eq!(place.report().commands, 1);

    // Overtaken, it is the outer one that says so.
    place.begun(1, 2);
    assert_refused(&outer.output().unwrap());
}

#[test]
fn root_that_becomes_root_is_let_through() {
    let Some(place) = Place::new() else { return };
    place.begun(1, 1);
    let inner = format!("{} -c 'exit 4'", place.file("runs/1-1/probe-node").display());
    assert_eq!(place.shell(1, 1, &inner).status().unwrap().code(), Some(4));
    let steps: Vec<_> = place.records().into_iter().map(|record| record.step).collect();
    assert_eq!(steps[2..], ["etcd", "probe-node", "probe-node", "etcd"]);
    place.report();
}

#[test]
fn what_the_user_left_running_without_root_is_ended_too() {
    let Some(place) = Place::new() else { return };
    place.begun(1, 1);
    let mut outer = nobody();
    let mut running = started(outer.arg(place.file("runs/1-1/etcd")).args(["-c", "sleep 60 & sleep 60"]));
    eventually("the user's command runs", || {
        std::fs::read_link(format!("/proc/{}/exe", running.id()))
            .is_ok_and(|exe| !exe.ends_with("guard") && !exe.ends_with("setpriv"))
    });
    let answer = answer(place.begin(1, 2).args(["--wait-seconds", "0"]));
    assert_eq!(answer["ended"][0]["fence"], "1-1");
    assert!(!running.wait().unwrap().success());
}

#[test]
fn after_its_end_a_run_runs_nothing_until_it_begins_again() {
    let Some(place) = Place::new() else { return };
    place.begun(1, 1);
    assert_eq!(answer(&mut place.end(1, 1))["quiet"], true);
    assert_refused(&place.shell(1, 1, "true").output().unwrap());
    place.begun(1, 1);
    assert!(place.shell(1, 1, "true").status().unwrap().success());
    place.report();
}

#[test]
fn a_command_of_a_run_that_never_began_here_is_not_run() {
    let Some(place) = Place::new() else { return };
    place.begun(1, 1);
    let links = place.file("runs/1-2");
    std::fs::create_dir(&links).unwrap();
    std::os::unix::fs::symlink("../../guard", links.join("etcd")).unwrap();
    let output = place.shell(1, 2, "echo ran").output().unwrap();
    assert_eq!((out(&output).as_str(), output.status.code()), ("", Some(78)));
    assert!(err(&output).starts_with("clusterwright-guard: failed: "), "{}", err(&output));
}

#[test]
fn a_run_that_was_overtaken_while_it_waited_does_not_begin() {
    let Some(place) = Place::new() else { return };
    place.begun(1, 1);
    let mut running = started(&mut place.shell(1, 1, "sleep 3"));
    eventually("the command runs", || place.has(Event::Begin));
    let waiting =
        place.begin(1, 2).stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped()).spawn().unwrap();
    eventually("the second waits", || place.has(Event::Waits));
    place.begun(1, 3);
    assert_refused(&waiting.wait_with_output().unwrap());
    assert!(running.wait().unwrap().success());
    assert!(place.shell(1, 3, "true").status().unwrap().success());
    place.report();
}

#[test]
fn runs_long_gone_are_forgotten_and_those_just_overtaken_are_refused_in_words() {
    let Some(place) = Place::new() else { return };
    for token in 1..=12 {
        place.begun(1, token);
    }
    assert_refused(&place.shell(1, 4, "true").output().unwrap());
    assert!(!place.file("runs/1-3").exists());
}

fn nobody() -> Command {
    let mut nobody = Command::new("setpriv");
    nobody.args(["--reuid", "65534", "--regid", "65534", "--clear-groups"]);
    nobody
}

/// A program that makes anybody root, as sudo does.
fn sudo(place: &Place) -> std::path::PathBuf {
    let sudo = place.file("sudo");
    succeeds(Command::new("install").args(["-m", "4755", "/usr/bin/setpriv"]).arg(&sudo));
    sudo
}

#[test]
fn a_machine_that_another_claim_left_is_not_touched_by_a_run_that_expects_one() {
    let Some(place) = Place::new() else { return };
    let expects = |epoch: i64, token: i64, expected: &str| {
        let output = place.begin(epoch, token).args(["--expect-epoch", expected]).output().unwrap();
        (output.status.code(), err(&output))
    };
    let (code, said) = expects(3, 50, "3");
    assert_eq!(code, Some(79));
    assert!(said.starts_with("clusterwright-guard: differs: this machine knows of no run"), "{said}");
    assert_eq!(place.highest(), serde_json::json!({}));

    place.begun(2, 41);
    for (epoch, expected) in [(3, "3"), (3, "2")] {
        let (code, said) = expects(epoch, 50, expected);
        assert_eq!(code, Some(79));
        assert!(said.contains("differs: claim epoch"), "{said}");
    }
    assert_eq!((place.highest()["epoch"].as_i64(), place.highest()["token"].as_i64()), (Some(2), Some(41)));
    // The very claim, twice: an attempt that was cut short is followed by another.
    for token in [50, 51] {
        assert_eq!(expects(2, token, "2").0, Some(0));
    }
    place.report();
}
