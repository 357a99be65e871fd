//! Promises of hooks: what is refused of playbooks and variables, and how the refusal reads; where the steps stand.

use std::collections::BTreeMap;

use crds::playbook_run::PlaybookRunSpec;
use crds::{ClusterDeployment, Machine, PlaybookRun};
use serde_json::{Value, json};

use super::{HookState, Library, before_drain, passed_over, playbooks, refusal, retry_before_drain};
use crate::attempts::RetryDecision;

const PLAY: &str = "- {hosts: all, tasks: [{name: Do, ansible.builtin.command: 'true'}]}";

fn library(data: &[(&str, &str)]) -> Library {
    let data = data.iter().map(|(key, text)| ((*key).to_owned(), (*text).to_owned()));
    Library { config_map: "mine".into(), data: Some(data.collect()), binary: Vec::new() }
}

fn spec(steps: &[&str], vars: Value) -> PlaybookRunSpec {
    serde_json::from_value(json!({
        "clusterName": "a", "intent": "Custom", "steps": steps, "hosts": ["h"], "playbooksRef": {"name": "mine"}, "playbookVars": vars,
    }))
    .unwrap()
}

/// Reason and message of the refusal of a run of `custom-x`.
fn refused(library: &Library, vars: Value) -> (String, String) {
    match playbooks(&spec(&["custom-x"], vars), Some(library)) {
        Ok(_) => Default::default(),
        Err(refusal) => (refusal.reason.into(), refusal.message),
    }
}

#[test]
fn a_run_takes_the_playbooks_of_its_steps_and_nothing_else() {
    let library = library(&[
        ("x.yml", PLAY),
        ("x.probe.yml", PLAY),
        ("x.schema.json", r#"{"properties": {"disks": {"type": "array"}}}"#),
        ("y.yml", PLAY),
    ]);
    let spec = spec(&["custom-x", "prepare"], json!({"x": {"disks": ["{{ evil }}"]}}));
    let taken = playbooks(&spec, Some(&library)).unwrap();
    assert_eq!(taken.keys().collect::<Vec<_>>(), ["x"]);
    assert_eq!(taken["x"].content, PLAY);
    assert_eq!(taken["x"].probe.as_deref(), Some(PLAY));
    assert_eq!(taken["x"].vars, BTreeMap::from([("disks".to_owned(), json!(["{{ evil }}"]))]));
}

#[test]
fn what_is_no_playbook_is_refused_row_29() {
    let check = |data: &[(&str, &str)], reason: &str, says: &str| {
        let (found, message) = refused(&library(data), json!({}));
        assert_eq!(found, reason, "{data:?}: {message}");
        assert!(message.contains(says), "{message}");
    };
    let good = ("x.yml", PLAY);
    check(&[good], "", "");
    check(
        &[("y.yml", PLAY)],
        "PlaybookNotFound",
        "steps: custom-x: there is no playbook \"x\": ConfigMap mine has no key x.yml (playbooks there: y)",
    );
    for key in ["../../etc/x", "x.yaml", "x.sh", "..", "X.yml", "a_b.yml", ".yml", &format!("{}.yml", "a".repeat(41))] {
        check(
            &[good, (key, PLAY)],
            "PlaybookNameRefused",
            "<name>.yml, <name>.probe.yml and <name>.schema.json are allowed",
        );
    }
    check(&[good, ("z.probe.yml", PLAY)], "PlaybookNameRefused", "there is no key z.yml");
    check(&[("x.yml", &"# \n".repeat(100_000))], "PlaybookTooLarge", "at most 262144");
    let mut binary = library(&[good]);
    binary.binary = vec!["x.tar".into()];
    assert_eq!(refused(&binary, json!({})).0, "PlaybooksNotText");
    assert_eq!(refused(&Library { config_map: "mine".into(), ..Library::default() }, json!({})).0, "ConfigMapNotFound");
}

#[test]
fn a_playbook_that_would_work_on_the_executor_is_refused_and_told_why_row_28() {
    let check = |text: &str, says: &str| {
        for (key, data) in
            [("x.yml", vec![("x.yml", text)]), ("x.probe.yml", vec![("x.yml", PLAY), ("x.probe.yml", text)])]
        {
            let (reason, message) = refused(&library(&data), json!({}));
            assert_eq!(reason, if says.is_empty() { "" } else { "PlaybookInvalid" }, "{text}: {message}");
            assert!(says.is_empty() || (message.contains(says) && message.contains(key)), "{message}");
        }
    };
    check("- {hosts: all, connection: ssh, roles: [clusterwright.cluster.prepare]}", "");
    check("- {hosts: 'kube_node:!etcd', tasks: [{ansible.builtin.shell: 'echo {{ x }}', delegate_to: other}]}", "");
    check(
        "- {hosts: all, tasks: [{ansible.builtin.raw: id, args: {executable: '{{ ansible_shell_executable }}'}}]}",
        "",
    );
    check("", "a list of plays");
    check("{}", "a list of plays");
    check("- [", "no YAML");
    check("- &a [*a]\n- &b [*b, *b]", "no YAML");
    check("- {tasks: []}", "hosts is missing");
    check("- {hosts: localhost, tasks: []}", "hosts:");
    check("- {hosts: ['all', '127.0.0.1'], tasks: []}", "hosts:");
    check("- {import_playbook: /etc/passwd}", "import_playbook");
    check("- {hosts: all, connection: local}", "connection:");
    check("- {hosts: all, connection: '{{ c }}'}", "connection:");
    check(
        "- {hosts: all, tasks: [{name: T, block: [{command: id, delegate_to: localhost}]}]}",
        "\"T\", delegate_to:".split(',').next_back().unwrap().trim(),
    );
    check("- {hosts: all, tasks: [{local_action: {module: command}}]}", "local_action");
    check("- {hosts: all, vars_files: [/inputs/secrets/x]}", "vars_files");
    check("- {hosts: all, vars: {ansible_connection: local}}", "ansible_connection");
    check(
        "- {hosts: all, tasks: [{set_fact: {ansible_ssh_common_args: -oProxyCommand=id}}]}",
        "ansible_ssh_common_args",
    );
    check("- {hosts: all, vars: !unsafe {ansible_host: here}}", "ansible_host");
    check("- {hosts: all, handlers: [{raw: id}]}", "passes the guard by");
    check("- {hosts: all, tasks: [{script: x.sh}]}", "passes the guard by");
}

#[test]
fn variables_that_do_not_fit_are_named_with_their_value_and_what_is_allowed_rows_18_and_19() {
    let schema = r#"{"type": "object", "required": ["count"], "additionalProperties": false, "properties": {
        "count": {"type": "integer", "minimum": 1, "maximum": 9},
        "mode": {"enum": ["fast", "slow"]},
        "names": {"type": "array", "items": {"type": "string", "pattern": "^(a+)+$"}}}}"#;
    let check = |vars: Value, says: &str| {
        let library = library(&[("x.yml", PLAY), ("x.schema.json", schema)]);
        let (reason, message) = refused(&library, json!({ "x": vars }));
        assert_eq!(reason, if says.is_empty() { "" } else { "InvalidVariable" }, "{vars}: {message}");
        assert!(message.contains(says), "{message}");
    };
    check(json!({"count": 3, "mode": "slow", "names": ["aa"]}), "");
    check(json!({}), "\"count\" is a required property");
    check(json!({"count": "3"}), "playbookVars.x.count: \"3\" is not of type \"integer\"");
    check(json!({"count": 10}), "playbookVars.x.count: 10 is greater than the maximum of 9");
    check(json!({"count": 1e3}), "playbookVars.x.count");
    check(json!({"count": 1, "mode": "no"}), "\"no\" is not one of");
    check(json!({"count": 1, "other": 1}), "'other' was unexpected");
    let began = std::time::Instant::now();
    check(json!({"count": 1, "names": [format!("{}b", "a".repeat(50_000))]}), "playbookVars.x.names.0");
    assert!(began.elapsed().as_secs() < 20, "a pattern took its time");

    let bare = library(&[("x.yml", PLAY)]);
    let check = |vars: Value, reason: &str| assert_eq!(refused(&bare, json!({ "x": vars })).0, reason);
    for name in ["ansible_connection", "hostvars", "environment", "clusterwright_guard_run", "tags", "become"] {
        check(json!({ name: 1 }), "ReservedVariable");
    }
    check(json!({"a-b": 1}), "InvalidVariable");
    check(json!({"large": "x".repeat(70_000)}), "InvalidVariable");
    let deep = (0..40).fold(json!(1), |inner, _| json!([inner]));
    check(json!({ "deep": deep }), "InvalidVariable");
    assert_eq!(refused(&bare, json!({"y": {}})).0, "InvalidVariable", "of no step");
    assert_eq!(refused(&bare, json!({"x": "text"})).0, "InvalidVariable");
}

#[test]
fn a_schema_that_leads_elsewhere_or_is_none_is_refused() {
    let check = |schema: &str, says: &str| {
        let (reason, message) = refused(&library(&[("x.yml", PLAY), ("x.schema.json", schema)]), json!({}));
        assert_eq!(reason, "PlaybookSchemaInvalid", "{schema}: {message}");
        assert!(message.contains(says), "{message}");
    };
    check("{", "no JSON");
    check(r#"{"type": "objekt"}"#, "no JSON Schema");
    check(r#"{"properties": {"a": {"$ref": "https://elsewhere.example/x"}}}"#, "$ref is not allowed");
    check(r##"{"allOf": [{"$ref": "#"}]}"##, "$ref is not allowed");
    check(&format!("{}1{}", r#"{"not":"#.repeat(60), "}".repeat(60)), "nested deeper");
    check(&format!("[\"{}\"]", "x".repeat(70_000)), "at most 65536");
}

fn deployment(hooks: &str) -> ClusterDeployment {
    let yaml = format!(
        "{{apiVersion: clusterwright.dev/v1alpha1, kind: ClusterDeployment, metadata: {{name: a, uid: u}}, spec: {{kubernetesVersion: 1.35.4, controlPlane: {{replicas: 1}}, executor: {{customPlaybooksRef: {{name: mine}}}}, hooks: {hooks}}}}}"
    );
    serde_yaml::from_str(&yaml).unwrap()
}

#[test]
fn a_hook_that_cannot_be_played_is_named_by_its_field() {
    let deployment = deployment("{beforeJoin: [{name: y}, {name: x, vars: {count: no}}]}");
    let found = |data: &[(&str, &str)]| {
        refusal(&deployment, Some(&library(data))).map(|refusal| refusal.message).unwrap_or_default()
    };
    let schema = r#"{"properties": {"count": {"type": "integer"}}}"#;
    assert!(found(&[("x.yml", PLAY)]).starts_with("spec.hooks.beforeJoin[0].name: there is no playbook \"y\""));
    let message = found(&[("x.yml", PLAY), ("y.yml", PLAY), ("x.schema.json", schema)]);
    assert!(message.starts_with("spec.hooks.beforeJoin[1].vars.count: \"no\" is not of type \"integer\""), "{message}");
    assert_eq!(found(&[("x.yml", PLAY), ("y.yml", PLAY)]), "");
    assert_eq!(refusal(&deployment, None).unwrap().reason, "ConfigMapNotFound");
}

fn machine() -> Machine {
    serde_yaml::from_str(
        "{apiVersion: clusterwright.dev/v1alpha1, kind: Machine, metadata: {name: m, uid: m-uid}, spec: {clusterName: a, role: worker, kubernetesVersion: 1.35.4, hostRef: {name: h}}, status: {provisionedAt: '2026-01-01T00:00:00Z'}}",
    )
    .unwrap()
}

fn run(steps: &str, status: &str) -> PlaybookRun {
    let yaml = format!(
        "{{apiVersion: clusterwright.dev/v1alpha1, kind: PlaybookRun, metadata: {{name: r, annotations: {{clusterwright.dev/machines: '{{\"h\": {{\"uid\": \"m-uid\"}}}}'}}}}, spec: {{clusterName: a, intent: Remove, steps: [{steps}], hosts: [h]}}, status: {status}}}"
    );
    serde_yaml::from_str(&yaml).unwrap()
}

#[test]
fn a_drain_waits_for_its_hooks_and_passes_over_a_machine_that_cannot_be_reached() {
    let check = |hooks: &str, run: Option<PlaybookRun>, expected: &str| {
        let runs: Vec<&PlaybookRun> = run.iter().collect();
        let state = format!("{:?}", before_drain(&machine(), &deployment(hooks), &runs));
        assert!(state.starts_with(expected), "{state}");
    };
    let hooks = "{beforeDrain: [{name: x}]}";
    check("{}", None, "None");
    check(hooks, None, "Wanted");
    check(hooks, Some(run("reset", "{phase: Succeeded}")), "Wanted");
    check(hooks, Some(run("custom-x", "{phase: Running}")), "UnderWay");
    check(hooks, Some(run("custom-x", "{phase: Succeeded}")), "Done");
    check(hooks, Some(run("custom-x", "{phase: Failed, message: no}")), "Failed");
    check(hooks, Some(run("custom-x", "{phase: Failed, hosts: [{name: h, unreachable: true}]}")), "PassedOver");
    check(hooks, Some(run("custom-x", "{phase: Canceled}")), "Stopped");
    check(hooks, Some(run("custom-x", "{phase: DeadlineExceeded}")), "Stopped");
    check("{}", Some(run("custom-x", "{phase: Failed, message: no}")), "None");
    let mut new = machine();
    new.status = None;
    assert_eq!(before_drain(&new, &deployment(hooks), &[]), HookState::None, "never part of the cluster");
}

#[test]
fn a_hook_before_a_drain_that_failed_is_played_again_and_one_that_was_stopped_is_not() {
    let check = |status: &str, expected: &str| {
        let run = run("custom-x", status);
        let now = "2026-01-01T00:00:01Z".parse().unwrap();
        let deployment = deployment("{beforeDrain: [{name: x}]}");
        let decision = match retry_before_drain(&machine(), &deployment, &[&run], now) {
            RetryDecision::Later { at, .. } => at.to_string(),
            other => format!("{other:?}"),
        };
        assert!(decision.starts_with(expected), "{decision}");
    };
    let ended = "message: no, finishedAt: '2026-01-01T00:00:00Z'";
    check(&format!("{{phase: Failed, {ended}}}"), "2026-01-01T00:00:15Z");
    check(&format!("{{phase: Canceled, {ended}}}"), "Halted");
    check(&format!("{{phase: DeadlineExceeded, {ended}}}"), "Halted");
}

#[test]
fn hooks_that_a_machine_goes_without_are_named_with_the_reason() {
    let all =
        "{beforeDrain: [{name: x}], afterDrain: [{name: x}], beforeRemove: [{name: x}], afterRemove: [{name: x}]}";
    let silent = "{phase: Failed, hosts: [{name: h, unreachable: true}]}";
    let told = |hooks: &str, run: Option<PlaybookRun>, forced: Option<&str>| {
        let runs: Vec<&PlaybookRun> = run.iter().collect();
        passed_over(&machine(), &deployment(hooks), &runs, forced)
    };
    let check = |hooks: &str, run: Option<PlaybookRun>, forced: Option<&str>, expected: Option<&str>| {
        assert_eq!(told(hooks, run, forced).as_deref(), expected);
    };
    check(all, None, None, None);
    check(all, Some(run("custom-x", "{phase: Succeeded}")), None, None);
    let said = told(all, Some(run("custom-x", silent)), None).unwrap();
    assert!(said.starts_with("hooks.beforeDrain was not played, the machine cannot be reached"), "{said}");
    check(
        all,
        Some(run("custom-x", silent)),
        Some("forced"),
        Some(
            "not played: hooks.beforeDrain, hooks.afterDrain, hooks.beforeRemove, hooks.afterRemove; the machine was forced",
        ),
    );
    check(
        all,
        Some(run("custom-x", "{phase: Succeeded}")),
        Some("forced"),
        Some("not played: hooks.afterDrain, hooks.beforeRemove, hooks.afterRemove; the machine was forced"),
    );
    check("{beforeDrain: [{name: x}]}", Some(run("custom-x", "{phase: Succeeded}")), Some("forced"), None);
    check("{}", None, Some("forced"), None);
}

#[test]
fn the_steps_of_hooks_stand_around_those_of_the_run_with_their_variables() {
    let cd = deployment(
        "{beforeInstall: [{name: i}], afterInstall: [{name: j, vars: {v: 1}}], beforeJoin: [{name: k}], afterJoin: [{name: l}], beforeDrain: [{name: m}], afterDrain: [{name: n}], beforeRemove: [{name: o}], afterRemove: [{name: p, vars: {v: 2}}]}",
    );
    let mut ends = cd.clone();
    ends.metadata.deletion_timestamp = Some(serde_json::from_value(json!("2026-01-01T00:00:00Z")).unwrap());
    let check =
        |frame: fn(&mut PlaybookRunSpec, &ClusterDeployment), cd: &ClusterDeployment, steps: &str, vars: Value| {
            let mut spec = spec(&["reset"], json!({}));
            spec.playbooks_ref = None;
            frame(&mut spec, cd);
            let names: Vec<&str> = spec.steps.iter().map(|step| step.name()).collect();
            assert_eq!(names.join(" "), steps);
            assert_eq!(json!(spec.playbook_vars), vars);
            assert_eq!(spec.playbooks_ref.unwrap().name, "mine");
        };
    check(super::around_install, &cd, "custom-i reset custom-j", json!({"j": {"v": 1}}));
    check(super::around_join, &cd, "custom-k reset custom-l", json!({}));
    check(super::around_drain, &cd, "custom-m reset", json!({}));
    check(super::around_reset, &cd, "custom-n custom-o reset custom-p", json!({"p": {"v": 2}}));
    check(super::around_reset, &ends, "custom-o reset custom-p", json!({"p": {"v": 2}}));
}
