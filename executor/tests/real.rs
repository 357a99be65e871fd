//! The executor with the real ansible-core, the real callback plugin and a real sshd on this machine: what no
//! unit test can promise. Ansible is found in the virtual environment `CLUSTERWRIGHT_ANSIBLE_VENV`, default
//! `~/.cache/clusterwright/venv`.

#[cfg(test)]
#[path = "real/backup.rs"]
mod backup;
#[cfg(test)]
#[path = "real/backup_kills.rs"]
mod backup_kills;
#[cfg(test)]
#[path = "real/bench.rs"]
mod bench;
#[cfg(test)]
#[path = "real/custom.rs"]
mod custom;
#[cfg(test)]
#[path = "real/guarded.rs"]
mod guarded;
#[cfg(test)]
#[path = "real/kills.rs"]
mod kills;
#[cfg(test)]
#[path = "real/machine.rs"]
mod machine;
#[cfg(test)]
#[path = "real/staging.rs"]
mod staging;
#[cfg(test)]
#[path = "real/wire.rs"]
mod wire;

use std::time::{Duration, Instant};

use bench::{Bench, LOOK, Sshd};
use serde_json::{Value, json};

#[test]
fn ssh_gets_in_by_pinned_keys_and_says_why_it_does_not() {
    let sshd = Sshd::start();
    let mut bench = Bench::new();
    bench.playbook(
        "probe-host",
        "
- hosts: all
  gather_facts: false
  tasks:
  - name: Greet
    ansible.builtin.command: echo hello
",
    );
    bench.playbook("probe/probe-host", LOOK);
    let good = bench.host(&sshd);
    let with = |change: Value| {
        let mut host = good.clone();
        host.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
        host
    };
    let other_key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJcxqLTtzqkmAhSLrOWaEv6tnLCfzpA54ZJZFoUR1tHe";
    bench.secret("ssh-privatekey.stranger", &bench::new_key(bench.path(), "stranger").0);
    bench.secret("password.wrong", "not the password");
    let closed = bench::free_port();
    bench.inputs(
        "Probe",
        &["probe-host"],
        json!({}),
        json!({
            "good": good,
            "first": with(json!({"hostKeys": [], "hostKeyPolicy": "TrustOnFirstUse"})),
            "jump": with(json!({"bastion": with(json!({"user": "root"}))})),
            "changed": with(json!({"hostKeys": [other_key]})),
            "changed-after-first-use": with(json!({"hostKeys": [other_key], "hostKeyPolicy": "TrustOnFirstUse"})),
            "unknown": with(json!({"hostKeys": []})),
            "stranger": with(json!({"credential": "stranger"})),
            "password": with(json!({"credential": "wrong", "credentialKind": "Password"})),
            "closed": with(json!({"port": closed})),
            "bad-jump": with(json!({"bastion": with(json!({"hostKeys": [other_key]}))})),
        }),
    );

    let ran = bench.run(&[]);
    assert_eq!(ran.code, 20 + 1, "{}", ran.text);
    let reason = |host: &str| {
        let host = ran.host(host);
        host.pointer("/failure/reason").and_then(Value::as_str).unwrap_or("").to_owned()
    };
    let check =
        |host: &str, expected: &str| assert_eq!(reason(host), expected, "{host}: {:#}\n{}", ran.host(host), ran.text);
    check("good", "");
    check("first", "");
    check("jump", "");
    check("changed", "HostKeyChanged");
    check("changed-after-first-use", "HostKeyChanged");
    check("unknown", "HostKeyUnknown");
    check("stranger", "AuthenticationFailed");
    check("password", "AuthenticationFailed");
    check("closed", "Unreachable");
    check("bad-jump", "HostKeyChanged");
    assert_eq!(ran.host("first")["hostKey"], sshd.host_key.as_str());
    assert_eq!(ran.host("good").get("hostKey"), None);
    assert_eq!(ran.host("closed")["unreachable"], true);
    assert_eq!((&ran.result["outcome"]["hostsOk"], &ran.result["outcome"]["hostsFailed"]), (&json!(3), &json!(7)));
    assert_eq!(sshd.sessions(), 0, "a connection was left open");
    bench.assert_nothing_left();
}

#[test]
fn a_template_in_a_variable_arrives_literally_and_does_not_run() {
    let sshd = Sshd::start();
    let mut bench = Bench::new();
    let canary = bench.path().join("canary");
    let evil = format!("{{{{ lookup('pipe','touch {}') }}}} {{% raw %}}", canary.display());
    bench.playbook(
        "prepare",
        "
- hosts: all
  gather_facts: false
  tasks:
  - name: Write
    ansible.builtin.copy:
      dest: '{{ out }}'
      content: '{{ {\"run\": run_var, \"host\": host_var, \"nested\": nested, \"labels\": node_labels} | to_json }}'
  - name: Loop over {{ run_var }}
    ansible.builtin.command: {argv: [echo, '{{ item.key }}', '{{ item.value }}']}
    loop: '{{ nested | dict2items }}'
    changed_when: false
",
    );
    bench.playbook("probe/prepare", LOOK);
    let out = bench.path().join("out");
    let nested = json!({evil.clone(): [evil, 1, 1.5, 1e300, true, null, "é😀\u{85}\u{1}"], "__ansible_unsafe": evil, "__ansible_vault": "x",
        "yaml": "!!python/object:os.system", "no": "no", "octal": "0755", "sexagesimal": "12:30:45", "int": "123"});
    let mut host = bench.host(&sshd);
    host["vars"] = json!({"host_var": evil, "node_labels": {"a/b": evil}});
    bench.inputs("Custom", &["prepare"], json!({"run_var": evil, "nested": nested, "out": out}), json!({"w1": host}));

    let ran = bench.run(&[]);
    assert_eq!(ran.code, 0, "{}", ran.text);
    let written: Value = serde_json::from_slice(&std::fs::read(&out).unwrap()).unwrap();
    assert_eq!(written, json!({"run": evil, "host": evil, "nested": nested, "labels": {"a/b": evil}}));
    assert!(!canary.exists(), "the template ran");
}

#[test]
fn secrets_reach_the_machine_and_no_output() {
    let sshd = Sshd::start();
    let mut bench = Bench::new();
    let out = bench.path().join("out.key");
    bench.secret(
        "pki.ca.key",
        "-----BEGIN PRIVATE KEY-----\nMIIBVQIBADANBgkqhkiG9w0BAQEFAASCAT8wggE7\n-----END PRIVATE KEY-----\n",
    );
    bench.playbook(
        "prepare",
        "
- hosts: all
  gather_facts: false
  tasks:
  - name: Copy the key
    ansible.builtin.copy: {src: '{{ secrets_dir }}/pki.ca.key', dest: '{{ out }}', mode: '0600'}
    no_log: true
  - name: Say too much
    ansible.builtin.fail: {msg: \"{{ lookup('ansible.builtin.file', secrets_dir ~ '/pki.ca.key') }}\"}
",
    );
    bench.playbook("probe/prepare", LOOK);
    let host = bench.host(&sshd);
    bench.inputs("Custom", &["prepare"], json!({"out": out}), json!({"w1": host}));
    let ran = bench.run(&["--verbose"]);
    assert_eq!(ran.code, 20, "{}", ran.text);
    assert!(std::fs::read_to_string(&out).unwrap().contains("MIIBVQIBADANBgkqhkiG9w0BAQEFAASCAT8wggE7"));
    assert!(ran.text.contains("[secret]"), "{}", ran.text);
    assert!(!format!("{}{}", ran.text, ran.result).contains("MIIBVQIBADANBg"), "{}", ran.text);
    assert!(ran.host("w1")["failure"]["message"].as_str().unwrap().contains("[secret]"));
}

#[test]
fn one_bad_host_does_not_stop_the_others() {
    let sshd = Sshd::start();
    let mut bench = Bench::new();
    let step = "
- hosts: all
  gather_facts: false
  tasks:
  - name: Fetch
    ansible.builtin.command: 'false'
    vars: {failure_reason: DigestMismatch}
    when: inventory_hostname == 'w2'
";
    for (name, text) in [("prepare", step), ("probe/prepare", LOOK), ("node", LOOK), ("probe/node", LOOK)] {
        bench.playbook(name, text);
    }
    let host = bench.host(&sshd);
    bench.inputs("Join", &["prepare", "node"], json!({}), json!({"w1": host, "w2": host, "w3": host}));
    let ran = bench.run(&[]);
    assert_eq!(ran.code, 20, "{}", ran.text);
    let outcome = &ran.result["outcome"];
    assert_eq!((&outcome["hostsOk"], &outcome["reason"]), (&json!(2), &json!("DigestMismatch")), "{outcome:#}");
    assert_eq!(ran.result["steps"][1]["phase"], "Succeeded");
    assert!(outcome["message"].as_str().unwrap().starts_with("2 of 3 workers joined; w2: prepare: DigestMismatch: "));
}

#[test]
fn a_host_that_hangs_in_one_task_does_not_hold_its_batch() {
    let sshd = Sshd::start();
    let mut bench = Bench::new();
    let config = bench.path().join("ansible/ansible.cfg");
    let settings = std::fs::read_to_string(&config).unwrap();
    let ours = "task_timeout = 300\n";
    assert!(settings.contains(ours), "{settings}");
    std::fs::write(&config, settings.replace(ours, "task_timeout = 45\n")).unwrap();
    // What hangs ends with the bench.
    bench.playbook(
        "prepare",
        "
- hosts: all
  gather_facts: false
  tasks:
  - name: Hang
    ansible.builtin.shell: while [ -d {{ place }} ]; do sleep 0.2; done
    when: inventory_hostname == 'w2'
  - name: Go on
    ansible.builtin.command: 'true'
",
    );
    bench.playbook("probe/prepare", LOOK);
    let host = bench.host(&sshd);
    let place = bench.path().to_owned();
    bench.inputs("Join", &["prepare"], json!({"place": place}), json!({"w1": host, "w2": host, "w3": host}));
    let ran = bench.run(&["--deadline-seconds", "300"]);
    assert_eq!(ran.code, 20, "{}", ran.text);
    let failure = &ran.host("w2")["failure"];
    assert_eq!((&failure["reason"], &failure["task"]), (&json!("TaskTimedOut"), &json!("Hang")), "{failure:#}");
    assert_eq!(ran.result["outcome"]["hostsOk"], 2, "{}", ran.text);
    bench.assert_nothing_left();
}

#[test]
fn a_run_is_stopped_by_its_signal_or_its_deadline_and_leaves_nothing() {
    let sshd = Sshd::start();
    let mut bench = Bench::new();
    bench.playbook(
        "prepare",
        "
- hosts: all
  gather_facts: false
  tasks:
  - name: Sleep
    ansible.builtin.command: sleep 60
",
    );
    bench.playbook("probe/prepare", LOOK);
    let host = bench.host(&sshd);
    bench.inputs("Custom", &["prepare"], json!({}), json!({"w1": host}));
    let begun = Instant::now();

    let ran = bench.run(&["--deadline-seconds", "8"]);
    assert_eq!(ran.code, 31, "{}", ran.text);
    let message = ran.result["outcome"]["message"].as_str().unwrap();
    assert!(message.starts_with("stopped by its deadline, "), "{message}");
    bench.assert_nothing_left();

    for (signal, code) in [("TERM", 143), ("INT", 30)] {
        let ran = bench.run_and_signal("prepare", signal);
        assert_eq!(ran.code, code, "{}", ran.text);
        assert_eq!(ran.result["outcome"]["phase"], "Canceled");
        assert_eq!(ran.host("w1")["failure"]["reason"], "Canceled");
        bench.assert_nothing_left();
    }
    assert!(begun.elapsed() < Duration::from_secs(50), "the task was waited for");
}

#[test]
fn inputs_that_are_not_the_announced_ones_are_refused_before_anything_starts() {
    let sshd = Sshd::start();
    let mut bench = Bench::new();
    bench.playbook("prepare", LOOK);
    bench.playbook("probe/prepare", LOOK);
    let host = bench.host(&sshd);
    bench.inputs("Custom", &["prepare"], json!({}), json!({"w1": host}));
    let check = |args: &[&str], code: i32, reason: &str| {
        let ran = bench.run(args);
        assert_eq!((ran.code, &ran.result["outcome"]["reason"]), (code, &json!(reason)), "{}", ran.text);
        assert_eq!(ran.message["reason"], reason);
    };
    check(&["--digest", "sha256:0"], 10, "InputsChanged");
    check(&["--ansible", "/nowhere"], 40, "Internal");
    bench.inputs("Custom", &["etcd"], json!({}), json!({"w1": host}));
    let check = |code: i32, reason: &str| {
        let ran = bench.run(&[]);
        assert_eq!((ran.code, &ran.result["outcome"]["reason"]), (code, &json!(reason)), "{}", ran.text);
    };
    check(40, "PlaybookMissing");
    assert_eq!(bench.run(&[]).host("w1")["failure"]["reason"], "PlaybookMissing");
    bench.inputs("Custom", &["prepare"], json!({"ansible_connection": "local"}), json!({"w1": host}));
    let ran = bench.run(&[]);
    assert_eq!((ran.code, &ran.result["outcome"]["reason"]), (10, &json!("ReservedVariable")), "{}", ran.text);
}

/// A file that differs, a value of a Secret in it, a probe that cannot tell, one that finds nothing, a machine that is
/// silent: each is told apart, and no machine stops another.
#[test]
fn a_comparison_plays_the_probes_alone_and_says_what_differs_on_each_machine_and_no_secret() {
    let sshd = Sshd::start();
    let mut bench = Bench::new();
    let (kept, touched) = (bench.path().join("kept.conf"), bench.path().join("touched"));
    std::fs::write(&kept, "as it was changed by hand\n").unwrap();
    bench.secret("pki.etcd-ca.crt", "c2VjcmV0LW9mLXRoZS1jbHVzdGVy\n");
    let changes = format!(
        "
- hosts: all
  gather_facts: false
  tasks:
  - name: Change
    ansible.builtin.command: touch {}
",
        touched.display()
    );
    let differs = "
- hosts: all
  gather_facts: false
  any_errors_fatal: true
  tasks:
  - name: The file is as wanted
    ansible.builtin.copy:
      dest: '{{ kept }}'
      content: \"{{ lookup('ansible.builtin.file', secrets_dir ~ '/pki.etcd-ca.crt') }}\"
    check_mode: true
    register: compared
    failed_when: compared is failed or compared is changed
    vars: {failure_reason: ServiceOutdated}
    when: inventory_hostname != 'c2'
";
    let unclear = "
- hosts: all
  gather_facts: false
  any_errors_fatal: true
  tasks:
  - name: The API server is ready
    ansible.builtin.command: 'false'
    vars: {failure_reason: ApiserverNotReady}
    when: inventory_hostname == 'c1'
";
    for (step, probe) in [("prepare", differs), ("control-plane", unclear), ("network", LOOK)] {
        bench.playbook(step, &changes);
        bench.playbook(&format!("probe/{step}"), probe);
    }
    let mut host = bench.host(&sshd);
    host["groups"] = json!(["kube_control_plane", "etcd"]);
    let mut silent = host.clone();
    silent["port"] = json!(bench::free_port());
    bench.inputs(
        "Compare",
        &["prepare", "control-plane", "network"],
        json!({"kept": kept}),
        json!({"c1": host, "c2": host, "c3": silent}),
    );

    let ran = bench.run(&["--verbose"]);
    assert_eq!(ran.code, 20 + 1, "{}", ran.text);
    assert!(!touched.exists(), "a step was played");
    assert_eq!(std::fs::read_to_string(&kept).unwrap(), "as it was changed by hand\n");
    let found = ran.host("c1")["differences"].clone();
    assert_eq!(found.as_array().map(Vec::len), Some(2), "{found:#}\n{}", ran.text);
    assert_eq!((&found[0]["step"], &found[0]["reason"]), (&json!("prepare"), &json!("ServiceOutdated")));
    assert_eq!(found[0].get("unknown"), None, "{found:#}");
    assert_eq!(found[0]["task"], "The file is as wanted");
    let unclear = (&found[1]["step"], &found[1]["unknown"], &found[1]["reason"]);
    assert_eq!(unclear, (&json!("control-plane"), &json!(true), &json!("ApiserverNotReady")));
    for host in ["c1", "c2"] {
        assert_eq!(ran.host(host).get("failure"), None, "{:#}\n{}", ran.host(host), ran.text);
    }
    assert_eq!(ran.host("c2").get("differences"), None, "{:#}", ran.host("c2"));
    assert_eq!(ran.host("c3")["failure"]["reason"], "Unreachable");
    assert!(!format!("{}{}", ran.text, ran.result).contains("c2VjcmV0LW9m"), "{}", ran.text);
    bench.assert_nothing_left();
}
