//! The member of etcd that a machine carries.

use crds::{ClusterDeployment, Host, Machine, MachineStatus, PlaybookRun, conditions};
use jiff::Timestamp;

use crate::formed_cluster::FormedCluster;
use crate::machine::{Observed, plan};

fn machine(role: &str, more: &str, status: &str) -> Machine {
    serde_yaml::from_str(&format!(
        "{{apiVersion: clusterwright.dev/v1alpha1, kind: Machine, metadata: {{name: m, namespace: fleet, uid: m-uid, creationTimestamp: '2026-01-01T00:00:00Z', finalizers: [clusterwright.dev/release-host] {more}}}, spec: {{clusterName: a, role: {role}, kubernetesVersion: 1.35.4, hostRef: {{name: h}}}}, status: {status}}}"
    ))
    .unwrap()
}

fn run(intent: &str, step: &str, at: &str, more: &str, result: &str) -> PlaybookRun {
    serde_yaml::from_str(&format!(
        "{{apiVersion: clusterwright.dev/v1alpha1, kind: PlaybookRun, metadata: {{name: r{at}, creationTimestamp: '2026-01-01T{at}:00Z', annotations: {{{more}}}}}, spec: {{clusterName: a, intent: {intent}, steps: [{step}], hosts: [h]}}, status: {{phase: Succeeded, finishedAt: '2026-01-01T{at}:30Z', hosts: [{result}]}}}}"
    ))
    .unwrap()
}

const MARK: &str = "clusterwright.dev/machines: '{\"h\": {\"uid\": \"m-uid\"}}'";

fn joined(at: &str) -> PlaybookRun {
    run("Join", "etcd", at, MARK, "{name: h, ok: 3, etcd: {memberID: a1b2}}")
}

fn status(machine: &Machine, topology: &str, runs: &[PlaybookRun]) -> MachineStatus {
    let deployment: ClusterDeployment = serde_yaml::from_str(&format!(
        "{{apiVersion: clusterwright.dev/v1alpha1, kind: ClusterDeployment, metadata: {{name: a, generation: 1}}, spec: {{kubernetesVersion: 1.35.4, controlPlane: {{replicas: 1}}, etcd: {{topology: {topology}}}}}, status: {{installedAt: '2026-01-01T00:00:00Z'}}}}"
    ))
    .unwrap();
    let host: Host = serde_yaml::from_str(
        "{apiVersion: clusterwright.dev/v1alpha1, kind: Host, metadata: {name: h, finalizers: [x]}, spec: {address: 10.0.0.1, ssh: {credentialsRef: {name: key}}, claimEpoch: 4, claimRef: {kind: Machine, name: m, uid: m-uid}}}",
    )
    .unwrap();
    let runs: Vec<&PlaybookRun> = runs.iter().collect();
    let plan = plan(&Observed {
        now: "2026-01-01T02:00:00Z".parse::<Timestamp>().unwrap(),
        resumed_at: None,
        machine,
        formed: Some(FormedCluster::from(&deployment)),
        machines: &[machine],
        hosts: &[&host],
        share: None,
        runs: &runs,
        nodes: None,
        cluster: None,
        node_answer: None,
        drain: None,
    });
    plan.status
}

const SINCE: &str = "{provisionedAt: '2026-01-01T01:00:00Z'}";
const KNOWN: &str = "{provisionedAt: '2026-01-01T01:00:00Z', etcdMemberID: ff}";

#[test]
fn the_id_of_its_member_is_what_the_machine_told_and_outlives_the_run() {
    let id = |status: &str, runs: &[PlaybookRun]| {
        self::status(&machine("control-plane", "", status), "Stacked", runs).etcd_member_id
    };
    assert_eq!(id(SINCE, &[]), None);
    assert_eq!(id(SINCE, &[joined("01:00")]).as_deref(), Some("a1b2"));
    assert_eq!(id(KNOWN, &[]).as_deref(), Some("ff"), "the run is gone");
    assert_eq!(id(KNOWN, &[joined("01:10")]).as_deref(), Some("a1b2"));
}

#[test]
fn the_id_goes_with_the_member() {
    let leaving = machine("control-plane", ", deletionTimestamp: '2026-01-01T01:20:00Z'", KNOWN);
    assert_eq!(status(&leaving, "Stacked", &[]).etcd_member_id.as_deref(), Some("ff"));
    let out = run("Remove", "remove-etcd-member", "01:30", "clusterwright.dev/leaves: m-uid", "{name: h, ok: 1}");
    assert_eq!(status(&leaving, "Stacked", &[joined("01:00"), out]).etcd_member_id, None);
}

#[test]
fn a_machine_of_a_dedicated_etcd_is_ready_unless_its_member_is_known_not_to_be_well() {
    let said = |runs: &[PlaybookRun]| {
        let status = status(&machine("etcd", "", SINCE), "Dedicated", runs);
        let of = |type_: &str| conditions::find(&status.conditions, type_).unwrap().clone();
        (of("Ready").status, of("Healthy").status, of("Healthy").reason, status.phase)
    };
    let probe = |results: &str| run("Probe", "probe-etcd", "01:50", "", results);
    let sick = probe("{name: h, etcd: {well: false, message: refused}}, {name: e2, etcd: {well: true}}");
    let (ready, healthy, reason, phase) = said(&[sick]);
    assert_eq!((ready.as_str(), healthy.as_str(), reason.as_str()), ("False", "False", "EtcdMemberUnhealthy"));
    assert_eq!(phase, Some(crds::machine::MachinePhase::Unhealthy));
    for fine in [
        vec![],
        vec![probe("{name: h, etcd: {well: true, memberID: c3}}")],
        vec![probe("{name: h, unreachable: true}")],
    ] {
        assert_eq!(said(&fine).0, "True", "{fine:?}");
    }
}
