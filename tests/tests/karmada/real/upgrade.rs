//! A plane of Karmada's own programs, with members, is brought to another minor: once it halts, and goes back. Then its
//! kube-apiserver and kube-controller-manager are brought to another minor of Kubernetes.

use std::collections::BTreeMap;

use anyhow::{Result, ensure};
use e2e::karmada::progress::is_ready;
use e2e::karmada::works::{bindings_are_converted, leaders_renew_their_leases, objects};
use e2e::objects::{OLDER, VERSION as KUBERNETES};
use k8s_openapi::api::apps::v1::Deployment;
use kube::ResourceExt;
use kube::api::{Api, ListParams};
use serde_json::json;

use super::World;
use super::members::{Member, a_change_reaches, join, propagate, run_all};
use crate::{FORMER, NAMESPACE, VERSION};

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs Karmada's programs of two versions: make karmada"]
async fn a_plane_with_members_is_brought_to_another_minor_and_they_keep_what_they_run() -> Result<()> {
    let world = World::start_in(FORMER, OLDER).await?;
    world.until("ready", World::is_ready).await?;
    runs(&world, FORMER).await?;
    let members =
        [Member::start(&world, "m1", world.net + 1).await?, Member::start(&world, "m2", world.net + 2).await?];
    join(&world, &members, &["push", "pull"]).await?;
    propagate(&world).await?;
    run_all(&world, &members).await?;
    let plane = world.plane().await?;
    bindings_are_converted(&plane).await?;
    let bindings = objects(&plane, "work.karmada.io", "v1alpha2", "ResourceBinding");
    let before =
        (bindings.get("settings-configmap").await?.uid(), members[0].running().await?, members[1].running().await?);

    it_halts_and_goes_back(&world).await?;
    world.patch(json!({"spec": {"version": VERSION}})).await?;
    world.until("upgraded", async |world| Ok(version(world).await?.as_deref() == Some(VERSION))).await?;
    world.until("ready afterwards", World::is_ready).await?;
    runs(&world, VERSION).await?;
    agent_runs(&members[1]).await?;
    let after =
        (bindings.get("settings-configmap").await?.uid(), members[0].running().await?, members[1].running().await?);
    ensure!(before == after, "{before:?} became {after:?}");
    leaders_renew_their_leases(&plane).await?;
    a_change_reaches(&world, &members, "after the upgrade").await?;
    kubernetes_is_brought_to_the_next_minor(&world).await?;
    let after = (members[0].running().await?, members[1].running().await?);
    ensure!((&before.1, &before.2) == (&after.0, &after.1), "{before:?} became {after:?}");
    a_change_reaches(&world, &members, "after that of Kubernetes").await
}

/// The API server of the plane and its controllers alone: Karmada's version stays.
async fn kubernetes_is_brought_to_the_next_minor(world: &World) -> Result<()> {
    let serves = async || {
        let served = world.plane().await?.apiserver_version().await?.git_version;
        anyhow::Ok(served.trim_start_matches('v').to_owned())
    };
    ensure!(serves().await? == OLDER, "it serves {}", serves().await?);
    let newer = json!({"version": KUBERNETES});
    world.patch(json!({"spec": {"apiServer": newer, "kubeControllerManager": newer}})).await?;
    world.until("serving the next minor", async |_| Ok(serves().await? == KUBERNETES)).await?;
    world
        .until("at the next minor of Kubernetes", async |world| {
            let plane = world.planes().get(world.name).await?;
            Ok(is_ready(&plane) && version(world).await?.as_deref() == Some(VERSION))
        })
        .await?;
    let deployments: Api<Deployment> = Api::namespaced(world.client.clone(), NAMESPACE);
    let of_it = |deployment: &Deployment| image(deployment).filter(|image| image.contains("/kube-controller-manager:"));
    let images: Vec<String> = deployments.list(&ListParams::default()).await?.iter().filter_map(of_it).collect();
    ensure!(images.len() == 1 && images[0].ends_with(&format!(":v{KUBERNETES}")), "{images:?}");
    Ok(())
}

/// The version that all of it has; none while it is upgraded.
async fn version(world: &World) -> Result<Option<String>> {
    let status = world.planes().get("k1").await?.status.unwrap_or_default();
    Ok(status.version.filter(|_| status.upgrade.is_none()))
}

/// A webhook that does not start with the new version is as far as it comes; what it was is had again.
async fn it_halts_and_goes_back(world: &World) -> Result<()> {
    let broken = json!({"webhook": {"extraArgs": {"kube-api-qps": "none"}}});
    let mut spec = broken.clone();
    spec["version"] = json!(VERSION);
    world.patch(json!({"spec": spec})).await?;
    world
        .until("halted", async |world| {
            let (_, message) = world.shown().await?;
            Ok(message.contains("karmada-webhook") && message.contains(&format!("set spec.version to {FORMER}")))
        })
        .await?;
    world.patch(json!({"spec": {"version": FORMER, "webhook": null}})).await?;
    world.until("back", async |world| Ok(version(world).await?.as_deref() == Some(FORMER))).await?;
    world.until("ready again", World::is_ready).await?;
    runs(world, FORMER).await
}

/// The agent of a Pull member is of the plane's version.
async fn agent_runs(member: &Member) -> Result<()> {
    let agents: Api<Deployment> = Api::namespaced(member.client.clone(), "karmada-system");
    let images: Vec<String> = agents.list(&ListParams::default()).await?.iter().filter_map(image).collect();
    ensure!(images.len() == 1 && images[0].ends_with(&format!(":v{VERSION}")), "{images:?}");
    Ok(())
}

/// Every program of Karmada runs in this version, and Pods of it are ready.
async fn runs(world: &World, version: &str) -> Result<()> {
    let deployments: Api<Deployment> = Api::namespaced(world.client.clone(), NAMESPACE);
    let listed = deployments.list(&ListParams::default()).await?;
    let images: BTreeMap<String, String> = listed
        .iter()
        .filter_map(|one| Some((one.name_any(), image(one)?)))
        .filter(|(_, image)| is_own(image))
        .collect();
    let others = images.iter().find(|(_, image)| !image.ends_with(&format!(":v{version}")));
    ensure!(images.len() == 7 && others.is_none(), "{images:?}");
    Ok(())
}

fn image(deployment: &Deployment) -> Option<String> {
    deployment.spec.as_ref()?.template.spec.as_ref()?.containers.first()?.image.clone()
}

fn is_own(image: &str) -> bool {
    image.contains("/karmada-")
}
