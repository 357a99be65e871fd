//! An imported Cluster becomes a member of a plane of Karmada's own programs by its labels, and leaves by them.

use anyhow::{Result, ensure};
use crds::Cluster;
use e2e::karmada::works::api_of;
use kube::api::{Api, Patch, PatchParams, PostParams};
use serde_json::json;

use super::World;
use super::members::Member;

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs Karmada's programs: make karmada"]
async fn a_cluster_joins_and_leaves_by_its_labels() -> Result<()> {
    let world = World::start().await?;
    world.until("ready", World::is_ready).await?;
    let _members =
        [Member::start(&world, "m1", world.net + 1).await?, Member::start(&world, "m2", world.net + 2).await?];
    let clusters: Api<Cluster> = Api::namespaced(world.client.clone(), "fleet");
    for (name, network) in [("m1", "same"), ("m2", "public")] {
        let cluster = json!({
            "apiVersion": "clusterwright.dev/v1alpha1", "kind": "Cluster",
            "metadata": {"name": name, "labels": {"karmada": "yes", "network": network}},
            "spec": {"kubeconfigRef": {"name": format!("{name}-kubeconfig")}},
        });
        clusters.create(&PostParams::default(), &serde_json::from_value(cluster)?).await?;
        is_well(&clusters, name).await?;
    }
    let rules = json!([{"whenLabels": {"network": "public"}, "syncMode": "pull"}, {"syncMode": "push"}]);
    let selector = json!({"matchLabels": {"karmada": "yes"}});
    world
        .patch(json!({"spec": {
            "autoJoin": {"selector": selector, "rules": rules, "onDeselect": "Unjoin"}, "unjoinPolicy": "Preserve",
        }}))
        .await?;
    world.until("joined by labels", async |world| Ok(world.joined().await? == 2)).await?;
    let plane = world.plane().await?;
    let joined = api_of(&plane, "cluster.karmada.io", "v1alpha1", "Cluster");
    for (name, mode) in [("m1", "Push"), ("m2", "Pull")] {
        let cluster = joined.get(name).await?;
        ensure!(cluster.data["spec"]["syncMode"] == mode, "{}", cluster.data["spec"]);
    }
    let without = json!({"metadata": {"labels": {"karmada": null}}});
    clusters.patch("m1", &PatchParams::default(), &Patch::Merge(&without)).await?;
    world
        .until("left by its labels", async |world| {
            Ok(world.members().await? == ["m2"] && joined.get_opt("m1").await?.is_none())
        })
        .await
}

/// Nobody looks at Clusters here: what is seen of it is said.
async fn is_well(clusters: &Api<Cluster>, name: &str) -> Result<()> {
    let condition = |type_: &str| {
        json!({
            "type": type_, "status": "True", "reason": "Said", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z",
        })
    };
    let status = json!({"status": {"conditions": [condition("Reachable"), condition("ControlPlaneHealthy")]}});
    clusters.patch_status(name, &PatchParams::default(), &Patch::Merge(&status)).await?;
    Ok(())
}
