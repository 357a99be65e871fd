//! Answers of machines harm neither the controller, nor another machine, nor the status.

use serde_json::{Value, json};

use crate::bench::{self, Bench, LOOK, Sshd};
use crate::canary;
use crate::machine::{Machines, WAYS};
use crate::watched;

/// Two plays, so that a machine which the first one brought in would be in the second.
const ASK: &str = "
- hosts: all
  gather_facts: false
  tasks:
  - name: Ask
    clusterwright.cluster.host_info: {report: facts}
- hosts: all:kube_node:kube_control_plane:etcd
  gather_facts: false
  tasks:
  - name: Ask again
    clusterwright.cluster.host_info: {report: facts}
  - name: Repeat what it said of {{ inventory_hostname }}
    ansible.builtin.debug: {msg: '{{ ansible_facts.clusterwright_machine.cgroup_driver }}'}
";

/// Fails if a machine's text reaches a person or a program otherwise than sanitized.
fn assert_clean(ran: &bench::Ran) {
    let steers = |c: char| (c.is_control() && !"\n\t".contains(c)) || "\u{202e}\u{200b}\u{feff}".contains(c);
    assert!(!ran.text.chars().any(steers), "the output steers terminals");
    fn texts(value: &Value, found: &mut Vec<String>) {
        match value {
            Value::String(text) => found.push(text.clone()),
            Value::Array(items) => items.iter().for_each(|item| texts(item, found)),
            Value::Object(fields) => fields.values().for_each(|field| texts(field, found)),
            _ => {}
        }
    }
    let mut found = Vec::new();
    texts(&ran.result, &mut found);
    texts(&ran.message, &mut found);
    for text in found {
        assert!(text.chars().count() <= 1400 && !text.chars().any(|c| steers(c) || c == '\n'), "{text:?}");
    }
    let size = ran.result.to_string().len();
    assert!(size < 200_000, "the result has {size} bytes");
    assert!(ran.message.to_string().len() <= 2048);
}

#[test]
fn what_a_machine_answers_harms_neither_the_controller_nor_another_machine_nor_the_status() {
    let sshd = Sshd::start();
    let mut bench = Bench::new();
    bench.playbook("prepare", ASK);
    bench.playbook("probe/prepare", ASK);
    let canary = canary(&bench);
    let machines = Machines::start(&mut bench, &WAYS, &canary);
    let mut hosts = machines.hosts.clone();
    let good = bench.host(&sshd);
    hosts["good"] = good.clone();
    hosts["zz-good"] = good;
    bench.inputs("Custom", &["prepare"], json!({}), hosts);

    let watched = watched::run(&bench, &["--verbose", "--deadline-seconds", "900"], |_| {}, |_| {});
    let ran = watched.ran;
    let tail: String = ran.text.chars().rev().take(3000).collect::<Vec<_>>().into_iter().rev().collect();
    assert!(!canary.exists(), "something ran: {tail}");
    assert_eq!(ran.code, 20, "{tail}");
    assert!(!ran.text.contains("stranger"), "a machine brought another one in: {tail}");
    for name in ["good", "zz-good"] {
        let host = ran.host(name);
        assert_eq!(host.get("failure"), None, "{host:#}");
        assert_eq!(host["ok"], 6, "{host:#}");
        assert_ne!(host["facts"]["osImage"], "Evil 1", "{host:#}");
    }
    assert_eq!(ran.result["hosts"].as_array().unwrap().len(), WAYS.len() + 2);
    assert_clean(&ran);
    let reason =
        |name: &str| ran.host(name).pointer("/failure/reason").and_then(Value::as_str).unwrap_or("").to_owned();
    assert_eq!(reason("claims-a-reason"), "TaskFailed");
    assert_eq!(reason("control-characters"), "TaskFailed");
    assert_eq!(reason("many-findings"), "PreflightFailed");
    for name in ["no-object", "deep", "deep-and-whole", "long-number", "numbers", "no-text"] {
        assert_eq!(reason(name), "MachineError", "{name}");
    }
    assert_eq!(ran.result["outcome"]["phase"], "Failed");
    assert!(watched.memory_mib < 256, "the executor took {} MiB", watched.memory_mib);
    bench.assert_nothing_left();
}

#[test]
fn a_machine_that_never_ends_is_left_at_the_deadline() {
    let mut bench = Bench::new();
    bench.playbook("prepare", ASK);
    bench.playbook("probe/prepare", ASK);
    let canary = canary(&bench);
    let machines = Machines::start(&mut bench, &["never-ends", "never-answers"], &canary);
    bench.inputs("Custom", &["prepare"], json!({}), machines.hosts.clone());
    let watched = watched::run(&bench, &["--deadline-seconds", "6"], |_| {}, |_| {});
    assert_eq!(watched.ran.code, 31, "{}", watched.ran.text);
    assert!(watched.elapsed.as_secs() < 40, "it took {} s", watched.elapsed.as_secs());
    assert!(watched.memory_mib < 256, "the executor took {} MiB", watched.memory_mib);
    assert_clean(&watched.ran);
    bench.assert_nothing_left();
}

#[test]
fn what_a_machine_answers_when_it_is_called_before_ansible_harms_nobody() {
    let sshd = Sshd::start();
    let changed = Sshd::start();
    let mut bench = Bench::new();
    bench.playbook("probe-host", ASK);
    bench.playbook("probe/probe-host", LOOK);
    let canary = canary(&bench);
    let ways = ["claims-a-fence", "floods-a-call", "no-text", "fake-guard", "fake-ssh", "control-characters"];
    let machines = Machines::start(&mut bench, &ways, &canary);
    let mut hosts = machines.hosts.clone();
    bench.secret("password.pw", "nobody hears this one");
    let good = bench.host(&sshd);
    // A key of before, and a password that whoever shows another key would like to have.
    let mut other = good.clone();
    other["port"] = json!(changed.port);
    other["credential"] = json!("pw");
    other["credentialKind"] = json!("Password");
    hosts["other-key"] = other;
    hosts["good"] = good;
    bench.inputs("Probe", &["probe-host"], json!({}), hosts);

    let watched = watched::run(&bench, &["--deadline-seconds", "900"], |_| {}, |_| {});
    let ran = watched.ran;
    assert_eq!(ran.host("good").get("failure"), None, "{}", ran.text);
    for way in &ways[2..] {
        assert!(ran.host(way).get("failure").is_some(), "{way}: {}", ran.text);
    }
    assert_eq!(ran.host("other-key")["failure"]["reason"], "HostKeyChanged", "{}", ran.text);
    let log = changed.log();
    assert!(changed.connections() > 0 && !log.contains("authenticating user") && !log.contains("Failed"), "{log}");
    assert!(!ran.text.contains("nobody hears"), "{}", ran.text);
    assert_clean(&ran);
    assert!(!canary.exists(), "something ran");
    assert!(watched.memory_mib < 256, "the executor took {} MiB", watched.memory_mib);
    bench.assert_nothing_left();
}
