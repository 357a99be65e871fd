//! A cluster gets the next minor of Kubernetes, under a client that writes and a workload with a budget.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use crds::names::condition;
use crds::step::Role;
use crds::{ClusterDeployment, Conditions};
use k8s_openapi::api::apps::v1::Deployment;
use kube::ResourceExt;
use kube::api::Api;
use serde_json::json;

use super::Seen;
use super::control_plane::no_longer_than_an_election;
use crate::client::apply;
use crate::eventually::{Look, eventually};
use crate::lifecycle::guards;
use crate::lifecycle::stage::{CLUSTER, Stage};
use crate::lifecycle::whole::whole;
use crate::lifecycle::writer::Writer;
use crate::objects::VERSION;
use crate::workload::IMAGE;

/// Three control planes and two workers, one after the other, each drained.
const UPGRADED: Duration = Duration::from_secs(1500);
const APP: &str = "kept";
/// Pods of the workload, and how many its budget keeps.
const REPLICAS: i32 = 3;
const KEPT: i32 = 2;

/// From the lab's older minor to the one that all other clusters have.
pub async fn next_minor(stage: &mut Stage<'_>) -> Result<Seen> {
    let client = stage.client().await?;
    workload(&client).await?;
    let deployments: Api<Deployment> = Api::namespaced(client.clone(), "default");
    let ready = async || {
        let status = deployments.get(APP).await?.status.unwrap_or_default();
        anyhow::Ok(status.ready_replicas.unwrap_or_default())
    };
    eventually("the workload runs", Duration::from_secs(120), async || {
        let ready = ready().await?;
        Ok(if ready == REPLICAS { Look::Done(()) } else { Look::Waiting(format!("{ready} Pods are ready")) })
    })
    .await?;
    let before = stage.wish["spec"]["kubernetesVersion"].as_str().unwrap_or_default().to_owned();
    let planes = stage.members(Role::ControlPlane).await?.len();
    let writer = Writer::to(stage.scenario, CLUSTER).await?;
    let began = Instant::now();
    stage.wish["spec"]["kubernetesVersion"] = json!(VERSION);
    stage.apply().await?;
    let (mut fewest, mut told) = (REPLICAS, String::new());
    eventually("every machine has the version", UPGRADED, async || {
        // Unknown while the API of a cluster with one control plane is away.
        fewest = fewest.min(ready().await.unwrap_or(fewest));
        let deployment = stage.deployment().await?;
        let message = deployment.status.as_ref().and_then(|status| status.message.clone()).unwrap_or_default();
        if message != told {
            stage.scenario.say(&message);
            told.clone_from(&message);
        }
        let failed = deployment.condition(condition::UP_TO_DATE).filter(|said| said.reason == "UpgradeFailed");
        ensure!(failed.is_none_or(|failed| !failed.message.contains("after 3 attempts")), "{message}");
        Ok(if is_upgraded(&deployment) { Look::Done(()) } else { Look::Waiting(message) })
    })
    .await?;
    let took = began.elapsed();
    let written = writer.written();
    let nodes = stage.ready(planes + stage.workers_wished()).await?;
    for node in &nodes {
        let version = node.status.as_ref().and_then(|status| status.node_info.as_ref());
        let version = version.map(|info| info.kubelet_version.clone()).unwrap_or_default();
        ensure!(version == format!("v{VERSION}"), "the kubelet of {} is {version}", node.name_any());
        let is_open = node.spec.as_ref().is_none_or(|spec| !spec.unschedulable.unwrap_or_default());
        ensure!(is_open, "{} takes no Pods", node.name_any());
    }
    let served = client.apiserver_version().await.context("ask the API server for its version")?.git_version;
    ensure!(served == format!("v{VERSION}"), "the API server says {served}");
    whole(stage, planes).await?;
    ensure!(fewest >= KEPT, "{fewest} Pods were ready at a time, and the budget keeps {KEPT}");
    if planes > 1 {
        no_longer_than_an_election(&written)?;
    }
    guards::hold(&stage.machines)?;
    Ok(Seen {
        took,
        text: format!("{before} -> {VERSION}; {}; at least {fewest} of {REPLICAS} Pods were ready", written.told()),
    })
}

fn is_upgraded(deployment: &ClusterDeployment) -> bool {
    let status = deployment.status.as_ref();
    let is_seen = status.is_some_and(|status| status.observed_generation == deployment.metadata.generation);
    is_seen
        && deployment.is_true(condition::UP_TO_DATE)
        && status.and_then(|status| status.kubernetes_version.as_deref()) == Some(VERSION)
}

async fn workload(client: &kube::Client) -> Result<()> {
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
