//! A cluster gets another version of Kubernetes, under a client that writes and a workload with a budget.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use crds::step::Role;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, ListParams};
use kube::{Client, ResourceExt};
use serde_json::json;

use super::Seen;
use super::control_plane::no_longer_than_an_election;
use crate::client::apply;
use crate::eventually::{Look, eventually};
use crate::lifecycle::guards;
use crate::lifecycle::stage::{CLUSTER, Stage};
use crate::lifecycle::whole::{api_servers, etcd_members, healthy};
use crate::lifecycle::writer::Writer;
use crate::objects::{NEWER, OLDER, VERSION};
use crate::upgrades;
use crate::workload::IMAGE;

/// Three control planes and two workers, one after the other, each drained.
const UPGRADED: Duration = Duration::from_secs(1500);
const APP: &str = "kept";
/// Pods of the workload, and how many its budget keeps.
const REPLICAS: i32 = 3;
const KEPT: i32 = 2;

/// A later patch: nothing is drained, and no Pod but those of the control plane starts anew.
pub async fn patch(stage: &mut Stage<'_>) -> Result<Seen> {
    let client = stage.client().await?;
    workload(&client).await?;
    running(&client).await?;
    let before = pods(&client).await?;
    let seen = upgraded(stage, OLDER).await?;
    let after = pods(&client).await?;
    ensure!(before == after, "Pods and their restarts were {before:?}, and are {after:?}");
    Ok(seen)
}

/// From the lab's older minor to the one that all other clusters have.
pub async fn next_minor(stage: &mut Stage<'_>) -> Result<Seen> {
    upgraded(stage, VERSION).await
}

/// The minor after that.
pub async fn newer_minor(stage: &mut Stage<'_>) -> Result<Seen> {
    if stage.wish["spec"]["kubernetesVersion"] != VERSION {
        upgraded(stage, VERSION).await?;
    }
    upgraded(stage, NEWER).await
}

async fn upgraded(stage: &mut Stage<'_>, to: &str) -> Result<Seen> {
    let client = stage.client().await?;
    workload(&client).await?;
    running(&client).await?;
    let before = stage.wish["spec"]["kubernetesVersion"].as_str().unwrap_or_default().to_owned();
    let planes = stage.members(Role::ControlPlane).await?.len();
    stage.connected().await?;
    let writer = Writer::to(stage.scenario, CLUSTER).await?;
    let began = Instant::now();
    stage.wish["spec"]["kubernetesVersion"] = json!(to);
    stage.apply().await?;
    let mut fewest = REPLICAS;
    upgrades::brought(stage.scenario, CLUSTER, to, UPGRADED, async || {
        // Unknown while the API of a cluster with one control plane is away.
        fewest = fewest.min(ready_pods(&client).await.unwrap_or(fewest));
    })
    .await?;
    let took = began.elapsed();
    let written = writer.written();
    let nodes = stage.ready(planes + stage.workers_wished()).await?;
    stage.connected().await?;
    upgrades::is_everywhere(&client, &nodes, to).await?;
    stage.stays_without_kube_proxy().await?;
    etcd_as_wanted(stage).await?;
    api_servers(stage, planes).await?;
    healthy(stage.scenario, CLUSTER).await?;
    ensure!(fewest >= KEPT, "{fewest} Pods were ready at a time, and the budget keeps {KEPT}");
    if planes > 1 {
        no_longer_than_an_election(&written)?;
    }
    guards::hold(&stage.machines)?;
    Ok(Seen {
        took,
        text: format!("{before} -> {to}; {}; at least {fewest} of {REPLICAS} Pods were ready", written.told()),
    })
}

/// Each member of etcd runs the version that is frozen for the cluster.
pub(super) async fn etcd_as_wanted(stage: &Stage<'_>) -> Result<()> {
    let dedicated = stage.members(Role::Etcd).await?;
    let role = if dedicated.is_empty() { Role::ControlPlane } else { Role::Etcd };
    let members = stage.members(role).await?;
    etcd_members(stage, role, members.len()).await?;
    let components = stage.deployment().await?.status.unwrap_or_default().components;
    let wanted = components.iter().find(|component| component.name == "etcd").context("status has no etcd")?;
    for member in &members {
        let said = stage.scenario.ssh(&stage.machine_of(member)?, RUNNING_ETCD).await?;
        ensure!(said.contains(&wanted.version), "{} runs {said}, and {} is wanted", member.name_any(), wanted.version);
    }
    Ok(())
}

/// What the process of etcd says of itself, whatever file has its place by now.
pub(super) const RUNNING_ETCD: &str = "/proc/$(pidof -s etcd)/exe --version | head -n 1";

async fn running(client: &Client) -> Result<()> {
    eventually("the workload runs", Duration::from_secs(120), async || {
        let ready = ready_pods(client).await?;
        Ok(if ready == REPLICAS { Look::Done(()) } else { Look::Waiting(format!("{ready} Pods are ready")) })
    })
    .await
}

async fn ready_pods(client: &Client) -> Result<i32> {
    let deployments: Api<Deployment> = Api::namespaced(client.clone(), "default");
    let status = deployments.get(APP).await?.status.unwrap_or_default();
    Ok(status.ready_replicas.unwrap_or_default())
}

/// The workload's Pods, with how often their containers were restarted.
async fn pods(client: &Client) -> Result<BTreeMap<String, i32>> {
    let pods: Api<Pod> = Api::namespaced(client.clone(), "default");
    let restarts = |pod: &Pod| {
        let statuses = pod.status.iter().flat_map(|status| status.container_statuses.iter().flatten());
        statuses.map(|status| status.restart_count).sum()
    };
    let list = pods.list(&ListParams::default().labels(&format!("app={APP}"))).await?;
    Ok(list.items.iter().map(|pod| (pod.name_any(), restarts(pod))).collect())
}

async fn workload(client: &Client) -> Result<()> {
    let spread = json!([{
        "maxSkew": 1, "topologyKey": "kubernetes.io/hostname", "whenUnsatisfiable": "ScheduleAnyway",
        "labelSelector": {"matchLabels": {"app": APP}},
    }]);
    apply(
        client,
        &json!({
            "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"namespace": "default", "name": APP},
            "spec": {
                "replicas": REPLICAS, "selector": {"matchLabels": {"app": APP}},
                "template": {
                    "metadata": {"labels": {"app": APP}},
                    "spec": {
                        "terminationGracePeriodSeconds": 0, "topologySpreadConstraints": spread,
                        "containers": [{"name": APP, "image": IMAGE, "command": ["sleep", "100000"]}],
                    },
                },
            },
        }),
    )
    .await?;
    apply(
        client,
        &json!({
            "apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"namespace": "default", "name": APP},
            "spec": {"minAvailable": KEPT, "selector": {"matchLabels": {"app": APP}}},
        }),
    )
    .await?;
    Ok(())
}
