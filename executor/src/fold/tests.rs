use crds::certificates::CertificateSeen;
use crds::inputs::RunInputs;
use crds::playbook_run::{HostResult, RunPhase, StepPhase};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::{Ending, Fold};
use crate::redact::Redactor;

/// A run of `steps` on hosts `name` (a worker), `name+` (a control plane) or `name#` (a member of a dedicated etcd).
fn model(intent: &str, steps: &[&str], hosts: &[&str]) -> RunInputs {
    let host = |name: &&str| {
        let groups = match name.chars().last() {
            Some('+') => ["kube_control_plane"],
            Some('#') => ["etcd"],
            _ => ["kube_node"],
        };
        let value = json!({"address": "10.0.0.1", "port": 22, "user": "root", "useSudo": false, "credential": "k",
            "credentialKind": "SshKey", "hostKeyPolicy": "Strict", "groups": groups});
        (name.trim_end_matches(['+', '#']).to_owned(), value)
    };
    let hosts: serde_json::Map<_, _> = hosts.iter().map(host).collect();
    serde_json::from_value(json!({"namespace": "n", "run": "r", "intent": intent, "steps": steps, "hosts": hosts}))
        .unwrap()
}

/// Events in short: `prepare`, `prepare?` (its probe), `task NAME`, `HOST
/// ok|changed|failed|unreachable|ignored|skipped [TEXT]`, `end HOST...` (stats; the hosts that failed).
fn fold(model: &RunInputs, script: &[&str]) -> Fold {
    let mut fold = Fold::new(model, "sha256:0");
    for (number, line) in script.iter().enumerate() {
        for mut event in events(model, line) {
            event["at"] = json!(1_700_000_000.5 + number as f64);
            assert!(fold.line(event.to_string().as_bytes(), &Redactor::default()), "{event}");
        }
    }
    fold
}

fn events(model: &RunInputs, line: &str) -> Vec<Value> {
    let words: Vec<&str> = line.split(' ').collect();
    let rest = |from: usize| words.get(from..).unwrap_or_default().join(" ");
    match words[0] {
        "stored" => vec![json!({"event": "backup_progress", "bytes": words[1].parse::<i64>().unwrap()})],
        "backup" => vec![backup(words[1])],
        "sent" => {
            vec![json!({"event": "staging_progress", "host": words[1], "bytes": words[2].parse::<i64>().unwrap()})]
        }
        "staged" => vec![staged(words[1])],
        "gate" => vec![json!({"event": "gate", "file": format!("{}.yml", rest(1))})],
        "task" => vec![json!({"event": "task", "name": rest(1), "id": "x"})],
        "play" => vec![json!({"event": "play", "name": "p", "hosts": []})],
        "end" => {
            let hosts = model.hosts.keys().map(|name| {
                let failures = i32::from(words[1..].contains(&name.as_str()));
                (name.clone(), json!({"ok": 1, "changed": 0, "failures": failures, "unreachable": 0, "skipped": 0}))
            });
            vec![json!({"event": "stats", "hosts": hosts.collect::<serde_json::Map<_, _>>()})]
        }
        host if model.hosts.contains_key(host) => {
            let (status, changed, ignored) = match words[1] {
                "changed" => ("ok", true, false),
                "ignored" => ("failed", false, true),
                status => (status, false, false),
            };
            let (reason, message) = match words.get(2) {
                Some(word) if word.ends_with(':') => (json!(word.trim_end_matches(':')), rest(3)),
                _ => (Value::Null, rest(2)),
            };
            vec![json!({"event": "result", "host": host, "task": "t", "status": status, "changed": changed,
                "ignored": ignored, "msg": message, "reason": reason, "finding": null, "item": null})]
        }
        file => {
            let (file, dir) = file.strip_suffix('?').map_or((file, ""), |file| (file, "probe"));
            vec![
                json!({"event": "playbook", "file": format!("{file}.yml"), "dir": dir, "tasks": 2}),
                json!({"event": "play", "name": "p", "hosts": []}),
            ]
        }
    }
}

/// The event of a backup at this location.
fn backup(location: &str) -> Value {
    json!({"event": "backup", "content": {"location": location, "revision": 1234, "keys": 7, "size": 3_250_586,
        "sha256": "a0", "member": "m2", "etcdVersion": "3.6.16\u{1b}[31m", "startedAt": "2026-11-23T10:00:00Z",
        "completedAt": "2026-11-23T10:00:07Z"}})
}

/// The event of a backup at this location that lies ready.
fn staged(location: &str) -> Value {
    json!({"event": "staged", "staged": {"backup": "nightly", "location": location, "takenAt": "2026-11-23T10:00:00Z",
        "revision": 1234, "keys": 7, "size": 3_250_586, "sha256": "a0", "etcdVersion": "3.6.16\u{1b}[31m",
        "currentRevision": 2000, "bump": 1_000_000_000, "clusterID": "c0ffee"}})
}

/// The outcome in short: phase, reason, message.
fn outcome(model: &RunInputs, script: &[&str], ending: Ending) -> (String, Fold) {
    let mut fold = fold(model, script);
    let outcome = fold.end(ending);
    (format!("{:?} {}: {}", outcome.phase, outcome.reason, outcome.message), fold)
}

const DONE: Ending = Ending::Exited(Some(0));
const FAILED: Ending = Ending::Exited(Some(2));

#[test]
fn a_run_is_done_when_every_step_and_its_probe_are() {
    let model = model("Install", &["prepare", "etcd"], &["m1+"]);
    let whole = ["prepare", "m1 changed", "prepare?", "m1 ok", "etcd", "m1 ok", "etcd?", "m1 ok", "end"];
    let (text, fold) = outcome(&model, &whole, DONE);
    assert_eq!(text, "Succeeded Complete: 1 machine installed");
    let snapshot = fold.snapshot();
    assert!(snapshot.steps.iter().all(|step| step.phase == StepPhase::Succeeded));
    assert_eq!(snapshot.steps[0].changed, 1);
    let seconds = |time: &Option<_>| serde_json::to_value(time).unwrap();
    assert_eq!(seconds(&snapshot.steps[0].started_at), "2023-11-14T22:13:20Z");
    assert_eq!(seconds(&snapshot.steps[0].finished_at), "2023-11-14T22:13:24Z");
    assert_eq!((snapshot.hosts[0].ok, snapshot.hosts[0].changed), (4, 1));
}

#[test]
fn exit_code_zero_without_every_probe_is_no_success() {
    let model = model("Custom", &["prepare", "etcd"], &["m1+"]);
    let check = |script: &[&str], ending: Ending, expected: &str| {
        let (text, fold) = outcome(&model, script, ending);
        assert!(text.starts_with(expected), "{text}");
        assert!(fold.snapshot().hosts[0].failure.is_some());
    };
    check(&[], DONE, "Failed NotDone: m1: prepare: NotDone");
    check(&["prepare", "m1 ok", "end"], DONE, "Failed NotDone");
    check(&["prepare", "m1 ok", "prepare?", "m1 ok", "end"], DONE, "Failed NotDone: m1: etcd");
    check(&["prepare", "prepare?", "m1 ok", "etcd", "etcd?", "m1 ok"], DONE, "Failed NotDone");
    check(&["prepare", "prepare?", "m1 ok", "etcd", "etcd?", "m1 ok", "end"], FAILED, "Failed AnsibleFailed");
    check(&["prepare", "m1 ok"], Ending::Exited(None), "Failed AnsibleKilled: m1: prepare: AnsibleKilled");
    check(
        &[],
        Ending::Exited(Some(1)),
        "Failed AnsibleFailed: m1: prepare: AnsibleFailed: ansible-playbook ended with code 1",
    );
}

#[test]
fn one_bad_worker_fails_alone() {
    let model = model("Join", &["prepare", "node"], &["w1", "w2", "w3"]);
    let (text, fold) = outcome(
        &model,
        &[
            "prepare",
            "w1 ok",
            "w2 failed DigestMismatch: file kubelet: wrong",
            "w3 unreachable Failed to connect to the host via ssh: ssh: connect to host 10.0.0.3 port 22: No route to host",
            "prepare?",
            "w1 ok",
            "node",
            "w1 ok",
            "node?",
            "w1 ok",
            "end w2 w3",
        ],
        Ending::Exited(Some(6)),
    );
    assert_eq!(
        text,
        "Failed DigestMismatch: 1 of 3 workers joined; w2: prepare: DigestMismatch: file kubelet: wrong; \
         w3: prepare: Unreachable: ssh: connect to host 10.0.0.3 port 22: No route to host"
    );
    let snapshot = fold.snapshot();
    let failed: Vec<_> = snapshot.hosts.iter().map(|host| host.failure.is_some()).collect();
    assert_eq!(failed, [false, true, true]);
    assert!(snapshot.steps.iter().all(|step| step.phase == StepPhase::Succeeded));
    let outcome = snapshot.outcome.unwrap();
    assert_eq!((outcome.hosts_ok, outcome.hosts_failed, outcome.retriable), (1, 2, true));
}

#[test]
fn a_control_plane_that_fails_stops_all_and_the_others_are_not_done() {
    let model = model("Install", &["prepare", "control-plane", "addons"], &["m1+", "m2+", "m3+"]);
    let (text, fold) = outcome(
        &model,
        &[
            "prepare",
            "m1 ok",
            "m2 ok",
            "prepare?",
            "m1 ok",
            "control-plane",
            "m2 failed ApiserverNotReady: no answer on 6443",
            "end m2",
        ],
        FAILED,
    );
    assert_eq!(text, "Failed ApiserverNotReady: m2: control-plane, task \"t\": ApiserverNotReady: no answer on 6443");
    let snapshot = fold.snapshot();
    let phases: Vec<_> = snapshot.steps.iter().map(|step| step.phase).collect();
    assert_eq!(phases, [StepPhase::Succeeded, StepPhase::Failed, StepPhase::Skipped]);
    let failure = snapshot.hosts[0].failure.clone().unwrap();
    assert_eq!((failure.reason.as_str(), failure.step.as_str()), ("NotReached", "control-plane"));
    assert_eq!(failure.message, "not done: the run stopped when m2 failed");
    assert_eq!(snapshot.outcome.unwrap().step, Some(crds::Step::ControlPlane));
}

#[test]
fn a_control_plane_that_cannot_be_cleaned_leaves_the_others_clean() {
    let model = model("Reset", &["reset"], &["m1+", "m2"]);
    let script = ["reset", "m1 failed NotClean: etcd's data is left", "m2 changed", "reset?", "m2 ok", "end m1"];
    let (_, fold) = outcome(&model, &script, FAILED);
    let snapshot = fold.snapshot();
    assert_eq!(snapshot.steps[0].phase, StepPhase::Succeeded);
    let failed: Vec<bool> = snapshot.hosts.iter().map(|host| host.failure.is_some()).collect();
    assert_eq!(failed, [true, false]);
}

#[test]
fn a_run_that_was_stopped_says_where() {
    let model = model("Install", &["prepare", "etcd"], &["m1+"]);
    let script = ["prepare", "m1 ok", "prepare?", "m1 ok", "etcd", "task start etcd", "m1 ok"];
    let check = |ending: Ending, expected: &str, reason: &str| {
        let (text, fold) = outcome(&model, &script, ending);
        assert_eq!(text, expected);
        let snapshot = fold.snapshot();
        assert_eq!(snapshot.hosts[0].failure.as_ref().unwrap().reason, reason);
        assert_eq!(snapshot.steps[1].phase, StepPhase::Failed);
        assert!(snapshot.outcome.unwrap().retriable);
    };
    check(
        Ending::Canceled,
        "Canceled Canceled: stopped because it was asked to, in step etcd, task \"start etcd\"",
        "Canceled",
    );
    check(
        Ending::DeadlineExceeded,
        "DeadlineExceeded DeadlineExceeded: stopped by its deadline, in step etcd, task \"start etcd\"",
        "DeadlineExceeded",
    );
}

#[test]
fn a_run_that_is_to_pause_says_before_which_step_and_blames_nobody() {
    let model = model("Install", &["prepare", "etcd"], &["m1+", "w1"]);
    let script = ["prepare", "m1 ok", "w1 failed", "prepare?", "m1 ok", "gate etcd"];
    let (text, fold) = outcome(&model, &script, Ending::Paused(crds::Step::Etcd));
    assert_eq!(text, "Canceled Paused: paused before step etcd");
    let snapshot = fold.snapshot();
    let reasons: Vec<_> = snapshot.hosts.iter().map(|host| host.failure.as_ref().unwrap().reason.as_str()).collect();
    assert_eq!(reasons, ["Paused", "TaskFailed"]);
    let phases: Vec<_> = snapshot.steps.iter().map(|step| step.phase).collect();
    assert_eq!(phases, [StepPhase::Succeeded, StepPhase::Skipped]);
    let outcome = snapshot.outcome.unwrap();
    assert_eq!((outcome.retriable, outcome.step), (true, Some(crds::Step::Etcd)));
}

#[test]
fn a_host_that_a_newer_run_has_is_no_host_that_does_not_answer() {
    let model = model("Join", &["prepare"], &["w1", "w2", "w3"]);
    let refused = "clusterwright-guard: refused: fence 1-1 is lower than 1-2";
    let script = [
        "prepare".to_owned(),
        "w1 ok".to_owned(),
        format!("w2 failed non-zero return code: {refused}"),
        format!("w3 unreachable Premature end of stream waiting for become success. >>> {refused}"),
        "prepare?".to_owned(),
        "w1 ok".to_owned(),
        "end w2 w3".to_owned(),
    ];
    let script: Vec<&str> = script.iter().map(String::as_str).collect();
    let (text, fold) = outcome(&model, &script, FAILED);
    let why = "prepare: Fenced: a newer run works on this host, so this one may not: fence 1-1 is lower than 1-2";
    assert_eq!(text, format!("Failed Fenced: 1 of 3 workers joined; w2: {why}; w3: {why}"));
    assert!(fold.snapshot().hosts.iter().all(|host| !host.unreachable));
    assert!(fold.snapshot().outcome.unwrap().retriable);
}

#[test]
fn what_was_found_before_ansible_started_is_the_reason() {
    let model = model("Join", &["prepare"], &["w1", "w2"]);
    let mut fold = Fold::new(&model, "");
    let why = crate::unreachable::explain("root@h: Permission denied (publickey).");
    fold.blocked("w1", why);
    for line in
        ["prepare", "w1 unreachable Connection closed by UNKNOWN port 65535", "w2 ok", "prepare?", "w2 ok", "end w1"]
    {
        for event in events(&model, line) {
            fold.line(event.to_string().as_bytes(), &Redactor::default());
        }
    }
    fold.end(FAILED);
    let snapshot = fold.snapshot();
    assert_eq!(snapshot.hosts[0].failure.as_ref().unwrap().reason, "AuthenticationFailed");
    assert!(
        snapshot.outcome.unwrap().message.starts_with("1 of 2 workers joined; w1: prepare: AuthenticationFailed: ")
    );
}

#[test]
fn a_stopped_run_says_which_hosts_are_quiet() {
    let names = ["w1", "w2", "w3", "w4", "w5"];
    let model = model("Join", &["prepare"], &names);
    let check = |quiet: &[(&str, bool)], expected: &str| {
        let mut fold = fold(&model, &["prepare"]);
        for (host, quiet) in quiet {
            fold.quiet(host, *quiet);
        }
        let message = fold.end(Ending::Canceled).message;
        assert_eq!(message, format!("stopped because it was asked to, before step prepare was done{expected}"));
    };
    check(&[], "");
    check(&[("w1", true)], "; the host is quiet");
    check(&[("w1", true), ("w2", true)], "; all 2 hosts are quiet");
    check(&[("w1", true), ("w2", false)], "; 1 of 2 hosts are quiet, not confirmed: w2");
    let loud = names.map(|name| (name, false));
    check(&loud, "; 0 of 5 hosts are quiet, not confirmed: w1, w2, w3; and 2 more hosts");
}

#[test]
fn a_resumed_run_is_done_when_the_rest_is() {
    let model = model("Join", &["prepare", "node"], &["w1"]);
    let mut fold = Fold::new(&model, "");
    fold.begin_at(1);
    for line in ["node", "w1 ok", "node?", "w1 ok", "end"] {
        for event in events(&model, line) {
            fold.line(event.to_string().as_bytes(), &Redactor::default());
        }
    }
    assert_eq!(fold.end(DONE).phase, RunPhase::Succeeded);
    let passed = fold.snapshot().steps[0].clone();
    assert_eq!((passed.started_at, passed.finished_at, passed.changed), (None, None, 0));

    let mut fold = Fold::new(&model, "");
    fold.begin_at(2);
    assert_eq!(fold.end(DONE).phase, RunPhase::Succeeded);
}

#[test]
fn what_joined_is_told_by_its_role() {
    let check = |hosts: &[&str], expected: &str| {
        let model = model("Join", &["prepare"], hosts);
        let names: Vec<String> = model.hosts.keys().map(|name| format!("{name} ok")).collect();
        let results = names.iter().map(String::as_str);
        let script: Vec<&str> =
            ["prepare"].into_iter().chain(results.clone()).chain(["prepare?"]).chain(results).chain(["end"]).collect();
        let (text, _) = outcome(&model, &script, DONE);
        assert_eq!(text, format!("Succeeded Complete: {expected}"));
    };
    check(&["w1"], "1 worker joined");
    check(&["w1", "w2"], "2 workers joined");
    check(&["c1+"], "1 control plane joined");
    check(&["e1#"], "1 etcd member joined");
    check(&["c1+", "w1", "w2"], "2 workers and 1 control plane joined");
    check(&["c1+", "c2+", "e1#", "w1"], "1 worker, 2 control planes and 1 etcd member joined");
}

#[test]
fn of_a_mixed_join_that_fails_machines_are_counted() {
    let model = model("Join", &["prepare"], &["c1+", "w1"]);
    let script = ["prepare", "c1 ok", "w1 failed no", "prepare?", "c1 ok", "end w1"];
    assert_eq!(
        outcome(&model, &script, FAILED).0,
        "Failed TaskFailed: 1 of 2 machines joined; w1: prepare: TaskFailed: no"
    );
}

#[test]
fn what_only_comes_before_a_removal_removes_nothing() {
    let check = |steps: &[&str], expected: &str| {
        let model = model("Remove", steps, &["w1"]);
        let probe = format!("{}?", steps[0]);
        let script = [steps[0], "w1 ok", &probe, "w1 ok", "end"];
        assert_eq!(outcome(&model, &script, DONE).0, expected);
    };
    check(&["remove-etcd-member"], "Succeeded Complete: 1 host done");
    check(&["reset"], "Succeeded Complete: 1 machine removed");
}

#[test]
fn a_failure_that_a_rescue_caught_is_none() {
    let model = model("Join", &["prepare"], &["w1"]);
    let check =
        |script: &[&str], ending: Ending, expected: &str| assert_eq!(outcome(&model, script, ending).0, expected);
    let good = "Succeeded Complete: 1 worker joined";
    check(&["prepare", "w1 failed", "w1 ok", "prepare?", "w1 ok", "end"], DONE, good);
    check(&["prepare", "w1 failed", "prepare?", "w1 ok", "end"], DONE, good);
    check(&["prepare", "w1 ignored", "prepare?", "w1 ok", "end"], DONE, good);
    check(
        &["prepare", "w1 failed first", "w1 failed EtcdUnhealthy: what the rescue says", "end w1"],
        FAILED,
        "Failed EtcdUnhealthy: 0 of 1 workers joined; w1: prepare: EtcdUnhealthy: what the rescue says",
    );
}

#[test]
fn wrong_keys_and_credentials_are_not_worth_another_attempt() {
    let model = model("Probe", &["probe-host"], &["a", "b"]);
    let check = |said: [&str; 2], retriable: bool| {
        let script =
            ["probe-host".to_owned(), format!("a unreachable {}", said[0]), format!("b unreachable {}", said[1])];
        let script: Vec<&str> = script.iter().map(String::as_str).chain(["end a b"]).collect();
        let (_, fold) = outcome(&model, &script, Ending::Exited(Some(4)));
        assert_eq!(fold.snapshot().outcome.unwrap().retriable, retriable, "{said:?}");
    };
    check(["Permission denied (publickey).", "REMOTE HOST IDENTIFICATION HAS CHANGED"], false);
    check(["Permission denied (publickey).", "timed out"], true);
}

/// Another attempt brings the Secret as it is by then.
#[test]
fn a_machine_that_let_the_run_in_and_does_not_any_more_is_worth_another_attempt_row_26() {
    let check = |intent: &str, step: &str, first: &str, retriable: bool| {
        let script = [step, first, "a unreachable Permission denied (publickey).", "end a"];
        let script: Vec<&str> = script.into_iter().filter(|line| !line.is_empty()).collect();
        let (_, fold) = outcome(&model(intent, &[step], &["a"]), &script, Ending::Exited(Some(4)));
        let outcome = fold.snapshot().outcome.unwrap();
        assert_eq!((outcome.reason.as_str(), outcome.retriable), ("AuthenticationFailed", retriable), "{script:?}");
    };
    for (intent, step) in [("Backup", "backup-etcd"), ("Stage", "stage-backup")] {
        check(intent, step, "a ok", true);
        check(intent, step, "", false);
    }
}

#[test]
fn a_machine_that_was_not_reached_fares_as_the_one_that_failed() {
    let model = model("Stage", &["stage-backup"], &["a", "b"]);
    let check = |reason: &str, retriable: bool| {
        let script =
            ["stage-backup".to_owned(), "task t".to_owned(), format!("a failed {reason}: why"), "end a".to_owned()];
        let script: Vec<&str> = script.iter().map(String::as_str).collect();
        let (_, fold) = outcome(&model, &script, Ending::Exited(Some(2)));
        assert_eq!(fold.snapshot().outcome.unwrap().retriable, retriable, "{reason}");
    };
    check("IdentityDoesNotMatch", false);
    check("EtcdUnhealthy", true);
}

#[test]
fn progress_counts_the_tasks_of_a_step() {
    let model = model("Custom", &["prepare", "etcd"], &["m1+"]);
    let check = |script: &[&str], expected: (&str, &str, i32, i32)| {
        let progress = fold(&model, script).snapshot().progress;
        assert_eq!((progress.step.as_str(), progress.task.as_str(), progress.done, progress.total), expected);
    };
    check(&[], ("", "", 0, 0));
    check(&["prepare"], ("prepare", "", 0, 2));
    check(&["prepare", "task a"], ("prepare", "a", 1, 2));
    check(&["prepare", "task a", "prepare?", "task b"], ("prepare", "b", 2, 4));
    check(&["prepare", "task a", "task b", "task c"], ("prepare", "c", 3, 3));
    check(&["prepare", "prepare?", "etcd"], ("etcd", "", 0, 2));
    check(&["unknown-step", "task a"], ("", "a", 1, 0));
    check(
        &["prepare", "task clusterwright.cluster.prepare : Load modules : all"],
        ("prepare", "Load modules : all", 1, 2),
    );
    check(&["prepare", "task Load modules : all"], ("prepare", "Load modules : all", 1, 2));
}

#[test]
fn what_machines_found_in_the_bundle_is_told_once_for_all_of_them() {
    let model = model("Install", &["container-runtime"], &["a+", "b"]);
    let mut fold = Fold::new(&model, "");
    for (host, name, version) in
        [("a", "runc", "1.5.2"), ("b", "runc", "1.6.0"), ("b", "containerd", "2.4.2"), ("nobody", "etcd", "3.6.16")]
    {
        let found = json!({"name": name, "version": version, "arch": "amd64", "sha256": "a".repeat(64)});
        let event = json!({"event": "result", "at": 1, "host": host, "task": "t", "status": "ok",
            "finding": {"kind": "components", "components": [found]}});
        assert!(fold.line(event.to_string().as_bytes(), &Redactor::default()));
    }
    let snapshot = serde_json::to_value(fold.snapshot()).unwrap();
    let digests = json!({"amd64": "a".repeat(64)});
    assert_eq!(
        snapshot["components"],
        json!([
            {"name": "containerd", "version": "2.4.2", "digests": digests},
            {"name": "runc", "version": "1.5.2", "digests": digests},
        ])
    );
}

/// Reports findings of one host: each returns the host as the status shows it then.
fn reporter() -> impl FnMut(Value) -> HostResult {
    let mut fold = Fold::new(&model("Probe", &["probe-host"], &["a"]), "");
    move |finding| {
        let event = json!({"event": "result", "at": 1, "host": "a", "task": "t", "status": "ok", "finding": finding});
        assert!(fold.line(event.to_string().as_bytes(), &Redactor::default()));
        fold.snapshot().hosts.remove(0)
    }
}

#[test]
fn facts_and_findings_of_a_machine_are_kept_within_limits() {
    let mut report = reporter();
    let host = report(json!({"kind": "facts", "osImage": "x".repeat(300), "kernel": "6\u{1b}[1m", "architecture": 7,
        "cpus": 5_000_000_000i64, "memoryMiB": -1, "machineId": null}));
    let facts = host.facts.unwrap();
    assert_eq!((facts.os_image.chars().count(), facts.kernel.as_str(), facts.architecture.as_str()), (256, "6[1m", ""));
    assert_eq!((facts.cpus, facts.memory_mib), (i32::MAX, 0));

    let host = report(json!({"kind": "preflight", "findings": [
        {"name": "swap-on", "severity": "warning", "message": "w"}, {"name": "no name", "severity": "new", "message": "e"}]}));
    let names: Vec<_> = host.findings.iter().map(|finding| finding.name.as_str()).collect();
    assert_eq!(names, ["Unnamed", "swap-on"]);
    // A step that succeeded may have warnings, too.
    let warned = report(
        json!({"kind": "findings", "findings": [{"name": "smoke-test-elsewhere", "severity": "warning", "message": "w"}]}),
    );
    let warned = warned.findings.iter().map(|finding| finding.name.as_str());
    assert!(warned.clone().any(|name| name == "smoke-test-elsewhere"), "{warned:?}");
    let many: Vec<_> = (0..100).map(|n| json!({"name": format!("F{n}"), "severity": "error", "message": ""})).collect();
    assert_eq!(report(json!({"kind": "preflight", "findings": many})).findings.len(), 32);
}

#[test]
fn what_a_machine_reports_of_its_leftovers_and_of_etcd_is_kept_within_limits() {
    let mut report = reporter();
    let host = report(json!({"kind": "clean", "clean": false, "leftovers": vec!["/etc/\u{7}kubernetes"; 20]}));
    assert_eq!((host.clean, host.leftovers.len(), host.leftovers[0].as_str()), (Some(false), 16, "/etc/kubernetes"));
    let host =
        report(json!({"kind": "etcd", "memberID": "8e9e05c52164694d", "well": false, "message": "no\u{1b}leader",
        "wellPeers": ["e2", 7, ""], "sickPeers": vec!["e3\u{7}"; 40]}));
    let etcd = host.etcd.unwrap();
    assert_eq!(etcd.member_id.as_deref(), Some("8e9e05c52164694d"));
    assert_eq!((etcd.well, etcd.message.as_deref()), (Some(false), Some("noleader")));
    assert_eq!((etcd.well_peers, etcd.sick_peers.len()), (vec!["e2".to_owned()], 16));
    let host = report(json!({"kind": "etcd", "memberID": "no number", "well": "yes"}));
    let etcd = host.etcd.unwrap();
    assert_eq!((etcd.member_id, etcd.well), (None, None));
    let hashes: Vec<_> = (0..40).map(|n| json!({"host": format!("e{n}"), "hash": 7})).collect();
    let host = report(
        json!({"kind": "etcd", "version": "3.6\u{1b}.16", "sizeBytes": 4096, "inUseBytes": -1, "quotaBytes": "2",
        "isLeader": true, "isLearner": 0, "raftTerm": 3, "appliedIndex": 1.5, "alarms": vec!["NO\u{7}SPACE"; 9],
        "hashCheck": {"revision": 9, "members": hashes, "message": ""}}),
    );
    let etcd = host.etcd.unwrap();
    assert_eq!((etcd.version.as_deref(), etcd.size_bytes, etcd.in_use_bytes), (Some("3.6.16"), Some(4096), None));
    assert_eq!((etcd.quota_bytes, etcd.is_leader, etcd.is_learner), (None, Some(true), None));
    assert_eq!((etcd.raft_term, etcd.applied_index), (Some(3), None));
    assert_eq!((etcd.alarms.len(), etcd.alarms[0].as_str()), (4, "NOSPACE"));
    let check = etcd.hash_check.unwrap();
    assert_eq!((check.revision, check.members.len(), check.message), (Some(9), 16, None));
    let host = report(json!({"kind": "etcd", "hashCheck": {"members": [{"host": "e1"}, 7], "message": "behind"}}));
    let check = host.etcd.unwrap().hash_check.unwrap();
    assert_eq!((check.revision, check.members.len(), check.message.as_deref()), (None, 0, Some("behind")));
    report(json!({"kind": "unknown"}));
    report(json!([1]));
}

#[test]
fn services_of_a_karmada_control_plane_are_kept_within_limits_each_once() {
    let mut report = reporter();
    let host = report(json!({"kind": "karmada", "parts": [
        {"name": "scheduler", "digest": "1.18.2-0123abcd", "healthy": true},
        {"name": "scheduler", "healthy": false},
        {"name": "web\u{7}hook", "digest": "a b", "healthy": "yes", "message": "it\u{1b} ended".repeat(40)},
        {"digest": "1", "healthy": true},
        7,
    ]}));
    let seen: Vec<_> =
        host.parts.iter().map(|part| (part.name.as_str(), part.digest.as_deref(), part.healthy)).collect();
    assert_eq!(seen, [("scheduler", Some("1.18.2-0123abcd"), true), ("webhook", None, false)]);
    assert_eq!(host.parts[0].message, None);
    assert_eq!(host.parts[1].message.as_ref().map(|message| message.chars().count()), Some(256));
    let many: Vec<_> = (0..40).map(|n| json!({"name": format!("p{n}"), "healthy": true})).collect();
    assert_eq!(report(json!({"kind": "karmada", "parts": many})).parts.len(), 16);
    let why = "ref\u{1b}used ".repeat(40);
    let members: serde_json::Map<_, _> = (0..300).map(|n| (format!("m{n:03}"), json!(why))).collect();
    let told =
        json!([{"name": "estimators", "healthy": true, "members": members}, {"name": "webhook", "members": [1]}]);
    let host = report(json!({"kind": "karmada", "parts": told}));
    assert_eq!((host.parts[0].members.len(), host.parts[1].members.len()), (256, 0));
    assert_eq!(host.parts[0].members["m007"].chars().count(), 128);
    assert!(host.parts[0].members["m007"].starts_with("refused "), "{:?}", host.parts[0].members["m007"]);
    let host = report(json!({"kind": "brought", "parts": {
        "scheduler": "1.18.2-0123abcd", "web\u{7}hook": "absent", "search": "a b", "descheduler": "-a", "etcd": 7, "": "a",
    }}));
    let brought: Vec<_> = host.brought.iter().map(|(part, digest)| (part.as_str(), digest.0.as_str())).collect();
    assert_eq!(brought, [("scheduler", "1.18.2-0123abcd"), ("webhook", "absent")]);
    let many: serde_json::Map<_, _> = (0..40).map(|n| (format!("p{n}"), json!("a"))).collect();
    assert_eq!(report(json!({"kind": "brought", "parts": many})).brought.len(), 16);
    assert!(report(json!({"kind": "brought", "parts": [1]})).brought.is_empty());
}

#[test]
fn certificates_that_a_machine_reports_are_known_ones_each_once_with_an_end_that_is_a_time() {
    let mut report = reporter();
    let host = report(json!({"kind": "certificates", "certificates": [
        {"name": "apiserver", "expiresAt": 1_800_000_000, "issuer": "kuber\u{7}netes", "outdated": true},
        {"name": "apiserver", "expiresAt": 1},
        {"name": "etcd-server", "expiresAt": i64::MAX},
        {"name": "etcd-peer", "expiresAt": "soon"},
        {"name": "of-its-own", "expiresAt": 1_800_000_000},
        {"name": "admin.conf", "expiresAt": -5, "issuer": "", "outdated": "yes"},
        7,
    ]}));
    let seen = |certificate: &CertificateSeen| {
        (
            certificate.name.clone(),
            certificate.expires_at.0.as_second(),
            certificate.issuer.clone(),
            certificate.outdated,
        )
    };
    let seen: Vec<_> = host.certificates.iter().map(seen).collect();
    let expected = [
        ("apiserver".to_owned(), 1_800_000_000, Some("kubernetes".to_owned()), true),
        ("admin.conf".to_owned(), -5, None, false),
    ];
    assert_eq!(seen, expected);
    let named = |number: usize| json!({"name": crds::certificates::CERTIFICATES[number % 18].0, "expiresAt": 7});
    let many: Vec<_> = (0..100).map(named).collect();
    assert_eq!(report(json!({"kind": "certificates", "certificates": many})).certificates.len(), 18);
}

#[test]
fn a_status_of_many_hosts_stays_small_enough_to_be_stored() {
    let names: Vec<String> = (0..500).map(|n| format!("w{n}")).collect();
    let model = model("Join", &["prepare"], &names.iter().map(String::as_str).collect::<Vec<_>>());
    let mut fold = fold(&model, &["prepare"]);
    for name in &names {
        let findings: Vec<_> = (0..32)
            .map(|n| json!({"name": format!("F{n}"), "severity": "error", "message": "é".repeat(512)}))
            .collect();
        let event = json!({"event": "result", "at": 1, "host": name, "task": "é".repeat(256), "status": "failed",
            "msg": "é".repeat(1024), "finding": {"kind": "preflight", "findings": findings}});
        fold.line(event.to_string().as_bytes(), &Redactor::default());
    }
    fold.end(FAILED);
    let snapshot = fold.snapshot();
    assert!(serde_json::to_vec(&snapshot).unwrap().len() < 700 * 1024);
    assert!(snapshot.hosts.iter().all(|host| host.failure.is_some()));
}

/// Everything that a hostile machine can put into a result, as long as it may be, in characters that take most bytes.
#[test]
fn fifty_hosts_with_full_results_fit_the_object() {
    let names: Vec<String> = (0..50).map(|n| format!("w{n}{}", "x".repeat(60))).collect();
    let steps: Vec<&str> = crds::Step::ALL.iter().map(|step| step.name()).collect();
    let model = model("Join", &steps, &names.iter().map(String::as_str).collect::<Vec<_>>());
    let long = "\u{10ffff}\"\\".repeat(3000);
    let mut fold = fold(&model, &["prepare"]);
    for name in &names {
        let findings: Vec<_> = (0..40)
            .map(|n| json!({"name": format!("F{n}{}", "y".repeat(50)), "severity": "error", "message": long}))
            .collect();
        for finding in [
            json!({"kind": "preflight", "findings": findings}),
            json!({"kind": "clean", "clean": false, "leftovers": vec![long.clone(); 30]}),
            json!({"kind": "certificates", "certificates": crds::certificates::CERTIFICATES.map(|(name, _)| {
                json!({"name": name, "expiresAt": 253_402_300_000_i64, "issuer": long, "outdated": true})
            })}),
            json!({"kind": "facts", "osImage": long, "kernel": long, "architecture": long, "machineId": long}),
            json!({"kind": "karmada", "parts": (0..20).map(|n| {
                json!({"name": format!("p{n}{}", "y".repeat(60)), "digest": "1".repeat(64), "healthy": false, "message": long})
            }).collect::<Vec<_>>()}),
            json!({"kind": "brought", "parts": (0..20).map(|n| {
                (format!("p{n}{}", "y".repeat(60)), json!("1".repeat(64)))
            }).collect::<serde_json::Map<_, _>>()}),
        ] {
            let event = json!({"event": "result", "at": 1, "host": name, "task": long, "status": "failed", "reason": "A".repeat(64),
                "msg": long, "finding": finding});
            fold.line(event.to_string().as_bytes(), &Redactor::default());
        }
        fold.host_key(name, &long);
        fold.fence(name, (crds::playbook_run::Fence { epoch: i64::MAX, token: i64::MAX }, None));
        fold.quiet(name, false);
    }
    fold.end(Ending::Canceled);
    let snapshot = fold.snapshot();
    // As it is stored: what the operator says beside it, the spec, and both owners' lists of fields.
    let mut run: Value = json!({"apiVersion": "clusterwright.dev/v1alpha1", "kind": "PlaybookRun", "metadata": {"name": "r"},
        "spec": {"intent": "Join", "clusterName": "c", "steps": steps, "hosts": names, "vars": {"v": "x".repeat(256 * 1024)}},
        "status": snapshot});
    run["status"]["message"] = json!("\u{10ffff}".repeat(1024));
    let typed: crds::PlaybookRun = serde_json::from_value(run.clone()).unwrap();
    assert_eq!(typed.status.unwrap().hosts.len(), 50);
    let fields: Vec<_> =
        snapshot.hosts.iter().map(|host| json!({format!("k:{{\"name\":\"{}\"}}", host.name): fields(host)})).collect();
    run["metadata"]["managedFields"] = json!([{"manager": "clusterwright-executor", "fieldsV1": fields}]);
    let size = serde_json::to_vec(&run).unwrap().len();
    assert!(size < 3 << 19, "{size} bytes");
    assert!(
        snapshot.hosts.iter().all(|host| host.failure.is_some() && host.quiet == Some(false) && host.fence.is_some())
    );
    // The last word is short enough for the kubelet, too.
    assert!(crate::outcome::termination_message(&snapshot.outcome.unwrap()).len() <= 2048);
}

/// A field for each that is set, as the API server lists them.
fn fields(host: &crds::playbook_run::HostResult) -> Value {
    let value = serde_json::to_value(host).unwrap();
    let fields = value.as_object().unwrap().keys().map(|key| (format!("f:{key}"), json!({})));
    fields.collect::<serde_json::Map<_, _>>().into()
}

#[test]
fn a_stream_of_a_hundred_megabytes_without_a_newline_does_no_harm() {
    let model = model("Join", &["prepare"], &["w1"]);
    let mut fold = Fold::new(&model, "");
    let mut lines = crate::lines::Lines::default();
    let mut seen = 0;
    let chunk = vec![b'{'; 1 << 20];
    for _ in 0..100 {
        lines.push(&chunk, |_| seen += 1);
    }
    lines.push(b"\n{\"event\":\"playbook\",\"file\":\"prepare.yml\"}\n", |line| {
        seen += 1;
        assert!(line.len() <= crate::lines::LINE_LIMIT);
        fold.line(line, &Redactor::default());
    });
    assert_eq!((seen, fold.snapshot().progress.step.as_str()), (2, "prepare"));
}

#[test]
fn a_snapshot_names_no_field_of_the_operator() {
    let model = model("Join", &["prepare"], &["w1"]);
    let mut fold = fold(&model, &["prepare"]);
    fold.end(FAILED);
    let fields = serde_json::to_value(fold.snapshot()).unwrap();
    let names: Vec<_> = fields.as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(names, ["hosts", "outcome", "progress", "steps"]);
}

fn any_event() -> impl Strategy<Value = Value> {
    let text = prop_oneof![
        Just(json!("w1")),
        Just(json!("m1")),
        Just(json!("prepare.yml")),
        Just(json!("etcd.yml")),
        Just(json!("probe")),
        Just(json!("ok")),
        Just(json!("failed")),
        Just(json!("unreachable")),
        Just(json!("preflight")),
        Just(json!({"kind": "facts", "osImage": "\u{0}x", "cpus": 1e300})),
        Just(json!({"w1": {"failures": 1, "unreachable": -1}, "m1": 7})),
        any::<String>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<bool>().prop_map(Value::from),
        Just(Value::Null),
    ];
    let kind = prop_oneof!["playbook", "play", "task", "result", "gate", "stats", "new"];
    let keys = prop_oneof![
        "file", "dir", "tasks", "name", "hosts", "host", "task", "status", "changed", "ignored", "msg", "reason",
        "finding", "at"
    ];
    (kind, proptest::collection::btree_map(keys, text, 0..12)).prop_map(|(kind, mut fields)| {
        fields.insert("event".to_owned(), kind.into());
        json!(fields)
    })
}

fn any_line() -> impl Strategy<Value = Vec<u8>> {
    let event = any_event().prop_map(|event| event.to_string().into_bytes()).boxed();
    // An event with foreign bytes in the middle of it.
    let broken = (event.clone(), proptest::collection::vec(any::<u8>(), 1..8), any::<prop::sample::Index>()).prop_map(
        |(mut line, bytes, at)| {
            let at = at.index(line.len());
            line.splice(at..at, bytes);
            line
        },
    );
    // One that was cut off.
    let cut = (event.clone(), any::<prop::sample::Index>()).prop_map(|(mut line, at)| {
        line.truncate(at.index(line.len()));
        line
    });
    prop_oneof![4 => event, 2 => broken, 1 => cut, 1 => proptest::collection::vec(any::<u8>(), 0..200)]
}

/// A run that makes a backup at `a/b`.
fn backup_model() -> RunInputs {
    let mut model = model("Backup", &["backup-etcd"], &["m1+", "m2+", "m3+"]);
    let asked = json!({"storage": {"directory": "/backups"}, "location": "a/b", "recipients": ["age1"], "backup": "b",
        "cluster": "c", "clusterUid": "u"});
    model.backup = Some(serde_json::from_value(asked).unwrap());
    model
}

#[test]
fn a_backup_is_in_the_status_once_its_storage_has_it_whoever_else_fails() {
    let model = backup_model();
    let made = ["backup-etcd", "m1 ok", "m2 ok", "m3 ok", "stored 5", "m1 skipped", "m2 changed", "m3 skipped"];
    let going = fold(&model, &made[..5]).snapshot();
    assert_eq!((going.progress.bytes, going.backup), (Some(5), None));
    let proven = ["backup-etcd?", "m1 skipped", "backup a/b", "m2 ok", "m3 skipped", "end"];
    let (told, fold) = outcome(&model, &[&made[..], &proven].concat(), Ending::Exited(Some(0)));
    assert_eq!(told, "Succeeded Complete: etcd backed up from m2: 3.1 MiB at revision 1234");
    let backup = fold.snapshot().backup.unwrap();
    assert_eq!((backup.location.as_str(), backup.etcd_version.as_str()), ("a/b", "3.6.16[31m"));

    // One of three cannot be reached.
    let rest = ["backup-etcd", "m1 ok", "m2 ok", "m3 unreachable gone", "m1 skipped", "m2 changed", "backup-etcd?"];
    let rest = [&rest[..], &["m1 skipped", "backup a/b", "m2 ok", "end m3"]].concat();
    let (told, fold) = outcome(&model, &rest, Ending::Exited(Some(4)));
    assert!(told.starts_with("Failed Unreachable: etcd backed up from m2: 3.1 MiB at revision 1234; 2 of 3"), "{told}");
    let snapshot = fold.snapshot();
    assert_eq!((snapshot.steps[0].phase, snapshot.backup.is_some()), (StepPhase::Succeeded, true));
}

#[test]
fn without_the_word_of_its_storage_a_backup_is_none() {
    let model = backup_model();
    let played = ["backup-etcd", "m1 skipped", "m2 changed", "backup-etcd?", "m1 skipped", "m2 ok", "end"];
    let (told, fold) = outcome(&model, &played, Ending::Exited(Some(0)));
    assert!(told.starts_with("Failed NotDone"), "{told}");
    assert_eq!(fold.snapshot().steps[0].phase, StepPhase::Failed);
    // Of another attempt.
    let (told, fold) = outcome(&model, &[&played[..6], &["backup a/c", "end"]].concat(), Ending::Exited(Some(0)));
    assert!(told.starts_with("Failed NotDone") && fold.snapshot().backup.is_none(), "{told}");
    // In a run that was asked for none.
    let other = self::model("Join", &["prepare"], &["w1"]);
    let snapshot = self::fold(&other, &["prepare", "stored 7", "backup a/b"]).snapshot();
    assert_eq!((snapshot.backup, snapshot.progress.bytes), (None, None));
    // The storage refused: nothing else than a person makes it better.
    let refused =
        ["backup-etcd", "m1 skipped", "m2 failed StorageAccessDenied: no", "backup-etcd?", "m1 skipped", "end m2"];
    let (told, mut fold) = outcome(&model, &refused, Ending::Exited(Some(2)));
    assert!(told.starts_with("Failed StorageAccessDenied"), "{told}");
    assert!(fold.end(Ending::Exited(Some(2))).hosts_ok == 0, "{told}");
}

#[test]
fn a_machine_cannot_say_that_a_backup_was_made() {
    let model = backup_model();
    let mut fold = fold(&model, &["backup-etcd"]);
    let event = backup("a/b");
    let line = json!({"event": "result", "host": "m1", "task": "t", "status": "ok", "msg": format!("\n{event}\n"),
        "finding": {"kind": "backup", "event": "backup", "content": event["content"]}});
    assert!(fold.line(line.to_string().as_bytes(), &Redactor::default()));
    assert_eq!(fold.snapshot().backup, None);
}

/// Every limit of the schema that concerns the executor's fields.
fn within_limits(fold: &Fold) {
    let snapshot = fold.snapshot();
    let fits = |text: &str, limit: usize| {
        assert!(text.chars().count() <= limit, "{text:?}");
        assert!(!text.chars().any(char::is_control), "{text:?}");
    };
    fits(&snapshot.progress.step, 63);
    fits(&snapshot.progress.task, 256);
    assert!(snapshot.progress.total == 0 || snapshot.progress.done <= snapshot.progress.total);
    for host in &snapshot.hosts {
        assert!(host.ok >= 0 && host.changed >= 0 && host.failed >= 0);
        if let Some(failure) = &host.failure {
            fits(&failure.step, 63);
            fits(&failure.task, 256);
            fits(&failure.reason, 64);
            fits(&failure.message, 1024);
        }
        if let Some(facts) = &host.facts {
            fits(&facts.os_image, 256);
            fits(&facts.kernel, 256);
            fits(&facts.architecture, 64);
            fits(&facts.machine_id, 64);
        }
    }
    if let Some(outcome) = &snapshot.outcome {
        fits(&outcome.message, 1024);
        fits(&outcome.reason, 64);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 128, ..ProptestConfig::default() })]

    #[test]
    fn whatever_comes_through_the_stream_the_status_keeps_its_limits(
        lines in proptest::collection::vec(any_line(), 0..40),
        ending in prop_oneof![
            Just(DONE), Just(FAILED), Just(Ending::Exited(None)), Just(Ending::Canceled), Just(Ending::DeadlineExceeded),
            Just(Ending::Paused(crds::Step::Etcd))
        ],
    ) {
        let model = model("Install", &["prepare", "etcd"], &["m1+", "w1"]);
        let mut fold = Fold::new(&model, "sha256:0");
        for line in lines {
            fold.line(&line, &Redactor::default());
            within_limits(&fold);
        }
        let outcome = fold.end(ending);
        within_limits(&fold);
        let snapshot = fold.snapshot();
        let well = snapshot.hosts.iter().filter(|host| host.failure.is_none()).count();
        prop_assert_eq!(usize::try_from(outcome.hosts_ok).unwrap(), well);
        // Success needs the exit code, every step's probe, and no failure on any host.
        prop_assert_eq!(outcome.phase == RunPhase::Succeeded, well == 2);
        if outcome.phase == RunPhase::Succeeded {
            prop_assert_eq!(ending, DONE);
            prop_assert!(snapshot.steps.iter().all(|step| step.phase == StepPhase::Succeeded));
        }
        let serialized = serde_json::to_vec(&snapshot).unwrap();
        prop_assert!(serialized.len() < 1 << 20);
    }
}

/// A run that stages the backup at `a/b`.
fn staging_model() -> RunInputs {
    let mut model = model("Stage", &["stage-backup"], &["m1+", "m2+", "m3+"]);
    let asked = json!({"storage": {"directory": "/backups"}, "location": "a/b", "id": "k3x9a0b1", "restore": "r",
        "cluster": "c"});
    model.staging = Some(serde_json::from_value(asked).unwrap());
    model
}

#[test]
fn a_staged_backup_is_in_the_status_once_it_lies_ready_on_all_machines() {
    let model = staging_model();
    let played =
        ["stage-backup", "sent m1 5", "sent m2 7", "sent m1 6", "sent other 9", "m1 ok", "m2 changed", "m3 ok"];
    let going = fold(&model, &played).snapshot();
    assert_eq!((going.progress.bytes, going.staged), (Some(13), None));
    let proven = ["stage-backup?", "staged a/b", "m1 ok", "m2 ok", "m3 ok", "end"];
    let (told, fold) = outcome(&model, &[&played[..], &proven].concat(), DONE);
    assert_eq!(told, "Succeeded Complete: backup a/b staged on 3 hosts: 3.1 MiB at revision 1234");
    let staged = fold.snapshot().staged.unwrap();
    assert_eq!((staged.etcd_version.as_str(), staged.bump), ("3.6.16[31m", 1_000_000_000));
    assert_eq!((staged.current_revision, staged.cluster_id.as_str()), (Some(2000), "c0ffee"));
}

#[test]
fn without_its_report_a_backup_is_not_staged() {
    let model = staging_model();
    let played = ["stage-backup", "m1 ok", "m2 ok", "m3 ok", "stage-backup?", "m1 ok", "m2 ok", "m3 ok"];
    for report in [&["end"][..], &["staged a/c", "end"]] {
        let (told, fold) = outcome(&model, &[&played[..], report].concat(), DONE);
        assert!(told.starts_with("Failed NotDone") && fold.snapshot().staged.is_none(), "{told}");
    }
    // A run that stages nothing has none, whatever is reported.
    let other = self::model("Install", &["prepare"], &["m1+"]);
    let snapshot = self::fold(&other, &["prepare", "sent m1 7", "staged a/b"]).snapshot();
    assert_eq!((snapshot.staged, snapshot.progress.bytes), (None, None));
}

#[test]
fn a_machine_cannot_say_that_a_backup_was_staged() {
    let model = staging_model();
    let mut fold = fold(&model, &["stage-backup"]);
    let event = staged("a/b");
    let forged = json!({"event": "result", "host": "m1", "task": "t", "status": "ok", "msg": event.to_string(),
        "finding": {"kind": "staged", "event": "staged", "staged": event["staged"]}});
    fold.line(forged.to_string().as_bytes(), &Redactor::default());
    assert_eq!(fold.snapshot().staged, None);
}

#[test]
fn what_was_staged_before_counts_only_where_it_is_not_staged_again() {
    let model = staging_model();
    let mut skipped = fold(&model, &["staged a/b"]);
    skipped.begin_at(1);
    assert!(skipped.is_staged());
    let mut again = fold(&model, &["staged a/b"]);
    again.begin_at(0);
    assert!(!again.is_staged());
}
