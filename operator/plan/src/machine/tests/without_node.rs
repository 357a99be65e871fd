//! A machine that is no Node, of a cluster that no ClusterDeployment forms.

use crds::{Host, Machine, MachineStatus, PlaybookRun, conditions};
use jiff::Timestamp;

use crate::Plan;
use crate::formed_cluster::FormedCluster;
use crate::formed_cluster::fixtures::PLANE;
use crate::machine::{Action, Observed, plan};

const BARE: FormedCluster<'static> = FormedCluster { has_nodes: false, ..PLANE };
const JOINED: &str = "{provisionedAt: '2026-01-01T01:00:00Z', etcdMemberID: ff}";
const DELETED: &str = ", deletionTimestamp: '2026-01-01T01:30:00Z'";

fn machine(name: &str, metadata: &str, spec: &str, status: &str) -> Machine {
    serde_yaml::from_str(&format!(
        "{{apiVersion: clusterwright.dev/v1alpha1, kind: Machine, metadata: {{name: {name}, namespace: fleet, uid: {name}-uid, creationTimestamp: '2026-01-01T00:00:00Z', finalizers: [clusterwright.dev/release-host] {metadata}}}, spec: {{clusterName: plane, role: control-plane, hostRef: {{name: h-{name}}} {spec}}}, status: {status}}}"
    ))
    .unwrap()
}

fn host(name: &str) -> Host {
    serde_yaml::from_str(&format!(
        "{{apiVersion: clusterwright.dev/v1alpha1, kind: Host, metadata: {{name: h-{name}, finalizers: [clusterwright.dev/claimed]}}, spec: {{address: 10.0.0.1, ssh: {{credentialsRef: {{name: key}}}}, claimEpoch: 4, claimRef: {{kind: Machine, name: {name}, uid: {name}-uid}}}}}}"
    ))
    .unwrap()
}

fn run(spec: &str, more: &str, result: &str) -> PlaybookRun {
    serde_yaml::from_str(&format!(
        "{{apiVersion: clusterwright.dev/v1alpha1, kind: PlaybookRun, metadata: {{name: r, creationTimestamp: '2026-01-01T01:50:00Z', annotations: {{{more}}}}}, spec: {{clusterName: plane, hosts: [h-m], {spec}}}, status: {{phase: Succeeded, finishedAt: '2026-01-01T01:50:30Z', hosts: [{result}]}}}}"
    ))
    .unwrap()
}

fn planned(machine: &Machine, cluster: FormedCluster<'_>, runs: &[PlaybookRun]) -> Plan<Action, MachineStatus> {
    let others = [self::machine("o", "", "", JOINED), self::machine("p", "", "", JOINED)];
    let runs: Vec<&PlaybookRun> = runs.iter().collect();
    plan(&Observed {
        now: "2026-01-01T02:00:00Z".parse::<Timestamp>().unwrap(),
        resumed_at: None,
        machine,
        formed: Some(cluster),
        machines: &[machine, &others[0], &others[1]],
        hosts: &[&host("m")],
        share: None,
        runs: &runs,
        nodes: None,
        cluster: None,
        node_answer: None,
        drain: None,
    })
}

fn said(plan: &Plan<Action, MachineStatus>, type_: &str) -> String {
    let there = conditions::find(&plan.status.conditions, type_);
    there.map(|there| format!("{} {}", there.status, there.reason)).unwrap_or_default()
}

#[test]
fn it_is_ready_without_an_api_that_answers_unless_its_member_of_etcd_is_known_not_to_be_well() {
    let machine = machine("m", "", "", JOINED);
    let plan = planned(&machine, BARE, &[]);
    assert_eq!((said(&plan, "Ready"), said(&plan, "NodeReady")), ("True Running".into(), String::new()));
    assert_eq!(said(&plan, "UpToDate"), "True UpToDate");
    assert_eq!((plan.status.node_name, plan.actions.len()), (None, 0));
    let probe = "{name: h-m, etcd: {well: false, message: refused}}, {name: h-o, etcd: {well: true}}";
    let sick = planned(&machine, BARE, &[run("intent: Probe, steps: [probe-etcd]", "", probe)]);
    assert_eq!(said(&sick, "Ready"), "False EtcdMemberUnhealthy");
    // One that is a Node waits for the API of its cluster.
    assert_eq!(said(&planned(&machine, PLANE, &[]), "Ready"), "Unknown ClusterUnreachable");
}

#[test]
fn it_has_nothing_to_drain() {
    let machine = machine("m", "", ", drainFor: [Maintenance]", JOINED);
    let plan = planned(&machine, BARE, &[]);
    assert_eq!((said(&plan, "Drained"), plan.actions.len()), ("True NothingToDrain".into(), 0));
}

#[test]
fn its_attempts_count_for_what_its_own_cluster_wants() {
    let check = |wanted: &str, expected: &str| {
        let mark = "clusterwright.dev/machines: '{\"h-m\": {\"uid\": \"m-uid\"}}'";
        let mark = format!("{mark}, clusterwright.dev/wanted: {wanted}");
        let mut failed = run("intent: Install, steps: [prepare]", &mark, "{name: h-m, failed: 1}");
        let failure = "{name: h-m, failed: 1, failure: {step: prepare, task: t, reason: X, message: no}}";
        let status = failed.status.as_mut().unwrap();
        status.phase = Some(crds::playbook_run::RunPhase::Failed);
        status.hosts = vec![serde_yaml::from_str(failure).unwrap()];
        let mut tried = Vec::new();
        for number in 0..3 {
            let mut run = failed.clone();
            run.metadata.name = Some(format!("r{number}"));
            tried.push(run);
        }
        let plan = planned(&machine("m", "", "", "{}"), BARE, &tried);
        assert_eq!(said(&plan, "Provisioned"), expected, "{wanted}");
    };
    check("d1", "False X");
    check("d0", "False WaitingForRun");
}

#[test]
fn it_leaves_etcd_is_cleaned_and_given_back_without_a_node_to_delete() {
    let leaving = machine("m", DELETED, "", JOINED);
    let waits = planned(&leaving, BARE, &[]);
    assert_eq!(
        (said(&waits, "Deleting"), said(&waits, "Drained")),
        ("True LeavingEtcd".into(), "True NothingToDrain".into())
    );
    let out = "clusterwright.dev/leaves: m-uid";
    let out = run("intent: Remove, steps: [remove-etcd-member]", out, "{name: h-m, ok: 1}");
    assert_eq!(said(&planned(&leaving, BARE, std::slice::from_ref(&out)), "Deleting"), "True WaitingForReset");
    let clean = run("intent: Reset, steps: [reset]", "", "{name: h-m, ok: 1, clean: true}");
    let given_back = planned(&leaving, BARE, &[out, clean]);
    assert!(
        matches!(given_back.actions.as_slice(), [Action::Release { quarantine: None, .. }, Action::RemoveFinalizer]),
        "{:?}",
        given_back.actions
    );
}

#[test]
fn it_is_left_as_it_is_where_its_cluster_is_deleted_so() {
    let leaving = machine("m", DELETED, "", JOINED);
    let deleted = FormedCluster { is_deleting: true, ..BARE };
    assert_eq!(said(&planned(&leaving, deleted, &[]), "Deleting"), "True WaitingForReset");
    let detached = planned(&leaving, FormedCluster { detaches: true, ..deleted }, &[]);
    assert!(matches!(detached.actions.as_slice(), [Action::Release { .. }, Action::RemoveFinalizer]));
}

#[test]
fn one_that_is_dead_is_forgotten_after_the_time_that_its_cluster_gives_and_fenced_by_its_uid() {
    let cluster = FormedCluster { is_deleting: true, force_remove_after_seconds: Some(600), ..BARE };
    let leaving = machine("m", DELETED, "", JOINED);
    let mut silent = run("intent: Reset, steps: [reset]", "", "{name: h-m, unreachable: true}");
    silent.status.as_mut().unwrap().phase = Some(crds::playbook_run::RunPhase::Failed);
    let plan = planned(&leaving, cluster, &[silent.clone()]);
    let Some(Action::Release { quarantine: Some(quarantine), .. }) = plan.actions.first() else {
        panic!("{:?}", plan.actions)
    };
    let fence = quarantine.fence.as_ref().unwrap();
    assert_eq!((fence.cluster_uid.as_str(), fence.claim_epoch), ("plane-uid", 4));
    let patient = FormedCluster { force_remove_after_seconds: Some(7200), ..cluster };
    assert_eq!(said(&planned(&leaving, patient, &[silent]), "Deleting"), "True WaitingForReset");
}
