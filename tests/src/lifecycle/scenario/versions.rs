//! The version of one component is named, on a running cluster: it comes alone, under a client that writes, and goes
//! again.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use crds::names::condition;
use crds::step::Role;
use crds::{ClusterDeployment, Conditions};
use kube::ResourceExt;
use serde_json::json;

use super::Seen;
use super::control_plane::no_longer_than_an_election;
use super::upgrade::{RUNNING_ETCD, etcd_as_wanted};
use crate::eventually::{Look, eventually};
use crate::lifecycle::guards;
use crate::lifecycle::stage::{CLUSTER, Stage};
use crate::lifecycle::whole::whole;
use crate::lifecycle::writer::Writer;
use crate::upgrades;

/// That of the bundle's table for the older minor of Kubernetes, and the one that the bundle has beside it.
const TABLE: &str = "3.6.14";
const NAMED: &str = "3.6.16";
/// No bundle has it, and no member could go further.
const MISSING: &str = "3.6.99";
/// Three members, one after the other.
const ROLLED_OUT: Duration = Duration::from_secs(600);
/// Three attempts at the first of them.
const REFUSED: Duration = Duration::from_secs(300);

/// etcd of another patch, a version that the bundle lacks, and the table's again.
pub async fn etcd(stage: &mut Stage<'_>) -> Result<Seen> {
    let planes = stage.members(Role::ControlPlane).await?.len();
    let version = stage.wish["spec"]["kubernetesVersion"].as_str().unwrap_or_default().to_owned();
    runs(stage, TABLE).await?;
    let writer = Writer::to(stage.scenario, CLUSTER).await?;
    let began = Instant::now();
    name(stage, Some(NAMED)).await?;
    rolled_out(stage).await?;
    let took = began.elapsed();
    runs(stage, NAMED).await?;
    etcd_as_wanted(stage).await?;
    no_longer_than_an_election(&writer.written())?;

    let before = processes(stage).await?;
    name(stage, Some(MISSING)).await?;
    let words = ["spec.versions.etcd is 3.6.99", TABLE, NAMED];
    let api = stage.scenario.api::<ClusterDeployment>();
    eventually("a version that the bundle lacks is refused", REFUSED, async || {
        let said = api.get(CLUSTER).await?.condition(condition::UP_TO_DATE).cloned();
        let said = said.map(|said| format!("{}: {}", said.reason, said.message)).unwrap_or_default();
        let is_told = said.starts_with("ConfigurationFailed") && words.iter().all(|word| said.contains(word));
        Ok(if is_told { Look::Done(()) } else { Look::Waiting(said) })
    })
    .await?;
    let after = processes(stage).await?;
    ensure!(before == after, "the processes of etcd were {before:?}, and are {after:?}");

    name(stage, None).await?;
    rolled_out(stage).await?;
    runs(stage, TABLE).await?;
    etcd_as_wanted(stage).await?;
    let written = writer.written();
    no_longer_than_an_election(&written)?;
    let nodes = stage.ready(planes + stage.workers_wished()).await?;
    upgrades::is_everywhere(&stage.client().await?, &nodes, &version).await?;
    whole(stage, planes).await?;
    guards::hold(&stage.machines)?;
    Ok(Seen { took, text: format!("{TABLE} -> {NAMED} and back; {}", written.told()) })
}

/// Names a version of etcd; none: that of the bundle's table is wanted.
async fn name(stage: &mut Stage<'_>, version: Option<&str>) -> Result<()> {
    stage.wish["spec"]["versions"] = version.map_or_else(|| json!({}), |version| json!({ "etcd": version }));
    stage.apply().await
}

/// Every machine has what is wanted.
async fn rolled_out(stage: &Stage<'_>) -> Result<()> {
    let api = stage.scenario.api::<ClusterDeployment>();
    let mut last = String::new();
    eventually("every machine has what is wanted", ROLLED_OUT, async || {
        let deployment = api.get(CLUSTER).await?;
        let status = deployment.status.as_ref();
        let message = status.and_then(|status| status.message.clone()).unwrap_or_default();
        if message != last {
            stage.scenario.say(&message);
            last.clone_from(&message);
        }
        let is_seen = status.is_some_and(|status| status.observed_generation == deployment.metadata.generation);
        let is_done = is_seen && deployment.is_true(condition::UP_TO_DATE);
        Ok(if is_done { Look::Done(()) } else { Look::Waiting(message) })
    })
    .await
}

/// Each member runs this version of etcd.
async fn runs(stage: &Stage<'_>, version: &str) -> Result<()> {
    for member in stage.members(Role::ControlPlane).await? {
        let said = stage.scenario.ssh(&stage.machine_of(&member)?, RUNNING_ETCD).await?;
        ensure!(said.contains(version), "{} runs {said}, and {version} is wanted", member.name_any());
    }
    Ok(())
}

/// The process of etcd on each machine.
async fn processes(stage: &Stage<'_>) -> Result<BTreeMap<String, String>> {
    let mut processes = BTreeMap::new();
    for member in stage.members(Role::ControlPlane).await? {
        let process = stage.scenario.ssh(&stage.machine_of(&member)?, "pidof -s etcd").await?;
        processes.insert(member.name_any(), process);
    }
    ensure!(!processes.is_empty(), "there is no control plane");
    Ok(processes)
}
