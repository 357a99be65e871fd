//! All machines of a cluster are lost.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use crds::names;
use crds::{ClusterDeployment, Host, Machine};
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::{Namespace, Secret};
use kube::ResourceExt;
use kube::api::{Api, ListParams};
use serde_json::json;

use super::Seen;
use super::losses::FORGOTTEN_AFTER;
use crate::eventually::{Look, eventually};
use crate::lifecycle::stage::{CLUSTER, READY, Stage};

/// How long nothing must have answered.
const LOST_AFTER: u64 = 60;

/// Without a strategy nothing is done, and it is said; with Rebuild spares become the cluster, with the old
/// authorities.
pub async fn rebuild(stage: &mut Stage<'_>) -> Result<Seen> {
    let count = stage.in_use().await?.len();
    let old = stage.in_use().await?;
    let uid = kube_system(stage).await?;
    let authorities = pki(stage).await?;
    stage.wish["spec"]["recovery"] = json!({"strategy": "None", "lostAfterSeconds": LOST_AFTER});
    stage.wish["spec"]["machineRemoval"] = json!({"forceRemoveAfterSeconds": FORGOTTEN_AFTER});
    stage.apply().await?;
    stage.ready(count).await?;
    for machine in &old {
        stage.kill(machine)?;
    }
    let said = eventually("it is said that all is lost", Duration::from_secs(LOST_AFTER + 180), async || {
        let status = stage.deployment().await?.status.unwrap_or_default();
        let texts = status.conditions.iter().map(|c| format!("{}: {}", c.reason, c.message));
        let texts: Vec<String> = texts.chain(status.message.clone()).collect();
        Ok(match texts.iter().find(|text| text.to_lowercase().contains("lost")) {
            Some(text) => Look::Done(text.clone()),
            None => Look::Waiting(texts.join("; ")),
        })
    })
    .await?;
    stage.scenario.say(&said);
    let spare = free_hosts(stage).await?;
    tokio::time::sleep(Duration::from_secs(10)).await;
    ensure!(spare == free_hosts(stage).await?, "spare Hosts were claimed without a strategy");

    let began = Instant::now();
    stage.wish["spec"]["recovery"]["strategy"] = json!("Rebuild");
    stage.apply().await?;
    stage.ready(count).await?;
    let now = stage.in_use().await?;
    ensure!(now.iter().all(|machine| old.iter().all(|lost| lost.name() != machine.name())), "a lost machine is in use");
    ensure!(kube_system(stage).await? != uid, "the new cluster is the old one");
    ensure!(pki(stage).await? == authorities, "the authorities are others");
    Ok(Seen::since(began, format!("said that all was lost; {count} spares are the cluster, authorities kept")))
}

/// All machines are dead, and the cluster is deleted.
pub async fn delete_dead(stage: &mut Stage<'_>) -> Result<Seen> {
    let count = stage.in_use().await?.len();
    stage.wish["spec"]["recovery"] = json!({"strategy": "None", "lostAfterSeconds": 3600});
    stage.wish["spec"]["machineRemoval"] = json!({"forceRemoveAfterSeconds": FORGOTTEN_AFTER});
    stage.apply().await?;
    stage.ready(count).await?;
    for machine in stage.in_use().await? {
        stage.kill(&machine)?;
    }
    let began = Instant::now();
    stage.scenario.delete_cluster(CLUSTER, Duration::from_secs(FORGOTTEN_AFTER + 240)).await?;
    let took = began.elapsed();
    let machines = stage.scenario.api::<Machine>().list(&ListParams::default()).await?;
    ensure!(machines.items.is_empty(), "Machines are left");
    let claimed = stage
        .scenario
        .api::<Host>()
        .list(&ListParams::default())
        .await?
        .into_iter()
        .filter(|host| host.spec.claim_ref.is_some())
        .map(|host| host.name_any())
        .collect::<Vec<_>>();
    ensure!(claimed.is_empty(), "still claimed: {claimed:?}");
    let clusters = stage.scenario.api::<ClusterDeployment>();
    ensure!(clusters.get_opt(CLUSTER).await?.is_none(), "the cluster is still there");
    Ok(Seen { took, text: format!("{count} dead machines; all objects gone, no Host claimed") })
}

async fn kube_system(stage: &Stage<'_>) -> Result<String> {
    let namespaces: Api<Namespace> = Api::all(stage.client().await?);
    eventually("kube-system", READY, async || {
        let found = namespaces.get("kube-system").await?;
        Ok(Look::Done(found.uid().context("it has no UID")?))
    })
    .await
}

async fn pki(stage: &Stage<'_>) -> Result<Option<BTreeMap<String, ByteString>>> {
    let secret = stage.scenario.api::<Secret>().get(&names::pki_secret(CLUSTER)).await?;
    Ok(secret.data)
}

async fn free_hosts(stage: &Stage<'_>) -> Result<Vec<String>> {
    let hosts = stage.scenario.api::<Host>().list(&ListParams::default()).await?;
    let free = hosts.into_iter().filter(|host| host.spec.claim_ref.is_none());
    Ok(free.map(|host| host.name_any()).collect())
}
