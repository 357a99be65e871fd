//! A plane of Karmada's own programs is brought to another minor.

use std::collections::BTreeMap;

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::apps::v1::Deployment;
use kube::ResourceExt;
use kube::api::{Api, ListParams};
use serde_json::json;

use super::World;
use super::story::{bindings_are_converted, in_default, leaders_renew_their_leases, policies_pass_the_webhooks};
use crate::{FORMER, NAMESPACE, VERSION};

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs Karmada's programs of two versions: make karmada"]
async fn a_plane_of_karmadas_own_programs_is_brought_to_another_minor_and_keeps_what_it_propagates() -> Result<()> {
    let world = World::start_in(FORMER).await?;
    world.until("ready", World::is_ready).await?;
    runs(&world, FORMER).await?;
    let plane = world.plane().await?;
    policies_pass_the_webhooks(&plane).await?;
    bindings_are_converted(&plane).await?;
    let bindings = in_default(&plane, "work.karmada.io", "v1alpha2", "ResourceBinding");
    let before = bindings.get("settings-configmap").await?.uid().context("it has no UID")?;

    world.patch(json!({"spec": {"version": VERSION}})).await?;
    world
        .until("upgraded", async |world| {
            let status = world.planes().get("k1").await?.status.unwrap_or_default();
            Ok(status.version.as_deref() == Some(VERSION) && status.upgrade.is_none())
        })
        .await?;
    world.until("ready afterwards", World::is_ready).await?;
    runs(&world, VERSION).await?;
    let after = bindings.get("settings-configmap").await?.uid().context("it has no UID")?;
    ensure!(before == after, "the binding was made anew");
    leaders_renew_their_leases(&plane).await
}

/// Every program of Karmada runs in this version, and Pods of it are ready.
async fn runs(world: &World, version: &str) -> Result<()> {
    let deployments: Api<Deployment> = Api::namespaced(world.client.clone(), NAMESPACE);
    let listed = deployments.list(&ListParams::default()).await?;
    let image = |one: &Deployment| one.spec.as_ref()?.template.spec.as_ref()?.containers.first()?.image.clone();
    let images: BTreeMap<String, String> = listed
        .iter()
        .filter_map(|one| Some((one.name_any(), image(one)?)))
        .filter(|(_, image)| is_own(image))
        .collect();
    let others = images.iter().find(|(_, image)| !image.ends_with(&format!(":v{version}")));
    ensure!(images.len() == 7 && others.is_none(), "{images:?}");
    Ok(())
}

fn is_own(image: &str) -> bool {
    image.contains("/karmada-")
}
