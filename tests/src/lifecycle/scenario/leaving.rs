//! A worker leaves while a PodDisruptionBudget holds its Pods.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use crds::host::HostPhase;
use crds::names::{annotation, condition};
use crds::step::Role;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams};
use kube::{Client, ResourceExt};
use serde_json::json;

use super::Seen;
use crate::client::apply;
use crate::eventually::{Look, eventually};
use crate::lifecycle::guards;
use crate::lifecycle::stage::{POOL, Stage, host_of};
use crate::workload::IMAGE;

const APP: &str = "guarded";

/// The budget allows no eviction until there is a second Pod; the removal waits and says for what.
pub async fn shrink_with_budget(stage: &mut Stage<'_>) -> Result<Seen> {
    if stage.members(Role::Worker).await?.len() < 2 {
        stage.workers(2).await?;
        stage.ready(3).await?;
    }
    let before = stage.members(Role::Worker).await?;
    let leaver = before.last().context("there is no worker")?;
    let host = host_of(leaver).context("the worker has no Host")?.to_owned();
    let client = stage.client().await?;
    let pod = guarded_pod(&client, &host).await?;
    let rest = stage.in_use().await?;
    let rest: Vec<_> = rest.into_iter().filter(|machine| machine.name() != host).collect();
    let guards_before = guards::lengths(&rest);

    stage.annotate(leaver, annotation::DELETE_FIRST, "").await?;
    let began = Instant::now();
    stage.workers(before.len() - 1).await?;
    let said = stage.says(&leaver.name_any(), condition::DRAINED, &[&pod, APP], Duration::from_secs(60)).await?;
    stage.scenario.say(&said);
    let nodes: Api<Node> = Api::all(client.clone());
    let node = nodes.get(&host).await.context("the node is gone before its Pods are")?;
    let cordoned = node.spec.and_then(|spec| spec.unschedulable) == Some(true);
    ensure!(cordoned, "the node that leaves takes Pods");
    tokio::time::sleep(Duration::from_secs(5)).await;
    let pods: Api<Pod> = Api::namespaced(client.clone(), "default");
    let held = pods.get(&pod).await.context("the Pod went in spite of its budget")?;
    ensure!(held.metadata.deletion_timestamp.is_none(), "the Pod goes in spite of its budget");

    let free = Instant::now();
    let deployments: Api<Deployment> = Api::namespaced(client.clone(), "default");
    let two = Patch::Merge(json!({"spec": {"replicas": 2}}));
    deployments.patch(APP, &PatchParams::default(), &two).await?;
    stage.gone(leaver, Duration::from_secs(180)).await?;
    let left = free.elapsed();
    ensure!(nodes.get_opt(&host).await?.is_none(), "the Node of {host} is still there");
    stage.host_is(&host, HostPhase::Available, POOL).await?;
    stage.ready(before.len()).await?;
    let seen = Seen::since(
        began,
        format!("the budget was named; {:.0} s from its consent to the removal", left.as_secs_f64()),
    );
    guards::untouched(&rest, &guards_before)?;
    deployments.delete(APP, &DeleteParams::default()).await?;
    Ok(seen)
}

/// A Pod on the node whose budget forbids its eviction; gives its name.
async fn guarded_pod(client: &Client, node: &str) -> Result<String> {
    let prefers = json!([{"weight": 100, "preference": {
        "matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": [node]}],
    }}]);
    let deployment = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"namespace": "default", "name": APP},
        "spec": {
            "replicas": 1, "selector": {"matchLabels": {"app": APP}},
            "template": {
                "metadata": {"labels": {"app": APP}},
                "spec": {
                    "terminationGracePeriodSeconds": 0,
                    "affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": prefers}},
                    "containers": [{"name": APP, "image": IMAGE, "command": ["sleep", "100000"]}],
                },
            },
        },
    });
    let budget = json!({
        "apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"namespace": "default", "name": APP},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": APP}}},
    });
    apply(client, &deployment).await?;
    apply(client, &budget).await?;
    let pods: Api<Pod> = Api::namespaced(client.clone(), "default");
    let ours = ListParams::default().labels(&format!("app={APP}"));
    eventually("the guarded Pod runs", Duration::from_secs(60), async || {
        let found = pods.list(&ours).await?.items.into_iter().next();
        let found = found.context("there is none yet")?;
        let phase = found.status.as_ref().and_then(|status| status.phase.clone());
        let there = found.spec.as_ref().and_then(|spec| spec.node_name.clone());
        Ok(match (phase.as_deref(), there.as_deref()) {
            (Some("Running"), Some(there)) if there == node => Look::Done(found.name_any()),
            seen => Look::Waiting(format!("{seen:?}")),
        })
    })
    .await
}
