//! A small playbook killed at random moments, again and again on one machine: never two runs at once, never a wrong
//! outcome. `CLUSTERWRIGHT_KILLS` says how often (default 3; `make faults` has ten), `CLUSTERWRIGHT_SEED` which
//! moments.
//!
//! Beside the guard's own log stands a canary that knows nothing of it: each task holds a directory while it works, and
//! tells when it finds one of another fence whose owner lives.

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Child, Command};
use std::time::{Duration, Instant};
use std::{env, fs};

use serde_json::{Value, json};

use crate::machine::Machine;

const CANARY: &str = r#"#!/bin/sh
# canary PLACE TASK SECONDS
# What a process is known by: its number may be another's soon, and one that has ended may wait to be collected.
life() {
    sed -n 's/.*) [^ZX] //p' "/proc/$1/stat" 2>/dev/null | cut -d ' ' -f 19
}
lock=$1/lock
if ! mkdir "$lock" 2>/dev/null; then
    pid=$(cat "$lock/pid" 2>/dev/null)
    fence=$(cat "$lock/fence" 2>/dev/null)
    life=$(cat "$lock/life" 2>/dev/null)
    if [ -n "$life" ] && [ -n "$fence" ] && [ "$fence" != "$CLUSTERWRIGHT_FENCE" ] && [ "$life" = "$(life "$pid")" ]; then
        echo "$CLUSTERWRIGHT_FENCE met $fence in $2" >>"$1/overlaps"
    fi
    rm -rf "$lock"
    mkdir "$lock" 2>/dev/null
fi
echo $$ >"$lock/pid"
echo "$CLUSTERWRIGHT_FENCE" >"$lock/fence"
life $$ >"$lock/life"
echo "$CLUSTERWRIGHT_FENCE $2 begin" >>"$1/order"
sleep "$3"
echo "$CLUSTERWRIGHT_FENCE $2 end" >>"$1/order"
rm -rf "$lock"
"#;

const STEP: &str = "
- hosts: all
  gather_facts: false
  tasks:
  - name: Raw
    ansible.builtin.raw: '{{ place }}/canary {{ place }} STEP-raw 0.3'
    args: {executable: '{{ ansible_shell_executable }}'}
  - name: A module
    ansible.builtin.command: '{{ place }}/canary {{ place }} STEP-module 0.2'
  - name: In the background
    ansible.builtin.command: '{{ place }}/canary {{ place }} STEP-background 1.2'
    async: 60
    poll: 0
  - name: As a daemon
    ansible.builtin.shell: 'setsid {{ place }}/canary {{ place }} STEP-daemon 1 >/dev/null 2>&1 </dev/null &'
  - name: A shell
    ansible.builtin.shell: '{{ place }}/canary {{ place }} STEP-shell 0.2 && touch {{ place }}/STEP-done'
";

const PROBE: &str = "
- hosts: all
  gather_facts: false
  tasks:
  - name: It is done
    ansible.builtin.command: test -e {{ place }}/STEP-done
    changed_when: false
";

const STEPS: [&str; 2] = ["prepare", "node"];

/// Chance that can be repeated.
pub struct Chance(u64);

impl Chance {
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }
}

pub fn number(name: &str, default: u64) -> u64 {
    env::var(name).map_or(default, |text| text.parse().unwrap())
}

/// The processes below one, by their parents.
fn below(root: u32) -> Vec<u32> {
    let stats = fs::read_dir("/proc").unwrap().flatten();
    let stats = stats.filter_map(|entry| fs::read_to_string(entry.path().join("stat")).ok());
    let pairs: Vec<(u32, u32)> = stats
        .filter_map(|stat| {
            let pid = stat.split(' ').next()?.parse().ok()?;
            let parent = stat.rsplit(") ").next()?.split(' ').nth(1)?.parse().ok()?;
            Some((pid, parent))
        })
        .collect();
    let mut found = vec![root];
    let mut next = 0;
    while let Some(parent) = found.get(next).copied() {
        found.extend(pairs.iter().filter(|(_, of)| *of == parent).map(|(pid, _)| *pid));
        next += 1;
    }
    found
}

pub fn kill(pids: &[u32]) {
    let pids = pids.iter().map(ToString::to_string);
    let _ = Command::new("kill").args(["-s", "KILL"]).args(pids).stderr(std::process::Stdio::null()).status();
}

/// Ends an executor and everything below it, as the end of a Pod does.
pub fn kill_tree(run: &mut Child) {
    kill(&below(run.id()));
    let _ = run.wait();
}

/// The remains of killed runs, by the directory that their files are in: they end with the test, also when
/// that fails.
struct Orphans(PathBuf);

impl Drop for Orphans {
    fn drop(&mut self) {
        let Ok(left) = Command::new("pgrep").arg("-f").arg(&self.0).output() else {
            return;
        };
        let left = String::from_utf8_lossy(&left.stdout);
        let left: Vec<u32> = left.lines().filter_map(|pid| pid.parse().ok()).collect();
        if !left.is_empty() {
            kill(&left);
        }
    }
}

/// Tasks that have begun under a token.
fn begun_of(machine: &Machine, token: i64) -> u64 {
    let order = machine.read("order");
    let begun = order.lines().filter(|line| line.starts_with(&format!("0-{token} ")) && line.ends_with("begin"));
    begun.count() as u64
}

#[test]
fn a_run_killed_at_random_moments_never_overlaps_the_next_and_never_lies() {
    let (kills, seed) = (number("CLUSTERWRIGHT_KILLS", 3), number("CLUSTERWRIGHT_SEED", 1));
    let mut chance = Chance::new(seed);
    let mut machine = Machine::new();
    let place = machine.bench.path().to_owned();
    fs::write(place.join("canary"), CANARY).unwrap();
    fs::set_permissions(place.join("canary"), fs::Permissions::from_mode(0o755)).unwrap();
    for step in STEPS {
        machine.bench.playbook(step, &STEP.replace("STEP", step));
        machine.bench.playbook(&format!("probe/{step}"), &PROBE.replace("STEP", step));
    }
    let memory = tempfile::Builder::new().prefix("k").rand_bytes(4).tempdir_in("/dev/shm").unwrap();
    let _orphans = Orphans(memory.path().to_owned());
    let result = place.join("result.json");
    let (mut ended, mut killed) = (0, 0);
    let mut token = 0;
    let begun = Instant::now();
    while killed < kills {
        token += 1;
        let resume = chance.below(2) == 0;
        machine.inputs(&STEPS, |model: &mut Value| model["resume"] = json!(resume), &["w1"]);
        // An orphan keeps its files, so that it goes on.
        let own = memory.path().join(token.to_string());
        fs::create_dir(&own).unwrap();
        let log = place.join(format!("{token}.log"));
        let mut command = machine.command(token);
        command.env("TMPDIR", &own);
        let file = fs::File::create(&log).unwrap();
        let mut run = command.stdout(file.try_clone().unwrap()).stderr(file).spawn().unwrap();
        // In one of its tasks, or before the first: while it is set up, takes the machine over, looks where it stood.
        let (task, moment) = (chance.below(10), Duration::from_millis(chance.below(400)));
        let before = Duration::from_millis(chance.below(4000));
        let started = Instant::now();
        let mut due = (task == 0).then(|| started + before);
        let finished = loop {
            if let Some(status) = run.try_wait().unwrap() {
                break Some(status);
            }
            if due.is_none() && begun_of(&machine, token) >= task {
                due = Some(Instant::now() + moment);
            }
            if due.is_some_and(|due| Instant::now() >= due) {
                break None;
            }
            assert!(
                started.elapsed() < Duration::from_secs(120),
                "seed {seed}, run {token}: {}",
                fs::read_to_string(&log).unwrap()
            );
            std::thread::sleep(Duration::from_millis(10));
        };
        match finished {
            Some(status) => {
                ended += 1;
                let text = fs::read_to_string(&log).unwrap();
                assert_eq!(status.code(), Some(0), "seed {seed}, run {token}: {text}");
            }
            None => {
                killed += 1;
                if chance.below(2) == 0 {
                    kill(&[run.id()]);
                    run.wait().unwrap();
                } else {
                    kill_tree(&mut run);
                }
            }
        }
        let said: Value =
            fs::read(&result).ok().and_then(|text| serde_json::from_slice(&text).ok()).unwrap_or(Value::Null);
        if said["outcome"]["phase"] == "Succeeded" {
            // Whoever says so has seen both steps done.
            assert!(
                STEPS.iter().all(|step| place.join(format!("{step}-done")).exists()),
                "seed {seed}, run {token} lied"
            );
        } else {
            assert_eq!(said, Value::Null, "seed {seed}, run {token}");
        }
        let _ = fs::remove_file(&result);
        if chance.below(3) == 0 {
            for step in STEPS {
                let _ = fs::remove_file(place.join(format!("{step}-done")));
            }
        }
    }
    token += 1;
    machine.inputs(&STEPS, |_| (), &["w1"]);
    let last = machine.run(token);
    assert_eq!(last.code, 0, "seed {seed}: {}", last.text);
    let own = format!("0-{token} ");
    for step in STEPS {
        assert!(machine.read("order").contains(&format!("{own}{step}-shell end")), "seed {seed}");
    }
    assert_eq!(machine.read("overlaps"), "", "seed {seed}");
    // The canary's order: a fence that went is not seen again.
    let order = machine.read("order");
    let tokens: Vec<i64> = order.lines().map(|line| line.split([' ', '-']).nth(1).unwrap().parse().unwrap()).collect();
    assert!(tokens.is_sorted(), "seed {seed}: {order}");
    let history = machine.history();
    println!(
        "{killed} runs killed, {ended} came to their end before, in {:?}: {} commands, {} refused, no overlap (seed {seed})",
        begun.elapsed(),
        history.commands,
        history.refused.len()
    );
}
