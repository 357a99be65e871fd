//! Runs under the guard: one at a time on a machine, whatever dies.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::bench::LOOK;
use crate::machine::Machine;

/// A step that writes down who it is for, takes its time, and comes to a second task.
const SLOW: &str = "
- hosts: all
  gather_facts: false
  tasks:
  - name: Begin
    ansible.builtin.shell: 'echo $CLUSTERWRIGHT_FENCE begin >>{{ place }}/seen; sleep {{ seconds }}; echo $CLUSTERWRIGHT_FENCE end >>{{ place }}/seen'
  - name: Go on
    ansible.builtin.shell: 'echo $CLUSTERWRIGHT_FENCE again >>{{ place }}/seen'
";

fn seconds(seconds: u32) -> impl Fn(&mut Value) {
    move |model| model["vars"]["seconds"] = json!(seconds)
}

#[test]
fn a_run_with_a_lower_fence_is_refused_and_nothing_runs() {
    let mut machine = Machine::new();
    machine.bench.playbook("prepare", SLOW);
    machine.bench.playbook("probe/prepare", LOOK);
    machine.inputs(&["prepare"], seconds(0), &["w1", "w2"]);
    let ran = machine.run(5);
    assert_eq!(ran.code, 0, "{}", ran.text);
    let seen = machine.read("seen");
    assert!(seen.contains("0-5 begin\n"), "{seen}");

    let ran = machine.run(4);
    assert_eq!(ran.code, 20, "{}", ran.text);
    let host = ran.host("w1");
    assert_eq!((&host["failure"]["reason"], &host["unreachable"]), (&json!("Fenced"), &json!(false)), "{host:#}");
    let message = host["failure"]["message"].as_str().unwrap();
    assert!(message.starts_with("a newer run works on this host"), "{message}");
    assert_eq!(ran.result["outcome"]["reason"], "Fenced");
    assert_eq!(machine.read("seen"), seen, "something ran");
    // What the guard knows is reported as a fact.
    assert_eq!(host["fence"], json!({"epoch": 0, "token": 5}), "{host:#}");
    assert!(host["fenceOwner"]["run"].as_str().is_some_and(|run| run.contains('/')), "{host:#}");

    // The machine was claimed anew: another cluster begins at token 1.
    machine.inputs(
        &["prepare"],
        |model| {
            seconds(0)(model);
            model["hosts"]["w1"]["claimEpoch"] = json!(1);
        },
        &["w1"],
    );
    let ran = machine.run(1);
    assert_eq!(ran.code, 0, "{}", ran.text);
    assert!(machine.read("seen").contains("1-1 begin\n"));

    // A look reads the fence and raises none.
    machine.bench.playbook("probe-host", LOOK);
    machine.bench.playbook("probe/probe-host", LOOK);
    machine.inputs(&["probe-host"], |model| model["intent"] = json!("Probe"), &["w1"]);
    let ran = machine.run(0);
    assert_eq!(ran.host("w1")["fence"], json!({"epoch": 1, "token": 1}), "{}", ran.text);
    let history = machine.history();
    assert_eq!(history.refused.len(), 2);
    machine.bench.assert_nothing_left();
}

#[test]
fn a_machine_that_is_not_the_one_that_was_claimed_is_not_touched() {
    let mut machine = Machine::new();
    machine.bench.playbook("prepare", SLOW);
    machine.bench.playbook("probe/prepare", LOOK);
    let own = machine.sshd.host_key.clone();
    let other = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJcxqLTtzqkmAhSLrOWaEv6tnLCfzpA54ZJZFoUR1tHe";
    let id = fs::read_to_string("/etc/machine-id").unwrap_or_default();
    let check = |machine: &mut Machine, token: i64, change: Value, another: Option<&str>| {
        machine.inputs(
            &["prepare"],
            |model| {
                seconds(0)(model);
                let host = model["hosts"]["w1"].as_object_mut().unwrap();
                host.extend(change.as_object().unwrap().clone());
            },
            &["w1"],
        );
        let ran = machine.run(token);
        let host = ran.host("w1");
        let Some(part) = another else {
            assert_eq!(ran.code, 0, "{}", ran.text);
            return;
        };
        assert_eq!(host["failure"]["reason"], "MachineIdentityMismatch", "{}", ran.text);
        assert_eq!((ran.code, &ran.result["outcome"]["retriable"]), (11, &json!(false)));
        let message = host["failure"]["message"].as_str().unwrap();
        assert!(message.contains(part) && message.contains("nothing was changed"), "{message}");
    };
    // By its host key, also where somebody has pinned that of the other machine.
    let key = Some("spec.identity.hostKeys");
    check(&mut machine, 1, json!({"identity": {"hostKeys": [other]}}), key);
    check(&mut machine, 2, json!({"hostKeys": [], "identity": {"hostKeys": [other]}}), key);
    check(&mut machine, 3, json!({"hostKeys": [other], "identity": {"hostKeys": [own]}}), key);
    // By its machine-id, where the host key came with the image.
    let changed = json!({"identity": {"hostKeys": [own], "machineID": "0123456789abcdef0123456789abcdef"}});
    check(&mut machine, 4, changed, Some("its machine-id is"));
    assert!(!machine.bench.path().join("machine").exists(), "the guard was put there");
    assert_eq!(machine.read("seen"), "");

    let mut identity = json!({"hostKeys": [own]});
    if !id.trim().is_empty() {
        identity["machineID"] = json!(id.trim());
    }
    check(&mut machine, 5, json!({"identity": identity}), None);
    assert!(machine.read("seen").contains("0-5 begin"));
}

#[test]
fn a_run_that_one_machine_refuses_does_nothing_on_the_others() {
    let mut machine = Machine::new();
    machine.bench.playbook("prepare", SLOW);
    machine.bench.playbook("probe/prepare", LOOK);
    machine.inputs(&["prepare"], seconds(0), &["w1"]);
    assert_eq!(machine.run(5).code, 0);
    let seen = machine.read("seen");
    // Both are the same machine: it lets in the later claim, and not the earlier one.
    machine.inputs(
        &["prepare"],
        |model| {
            seconds(0)(model);
            model["hosts"]["w2"]["claimEpoch"] = json!(1);
        },
        &["w1", "w2"],
    );
    let ran = machine.run(4);
    assert_eq!(ran.code, 20, "{}", ran.text);
    assert_eq!(ran.host("w1")["failure"]["reason"], "Fenced", "{}", ran.text);
    assert_eq!(ran.host("w2")["failure"]["reason"], "NotReached", "{}", ran.text);
    assert_eq!(ran.host("w2")["unreachable"], json!(false));
    assert_eq!(ran.result["outcome"]["reason"], "Fenced");
    assert_eq!(machine.read("seen"), seen, "something ran");
}

#[test]
fn a_run_that_the_metadata_cluster_does_not_know_is_a_fact_before_anything_is_done_after_it() {
    let mut machine = Machine::new();
    machine.bench.playbook("prepare", SLOW);
    machine.bench.playbook("probe/prepare", LOOK);
    machine.inputs(&["prepare"], seconds(0), &["w1"]);
    assert_eq!(machine.run(20).code, 0);
    let seen = machine.read("seen");
    // It was set back to token 10, and has given out more since.
    let compared = |since: &'static str, token: i64| {
        move |model: &mut Value| {
            seconds(0)(model);
            model["hosts"]["w1"]["comparisons"] = json!([{"since": since, "lastToken": token}]);
        }
    };
    machine.inputs(&["prepare"], compared("2026-05-01T00:00:00Z", 10), &["w1"]);
    let ran = machine.run(25);
    assert_eq!(ran.code, 20, "{}", ran.text);
    let host = ran.host("w1");
    assert_eq!((&host["failure"]["reason"], &host["fence"]["token"]), (&json!("Fenced"), &json!(20)), "{host:#}");
    assert!(host["fenceOwner"].get("comparedSince").is_none(), "{host:#}");
    assert_eq!(machine.read("seen"), seen, "something ran");
    // Once that run is approved, and the run brings what was given out since.
    machine.inputs(&["prepare"], compared("2026-05-01T00:00:00Z", 20), &["w1"]);
    let ran = machine.run(26);
    assert_eq!(ran.code, 0, "{}", ran.text);
    machine.bench.playbook("probe-host", LOOK);
    machine.bench.playbook("probe/probe-host", LOOK);
    machine.inputs(&["probe-host"], |model| model["intent"] = json!("Probe"), &["w1"]);
    let ran = machine.run(0);
    assert_eq!(ran.host("w1")["fenceOwner"]["comparedSince"], "2026-05-01T00:00:00Z", "{}", ran.text);
}

#[test]
fn a_run_that_is_overtaken_is_refused_at_its_next_command() {
    let mut machine = Machine::new();
    machine.bench.playbook("prepare", SLOW);
    machine.bench.playbook("probe/prepare", LOOK);
    machine.inputs(&["prepare"], seconds(6), &["w1"]);
    let log = machine.bench.path().join("first.log");
    let mut first = machine.start(1, &log);
    machine.wait_for("seen");
    // Its inputs are read: the second's may stand in their place.
    machine.inputs(&["prepare"], seconds(0), &["w1"]);
    let second = machine.start(2, &machine.bench.path().join("second.log"));
    let code = first.wait().unwrap().code();
    // The first ends while the second takes over: its result is read before the second's is there.
    let first = machine.bench.ran(code, fs::read_to_string(&log).unwrap());
    let code = { second }.wait().unwrap().code();
    assert_eq!(code, Some(0), "{}", machine.read("second.log"));
    assert_eq!(first.host("w1")["failure"]["reason"], "Fenced", "{}", first.text);
    assert_eq!((first.code, first.host("w1")["failure"]["task"].as_str()), (20, Some("Go on")));
    assert_eq!(machine.read("seen"), "0-1 begin\n0-1 end\n0-2 begin\n0-2 end\n0-2 again\n");
    assert_eq!(machine.history().refused.len(), 1);
}

#[test]
fn what_a_killed_run_left_is_waited_for() {
    let mut machine = Machine::new();
    machine.bench.playbook("prepare", SLOW);
    machine.bench.playbook("probe/prepare", LOOK);
    machine.inputs(&["prepare"], seconds(8), &["w1"]);
    let mut first = machine.start(1, &machine.bench.path().join("first.log"));
    machine.wait_for("seen");
    crate::kills::kill_tree(&mut first);
    machine.inputs(&["prepare"], seconds(0), &["w1"]);
    let ran = machine.run(2);
    assert_eq!(ran.code, 0, "{}", ran.text);
    assert_eq!(machine.read("seen"), "0-1 begin\n0-1 end\n0-2 begin\n0-2 end\n0-2 again\n");
    machine.history();
}

#[test]
fn a_canceled_run_leaves_its_hosts_quiet_what_runs_in_the_background_too() {
    let mut machine = Machine::new();
    machine.bench.playbook(
        "prepare",
        "
- hosts: all
  gather_facts: false
  tasks:
  - name: In the background
    ansible.builtin.command: sleep 4321.5
    async: 5000
    poll: 0
  - name: As a daemon
    ansible.builtin.shell: setsid sleep 4321.5 >/dev/null 2>&1 </dev/null &
  - name: In the foreground
    ansible.builtin.shell: 'touch {{ place }}/here; sleep 4321.5'
",
    );
    machine.bench.playbook("probe/prepare", LOOK);
    machine.inputs(&["prepare"], |_| (), &["w1"]);
    let log = machine.bench.path().join("log");
    let mut run = machine.start(1, &log);
    machine.wait_for("here");
    let begun = Instant::now();
    let told = Command::new("kill").args(["-s", "TERM", &run.id().to_string()]).status().unwrap();
    assert!(told.success());
    let code = run.wait().unwrap().code();
    let ran = machine.bench.ran(code, fs::read_to_string(&log).unwrap());
    assert_eq!(ran.code, 143, "{}", ran.text);
    assert!(begun.elapsed() < Duration::from_secs(110), "{:?}", begun.elapsed());
    assert_eq!(ran.host("w1")["quiet"], true, "{}", ran.text);
    let message = ran.result["outcome"]["message"].as_str().unwrap();
    assert!(message.ends_with("; the host is quiet"), "{message}");
    let sleeping = Command::new("pgrep").args(["-f", "sleep 4321.5"]).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&sleeping.stdout), "", "something is still at work");
    assert!(machine.history().open.is_empty());
    machine.bench.assert_nothing_left();
}

#[test]
fn a_resumed_run_passes_over_what_is_done() {
    let mut machine = Machine::new();
    for step in ["prepare", "container-runtime", "node"] {
        let play = "
- hosts: all
  gather_facts: false
  tasks:
  - name: Work
    ansible.builtin.shell: 'echo STEP >>{{ place }}/seen; touch {{ place }}/{{ inventory_hostname }}-STEP'
";
        let probe = "
- hosts: all
  gather_facts: false
  tasks:
  - name: It is done
    ansible.builtin.command: test -e {{ place }}/{{ inventory_hostname }}-STEP
    changed_when: false
";
        machine.bench.playbook(step, &play.replace("STEP", step));
        machine.bench.playbook(&format!("probe/{step}"), &probe.replace("STEP", step));
    }
    let steps = ["prepare", "container-runtime", "node"];
    let resume = |model: &mut Value| model["resume"] = json!(true);
    let check = |machine: &mut Machine, token: i64, done: &[&str], hosts: &[&str], expected: &str| {
        for name in done {
            fs::write(machine.bench.path().join(name), "").unwrap();
        }
        let _ = fs::remove_file(machine.bench.path().join("seen"));
        machine.inputs(&steps, resume, hosts);
        let ran = machine.run(token);
        assert_eq!(ran.code, 0, "{}", ran.text);
        assert_eq!(machine.read("seen"), expected, "{}", ran.text);
        assert_eq!(ran.result["outcome"]["phase"], "Succeeded");
        ran
    };
    // Never touched: from the first.
    check(&mut machine, 1, &[], &["w1"], "prepare\ncontainer-runtime\nnode\n");
    // One machine of two stopped after its first step.
    let ran =
        check(&mut machine, 2, &["w2-prepare"], &["w1", "w2"], "container-runtime\ncontainer-runtime\nnode\nnode\n");
    let passed = &ran.result["steps"][0];
    assert_eq!(passed, &json!({"name": "prepare", "phase": "Succeeded", "changed": 0}));
    assert!(ran.result["steps"][1]["startedAt"].is_string());
    // Everything is done.
    let ran = check(&mut machine, 3, &[], &["w1", "w2"], "");
    assert!(ran.result["steps"].as_array().unwrap().iter().all(|step| step["phase"] == "Succeeded"));
    machine.history();
    machine.bench.assert_nothing_left();
}

/// An API server that takes every patch, and answers with a run that is to pause or not, as the function says of the
/// patch. The answer: its port, and the number of patches.
fn api_server(paused: impl Fn(&Value) -> bool + Send + 'static) -> (u16, Arc<AtomicUsize>, Arc<Mutex<Vec<Instant>>>) {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    let (count, times) = (Arc::new(AtomicUsize::new(0)), Arc::new(Mutex::new(Vec::new())));
    let (counted, timed) = (Arc::clone(&count), Arc::clone(&times));
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = BufReader::new(stream.unwrap());
            loop {
                let mut length = 0;
                let mut line = String::new();
                loop {
                    line.clear();
                    if stream.read_line(&mut line).unwrap_or(0) == 0 || line == "\r\n" {
                        break;
                    }
                    if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                        length = value.trim().parse().unwrap();
                    }
                }
                if line.is_empty() {
                    break;
                }
                let mut body = vec![0; length];
                stream.read_exact(&mut body).unwrap();
                let patch: Value = serde_json::from_slice(&body).unwrap();
                counted.fetch_add(1, Ordering::SeqCst);
                timed.lock().unwrap().push(Instant::now());
                let answer = json!({"apiVersion": "clusterwright.dev/v1alpha1", "kind": "PlaybookRun", "metadata": {"name": "r"},
                    "spec": {"intent": "Custom", "steps": [], "hosts": [], "paused": paused(&patch)}})
                .to_string();
                let head = format!(
                    "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
                    answer.len()
                );
                if stream.get_mut().write_all(format!("{head}{answer}").as_bytes()).is_err() {
                    break;
                }
            }
        }
    });
    (port, count, times)
}

#[test]
fn a_run_that_is_to_pause_holds_after_its_current_step() {
    let mut machine = Machine::new();
    for step in ["prepare", "node"] {
        let play = SLOW.replace("$CLUSTERWRIGHT_FENCE", step);
        machine.bench.playbook(step, &play);
        machine.bench.playbook(&format!("probe/{step}"), LOOK);
    }
    // Somebody pauses while the first step runs, and leaves it paused.
    let (port, _, times) = api_server(|patch| {
        let phase = &patch["status"]["steps"][0]["phase"];
        phase == "Running" || phase == "Succeeded"
    });
    machine.reports_to(port);
    // Long enough for its report to come to the API server, and the answer back, on a busy machine.
    machine.inputs(&["prepare", "node"], seconds(10), &["w1", "w2"]);
    let ran = machine.run(1);
    assert_eq!(ran.code, 30, "{}", ran.text);
    let outcome = &ran.result["outcome"];
    assert_eq!(
        (&outcome["phase"], &outcome["reason"], &outcome["message"], &outcome["step"]),
        (&json!("Canceled"), &json!("Paused"), &json!("paused before step node"), &json!("node"))
    );
    let phases: Vec<&str> =
        ran.result["steps"].as_array().unwrap().iter().map(|step| step["phase"].as_str().unwrap()).collect();
    assert_eq!(phases, ["Succeeded", "Skipped"]);
    for host in ran.result["hosts"].as_array().unwrap() {
        assert_eq!(host["failure"]["reason"], "Paused", "{host:#}");
    }
    assert_eq!(machine.read("seen").matches("prepare again").count(), 2, "the step did not end");
    assert!(!machine.read("seen").contains("node"));
    let times = times.lock().unwrap();
    // One a second; one that arrived late makes a short gap behind it. The last word comes when it comes.
    let span = *times.last().unwrap() - times[0];
    let most = usize::try_from(span.as_secs()).unwrap() + 3;
    assert!(times.len() <= most, "{times:?}");
    machine.bench.assert_nothing_left();

    // And goes on when it is not.
    let (port, count, _) = api_server(|_| false);
    machine.reports_to(port);
    let ran = machine.run(2);
    assert_eq!(ran.code, 0, "{}", ran.text);
    assert!(count.load(Ordering::SeqCst) > 2);
    machine.history();
}
