//! The metadata cluster is set back to a snapshot of before machines came, went, and moved to another cluster.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use crds::names::{annotation, condition};
use crds::step::Role;
use crds::{ClusterDeployment, Host, Reason, conditions};
use k8s_openapi::api::core::v1::Node;
use kube::api::{Api, ListParams};
use serde_json::json;
use tokio::task::block_in_place;

use super::Seen;
use crate::eventually::{Look, eventually};
use crate::lifecycle::guards;
use crate::lifecycle::stage::{CLUSTER, POOL, READY, Stage, host_of};
use crate::objects;

/// The cluster that a machine moves to.
const OTHER: &str = "d";
/// Its Pods' network: the machines share one.
const OTHER_NETWORK: &str = "10.142.0.0/16";
/// A younger snapshot is not noticed by the age of the operator's Lease in it (`plan::store::GAP`).
const OLD: Duration = Duration::from_secs(150);
/// The operator is back, and has looked at every Host.
const FOUND: Duration = Duration::from_secs(300);
/// For so long nothing is done.
const STILL: Duration = Duration::from_secs(120);

/// A worker joins, all workers leave, another cluster takes their Host; then it is as if none of that had been.
pub async fn yesterday(stage: &mut Stage<'_>) -> Result<Seen> {
    let worker = stage.members(Role::Worker).await?;
    let moves = worker.first().and_then(host_of).context("there is no worker on a Host")?.to_owned();
    let directory = tempfile::tempdir()?;
    let snapshot = directory.path().join("metadata.db");
    block_in_place(|| stage.scenario.lab().metadata().snapshot(&snapshot))?;
    let taken = Instant::now();

    stage.workers(2).await?;
    stage.ready(3).await?;
    stage.workers(0).await?;
    stage.ready(1).await?;
    stage.available(2).await?;
    let mut other = objects::cluster(&stage.scenario.name, OTHER, OTHER_NETWORK, &[], &[]);
    other["spec"]["controlPlane"] = json!({"replicas": 1, "hosts": [&moves]});
    other["spec"]["workers"] = json!([]);
    stage.scenario.apply(&other).await?;
    stage.scenario.ready(OTHER, READY).await?;
    let of_other = stage.scenario.cluster_client(OTHER).await?;

    tokio::time::sleep(OLD.saturating_sub(taken.elapsed())).await;
    let lines = guards::lengths(&stage.machines);
    let began = Instant::now();
    block_in_place(|| stage.scenario.lab().metadata().set_back(&snapshot))?;
    let (asked, said) = contradiction(stage).await?;
    let found = began.elapsed();
    stage.scenario.say(&said);
    ensure!(said.contains(&format!("{moves}: ")) && said.contains(OTHER), "{said}");
    let host = stage.scenario.api::<Host>().get(&moves).await?;
    let status = host.status.unwrap_or_default();
    ensure!(conditions::is_true(&status.conditions, condition::STORE_IS_OLDER), "Host {moves} says nothing of it");
    tokio::time::sleep(STILL).await;
    guards::untouched(&stage.machines, &lines)?;

    stage.wish["spec"]["workers"][0]["replicas"] = json!(1);
    stage.say(annotation::APPROVE, &asked).await?;
    stage.ready(2).await?;
    let host = stage.scenario.api::<Host>().get(&moves).await?;
    ensure!(host.spec.claim_ref.is_none() && host.spec.quarantine.is_some(), "Host {moves} is not let go");
    let nodes = Api::<Node>::all(of_other).list(&ListParams::default()).await?;
    ensure!(nodes.items.len() == 1, "{OTHER} has {} Nodes", nodes.items.len());
    guards::hold(&stage.machines)?;
    Ok(Seen::since(began, format!("found after {:.0} s, Ready after the approval", found.as_secs_f64())))
}

/// What the cluster says of the store, and the approval that it asks for.
async fn contradiction(stage: &Stage<'_>) -> Result<(String, String)> {
    let api = stage.scenario.api::<ClusterDeployment>();
    eventually("StoreIsOlder of the cluster", FOUND.max(POOL), async || {
        // The API may just be starting.
        let Ok(deployment) = api.get(CLUSTER).await else { return Ok(Look::Waiting("no answer".to_owned())) };
        let status = deployment.status.unwrap_or_default();
        let Some(older) = conditions::find(&status.conditions, condition::STORE_IS_OLDER) else {
            return Ok(Look::Waiting("nothing is said of the store".to_owned()));
        };
        let asked = older.message.rsplit_once("clusterwright.dev/approve=").map(|(_, value)| value.trim().to_owned());
        Ok(match asked.filter(|_| older.reason == Reason::MachineIsNewer) {
            Some(asked) => Look::Done((asked, older.message.clone())),
            None => Look::Waiting(older.message.clone()),
        })
    })
    .await
}
