//! Playbooks of the user's: steps like any other, with variables of their own, and for the hosts alone.

use std::fs;

use serde_json::{Value, json};

use crate::bench::LOOK;
use crate::machine::Machine;

/// Writes what it sees of two variables into a file, through a command that the guard hears of.
const WRITES: &str = "
- name: What an administrator wrote
  hosts: all
  gather_facts: false
  vars:
    greeting: 'from {{ inventory_hostname }}'
  tasks:
  - name: Write
    ansible.builtin.copy:
      dest: '{{ place }}/{{ out }}'
      content: '{{ {\"mine\": mine | default(\"-\"), \"greeting\": greeting} | to_json }}'
  - name: Tell the fence
    ansible.builtin.shell: 'echo $CLUSTERWRIGHT_FENCE $CLUSTERWRIGHT_STEP >>{{ place }}/fences'
";

/// Adds playbooks to the inputs: name, text, probe, variables.
fn with(playbooks: Value) -> impl Fn(&mut Value) {
    move |model| {
        model["playbooks"] = playbooks.clone();
        model["vars"]["out"] = json!("run-out");
    }
}

fn step<'a>(ran: &'a crate::bench::Ran, name: &str) -> &'a Value {
    let steps = ran.result["steps"].as_array().unwrap();
    steps.iter().find(|step| step["name"] == name).unwrap()
}

#[test]
fn custom_playbooks_are_steps_like_any_other_and_see_only_their_own_variables() {
    let mut machine = Machine::new();
    machine.bench.playbook("prepare", &WRITES.replace("run-out", "ours"));
    machine.bench.playbook("probe/prepare", LOOK);
    let canary = machine.bench.path().join("canary");
    let evil = format!("{{{{ lookup('ansible.builtin.pipe', 'touch {}') }}}}", canary.display());
    let values = json!({"text": evil, "no": "no", "octal": "0755", "version": "1.30", "number": 1.5, "list": [true, null, "1.30"],
        "__ansible_unsafe": "x", evil.clone(): "!!python/object:os.system"});
    machine.inputs(
        &["custom-before", "prepare", "custom-after"],
        with(json!({
            "before": {"content": WRITES, "vars": {"mine": values, "out": "before-out"}},
            "after": {"content": WRITES, "probe": LOOK, "vars": {"mine": "1.30", "out": "after-out"}},
        })),
        &["w1"],
    );
    let ran = machine.run(7);
    assert_eq!(ran.code, 0, "{}", ran.text);
    let read = |name: &str| serde_json::from_str::<Value>(&machine.read(name)).unwrap();
    assert_eq!(read("before-out"), json!({"mine": values, "greeting": "from w1"}));
    assert_eq!(read("after-out"), json!({"mine": "1.30", "greeting": "from w1"}));
    assert_eq!(read("run-out")["mine"], "-", "a step of ours sees the variables of none of them");
    assert!(!canary.exists(), "a template in a variable ran");
    for name in ["custom-before", "prepare", "custom-after"] {
        assert_eq!(step(&ran, name)["phase"], "Succeeded", "{:#}", ran.result);
        assert!(step(&ran, name)["changed"].as_i64() >= Some(2), "{:#}", ran.result);
    }
    let fences = machine.read("fences");
    assert_eq!(fences.matches("0-7").count(), 3, "{fences}");
    let scopes = fs::read_to_string(machine.bench.path().join("machine/guard/log")).unwrap();
    for name in ["custom-before", "probe-custom-after"] {
        assert!(scopes.contains(name), "the guard has not heard of {name}: {scopes}");
    }
    machine.bench.assert_nothing_left();
}

#[test]
fn a_custom_step_that_fails_is_told_as_any_step_and_what_follows_is_not_played() {
    let mut machine = Machine::new();
    machine.bench.playbook("prepare", WRITES);
    machine.bench.playbook("probe/prepare", LOOK);
    let fails = "- {hosts: all, gather_facts: false, tasks: [{name: Ask the license server, ansible.builtin.command: 'false'}]}\n";
    machine.inputs(&["custom-license", "prepare"], with(json!({"license": {"content": fails}})), &["w1"]);
    let ran = machine.run(1);
    assert_eq!(ran.code, 20, "{}", ran.text);
    let failure = &ran.host("w1")["failure"];
    assert_eq!(
        (&failure["step"], &failure["task"]),
        (&json!("custom-license"), &json!("Ask the license server")),
        "{failure:#}"
    );
    assert_eq!(step(&ran, "custom-license")["phase"], "Failed");
    assert_ne!(step(&ran, "prepare")["phase"], "Succeeded", "{:#}", ran.result);
    assert_eq!(machine.read("run-out"), "");
}

#[test]
fn a_run_that_goes_on_plays_a_custom_step_again_unless_its_probe_says_that_it_is_done() {
    let mut machine = Machine::new();
    machine.bench.playbook("prepare", WRITES);
    machine.bench.playbook("probe/prepare", LOOK);
    let counts = "- {hosts: all, gather_facts: false, tasks: [{name: Count, ansible.builtin.shell: 'echo x >>{{ place }}/{{ file }}'}]}\n";
    let playbooks = json!({
        "seen": {"content": counts, "probe": LOOK, "vars": {"file": "seen"}},
        "unseen": {"content": counts, "vars": {"file": "unseen"}},
    });
    let steps = ["custom-seen", "custom-unseen", "prepare"];
    machine.inputs(&steps, with(playbooks.clone()), &["w1"]);
    assert_eq!(machine.run(1).code, 0);
    let resumes = |model: &mut Value| {
        with(playbooks.clone())(model);
        model["resume"] = json!(true);
    };
    machine.inputs(&steps, resumes, &["w1"]);
    let ran = machine.run(2);
    assert_eq!(ran.code, 0, "{}", ran.text);
    assert_eq!((machine.read("seen").as_str(), machine.read("unseen").as_str()), ("x\n", "x\nx\n"));
}

/// Not a sandbox, and no playbook works on the executor by mistake.
#[test]
fn a_custom_playbook_does_nothing_on_the_executor() {
    let canary = |machine: &Machine| machine.bench.path().join("canary");
    for (what, playbook, says) in [
        (
            "a local connection",
            "- {hosts: all, connection: local, gather_facts: false, tasks: [{ansible.builtin.command: 'touch CANARY'}]}",
            "connection 'local' is refused",
        ),
        (
            "a delegation",
            "- {hosts: all, gather_facts: false, tasks: [{ansible.builtin.command: 'touch CANARY', delegate_to: localhost}]}",
            "connection 'local' is refused",
        ),
        (
            "this host",
            "- {hosts: localhost, gather_facts: false, tasks: [{ansible.builtin.command: 'touch CANARY'}]}",
            "is undefined",
        ),
        (
            "a variable",
            "- {hosts: all, gather_facts: false, vars: {ansible_connection: ansible.builtin.local}, tasks: [{ansible.builtin.command: 'touch CANARY'}]}",
            "connection 'local' is refused",
        ),
        (
            "a lookup",
            "- {hosts: all, gather_facts: false, tasks: [{ansible.builtin.command: \"echo {{ lookup('pipe', 'touch CANARY') }}\"}]}",
            "lookup 'pipe' is refused",
        ),
        (
            "a query",
            "- {hosts: all, gather_facts: false, tasks: [{ansible.builtin.command: \"echo {{ q('ansible.builtin.pipe', 'touch CANARY') }}\"}]}",
            "lookup 'pipe' is refused",
        ),
        (
            "a loop",
            "- {hosts: all, gather_facts: false, tasks: [{ansible.builtin.command: 'echo {{ item }}', with_pipe: ['touch CANARY']}]}",
            "lookup 'pipe' is refused",
        ),
    ] {
        let mut machine = Machine::new();
        let text = playbook.replace("CANARY", &canary(&machine).display().to_string());
        machine.inputs(&["custom-x"], with(json!({"x": {"content": text}})), &["w1"]);
        let ran = machine.run(1);
        assert_ne!(ran.code, 0, "{what}: {}", ran.text);
        assert!(ran.text.contains(says), "{what}: {}", ran.text);
        assert!(!canary(&machine).exists(), "{what} worked on the executor");
    }
}
