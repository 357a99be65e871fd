//! What is broken in the metadata cluster: a node, and the operator that leads.

use std::time::Duration;

use anyhow::{Context, Result, bail};
use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Namespace, Node as NodeObject, Pod};
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams};
use kube::{Client, ResourceExt};
use lab::Lab;
use lab::machines::{self, Machine};
use lab::metadata::NODES;
use lab::place::Place;
use serde_json::json;
use tokio::task::block_in_place;

use crate::client::client_of;
use crate::eventually::{Look, eventually};
use crate::workload;

const NAMESPACE: &str = "clusterwright-system";
const LEASE: &str = "clusterwright-operator";
const NODE_SELECTOR: &str = "scheduler.alpha.kubernetes.io/node-selector";

/// A client of the metadata cluster, as its administrator.
pub async fn administrator() -> Result<Client> {
    let lab = block_in_place(Lab::open)?;
    client_of(&std::fs::read_to_string(lab.kubeconfig()).context("failed to read the kubeconfig")?).await
}

/// A node of the metadata cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Node(&'static str);

impl Node {
    /// The one that is a machine, and so can lose its power.
    pub const LOSSY: Self = Self(NODES[1].0);
    /// The one that stays.
    pub const STEADY: Self = Self(NODES[0].0);

    /// Its machine.
    pub fn machine(self) -> Result<Machine> {
        machines::find(&Place::from_env(), self.0)
    }

    /// Starts it and waits until it is Ready.
    pub async fn start(self, client: &Client) -> Result<()> {
        block_in_place(|| self.machine()?.start())?;
        let api: Api<NodeObject> = Api::all(client.clone());
        eventually(&format!("node {} Ready", self.0), Duration::from_secs(120), async || {
            let node = api.get(self.0).await?;
            Ok(if workload::is_ready(&node) { Look::Done(()) } else { Look::Waiting("it is not".into()) })
        })
        .await
    }
}

/// Keeps a namespace's new Pods to one node, or to none.
pub async fn keep_to(client: &Client, namespace: &str, node: Option<Node>) -> Result<()> {
    let selector = node.map(|node| format!("kubernetes.io/hostname={}", node.0));
    let patch = Patch::Merge(json!({"metadata": {"annotations": {NODE_SELECTOR: selector}}}));
    Api::<Namespace>::all(client.clone())
        .patch(namespace, &PatchParams::default(), &patch)
        .await
        .with_context(|| format!("failed to keep the Pods of {namespace} to a node"))?;
    Ok(())
}

/// Keeps the operators to the node that stays, so that a lost node takes none of them away, or lets them go.
pub async fn keep_operators(client: &Client, kept: bool) -> Result<()> {
    keep_to(client, NAMESPACE, kept.then_some(Node::STEADY)).await?;
    let elsewhere = |pod: &&Pod| {
        let node = pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref());
        kept && node != Some(Node::STEADY.0)
    };
    for pod in operators(client).await?.iter().filter(elsewhere) {
        delete_operator(client, &pod.name_any()).await?;
    }
    rested_operators(client).await
}

/// Starts the node that was lost, if it does not run.
pub async fn start_node(client: &Client) -> Result<()> {
    let node = Node::LOSSY;
    if block_in_place(|| node.machine())?.init().is_none() {
        node.start(client).await?;
    }
    Ok(())
}

/// The operator's Pods that nobody deletes, and that have not ended: one that was evicted stays as an object.
async fn operators(client: &Client) -> Result<Vec<Pod>> {
    let pods: Api<Pod> = Api::namespaced(client.clone(), NAMESPACE);
    let ours = ListParams::default().labels("app.kubernetes.io/name=clusterwright-operator");
    let mut pods = pods.list(&ours).await?.items;
    let phase = |pod: &Pod| pod.status.as_ref().and_then(|status| status.phase.clone()).unwrap_or_default();
    pods.retain(|pod| {
        pod.metadata.deletion_timestamp.is_none() && !["Failed", "Succeeded"].contains(&phase(pod).as_str())
    });
    Ok(pods)
}

/// Puts new Pods in the place of operators that have been restarted: each further restart would wait longer, up to five
/// minutes, for what is the tests' own doing.
pub async fn rested_operators(client: &Client) -> Result<()> {
    let from = Timestamp::now();
    for pod in operators(client).await?.iter().filter(|pod| !is_rested(pod)) {
        delete_operator(client, &pod.name_any()).await?;
    }
    eventually("rested operators", Duration::from_secs(90), async || {
        let pods = operators(client).await?;
        let ready = |pod: &Pod| {
            let statuses = pod.status.iter().flat_map(|status| status.container_statuses.iter().flatten());
            statuses.filter(|container| container.ready).count() == 1
        };
        let well = !pods.is_empty() && pods.iter().all(|pod| is_rested(pod) && ready(pod));
        Ok(if well && leader_is_back(client, from).await? {
            Look::Done(())
        } else {
            Look::Waiting(format!("{} Pods, not all Ready", pods.len()))
        })
    })
    .await
}

fn is_rested(pod: &Pod) -> bool {
    let statuses = pod.status.iter().flat_map(|status| status.container_statuses.iter().flatten());
    statuses.map(|container| container.restart_count).sum::<i32>() == 0
}

/// The Pod of the operator that leads, and the name that it leads under.
pub async fn leader(client: &Client) -> Result<(Pod, String)> {
    let alive = operators(client).await?;
    let holder = holder(client).await?.map(|(holder, _)| holder).unwrap_or_default();
    let leads = |pod: &&Pod| holder.starts_with(&pod.name_any());
    match alive.iter().find(leads) {
        Some(pod) => Ok((pod.clone(), holder)),
        None => bail!("none of {} operators leads (the Lease is {holder:?}'s)", alive.len()),
    }
}

/// Whether an operator has led at some time after this one.
async fn leader_is_back(client: &Client, after: Timestamp) -> Result<bool> {
    another_leads(client, "", after).await
}

/// Whether another operator than this one has led at some time after this one.
pub async fn another_leads(client: &Client, than: &str, after: Timestamp) -> Result<bool> {
    let (holder, renewed) = holder(client).await?.unwrap_or_default();
    Ok(!holder.is_empty() && holder != than && renewed.is_some_and(|renewed| renewed > after))
}

async fn holder(client: &Client) -> Result<Option<(String, Option<Timestamp>)>> {
    let leases: Api<Lease> = Api::namespaced(client.clone(), NAMESPACE);
    let lease = leases.get_opt(LEASE).await?;
    Ok(lease
        .and_then(|lease| lease.spec)
        .map(|spec| (spec.holder_identity.unwrap_or_default(), spec.renew_time.map(|time| time.0))))
}

/// Deletes a Pod of the operator.
pub async fn delete_operator(client: &Client, pod: &str) -> Result<()> {
    delete_pod(&Api::namespaced(client.clone(), NAMESPACE), pod).await
}

/// Deletes a Pod, if it is there.
pub async fn delete_pod(pods: &Api<Pod>, pod: &str) -> Result<()> {
    match pods.delete(pod, &DeleteParams::default()).await {
        Ok(_) => Ok(()),
        Err(kube::Error::Api(status)) if status.is_not_found() => Ok(()),
        Err(error) => Err(error).with_context(|| format!("failed to delete Pod {pod}")),
    }
}
