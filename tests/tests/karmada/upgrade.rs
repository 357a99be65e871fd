//! A plane is brought to the next minor, on real API servers: what is written is written in order, what is stopped is
//! started again, and nothing is made anew.

use std::collections::BTreeMap;

use anyhow::{Context, Result, ensure};
use crds::conditions;
use k8s_openapi::api::apps::v1::Deployment;
use kube::ResourceExt;
use kube::api::{Api, ListParams};
use serde_json::json;

use crate::{FORMER, NAMESPACE, VERSION, World};

/// What runs on the host: UID, image and Pods of each Deployment, by its name.
type Running = BTreeMap<String, (String, String, i32)>;

async fn running(world: &World) -> Result<Running> {
    let deployments: Api<Deployment> = Api::namespaced(world.client.clone(), NAMESPACE);
    let listed = deployments.list(&ListParams::default()).await?;
    let row = |one: &Deployment| {
        let spec = one.spec.as_ref()?;
        let image = spec.template.spec.as_ref()?.containers.first()?.image.clone()?;
        Some((one.name_any(), (one.uid()?, image, spec.replicas?)))
    };
    Ok(listed.iter().filter_map(row).collect())
}

/// The reason of `UpToDate`.
async fn reason(world: &World) -> Result<String> {
    let status = world.planes().get("k1").await?.status.unwrap_or_default();
    Ok(conditions::find(&status.conditions, "UpToDate").map(|found| found.reason.clone()).unwrap_or_default())
}

/// Brings it there, and sees that it does not go back.
pub async fn to_the_next_minor(world: &World) -> Result<()> {
    let before = running(world).await?;
    world.patch(json!({"spec": {"version": VERSION}})).await?;
    let said = world
        .until("upgraded", async |world| {
            let status = world.planes().get("k1").await?.status.unwrap_or_default();
            Ok(status.version.as_deref() == Some(VERSION) && status.upgrade.is_none())
        })
        .await?;
    let stopped = said.iter().any(|message| message.contains("(stopping karmada-scheduler"));
    ensure!(stopped, "nothing was stopped: {said:?}");
    world.until("ready in its new version", World::is_ready).await?;
    for (name, (uid, image, pods)) in running(world).await? {
        let (old, former, replicas) = before.get(&name).with_context(|| format!("{name} is new"))?;
        ensure!((&uid, pods) == (old, *replicas), "{name} was made anew, or has {pods} Pods");
        let wanted = former.replace(&format!(":v{FORMER}"), &format!(":v{VERSION}"));
        ensure!(image == wanted, "{name} runs {image}");
    }
    let definitions = world.in_plane("apiextensions.k8s.io", "CustomResourceDefinition")?;
    let definition = definitions.get("works.work.karmada.io").await?;
    let version = definition.annotations().get("clusterwright.dev/version");
    ensure!(version.map(String::as_str) == Some(VERSION), "{version:?}");

    world.patch(json!({"spec": {"version": FORMER}})).await?;
    world.until("refused", async |world| Ok(reason(world).await? == "UpgradeNotReversible")).await?;
    world.patch(json!({"spec": {"version": VERSION}})).await?;
    world.until("at rest again", async |world| Ok(reason(world).await? == "UpToDate")).await?;
    Ok(())
}
