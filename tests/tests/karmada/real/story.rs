//! What is seen of a plane of Karmada's own programs.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Secret;
use kube::api::{Api, ApiResource, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams};
use kube::core::GroupVersionKind;
use kube::{Client, ResourceExt};
use serde_json::{Value, json};
use tokio::time::sleep;

use super::World;
use super::members::{self, objects};
use crate::{NAMESPACE, OURS};

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs Karmada's programs: make karmada"]
async fn a_plane_of_karmadas_own_programs_is_made_repaired_and_removed() -> Result<()> {
    let world = World::start().await?;
    world.until("ready", World::is_ready).await?;
    every_program_runs(&world)?;
    let plane = world.plane().await?;
    every_api_is_available(&plane).await?;
    policies_pass_the_webhooks(&plane).await?;
    let settings = objects(&plane, "", "v1", "ConfigMap");
    settings.create(&PostParams::default(), &members::settings()?).await?;
    bindings_are_converted(&plane).await?;
    leaders_renew_their_leases(&plane).await?;
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

pub(super) fn api_of(plane: &Client, group: &str, version: &str, kind: &str) -> Api<DynamicObject> {
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
    Api::all_with(plane.clone(), &resource)
}

async fn every_api_is_available(plane: &Client) -> Result<()> {
    let apis = api_of(plane, "apiregistration.k8s.io", "v1", "APIService");
    let listed = apis.list(&ListParams::default().labels(OURS)).await?;
    ensure!(listed.items.len() == 5, "{:?}", listed.iter().map(ResourceExt::name_any).collect::<Vec<_>>());
    for api in listed {
        let conditions = api.data["status"]["conditions"].as_array().cloned().unwrap_or_default();
        let is_available = conditions.iter().any(|one| one["type"] == "Available" && one["status"] == "True");
        ensure!(is_available, "{}: {conditions:?}", api.name_any());
    }
    let clusters = api_of(plane, "cluster.karmada.io", "v1alpha1", "Cluster").list(&ListParams::default()).await?;
    ensure!(clusters.items.is_empty(), "Clusters that nobody has joined");
    Ok(())
}

pub(super) fn policy(name: &str, placement: Value) -> Result<DynamicObject> {
    Ok(serde_json::from_value(json!({
        "apiVersion": "policy.karmada.io/v1alpha1", "kind": "PropagationPolicy", "metadata": {"name": name},
        "spec": {
            "resourceSelectors": [{"apiVersion": "v1", "kind": "ConfigMap", "name": "settings"}],
            "placement": placement,
        },
    }))?)
}

/// One webhook completes it; the other refuses what a schema cannot.
pub(super) async fn policies_pass_the_webhooks(plane: &Client) -> Result<()> {
    let policies = objects(plane, "policy.karmada.io", "v1alpha1", "PropagationPolicy");
    let made = policies.create(&PostParams::default(), &policy("settings", json!({}))?).await?;
    let id = "propagationpolicy.karmada.io/permanent-id";
    ensure!(made.labels().contains_key(id), "nobody completed it: {:?}", made.labels());
    let spread = json!({"spreadConstraints": [{"spreadByField": "cluster", "maxGroups": 1, "minGroups": 2}]});
    let refused = policies.create(&PostParams::default(), &policy("refused", spread)?).await;
    let refused = refused.err().context("a policy with a wrong spread was admitted")?.to_string();
    ensure!(refused.contains("denied the request"), "{refused}");
    Ok(())
}

/// The ConfigMap `settings`, which a policy selects, gets a binding; it is read in the version that it is not kept in.
pub(super) async fn bindings_are_converted(plane: &Client) -> Result<()> {
    let older = objects(plane, "work.karmada.io", "v1alpha1", "ResourceBinding");
    for _ in 0..150 {
        if let Some(binding) = older.get_opt("settings-configmap").await? {
            ensure!(binding.data["spec"]["resource"]["kind"] == "ConfigMap", "{}", binding.data);
            return Ok(());
        }
        sleep(Duration::from_millis(200)).await;
    }
    anyhow::bail!("no ResourceBinding was made")
}

/// Whoever leads renews one: the namespace and the name.
const LEASES: [(&str, &str); 4] = [
    ("kube-system", "kube-controller-manager"),
    ("karmada-system", "karmada-scheduler"),
    ("karmada-system", "karmada-controller-manager"),
    ("karmada-system", "karmada-descheduler"),
];

pub(super) async fn leaders_renew_their_leases(plane: &Client) -> Result<()> {
    let renewed = async || {
        let mut times = Vec::new();
        for (namespace, name) in LEASES {
            let lease = Api::<Lease>::namespaced(plane.clone(), namespace).get(name).await?;
            times.push((name, lease.spec.and_then(|spec| spec.renew_time).map(|time| time.0)));
        }
        anyhow::Ok(times)
    };
    let before = renewed().await?;
    sleep(Duration::from_secs(15)).await;
    for (before, after) in before.into_iter().zip(renewed().await?) {
        ensure!(before.1 < after.1, "{} was not renewed: {before:?}, {after:?}", before.0);
    }
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
