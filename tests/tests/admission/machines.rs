//! Machines and sets of them.

use anyhow::Result;
use e2e::api_server::ApiServer;
use serde_json::{Value, json};

use super::{Admitted, check, check_changes, machine, machine_set, refused, refused_at, with};

#[tokio::test(flavor = "multi_thread")]
#[rustfmt::skip]
async fn nothing_is_named_twice_row_9() -> Result<()> {
    check(&ApiServer::shared().await?, [
        (9, "Hosts", machine_set("s"), "spec.template.hosts", json!([["m1", "m1"]]),
            refused_at("spec.template.hosts[1]", "Duplicate value")),
    ]).await
}

#[tokio::test(flavor = "multi_thread")]
#[rustfmt::skip]
async fn a_machine_stays_on_its_host_and_in_its_cluster_row_15() -> Result<()> {
    let server = ApiServer::shared().await?;
    let to = |host: &str| json!({ "hostRef": { "name": host } });
    let bound = with(machine("fixed-2"), "spec.hostRef.name", json!("m1"));
    check_changes(&server, machine_set("fixed-general"), [
        (15, "another role", json!({ "role": "etcd" }), refused_at("spec", "Forbidden")),
        (15, "another count", json!({ "replicas": 5 }), Admitted),
    ]).await?;
    check_changes(&server, machine("fixed-1"), [
        (15, "the first Host", to("m1"), Admitted),
    ]).await?;
    check_changes(&server, bound, [
        (15, "another Host", to("m2"), refused_at("spec.hostRef", "Forbidden")),
        (15, "no Host", json!({ "hostRef": null }), refused_at("spec.hostRef", "Forbidden")),
        (15, "another cluster", json!({ "clusterName": "other" }), refused_at("spec", "Forbidden")),
    ]).await
}

#[tokio::test(flavor = "multi_thread")]
#[rustfmt::skip]
async fn a_node_is_drained_for_reasons_that_there_are() -> Result<()> {
    let reasons = "spec.drainFor";
    check(&ApiServer::shared().await?, [
        (0, "reasons", machine("drained"), reasons, json!([[], ["Maintenance"], ["Maintenance", "Upgrade"]]), Admitted),
        (0, "another", machine("drained"), reasons, json!([["Holidays"]]), refused("supported values: \"Upgrade\", \"Maintenance\"")),
        (9, "twice", machine("drained"), reasons, json!([["Maintenance", "Maintenance"]]), refused_at("spec.drainFor[1]", "Duplicate value")),
    ]).await
}

#[tokio::test(flavor = "multi_thread")]
#[rustfmt::skip]
async fn capacity_is_asked_for_in_whole_numbers() -> Result<()> {
    let (cpus, memory) = ("spec.template.hostSelector.minCPUs", "spec.template.hostSelector.minMemoryMiB");
    check(&ApiServer::shared().await?, [
        (0, "CPUs", machine_set("s"), cpus, json!([1, 16, 4096]), Admitted),
        (0, "no CPUs", machine_set("s"), cpus, json!([0, -1]), refused("greater than or equal to 1")),
        (0, "too many CPUs", machine_set("s"), cpus, json!([4097]), refused("less than or equal to 4096")),
        (0, "a text", machine_set("s"), cpus, json!(["4", "500m"]), refused("must be of type integer")),
        (0, "memory", machine_set("s"), memory, json!([1, 65536]), Admitted),
        (0, "no memory", machine_set("s"), memory, json!([0]), refused("greater than or equal to 1")),
        (0, "a text", machine_set("s"), memory, json!(["4Gi"]), refused("must be of type integer")),
    ]).await
}

#[tokio::test(flavor = "multi_thread")]
#[rustfmt::skip]
async fn a_machine_of_a_plane_is_no_node() -> Result<()> {
    let server = ApiServer::shared().await?;
    let plane = json!("KarmadaDeployment");
    let of_plane = |mut object: Value| {
        object["spec"]["role"] = json!("control-plane");
        if let Some(spec) = object["spec"].as_object_mut() { drop(spec.remove("kubernetesVersion")); }
        with(object, "spec.clusterKind", plane.clone())
    };
    let taints = json!([[{ "key": "a", "effect": "NoSchedule" }]]);
    check(&server, [
        (0, "a role", of_plane(machine("p")), "spec.role", json!(["control-plane", "etcd"]), Admitted),
        (0, "a worker", of_plane(machine("p")), "spec.role", json!(["worker"]), refused_at("spec.role", "workers are of ClusterDeployments")),
        (0, "another kind", machine("p"), "spec.clusterKind", json!(["Cluster"]), refused("supported values: \"ClusterDeployment\", \"KarmadaDeployment\"")),
        (0, "a version", of_plane(machine("p")), "spec.kubernetesVersion", json!(["1.35.4"]), refused_at("spec", "is none: leave them out")),
        (0, "labels", of_plane(machine("p")), "spec.labels", json!([{ "a": "b" }]), refused_at("spec", "is none: leave them out")),
        (0, "annotations", of_plane(machine("p")), "spec.annotations", json!([{ "a": "b" }]), refused_at("spec", "is none: leave them out")),
        (0, "taints", of_plane(machine("p")), "spec.taints", taints.clone(), refused_at("spec", "is none: leave them out")),
        (0, "drained", of_plane(machine("p")), "spec.drainFor", json!([["Maintenance"]]), refused_at("spec", "is none: leave them out")),
        (0, "a set", of_plane(machine_set("p")), "spec.replicas", json!([1, 3]), Admitted),
        (0, "a set of workers", of_plane(machine_set("p")), "spec.role", json!(["worker"]), refused_at("spec.role", "workers are of ClusterDeployments")),
        (0, "a set's version", of_plane(machine_set("p")), "spec.template.kubernetesVersion", json!(["1.35.4"]), refused_at("spec.template", "is none: leave them out")),
        (0, "a set's labels", of_plane(machine_set("p")), "spec.template.labels", json!([{ "a": "b" }]), refused_at("spec.template", "is none: leave them out")),
        (0, "a set's taints", of_plane(machine_set("p")), "spec.template.taints", taints, refused_at("spec.template", "is none: leave them out")),
    ]).await?;
    check_changes(&server, with(machine("kind-1"), "spec.role", json!("control-plane")), [
        (15, "another kind", json!({ "clusterKind": "KarmadaDeployment", "kubernetesVersion": null }), refused_at("spec", "Forbidden: clusterName, clusterKind")),
    ]).await?;
    check_changes(&server, of_plane(machine_set("kind-2")), [
        (15, "another kind", json!({ "clusterKind": "ClusterDeployment" }), refused_at("spec", "Forbidden: clusterName, clusterKind")),
    ]).await
}
