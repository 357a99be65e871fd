//! Backups, and backups that are staged, killed at random moments: what is left is never taken for a backup, or for a
//! snapshot, and the next attempt succeeds. `CLUSTERWRIGHT_KILLS` says how often (default 3; `make backups` has 20),
//! `CLUSTERWRIGHT_SEED` which moments.

use std::fs;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use age::x25519::Identity;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::backup::{self, Etcd, inputs, prepared, stored_at};
use crate::bench::wait;
use crate::kills::{Chance, kill, kill_tree, number};
use crate::machine::Machine;
use crate::staging::{self, backed_up, files};

const WHOLE: [&str; 3] = ["cluster.tar.age", "manifest.json", "snapshot.db.age"];

/// Ends the run at a moment of chance, if it is not over before: it alone, or all of it, as a Pod's end does.
fn end_at_random(run: &mut Child, chance: &mut Chance, longest: u64) -> bool {
    let due = Instant::now() + Duration::from_millis(chance.below(longest));
    while Instant::now() < due {
        if run.try_wait().unwrap().is_some() {
            return false;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    if chance.below(2) == 0 {
        kill(&[run.id()]);
        run.wait().unwrap();
    } else {
        kill_tree(run);
    }
    true
}

fn start(mut command: Command, machine: &Machine) -> Child {
    let log = fs::File::create(machine.bench.path().join("log")).unwrap();
    command.stdout(log.try_clone().unwrap()).stderr(log).spawn().unwrap()
}

/// Which phase the run has reported, if it came to that.
fn reported(machine: &Machine) -> Value {
    let text = fs::read(machine.bench.path().join("result.json")).unwrap_or_default();
    let result: Value = serde_json::from_slice(&text).unwrap_or_default();
    let _ = fs::remove_file(machine.bench.path().join("result.json"));
    result["outcome"]["phase"].clone()
}

fn slowly_to(machine: &mut Machine, location: &str) {
    inputs(machine, &["m1"], |model| {
        model["backup"]["location"] = json!(location);
        model["backup"]["bytesPerSecond"] = json!(3 << 20);
    });
}

#[test]
fn a_backup_killed_at_random_moments_is_none_and_the_next_attempt_is_one() {
    let (kills, seed) = (number("CLUSTERWRIGHT_KILLS", 3), number("CLUSTERWRIGHT_SEED", 1));
    let mut chance = Chance::new(seed);
    let (mut machine, etcd): (Machine, Etcd) = prepared(&["m1"], |_| ());
    let (mut token, mut killed, mut partial) = (0, 0, 0);
    while killed < kills {
        token += 1;
        let location = format!("c/u/{token}");
        slowly_to(&mut machine, &location);
        let mut run = start(backup::command(&machine, &etcd, token), &machine);
        killed += u64::from(end_at_random(&mut run, &mut chance, 7000));
        let (phase, stored) = (reported(&machine), stored_at(&machine, &location));
        if phase == "Succeeded" || stored.iter().any(|name| name == "manifest.json") {
            assert_eq!(stored, WHOLE, "seed {seed}, run {token}: {phase}");
        } else {
            partial += u64::from(!stored.is_empty());
        }
    }
    token += 1;
    let location = format!("c/u/{token}");
    slowly_to(&mut machine, &location);
    let ran = backup::run(&machine, &etcd, token);
    assert_eq!((ran.code, stored_at(&machine, &location)), (0, WHOLE.map(str::to_owned).to_vec()), "{}", ran.text);
    machine.history();
    println!("{killed} backups killed, {partial} of them with something stored that is no backup (seed {seed})");
}

#[test]
fn a_staging_killed_at_random_moments_is_taken_up_by_the_next() {
    let (kills, seed) = (number("CLUSTERWRIGHT_KILLS", 3), number("CLUSTERWRIGHT_SEED", 1));
    let mut chance = Chance::new(seed.wrapping_add(1));
    let machine = backed_up(&Identity::generate(), None);
    reported(&machine);
    let manifest = fs::read(machine.bench.path().join("storage/c/u/1/manifest.json")).unwrap();
    let manifest: Value = serde_json::from_slice(&manifest).unwrap();
    let (mut token, mut killed) = (1, 0);
    while killed < kills {
        token += 1;
        let mut run = start(staging::command(&machine, token), &machine);
        killed += u64::from(end_at_random(&mut run, &mut chance, 4000));
        assert!(
            ["Succeeded", ""].contains(&reported(&machine).as_str().unwrap_or_default()),
            "seed {seed}, run {token}"
        );
    }
    token += 1;
    let ran = staging::run(&machine, token);
    assert_eq!(ran.code, 0, "seed {seed}: {}", ran.text);
    let files = files(&machine);
    let [file] = files.as_slice() else { panic!("seed {seed}: {files:?}") };
    let sha256: String = Sha256::digest(fs::read(file).unwrap()).iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(manifest["snapshot"]["plainSha256"], sha256, "seed {seed}");
    machine.history();
}

/// A small file system is where the machine's data is to be.
#[test]
fn a_disk_that_is_full_where_a_backup_is_staged_is_named_and_another_attempt_does_with_more_room() {
    let machine = backed_up(&Identity::generate(), None);
    let data = machine.bench.path().join("data");
    fs::create_dir_all(&data).unwrap();
    let mount = |options: &str| {
        let output = Command::new("mount").args(["-t", "tmpfs", "-o", options, "clusterwright"]).arg(&data).output();
        let output = output.unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    };
    mount("size=3m");
    let _mounted = Mounted(&data);
    let ran = staging::run(&machine, 2);
    let message = ran.host("m1")["failure"]["message"].as_str().unwrap_or_default();
    assert!(
        message.contains("StagingFailed") && message.contains("No space left on device"),
        "{message}\n{}",
        ran.text
    );
    assert!(ran.result.get("staged").is_none(), "{}", ran.text);
    mount("remount,size=64m");
    let ran = staging::run(&machine, 3);
    assert_eq!(ran.code, 0, "{}", ran.text);
    wait(|| files(&machine).len() == 1, || format!("{:?}", files(&machine)));
    machine.history();
}

struct Mounted<'a>(&'a std::path::Path);

impl Drop for Mounted<'_> {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("--lazy").arg(self.0).status();
    }
}
