//! What a machine is given of `spec.configuration`.

mod control_plane;

use std::collections::BTreeMap;

use crds::Role;
use serde_json::{Value, json};

use super::variables;
use crate::testing::World;

/// The variables of a machine of a role in a cluster with this configuration and, on its workers, this `kubelet`.
fn given(role: Role, configuration: Value, of_workers: Value) -> BTreeMap<String, Value> {
    let mut world = World::new("controlPlane: {replicas: 1}, workers: [{name: general, replicas: 1}]", 2);
    world.settle();
    world.deployment.spec.configuration = serde_json::from_value(configuration).unwrap();
    world.deployment.spec.workers[0].kubelet = serde_json::from_value(of_workers).unwrap();
    let machine = world.machines.iter().find(|machine| machine.spec.role == role);
    variables(&world.deployment, machine.unwrap())
}

#[test]
fn a_machine_for_which_nothing_is_configured_is_given_nothing() {
    for configuration in [Value::Null, json!({}), json!({"kubelet": {}, "machine": {}, "containerd": {}})] {
        assert_eq!(given(Role::Worker, configuration, json!({})), BTreeMap::new());
    }
}

#[test]
fn what_a_set_says_goes_over_what_the_cluster_says_field_by_field_and_on_its_machines_alone() {
    let cluster = json!({"kubelet": {
        "maxPods": 100, "systemReserved": {"cpu": "1", "memory": "1Gi"}, "featureGates": {"A1": true, "B1": true},
        "serializeImagePulls": false, "maxParallelImagePulls": 4,
    }});
    let set = json!({
        "maxPods": 200, "systemReserved": {"memory": "2Gi"}, "featureGates": {"B1": false}, "serializeImagePulls": true,
    });
    let worker = given(Role::Worker, cluster.clone(), set.clone());
    let wanted = json!({
        "maxPods": 200, "systemReserved": {"cpu": "1", "memory": "2Gi"}, "featureGates": {"A1": true, "B1": false},
        "serializeImagePulls": true,
    });
    assert_eq!(worker["kubelet_settings"], wanted);
    let control_plane = given(Role::ControlPlane, cluster.clone(), set);
    assert_eq!(control_plane["kubelet_settings"], cluster["kubelet"]);
}

#[test]
fn the_kubelet_is_given_its_own_words() {
    let kubelet = json!({
        "imageGCHighThresholdPercent": 70, "imageGCLowThresholdPercent": 60, "registryPullQPS": 0,
        "nodeStatusUpdateFrequencySeconds": 20, "shutdownGracePeriodSeconds": 60,
        "shutdownGracePeriodCriticalPodsSeconds": 10, "evictionHard": {"memory.available": "5%"},
        "cpuManagerPolicy": "static", "topologyManagerPolicy": "single-numa-node",
    });
    let wanted = json!({
        "imageGCHighThresholdPercent": 70, "imageGCLowThresholdPercent": 60, "registryPullQPS": 0,
        "nodeStatusUpdateFrequency": "20s", "shutdownGracePeriod": "60s", "shutdownGracePeriodCriticalPods": "10s",
        "evictionHard": {"memory.available": "5%"}, "mergeDefaultEvictionSettings": true,
        "cpuManagerPolicy": "static", "topologyManagerPolicy": "single-numa-node",
    });
    assert_eq!(given(Role::Worker, json!({ "kubelet": kubelet }), json!({}))["kubelet_settings"], wanted);
}

#[test]
fn nothing_of_the_cluster_is_asked_for_through_a_proxy() {
    let proxy = json!({"httpsProxy": "http://proxy.example:3128", "noProxy": ["registry.example", "localhost"]});
    let vars = given(Role::Worker, json!({"containerd": {"proxy": proxy}, "machine": {"proxy": proxy}}), json!({}));
    let direct = json!([
        "127.0.0.1",
        "10.244.0.0/16",
        "10.96.0.0/16",
        ".svc",
        ".cluster.local",
        "registry.example",
        "localhost"
    ]);
    assert_eq!(vars["containerd_settings"]["proxy"]["noProxy"], direct);
    assert_eq!(vars["machine_settings"]["proxy"]["noProxy"], direct);
    assert_eq!(vars["containerd_settings"]["proxy"]["httpsProxy"], "http://proxy.example:3128");
}

#[test]
fn machines_of_etcd_are_given_what_is_of_etcd_and_of_the_operating_system() {
    let parts = super::PARTS.iter().filter(|part| part.concerns(Role::Etcd));
    assert_eq!(parts.map(|part| part.name).collect::<Vec<_>>(), ["machine", "etcd", "etcd-version"]);
}

/// `control planes, machines of etcd, workers`.
fn machines(part: &super::Part) -> String {
    let name = |role: &Role| match role {
        Role::ControlPlane => "control planes",
        Role::Etcd => "machines of etcd",
        Role::Worker => "workers",
    };
    part.roles.iter().map(name).collect::<Vec<_>>().join(", ")
}

#[test]
fn the_docs_say_of_every_part_where_it_is_brought_and_by_which_step() {
    let page = std::fs::read_to_string("../../docs/operations/change.md").unwrap();
    for part in super::PARTS {
        let row = format!("| `{}` | {} | `{}`: ", part.field, machines(part), part.step);
        assert!(page.lines().any(|line| line.starts_with(&row)), "docs/operations/change.md has no row: {row}");
    }
}

#[test]
fn each_part_has_a_name_of_its_own_and_a_step_that_may_bring_an_edit() {
    let names: std::collections::BTreeSet<&str> = super::PARTS.iter().map(|part| part.name).collect();
    assert_eq!(names.len(), super::PARTS.len());
    for part in super::PARTS {
        assert!(part.step.is_allowed_in(crds::Intent::Configure), "{}", part.name);
    }
}
