//! The life of a plane of Karmada's own programs.

use anyhow::{Result, ensure};
use e2e::karmada::works::{
    OURS, api_of, bindings_are_converted, every_api_is_available, leaders_renew_their_leases, objects,
    policies_pass_the_webhooks, settings,
};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Secret;
use kube::api::{Api, ApiResource, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams};
use kube::core::GroupVersionKind;
use kube::{Client, ResourceExt};
use serde_json::json;

use super::{World, probe};
use crate::NAMESPACE;

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs Karmada's programs: make karmada"]
async fn a_plane_of_karmadas_own_programs_is_made_repaired_and_removed() -> Result<()> {
    let world = World::start().await?;
    world.until("ready", World::is_ready).await?;
    every_program_runs(&world)?;
    let plane = world.plane().await?;
    every_api_is_available(&plane).await?;
    policies_pass_the_webhooks(&plane).await?;
    let maps = objects(&plane, "", "v1", "ConfigMap");
    maps.create(&PostParams::default(), &settings()?).await?;
    bindings_are_converted(&plane).await?;
    leaders_renew_their_leases(&plane).await?;
    probe::is_answered(&world, &plane).await?;
    probe::a_binding_that_is_refused_is_said(&world, &plane).await?;
    probe::a_stopped_controller_manager_is_said(&world).await?;
    a_renewed_leaf_is_taken_over(&world).await?;
    what_is_switched_off_goes(&world, &plane).await?;
    deletion_leaves_nothing(&world).await
}

fn every_program_runs(world: &World) -> Result<()> {
    let order = world.node.order();
    let expected = [
        "etcd",
        "kube-apiserver",
        "kube-controller-manager",
        "karmada-aggregated-apiserver",
        "karmada-webhook",
        "karmada-scheduler",
        "karmada-controller-manager",
        "karmada-descheduler",
        "karmada-search",
        "karmada-metrics-adapter",
    ];
    ensure!(order == expected, "{order:?}");
    Ok(())
}

/// The scheduler is started anew with it, and leads again.
async fn a_renewed_leaf_is_taken_over(world: &World) -> Result<()> {
    let deployments: Api<Deployment> = Api::namespaced(world.client.clone(), NAMESPACE);
    let generation = async || anyhow::Ok(deployments.get("k1-scheduler").await?.metadata.generation);
    let before = generation().await?;
    let secrets: Api<Secret> = Api::namespaced(world.client.clone(), "fleet");
    let gone = json!({"data": {"scheduler-client.crt": null, "scheduler-client.key": null}});
    secrets.patch("k1-certificates", &PatchParams::default(), &Patch::Merge(&gone)).await?;
    world.patch(json!({"metadata": {"annotations": {"look": "1"}}})).await?;
    world.until("rolled", async |_| Ok(generation().await? != before)).await?;
    world.until("ready with the new leaf", World::is_ready).await
}

async fn what_is_switched_off_goes(world: &World, plane: &Client) -> Result<()> {
    world.patch(json!({"spec": {"search": null, "descheduler": null, "metricsAdapter": null}})).await?;
    let apis = api_of(plane, "apiregistration.k8s.io", "v1", "APIService");
    let deployments: Api<Deployment> = Api::namespaced(world.client.clone(), NAMESPACE);
    world
        .until("without add-ons", async |_| {
            let left = apis.list(&ListParams::default().labels(OURS)).await?.items.len();
            Ok(left == 1 && deployments.list(&ListParams::default()).await?.items.len() == 6)
        })
        .await?;
    world.until("ready without add-ons", World::is_ready).await
}

async fn deletion_leaves_nothing(world: &World) -> Result<()> {
    world.planes().delete("k1", &DeleteParams::default()).await?;
    world.until("gone", async |world| Ok(world.planes().get_opt("k1").await?.is_none())).await?;
    for (group, kind) in [("apps", "Deployment"), ("apps", "StatefulSet"), ("", "Service"), ("", "Secret")] {
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, "v1", kind));
        let api: Api<DynamicObject> = Api::namespaced_with(world.client.clone(), NAMESPACE, &resource);
        let left = api.list(&ListParams::default().labels(OURS)).await?;
        ensure!(left.items.is_empty(), "{kind}: {:?}", left.iter().map(ResourceExt::name_any).collect::<Vec<_>>());
    }
    Ok(())
}
