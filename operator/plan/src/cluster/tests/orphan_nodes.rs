//! Nodes of machines that were forgotten and have come back.

use std::sync::Arc;

use crds::{ClusterDeployment, Host, Machine};

use super::{Action, NOON, NodeSeen, Observed, at, cluster, node, plan, seen, worker};

fn host(more: &str) -> Arc<Host> {
    let text = format!(
        "{{apiVersion: clusterwright.dev/v1alpha1, kind: Host, metadata: {{name: m1, namespace: fleet}},
          spec: {{address: 10.0.0.1, ssh: {{credentialsRef: {{name: key}}}} {more}}}}}"
    );
    Arc::new(serde_yaml::from_str(&text).unwrap())
}

fn forgotten(cluster: &str) -> Arc<Host> {
    host(&format!(
        ", quarantine: {{reason: ForceRemoved, message: x, machine: a-m1, machineUID: u, clusterName: {cluster}, role: worker, since: '2026-01-01T00:00:00Z'}}"
    ))
}

fn deployment(spec: &str, status: &str) -> ClusterDeployment {
    let text = format!(
        "{{apiVersion: clusterwright.dev/v1alpha1, kind: ClusterDeployment, metadata: {{name: a}},
          spec: {{kubernetesVersion: 1.35.4, controlPlane: {{replicas: 1}} {spec}}}, status: {{{status}}}}}"
    );
    serde_yaml::from_str(&text).unwrap()
}

fn back() -> NodeSeen {
    NodeSeen { uid: "node-uid".into(), addresses: vec!["10.0.0.1".into(), "m1".into()], ..node("m1", Some(true)) }
}

/// What is done about a Node.
fn done(
    node: NodeSeen,
    hosts: &[Arc<Host>],
    machines: &[Arc<Machine>],
    deployment: Option<&ClusterDeployment>,
) -> Vec<&'static str> {
    let plan = plan(&Observed {
        cluster: &cluster(),
        planes: &[],
        resumed_at: None,
        contact: seen(Some(vec![node])),
        machines,
        deployment,
        hosts,
        now: at(NOON),
        chance: 0.5,
    });
    let steps = plan.actions.into_iter();
    let told = |step| match step {
        // Whom its machine asks about the network is written on every Node.
        Action::PatchNode { .. } => None,
        Action::CordonOrphan(orphan) if orphan.uid == "node-uid" => Some("cordon"),
        Action::DeleteOrphan(orphan) if orphan.uid == "node-uid" => Some("delete"),
        other => panic!("{other:?}"),
    };
    steps.filter_map(told).collect()
}

#[test]
fn the_node_of_a_forgotten_machine_that_is_back_is_cordoned_and_deleted() {
    assert_eq!(done(back(), &[forgotten("a")], &[], None), ["cordon", "delete"]);
    let cordoned = NodeSeen { unschedulable: true, ..back() };
    assert_eq!(done(cordoned, &[forgotten("a")], &[], None), ["delete"]);
}

#[test]
fn it_is_only_cordoned_while_it_may_be_a_member_of_etcd_or_the_cluster_is_paused() {
    let owes = |member: bool| {
        format!(
            "forgotten: [{{uid: u, machine: a-m1, host: m1, role: control-plane, etcdMember: {member}, since: '2026-01-01T00:00:00Z'}}]"
        )
    };
    let check = |deployment: &ClusterDeployment, expected: &[&str]| {
        assert_eq!(done(back(), &[], &[], Some(deployment)), expected);
        assert_eq!(done(back(), &[forgotten("a")], &[], Some(deployment)), expected);
    };
    check(&deployment("", &owes(true)), &["cordon"]);
    check(&deployment("", &owes(false)), &["cordon", "delete"]);
    check(&deployment(", paused: true", &owes(false)), &["cordon"]);
}

#[test]
fn what_a_lost_status_may_owe_to_etcd_is_waited_for() {
    let plane = host(
        ", quarantine: {reason: ForceRemoved, message: x, machine: a-m1, machineUID: u, clusterName: a, role: control-plane, since: '2026-01-01T00:00:00Z'}",
    );
    let known = deployment("", "lastToken: 4");
    let lost = deployment("", "");
    assert_eq!(done(back(), std::slice::from_ref(&plane), &[], Some(&lost)), ["cordon"]);
    assert_eq!(done(back(), &[plane], &[], Some(&known)), ["cordon", "delete"]);
    assert_eq!(done(back(), &[forgotten("a")], &[], Some(&lost)), ["cordon", "delete"], "a worker owes it nothing");
}

#[test]
fn a_node_that_is_not_known_to_be_a_forgotten_machines_is_left_alone() {
    let none: [&str; 0] = [];
    assert_eq!(done(back(), &[], &[], None), none, "nobody knows it");
    assert_eq!(done(back(), &[host("")], &[], None), none, "a spare Host's name");
    assert_eq!(done(back(), &[forgotten("b")], &[], None), none, "another cluster's machine");
    let other = NodeSeen { addresses: vec!["10.0.0.9".into()], ..back() };
    assert_eq!(done(other, &[forgotten("a")], &[], None), none, "another address");
    let old = host(", quarantine: {reason: ForceRemoved, message: x, machine: a-m1, since: '2026-01-01T00:00:00Z'}");
    assert_eq!(done(back(), &[old], &[], None), none, "of which cluster it was is not known");
    assert_eq!(done(back(), &[forgotten("a")], &[worker("m1")], None), none, "a Machine stands for it");
}
