//! A Machine that claims a Host while the cache is behind, and one whose Node is written.

use std::sync::Arc;

use crds::{Cluster, ClusterDeployment, Host, KarmadaDeployment, Machine};
use serde_json::{Value, json};

use super::Observation;
use crate::fake_api::FakeApi;
use crate::reconcile::reconcile;
use crate::remote::Key;
use plan::cluster::NodeSeen;

const GROUP: &str = "apiVersion: clusterwright.dev/v1alpha1";
const MACHINE: &str = "machines/fleet/w1";

/// Two spare Hosts, and a Machine that takes any.
fn world() -> FakeApi {
    let api = FakeApi::default();
    for (host, address) in [("h1", "10.0.0.1"), ("h2", "10.0.0.2")] {
        api.put("hosts", &format!("{{{GROUP}, kind: Host, metadata: {{name: {host}, namespace: fleet}}, spec: {{address: {address}, ssh: {{credentialsRef: {{name: k}}}}}}, status: {{cleanedEpoch: 0, conditions: [{{type: Ready, status: 'True', reason: Available, message: '', lastTransitionTime: '2026-01-01T00:00:00Z'}}]}}}}"));
    }
    api.put("clusterdeployments", &format!("{{{GROUP}, kind: ClusterDeployment, metadata: {{name: a, namespace: fleet}}, spec: {{kubernetesVersion: 1.35.4, controlPlane: {{replicas: 1}}, workers: [{{name: w}}], artifacts: {{url: 'http://x'}}}}, status: {{installedAt: '2026-01-01T00:00:00Z'}}}}"));
    api.put("machines", &format!("{{{GROUP}, kind: Machine, metadata: {{name: w1, namespace: fleet, finalizers: [clusterwright.dev/release-host]}}, spec: {{clusterName: a, role: worker, kubernetesVersion: 1.35.4}}}}"));
    api
}

/// Who holds each Host.
fn claims(api: &FakeApi) -> Vec<Option<String>> {
    let hosts = api.list::<Host>("hosts");
    let holder = |host: Host| host.spec.claim_ref.map(|claim| claim.name);
    hosts.into_iter().map(holder).collect()
}

#[tokio::test]
async fn a_machine_whose_claim_the_cache_does_not_show_takes_that_host_and_no_other() {
    let api = world();
    let ctx = api.context();
    ctx.cache.cluster_deployments.fill(api.list::<ClusterDeployment>("clusterdeployments"));
    ctx.cache.machines.fill(api.list::<Machine>("machines"));
    ctx.cache.hosts.fill(api.list::<Host>("hosts"));
    let machine = || Arc::new(api.list::<Machine>("machines").remove(0));
    reconcile::<Observation>(ctx.clone(), machine()).await.unwrap();
    let held = claims(&api);
    assert_eq!(held.iter().flatten().count(), 1, "{held:?}");
    for _ in 0..3 {
        // What was written is not seen yet.
        let _ = reconcile::<Observation>(ctx.clone(), machine()).await;
    }
    assert_eq!(claims(&api), held);
    let host: Value = api.get(MACHINE).unwrap()["spec"]["hostRef"]["name"].clone();
    let names = ["h1", "h2"];
    let taken = names.iter().zip(&held).find(|(_, holder)| holder.is_some()).unwrap();
    assert_eq!(host, **taken.0);
}

#[tokio::test]
async fn what_is_said_of_a_node_stands_until_its_cluster_was_looked_at() {
    let api = world();
    api.edit(MACHINE, |machine| {
        machine["status"] = json!({ "provisionedAt": "2026-01-01T00:00:00Z", "message": "running" });
    });
    api.put(
        "clusters",
        &format!(
            "{{{GROUP}, kind: Cluster, metadata: {{name: a, namespace: fleet}}, spec: {{kubeconfigRef: {{name: k}}}}}}"
        ),
    );
    let ctx = api.context();
    ctx.cache.cluster_deployments.fill(api.list::<ClusterDeployment>("clusterdeployments"));
    ctx.cache.machines.fill(api.list::<Machine>("machines"));
    ctx.cache.clusters.fill(api.list::<Cluster>("clusters"));
    let status = || api.get(MACHINE).unwrap()["status"].clone();
    let before = status();
    let machine = || Arc::new(api.list::<Machine>("machines").remove(0));
    reconcile::<Observation>(ctx.clone(), machine()).await.unwrap();
    assert_eq!(status(), before, "the operator has only just started");
    ctx.remote.looked(&Key::new("fleet", "a"));
    reconcile::<Observation>(ctx.clone(), machine()).await.unwrap();
    assert_ne!(status(), before, "it was looked at, and nothing is known of its Nodes");
}

#[tokio::test]
async fn a_host_that_another_has_claimed_since_it_was_cached_is_not_taken_from_it() {
    let api = world();
    let ctx = api.context();
    ctx.cache.cluster_deployments.fill(api.list::<ClusterDeployment>("clusterdeployments"));
    ctx.cache.machines.fill(api.list::<Machine>("machines"));
    ctx.cache.hosts.fill(api.list::<Host>("hosts"));
    for host in ["hosts/fleet/h1", "hosts/fleet/h2"] {
        api.edit(host, |host| {
            host["spec"]["claimRef"] = serde_json::json!({ "kind": "Machine", "name": "other", "uid": "other" });
            host["spec"]["claimEpoch"] = serde_json::json!(1);
        });
    }
    for _ in 0..3 {
        let machine = Arc::new(api.list::<Machine>("machines").remove(0));
        let _ = reconcile::<Observation>(ctx.clone(), machine).await;
    }
    assert_eq!(claims(&api), [Some("other".to_owned()), Some("other".to_owned())]);
    assert!(api.get(MACHINE).unwrap()["spec"]["hostRef"].is_null());
}

/// A worker that runs, and its Node in the cluster's own API.
async fn with_node(theirs: &FakeApi, reconciles: usize) -> Value {
    let api = world();
    let held = json!({ "kind": "Machine", "name": "w1", "uid": "machines-fleet-w1-1" });
    api.edit("hosts/fleet/h1", |host| host["spec"]["claimRef"] = held);
    api.edit(MACHINE, |machine| {
        machine["spec"]["hostRef"] = json!({ "name": "h1" });
        machine["spec"]["labels"] = json!({ "pool": "fast" });
        machine["spec"]["taints"] = json!([{ "key": "gpu", "effect": "NoSchedule" }]);
    });
    let ctx = api.context();
    ctx.cache.cluster_deployments.fill(api.list::<ClusterDeployment>("clusterdeployments"));
    ctx.cache.machines.fill(api.list::<Machine>("machines"));
    ctx.cache.hosts.fill(api.list::<Host>("hosts"));
    let key = Key::new("fleet", "a");
    ctx.remote.put(&key, theirs.client());
    for _ in 0..reconciles {
        let node = theirs.list::<k8s_openapi::api::core::v1::Node>("nodes").remove(0);
        ctx.remote.show(&key, vec![NodeSeen::from_node(node)]);
        let machine = Arc::new(api.list::<Machine>("machines").remove(0));
        reconcile::<Observation>(ctx.clone(), machine).await.unwrap();
    }
    api.get(MACHINE).unwrap()["status"].clone()
}

fn their_node() -> FakeApi {
    let theirs = FakeApi::default();
    theirs.put(
        "nodes",
        "{apiVersion: v1, kind: Node, metadata: {name: h1, labels: {theirs: x}}, spec: {taints: [{key: theirs, effect: NoExecute}]}}",
    );
    theirs
}

#[tokio::test]
async fn a_node_is_given_the_labels_and_taints_of_its_machine_and_keeps_those_of_others() {
    let theirs = their_node();
    with_node(&theirs, 1).await;
    let node = theirs.get("nodes//h1").unwrap();
    assert_eq!(
        node["metadata"]["labels"],
        json!({ "theirs": "x", "pool": "fast", "node-role.kubernetes.io/worker": "" })
    );
    let keys: Vec<&Value> = node["spec"]["taints"].as_array().unwrap().iter().map(|taint| &taint["key"]).collect();
    assert_eq!(keys, ["theirs", "gpu"]);
    assert_eq!(theirs.requests(), ["PATCH nodes//h1", "PATCH nodes//h1"], "the taints, and what is applied");
}

#[tokio::test]
async fn a_node_that_is_refused_or_changed_meanwhile_hides_nothing_of_its_machine() {
    for code in [422, 500, 409] {
        let theirs = their_node();
        theirs.refuse("PATCH nodes//h1", 1, code, json!({}));
        let status = with_node(&theirs, 1).await;
        assert_eq!(status["nodeName"], "h1", "{code}: the status is written");
        assert!(theirs.get("nodes//h1").unwrap()["metadata"]["labels"]["pool"].is_null());
        with_node(&theirs, 1).await;
        assert_eq!(theirs.get("nodes//h1").unwrap()["metadata"]["labels"]["pool"], "fast", "{code}: it is tried again");
    }
}

#[tokio::test]
async fn a_machine_of_a_plane_goes_by_its_plane_and_not_by_a_cluster_of_the_same_name() {
    let api = world();
    api.edit("clusterdeployments/fleet/a", |cluster| cluster["spec"]["paused"] = json!(true));
    api.put("karmadadeployments", &format!("{{{GROUP}, kind: KarmadaDeployment, metadata: {{name: a, namespace: fleet}}, spec: {{version: 1.18.2, mode: Binary, binary: {{controlPlane: {{replicas: 1}}, artifacts: {{url: 'https://b.example.com'}}}}, crds: {{bundle: {{url: 'https://b.example.com'}}}}}}}}"));
    api.put("machines", &format!("{{{GROUP}, kind: Machine, metadata: {{name: p1, namespace: fleet, finalizers: [clusterwright.dev/release-host]}}, spec: {{clusterName: a, clusterKind: KarmadaDeployment, role: control-plane}}}}"));
    api.put(
        "clusters",
        &format!(
            "{{{GROUP}, kind: Cluster, metadata: {{name: a, namespace: fleet}}, spec: {{kubeconfigRef: {{name: k}}}}}}"
        ),
    );
    let ctx = api.context();
    ctx.cache.cluster_deployments.fill(api.list::<ClusterDeployment>("clusterdeployments"));
    ctx.cache.karmada_deployments.fill(api.list::<KarmadaDeployment>("karmadadeployments"));
    ctx.cache.clusters.fill(api.list::<Cluster>("clusters"));
    ctx.cache.machines.fill(api.list::<Machine>("machines"));
    ctx.cache.hosts.fill(api.list::<Host>("hosts"));
    for machine in api.list::<Machine>("machines") {
        reconcile::<Observation>(ctx.clone(), Arc::new(machine)).await.unwrap();
    }
    let held = claims(&api);
    assert_eq!(held.iter().flatten().collect::<Vec<_>>(), ["p1"], "that of the cluster, which is paused, takes none");
    let message = |name: &str| api.get(name).unwrap()["status"]["message"].to_string();
    assert!(message(MACHINE).contains("cluster a is paused"), "{}", message(MACHINE));
    // Once it is part of its plane, it waits for no API of a Cluster of that name.
    api.edit("machines/fleet/p1", |machine| {
        machine["status"] = json!({ "provisionedAt": "2026-01-01T00:00:00Z" });
    });
    ctx.cache.machines.fill(api.list::<Machine>("machines"));
    ctx.cache.hosts.fill(api.list::<Host>("hosts"));
    let machine = api.list::<Machine>("machines").remove(0);
    assert_eq!(machine.metadata.name.as_deref(), Some("p1"));
    reconcile::<Observation>(ctx.clone(), Arc::new(machine)).await.unwrap();
    assert_eq!(api.get("machines/fleet/p1").unwrap()["status"]["message"], json!("running"));
}
