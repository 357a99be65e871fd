mod dns;
mod network_probe;
mod orphan_nodes;

use std::sync::Arc;

use crds::names::condition;
use crds::{Cluster, Machine};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::components::{from_readyz, from_rollout};
use super::{Access, Action, Contact, NodeSeen, Observed, Seen, plan};
use crate::{Next, Plan};

fn at(text: &str) -> Time {
    Time(text.parse().unwrap())
}

fn cluster() -> Cluster {
    serde_yaml::from_str(
        "{apiVersion: clusterwright.dev/v1alpha1, kind: Cluster, metadata: {name: a, namespace: fleet, generation: 1},
          spec: {kubeconfigRef: {name: a-kubeconfig}}}",
    )
    .unwrap()
}

fn worker(host: &str) -> Arc<Machine> {
    let text = format!(
        "{{apiVersion: clusterwright.dev/v1alpha1, kind: Machine, metadata: {{name: a-{host}, namespace: fleet}},
          spec: {{clusterName: a, role: worker, kubernetesVersion: 1.35.4, hostRef: {{name: {host}}},
                 labels: {{pool: general}}, taints: [{{key: gpu, value: big, effect: NoSchedule}}]}}}}"
    );
    Arc::new(serde_yaml::from_str(&text).unwrap())
}

fn node(name: &str, ready: Option<bool>) -> NodeSeen {
    NodeSeen { name: name.into(), ready, resource_version: "7".into(), ..NodeSeen::default() }
}

fn access() -> Access {
    Access {
        server: "https://172.30.0.10:6443".into(),
        certificates: vec![
            ("admin-kubeconfig", at("2027-11-21T00:00:00Z")),
            ("kubernetes-ca", at("2036-11-18T00:00:00Z")),
        ],
    }
}

fn seen(nodes: Option<Vec<NodeSeen>>) -> Contact {
    let mut components = from_readyz(true, "[+]etcd ok");
    components.push(from_rollout("coredns", 2, 2));
    Contact::Made {
        access: access(),
        seen: Seen {
            version: Some("1.35.4".into()),
            cluster_uid: Some("uid-1".into()),
            components,
            nodes,
            ..Seen::default()
        },
    }
}

fn lost() -> Contact {
    Contact::Lost { access: access(), reason: crds::Reason::ConnectionRefused, message: "connection refused".into() }
}

fn decide(
    cluster: &mut Cluster,
    contact: Contact,
    machines: &[Arc<Machine>],
    now: &str,
) -> Plan<Action, crds::ClusterStatus> {
    let observed = Observed {
        cluster,
        contact,
        machines,
        deployment: None,
        hosts: &[],
        planes: &[],
        resumed_at: None,
        now: at(now),
        chance: 0.5,
    };
    let plan = plan(&observed);
    cluster.status = Some(plan.status.clone());
    plan
}

fn conditions(cluster: &Cluster) -> Vec<String> {
    let conditions = cluster.status.as_ref().unwrap().conditions.iter();
    conditions.map(|c| format!("{}={} {}", c.type_, c.status, c.reason)).collect()
}

#[test]
fn the_size_of_etcd_is_written_when_it_has_changed_by_a_step_and_is_remembered() {
    let mut cluster = cluster();
    let mut check = |contact: Contact, expected: Option<i64>| {
        decide(&mut cluster, contact, &[], NOON);
        assert_eq!(cluster.status.as_ref().unwrap().etcd_size_bytes, expected);
    };
    let of = |size: Option<i64>| match seen(None) {
        Contact::Made { access, seen } => Contact::Made { access, seen: Seen { etcd_size: size, ..seen } },
        other => other,
    };
    const MIB: i64 = 1 << 20;
    check(of(None), None);
    check(of(Some(100 * MIB)), Some(100 * MIB));
    check(of(Some(115 * MIB)), Some(100 * MIB));
    check(of(Some(85 * MIB)), Some(100 * MIB));
    check(of(Some(116 * MIB)), Some(116 * MIB));
    check(lost(), Some(116 * MIB));
    check(of(None), Some(116 * MIB));
    check(of(Some(1600 * MIB)), Some(1600 * MIB));
    check(of(Some(1690 * MIB)), Some(1600 * MIB));
}

const NOON: &str = "2026-11-21T12:00:00Z";

#[test]
fn a_cluster_that_is_well_settles_and_nothing_in_its_status_moves() {
    let mut cluster = cluster();
    let first = decide(&mut cluster, seen(Some(vec![node("m1", Some(true))])), &[], NOON);
    assert_eq!(
        conditions(&cluster),
        [
            "Ready=True ClusterHealthy",
            "Reachable=True ApiAnswers",
            "ControlPlaneHealthy=True ComponentsWork",
            "NodesHealthy=True NodesReady",
            "CertificatesValid=True Valid"
        ]
    );
    assert_eq!(first.status.nodes.as_ref().unwrap().summary, "1/1");
    assert_eq!(first.next, Next::after_seconds(30));
    let later = decide(&mut cluster, seen(Some(vec![node("m1", Some(true))])), &[], "2026-11-21T18:00:00Z");
    assert_eq!(first.status, later.status);
    assert!(later.actions.is_empty() && later.waits_for.is_none());
}

#[test]
fn lost_contact_makes_nodes_unknown_and_not_unhealthy() {
    let mut cluster = cluster();
    decide(&mut cluster, seen(Some(vec![node("m1", Some(true)), node("m2", Some(true))])), &[], NOON);
    let first = decide(&mut cluster, lost(), &[], "2026-11-21T12:01:00Z");
    assert_eq!(
        conditions(&cluster),
        [
            "Ready=False ConnectionRefused",
            "Reachable=False ConnectionRefused",
            "ControlPlaneHealthy=Unknown ConnectionRefused",
            "NodesHealthy=Unknown ConnectionRefused",
            "CertificatesValid=True Valid"
        ]
    );
    assert_eq!(first.status.nodes.as_ref().unwrap().summary, "?/2");
    assert_eq!(
        first.status.message.as_deref(),
        Some("the API at https://172.30.0.10:6443 has not answered since 2026-11-21 12:01:00 UTC: connection refused")
    );
    let later = decide(&mut cluster, lost(), &[], "2026-11-21T13:01:00Z");
    assert_eq!(first.status, later.status);
    assert_eq!((first.next, later.next), (Next::after_seconds(5), Next::after_seconds(120)));

    decide(&mut cluster, seen(Some(vec![node("m1", Some(true))])), &[], "2026-11-21T14:00:00Z");
    assert_eq!(cluster.status.as_ref().unwrap().unreachable_since, None);
    assert!(crds::conditions::is_true(&cluster.status.unwrap().conditions, condition::READY));
}

#[test]
fn a_cluster_in_the_making_is_looked_for_every_few_seconds() {
    let mut cluster = cluster();
    decide(&mut cluster, lost(), &[], NOON);
    let later = decide(&mut cluster, lost(), &[], "2026-11-21T12:10:00Z");
    assert_eq!(later.next, Next::after_seconds(5));
    let given_up = decide(&mut cluster, lost(), &[], "2026-11-21T15:00:00Z");
    assert_eq!(given_up.next, Next::after_seconds(120));
}

#[test]
fn nodes_that_are_not_ready_are_named() {
    let mut cluster = cluster();
    let nodes = vec![node("m3", None), node("m1", Some(true)), node("m2", Some(false))];
    let plan = decide(&mut cluster, seen(Some(nodes)), &[], NOON);
    assert_eq!(plan.status.message.as_deref(), Some("1 of 3 Nodes are Ready; not: m2 (not Ready), m3 (silent)"));
    assert_eq!(plan.next, Next::after_seconds(10));
}

#[test]
fn a_kubeconfig_that_is_refused_says_why() {
    let mut cluster = cluster();
    let refused = Contact::Refused {
        reason: crds::Reason::KubeconfigRejected,
        message: "KubeconfigRejected: exec is not allowed".into(),
    };
    decide(&mut cluster, refused, &[], NOON);
    assert_eq!(conditions(&cluster)[..2], ["Ready=False KubeconfigRejected", "Reachable=Unknown KubeconfigRejected"]);
}

#[test]
fn another_cluster_behind_the_same_kubeconfig_is_refused_and_not_written_to() {
    let mut cluster = cluster();
    decide(&mut cluster, seen(Some(vec![])), &[], NOON);
    let Contact::Made { access, mut seen } = seen(Some(vec![node("m1", Some(true))])) else { unreachable!() };
    seen.cluster_uid = Some("uid-2".into());
    let plan = decide(&mut cluster, Contact::Made { access, seen }, &[worker("m1")], NOON);
    assert!(plan.actions.is_empty());
    assert_eq!(conditions(&cluster)[0], "Ready=False ClusterIdentityChanged");
    assert_eq!(plan.status.cluster_uid.as_deref(), Some("uid-1"));
}

#[test]
fn a_certificate_that_ends_soon_is_named() {
    let mut cluster = cluster();
    decide(&mut cluster, seen(Some(vec![node("m1", Some(true))])), &[], "2027-11-01T00:00:00Z");
    assert_eq!(
        cluster.status.as_ref().unwrap().message.as_deref(),
        Some("the certificate admin-kubeconfig ends on 2027-11-21")
    );
}

#[test]
fn of_a_node_that_says_too_much_only_so_much_is_kept() {
    let many: Vec<serde_json::Value> = (0..5_000)
        .map(|number| serde_json::json!({ "type": format!("Pressure{number}"), "status": "True", "address": "x".repeat(9_000), "key": number.to_string(), "effect": "NoSchedule" }))
        .collect();
    let labels: serde_json::Map<String, serde_json::Value> =
        (0..5_000).map(|number| (number.to_string(), "x".into())).collect();
    let mut conditions = many.clone();
    conditions.push(serde_json::json!({ "type": "Ready", "status": "False", "message": "y".repeat(90_000) }));
    let node = serde_json::from_value(serde_json::json!({
        "metadata": { "name": "m1", "labels": labels, "annotations": { "big": "z".repeat(200_000) } },
        "spec": { "taints": many.clone() },
        "status": { "addresses": many, "conditions": conditions, "images": [{ "names": ["i".repeat(100_000)] }] },
    }));
    let seen = NodeSeen::from_node(node.unwrap());
    assert_eq!(seen.ready, Some(false));
    assert!(format!("{seen:?}").len() < 300_000);
    assert_eq!((seen.message.len(), seen.addresses.len(), seen.taints.len()), (512, 256, 256));
}

#[test]
fn a_status_is_within_its_schema_whatever_a_kubeconfig_and_an_api_server_say() {
    let long = |length: usize| "ü".repeat(length);
    let cluster = cluster();
    let mut seen = seen(None);
    if let Contact::Made { access, seen } = &mut seen {
        access.server = format!("https://{}:6443", long(400));
        seen.version = Some(long(100));
        seen.cluster_uid = Some(long(100));
        for component in &mut seen.components {
            component.healthy = false;
            component.message = Some(long(5000));
        }
    }
    let decide = |cluster: &Cluster| {
        let observed = Observed {
            cluster,
            planes: &[],
            resumed_at: None,
            contact: seen.clone(),
            machines: &[],
            deployment: None,
            hosts: &[],
            now: at("2026-01-01T00:00:00Z"),
            chance: 0.0,
        };
        plan(&observed).status
    };
    let status = decide(&cluster);
    let length = |text: &Option<String>| text.as_ref().map(|text| text.chars().count());
    assert_eq!(length(&status.endpoint), Some(300));
    assert_eq!(length(&status.version), Some(64));
    assert_eq!(length(&status.cluster_uid), Some(64));
    assert!(length(&status.message) <= Some(1024), "{:?}", length(&status.message));
    for component in &status.components {
        assert!(length(&component.message) <= Some(512));
    }
    let mut known = cluster.clone();
    known.status = Some(status);
    let again = decide(&known);
    let reachable = crds::conditions::find(&again.conditions, condition::REACHABLE);
    assert_eq!(reachable.map(|there| there.status.as_str()), Some("True"), "it is the same cluster");
}
