//! Estimators with Karmada's own programs: what one says of its member is what the scheduler divides replicas by.

use std::net::Ipv4Addr;

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::api::{Api, DynamicObject, ListParams, Patch, PatchParams, PostParams};
use serde_json::json;

use super::World;
use super::members::{Member, join, objects};
use crate::NAMESPACE;

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs Karmada's programs: make karmada"]
async fn the_scheduler_divides_replicas_by_what_an_estimator_says() -> Result<()> {
    let world = World::start().await?;
    world.until("ready", World::is_ready).await?;
    let members =
        [Member::start(&world, "m1", world.net + 1).await?, Member::start(&world, "m2", world.net + 2).await?];
    // Two Nodes with 3 CPUs each have 6 in sum, and no room for a Pod of 4.
    node(&members[0], "n1", "3").await?;
    node(&members[0], "n2", "3").await?;
    node(&members[1], "n1", "64").await?;
    join(&world, &members, &["push", "push"]).await?;
    // There is room for one estimator on this machine.
    let one = json!([
        {"name": "m1", "syncMode": "push", "kubeConfigSecretName": "m1-kubeconfig"},
        {"name": "m2", "syncMode": "push", "kubeConfigSecretName": "m2-kubeconfig", "estimator": {"enabled": false}},
    ]);
    world.patch(json!({"spec": {"estimator": {"extraArgs": {"v": "4"}}, "members": one}})).await?;
    let pods: Api<Pod> = Api::namespaced(world.client.clone(), NAMESPACE);
    let of_m1 = ListParams::default().labels("clusterwright.dev/karmada-member=m1");
    world
        .until("with an estimator", async |world| {
            let listed = pods.list(&of_m1).await?;
            let status = world.planes().get("k1").await?.status.unwrap_or_default();
            let is_ready = status
                .components
                .iter()
                .any(|one| one.name == "karmada-scheduler-estimator" && one.ready_replicas == 1 && one.replicas == 1);
            Ok(is_ready && !listed.items.is_empty() && world.is_ready().await?)
        })
        .await?;
    divide(&world).await?;
    let plane = world.plane().await?;
    let bindings = objects(&plane, "work.karmada.io", "v1alpha2", "ResourceBinding");
    world
        .until("scheduled", async |_| {
            let binding = bindings.get_opt("large-deployment").await?;
            let clusters = binding.map(|binding| binding.data["spec"]["clusters"].clone()).unwrap_or_default();
            println!("{clusters}");
            Ok(clusters == json!([{"name": "m2", "replicas": 4}]))
        })
        .await?;
    let address = pods.list(&of_m1).await?.items.into_iter().find_map(|pod| pod.status?.pod_ip);
    was_asked(address.context("its Pod has no address")?.parse()?).await
}

/// A Node with so many CPUs, all of them free.
async fn node(member: &Member, name: &str, cpu: &str) -> Result<()> {
    let nodes: Api<Node> = Api::all(member.client.clone());
    let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}});
    nodes.create(&PostParams::default(), &serde_json::from_value(node)?).await?;
    let untainted = json!({"spec": {"taints": null}});
    nodes.patch(name, &PatchParams::default(), &Patch::Merge(&untainted)).await?;
    let amounts = json!({"cpu": cpu, "memory": "64Gi", "pods": "110"});
    let status = json!({"status": {
        "capacity": amounts, "allocatable": amounts,
        "conditions": [{"type": "Ready", "status": "True", "reason": "Said", "message": "so"}],
    }});
    nodes.patch_status(name, &PatchParams::default(), &Patch::Merge(&status)).await?;
    Ok(())
}

/// Four replicas of 4 CPUs, wherever there is room.
async fn divide(world: &World) -> Result<()> {
    let plane = world.plane().await?;
    let large = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "large", "labels": {"app": "large"}},
        "spec": {
            "replicas": 4, "selector": {"matchLabels": {"app": "large"}},
            "template": {
                "metadata": {"labels": {"app": "large"}},
                "spec": {"containers": [
                    {"name": "large", "image": "web.test/web:1", "resources": {"requests": {"cpu": "4"}}},
                ]},
            },
        },
    });
    let policy = json!({
        "apiVersion": "policy.karmada.io/v1alpha1", "kind": "PropagationPolicy", "metadata": {"name": "large"},
        "spec": {
            "resourceSelectors": [{"apiVersion": "apps/v1", "kind": "Deployment", "name": "large"}],
            "placement": {
                "clusterAffinity": {"clusterNames": ["m1", "m2"]},
                "replicaScheduling": {
                    "replicaSchedulingType": "Divided", "replicaDivisionPreference": "Weighted",
                    "weightPreference": {"dynamicWeight": "AvailableReplicas"},
                },
            },
        },
    });
    for (group, version, kind, object) in
        [("apps", "v1", "Deployment", large), ("policy.karmada.io", "v1alpha1", "PropagationPolicy", policy)]
    {
        let object: DynamicObject = serde_json::from_value(object)?;
        objects(&plane, group, version, kind).create(&PostParams::default(), &object).await?;
    }
    Ok(())
}

/// Its own metrics count who asked it.
async fn was_asked(address: Ipv4Addr) -> Result<()> {
    let config = kube::Config::new(format!("http://{address}:8080").parse()?);
    let client = kube::Client::try_from(config)?;
    let metrics = client.request_text(http::Request::get("/metrics").body(Vec::new())?).await?;
    let counted =
        metrics.lines().filter(|line| line.starts_with("karmada_scheduler_estimator_estimating_request_total"));
    let counted: Vec<&str> = counted.collect();
    println!("{counted:?}");
    ensure!(counted.iter().any(|line| line.contains("result=\"success\"")), "nobody asked it: {counted:?}");
    Ok(())
}
