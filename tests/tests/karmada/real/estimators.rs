//! Estimators with Karmada's own programs: what one says of its member is what the scheduler divides replicas by. Of a
//! member without one it knows sums over Nodes alone, and not which Nodes a Pod may be on.

use std::net::Ipv4Addr;

use anyhow::{Context, Result, ensure};
use e2e::karmada::room::{answers, divide, free_node, with_disk};
use e2e::karmada::works::objects;
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::api::{Api, ListParams, Patch, PatchParams};
use serde_json::{Value, json};

use super::World;
use super::members::{Member, join};
use crate::NAMESPACE;

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs Karmada's programs: make karmada"]
async fn the_scheduler_divides_replicas_by_what_an_estimator_says() -> Result<()> {
    let world = World::start().await?;
    world.until("ready", World::is_ready).await?;
    let members =
        [Member::start(&world, "m1", world.net + 1).await?, Member::start(&world, "m2", world.net + 2).await?];
    // All are empty, and none of them is one that the Pods may be on.
    for (member, name) in [(&members[0], "n1"), (&members[0], "n2"), (&members[1], "n1")] {
        free_node(&member.client, name, json!({})).await?;
    }
    join(&world, &members, &["push", "push"]).await?;
    divide(&world.plane().await?, "before", &["m1"]).await?;
    world.until("scheduled by sums", async |world| is_on_m1(world, "before").await).await?;
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
    divide(&world.plane().await?, "after", &["m1"]).await?;
    world.until("refused by its estimator", async |world| is_refused(world, "after").await).await?;
    // One candidate without an estimator, and the scheduler goes by sums for all of them.
    divide(&world.plane().await?, "among-both", &["m1", "m2"]).await?;
    world.until("scheduled by sums again", async |world| is_on_m1(world, "among-both").await).await?;
    let nodes: Api<Node> = Api::all(members[0].client.clone());
    let labelled = json!({"metadata": {"labels": with_disk()}});
    nodes.patch("n1", &PatchParams::default(), &Patch::Merge(&labelled)).await?;
    world.until("scheduled by its estimator", async |world| is_on_m1(world, "after").await).await?;
    let address = pods.list(&of_m1).await?.items.into_iter().find_map(|pod| pod.status?.pod_ip);
    was_asked(address.context("its Pod has no address")?.parse()?).await
}

/// Whether replicas of a Deployment are to run in the first member.
async fn is_on_m1(world: &World, name: &str) -> Result<bool> {
    let binding = binding(world, name).await?;
    let clusters = binding["spec"]["clusters"].as_array().cloned().unwrap_or_default();
    Ok(clusters.iter().any(|cluster| cluster["name"] == "m1" && cluster["replicas"].as_i64() > Some(0)))
}

/// Whether it is said of a Deployment that no member has room.
async fn is_refused(world: &World, name: &str) -> Result<bool> {
    let binding = binding(world, name).await?;
    let conditions = binding["status"]["conditions"].as_array().cloned().unwrap_or_default();
    let is_refused = |condition: &Value| condition["type"] == "Scheduled" && condition["status"] == "False";
    Ok(conditions.iter().any(is_refused) && binding["spec"]["clusters"].is_null())
}

async fn binding(world: &World, name: &str) -> Result<Value> {
    let bindings = objects(&world.plane().await?, "work.karmada.io", "v1alpha2", "ResourceBinding");
    let binding = bindings.get_opt(&format!("{name}-deployment")).await?;
    let seen = binding.map(|binding| binding.data).unwrap_or_default();
    println!("{name}: {} {}", seen["spec"]["clusters"], seen["status"]["conditions"]);
    Ok(seen)
}

/// Its own metrics count who asked it.
async fn was_asked(address: Ipv4Addr) -> Result<()> {
    let config = kube::Config::new(format!("http://{address}:8080").parse()?);
    let client = kube::Client::try_from(config)?;
    let metrics = client.request_text(http::Request::get("/metrics").body(Vec::new())?).await?;
    ensure!(!answers(&metrics).is_empty(), "nobody asked it: {metrics}");
    Ok(())
}
