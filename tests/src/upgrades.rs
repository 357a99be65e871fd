//! An upgrade of Kubernetes as it is watched: what STATUS says until every machine has the version, and whether it has.

use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use crds::names::condition;
use crds::{ClusterDeployment, Conditions};
use k8s_openapi::api::core::v1::Node;
use kube::{Client, ResourceExt};

use crate::eventually::{Look, eventually};
use crate::scenario::Scenario;

/// Waits until every machine of the cluster has the version, and says what STATUS says until then.
pub async fn brought(
    scenario: &Scenario,
    cluster: &str,
    to: &str,
    deadline: Duration,
    mut meanwhile: impl AsyncFnMut(),
) -> Result<()> {
    let api = scenario.api::<ClusterDeployment>();
    let mut told = String::new();
    let gave_up = eventually("every machine has the version", deadline, async || {
        meanwhile().await;
        let deployment = api.get(cluster).await?;
        let message = deployment.status.as_ref().and_then(|status| status.message.clone()).unwrap_or_default();
        if message != told {
            scenario.say(&message);
            told.clone_from(&message);
        }
        let failed = deployment.condition(condition::UP_TO_DATE).filter(|said| said.reason == "UpgradeFailed");
        if failed.is_some_and(|failed| failed.message.contains("after 3 attempts")) {
            return Ok(Look::Done(Some(message)));
        }
        Ok(if is_upgraded(&deployment, to) { Look::Done(None) } else { Look::Waiting(message) })
    })
    .await?;
    match gave_up {
        Some(message) => bail!("the upgrade failed: {message}"),
        None => Ok(()),
    }
}

fn is_upgraded(deployment: &ClusterDeployment, to: &str) -> bool {
    let status = deployment.status.as_ref();
    let is_seen = status.is_some_and(|status| status.observed_generation == deployment.metadata.generation);
    is_seen
        && deployment.is_true(condition::UP_TO_DATE)
        && status.and_then(|status| status.kubernetes_version.as_deref()) == Some(to)
}

/// The API server and the kubelets of these Nodes have the version, and the Nodes take Pods.
pub async fn is_everywhere(client: &Client, nodes: &[Node], to: &str) -> Result<()> {
    let wanted = format!("v{to}");
    for node in nodes {
        let version = node.status.as_ref().and_then(|status| status.node_info.as_ref());
        let version = version.map(|info| info.kubelet_version.clone()).unwrap_or_default();
        ensure!(version == wanted, "the kubelet of {} is {version}", node.name_any());
        let is_open = node.spec.as_ref().is_none_or(|spec| !spec.unschedulable.unwrap_or_default());
        ensure!(is_open, "{} takes no Pods", node.name_any());
    }
    let served = client.apiserver_version().await.context("ask the API server for its version")?.git_version;
    ensure!(served == wanted, "the API server says {served}");
    Ok(())
}
