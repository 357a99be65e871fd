//! What is broken in the metadata cluster: a node, and the operator that leads.

use std::time::Duration;

use anyhow::{Context, Result, bail};
use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Node as NodeObject, Pod};
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams};
use kube::{Client, ResourceExt};
use lab::machines::{self, Machine};
use lab::metadata::NODES;
use lab::place::Place;
use serde_json::json;
use tokio::task::block_in_place;

use crate::eventually::{Look, eventually};
use crate::workload;

const NAMESPACE: &str = "clusterwright-system";
const LEASE: &str = "clusterwright-operator";

/// A node of the metadata cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Node(&'static str);

impl Node {
    /// The one that is a machine, and so can lose its power.
    pub fn lossy() -> Self {
        Self(NODES[1].0)
    }

    /// Its machine.
    pub fn machine(self) -> Result<Machine> {
        machines::find(&Place::from_env(), self.0)
    }

    /// Starts it and waits until it is Ready.
    pub async fn start(self, client: &Client) -> Result<()> {
        block_in_place(|| self.machine()?.start())?;
        let api: Api<NodeObject> = Api::all(client.clone());
        eventually(
            &format!("node {} Ready", self.0),
            Duration::from_secs(120),
            async || {
                let node = api.get(self.0).await?;
                Ok(if workload::is_ready(&node) {
                    Look::Done(())
                } else {
                    Look::Waiting("it is not".into())
                })
            },
        )
        .await
    }
}

/// Lets new Pods run on this node only.
pub async fn use_only(client: &Client, node: Node) -> Result<()> {
    for (name, _) in NODES {
        schedulable(client, name, name == node.0).await?;
    }
    Ok(())
}

/// Lets Pods run on all nodes, and starts what does not run.
pub async fn use_all_nodes(client: &Client) -> Result<()> {
    for (name, _) in NODES {
        schedulable(client, name, true).await?;
    }
    let node = Node::lossy();
    if block_in_place(|| node.machine())?.init().is_none() {
        node.start(client).await?;
    }
    Ok(())
}

async fn schedulable(client: &Client, node: &str, wanted: bool) -> Result<()> {
    let api: Api<NodeObject> = Api::all(client.clone());
    let patch = Patch::Merge(json!({"spec": {"unschedulable": !wanted}}));
    api.patch(node, &PatchParams::default(), &patch)
        .await
        .with_context(|| format!("failed to say whether {node} takes Pods"))?;
    Ok(())
}

/// The operator's Pods that nobody deletes.
async fn operators(client: &Client) -> Result<Vec<Pod>> {
    let pods: Api<Pod> = Api::namespaced(client.clone(), NAMESPACE);
    let ours = ListParams::default().labels("app.kubernetes.io/name=clusterwright-operator");
    let mut pods = pods.list(&ours).await?.items;
    pods.retain(|pod| pod.metadata.deletion_timestamp.is_none());
    Ok(pods)
}

/// Puts new Pods in the place of operators that have been restarted: each further restart would wait longer, up to five
/// minutes, for what is the tests' own doing.
pub async fn rested_operators(client: &Client) -> Result<()> {
    let from = Timestamp::now();
    for pod in operators(client).await?.iter().filter(|pod| !is_rested(pod)) {
        delete_pod(client, &pod.name_any()).await?;
    }
    eventually("rested operators", Duration::from_secs(90), async || {
        let pods = operators(client).await?;
        let ready = |pod: &Pod| {
            let statuses = pod
                .status
                .iter()
                .flat_map(|status| status.container_statuses.iter().flatten());
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
    let statuses = pod
        .status
        .iter()
        .flat_map(|status| status.container_statuses.iter().flatten());
    statuses.map(|container| container.restart_count).sum::<i32>() == 0
}

/// The Pod of the operator that leads.
pub async fn leader(client: &Client) -> Result<Pod> {
    let alive = operators(client).await?;
    let holder = holder(client)
        .await?
        .map(|(holder, _)| holder)
        .unwrap_or_default();
    let leads = |pod: &&Pod| holder.starts_with(&pod.name_any());
    match alive
        .iter()
        .find(leads)
        .or(alive.first().filter(|_| alive.len() == 1))
    {
        Some(pod) => Ok(pod.clone()),
        None => bail!(
            "none of {} operators leads (the Lease is {holder:?}'s)",
            alive.len()
        ),
    }
}

/// Whether an operator has led at some time after this one.
pub async fn leader_is_back(client: &Client, after: Timestamp) -> Result<bool> {
    Ok(match holder(client).await? {
        Some((holder, renewed)) => !holder.is_empty() && renewed.is_some_and(|renewed| renewed > after),
        None => leader(client).await.is_ok(),
    })
}

async fn holder(client: &Client) -> Result<Option<(String, Option<Timestamp>)>> {
    let leases: Api<Lease> = Api::namespaced(client.clone(), NAMESPACE);
    let lease = leases.get_opt(LEASE).await?;
    Ok(lease.and_then(|lease| lease.spec).map(|spec| {
        (
            spec.holder_identity.unwrap_or_default(),
            spec.renew_time.map(|time| time.0),
        )
    }))
}

/// Deletes a Pod of the operator.
pub async fn delete_pod(client: &Client, pod: &str) -> Result<()> {
    let pods: Api<Pod> = Api::namespaced(client.clone(), NAMESPACE);
    match pods.delete(pod, &DeleteParams::default()).await {
        Ok(_) => Ok(()),
        Err(kube::Error::Api(status)) if status.is_not_found() => Ok(()),
        Err(error) => Err(error).context("failed to delete the operator's Pod"),
    }
}
