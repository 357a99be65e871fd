//! What must hold once everything is healed, without any manual action.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use crds::names::condition;
use crds::step::Role;
use crds::{Host, Machine, conditions};
use k8s_openapi::api::core::v1::Node;
use kube::ResourceExt;
use kube::api::{Api, ListParams};

use crate::eventually::{Look, eventually};
use crate::lifecycle::stage::{Stage, host_of};
use crate::lifecycle::{guards, whole};
use crate::{pod_network, workload};

/// How long it may take until all of it holds.
const DEADLINE: Duration = Duration::from_secs(480);

/// Waits until the cluster is as its spec wants it, and says how long that took.
pub async fn converged(stage: &Stage<'_>, endpoint: (&str, u16)) -> Result<Duration> {
    let began = Instant::now();
    let left = || DEADLINE.saturating_sub(began.elapsed());
    eventually("the cluster matches its spec", DEADLINE, async || {
        Ok(match differences(stage).await? {
            differences if differences.is_empty() => Look::Done(()),
            differences => Look::Waiting(differences.join("; ")),
        })
    })
    .await?;
    let control_planes = wanted(stage, "/spec/controlPlane/replicas")?;
    eventually("every member and API server is whole", left(), async || {
        Ok(match whole::whole(stage, control_planes).await {
            Ok(()) => Look::Done(()),
            Err(error) => Look::Waiting(format!("{error:#}")),
        })
    })
    .await?;
    pod_network::connected(&stage.client().await?, Some(endpoint), left()).await?;
    // What was in order may have been so by chance: nothing must begin again.
    let differences = differences(stage).await?;
    ensure!(differences.is_empty(), "it did not stay so: {}", differences.join("; "));
    guards::hold(&stage.machines)?;
    Ok(began.elapsed())
}

/// What is not as it is wanted.
async fn differences(stage: &Stage<'_>) -> Result<Vec<String>> {
    let mut found = Vec::new();
    let deployment = stage.deployment().await?;
    let status = deployment.status.clone().unwrap_or_default();
    let current = status.observed_generation == deployment.metadata.generation;
    if !current || !conditions::is_true(&status.conditions, condition::READY) {
        found.push(format!("not Ready: {}", status.message.unwrap_or_default()));
    }
    let mut machines = Vec::new();
    for (role, path) in
        [(Role::ControlPlane, "/spec/controlPlane/replicas"), (Role::Worker, "/spec/workers/0/replicas")]
    {
        let members = stage.members(role).await?;
        let wanted = wanted(stage, path)?;
        if members.len() != wanted {
            found.push(format!("{} Machines are {}, not {wanted}", members.len(), role.name()));
        }
        machines.extend(members);
    }
    found.extend(nodes_differ(stage, &machines).await?);
    found.extend(orphaned_claims(stage).await?);
    Ok(found)
}

async fn nodes_differ(stage: &Stage<'_>, machines: &[Machine]) -> Result<Option<String>> {
    let wanted: BTreeSet<String> = machines.iter().filter_map(host_of).map(str::to_owned).collect();
    let nodes = Api::<Node>::all(stage.client().await?).list(&ListParams::default()).await?.items;
    let ready: BTreeSet<String> =
        nodes.iter().filter(|node| workload::is_ready(node)).map(ResourceExt::name_any).collect();
    let differ = ready != wanted || nodes.len() != ready.len();
    Ok(differ.then(|| {
        let nodes = workload::node_names(&nodes);
        format!("Nodes {nodes:?}, Ready {ready:?}, Machines on {wanted:?}")
    }))
}

/// Hosts that are claimed by a Machine that is gone.
async fn orphaned_claims(stage: &Stage<'_>) -> Result<Vec<String>> {
    let machines: Api<Machine> = stage.scenario.api();
    let uids: BTreeSet<Option<String>> =
        machines.list(&ListParams::default()).await?.iter().map(ResourceExt::uid).collect();
    let hosts: Api<Host> = stage.scenario.api();
    let hosts = hosts.list(&ListParams::default()).await?;
    let orphaned = hosts.iter().filter_map(|host| {
        let claim = host.spec.claim_ref.as_ref()?;
        let gone = !uids.contains(&Some(claim.uid.clone()));
        gone.then(|| format!("Host {} is claimed by {}, which is gone", host.name_any(), claim.name))
    });
    Ok(orphaned.collect())
}

fn wanted(stage: &Stage<'_>, path: &str) -> Result<usize> {
    let count = stage.wish.pointer(path).and_then(serde_json::Value::as_u64);
    usize::try_from(count.with_context(|| format!("the spec has no {path}"))?).context("too many")
}
