//! The nodes of a cluster, simulated: each Pod that the scheduler has given a Node is said to run there. A Pod costs
//! the API server one write of its status, where a kubelet makes some; nobody renews Leases of Nodes.

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::{Context, Result};
use futures::{StreamExt, TryStreamExt, stream};
use k8s_openapi::api::core::v1::{Container, Node, Pod, PodSpec};
use kube::api::{Api, DeleteParams, PostParams};
use kube::core::PartialObjectMeta;
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Client, ResourceExt};
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use crate::karmada::node::status::{Process, status};

/// Pods that a Node takes.
pub const PODS_OF_NODE: usize = 110;
/// Requests at once.
const AT_ONCE: usize = 32;
/// Pods that have a Node and do not run yet.
const WAITING: &str = "spec.nodeName!=,status.phase=Pending";
/// Pods that have a Node.
const BOUND: &str = "spec.nodeName!=";

/// The kubelets of a cluster, for as long as this is kept.
pub struct Kubelets {
    running: Arc<AtomicUsize>,
    task: JoinHandle<()>,
}

impl Kubelets {
    /// Registers so many Nodes, and begins to run Pods.
    pub async fn start(client: &Client, nodes: usize) -> Result<Self> {
        let api: Api<Node> = Api::all(client.clone());
        let registered = stream::iter(0..nodes).map(|number| {
            let api = api.clone();
            async move {
                let node = serde_json::from_value(node(number))?;
                let created = api.create(&PostParams::default(), &node).await;
                created.with_context(|| format!("failed to register Node {number}")).map(drop)
            }
        });
        registered.buffer_unordered(AT_ONCE).try_collect::<()>().await?;
        let running = Arc::new(AtomicUsize::new(0));
        let task = tokio::spawn(run(client.clone(), running.clone()));
        Ok(Self { running, task })
    }

    /// Pods that run.
    pub fn running(&self) -> usize {
        self.running.load(Ordering::SeqCst)
    }
}

impl Drop for Kubelets {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// What a kubelet does last: Pods that are to be deleted are gone, for as long as this is kept.
pub struct Terminating(JoinHandle<()>);

impl Terminating {
    /// Begins to look for them; it sees each change of a Pod.
    pub fn start(client: Client) -> Self {
        Self(tokio::spawn(end(client)))
    }
}

impl Drop for Terminating {
    fn drop(&mut self) {
        self.0.abort();
    }
}

async fn end(client: Client) {
    let pods: Api<PartialObjectMeta<Pod>> = Api::all(client.clone());
    let changed = watcher(pods, watcher::Config::default().fields(BOUND)).default_backoff();
    // One that is gone already is what is wanted.
    let ended = changed.touched_objects().filter_map(async |pod| pod.ok()).for_each_concurrent(AT_ONCE, |pod| {
        let pods: Api<Pod> = Api::namespaced(client.clone(), &pod.namespace().unwrap_or_default());
        async move {
            if pod.metadata.deletion_timestamp.is_some() {
                let _ = pods.delete(&pod.name_any(), &DeleteParams::default().grace_period(0)).await;
            }
        }
    });
    ended.await;
}

async fn run(client: Client, running: Arc<AtomicUsize>) {
    let pods: Api<PartialObjectMeta<Pod>> = Api::all(client.clone());
    let waiting = watcher(pods, watcher::Config::default().fields(WAITING)).default_backoff();
    // A watch that breaks off begins anew.
    let waiting = waiting.applied_objects().filter_map(async |pod| pod.ok());
    let waiting = waiting.enumerate();
    let started = waiting.for_each_concurrent(AT_ONCE, |(number, pod)| {
        let (client, running) = (client.clone(), running.clone());
        async move {
            match start(&client, &pod, number).await {
                Ok(()) => drop(running.fetch_add(1, Ordering::SeqCst)),
                Err(error) => println!("Pod {}: {error:#}", pod.name_any()),
            }
        }
    });
    started.await;
}

/// Says that it runs. Nobody reads the answer, so it is short.
async fn start(client: &Client, pod: &PartialObjectMeta<Pod>, number: usize) -> Result<()> {
    let container = Container { name: "web".into(), image: Some("web.test/web:1".into()), ..Container::default() };
    let spec = Some(PodSpec { containers: vec![container], ..PodSpec::default() });
    let whole = Pod { metadata: pod.metadata.clone(), spec, status: None };
    let process = Process { is_ready: true, ..Process::default() };
    let body = status(&whole, &process, address(number)?);
    let path = format!("/api/v1/namespaces/{}/pods/{}/status", pod.namespace().unwrap_or_default(), pod.name_any());
    let request = http::Request::patch(path)
        .header("content-type", "application/merge-patch+json")
        .header("accept", "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1")
        .body(serde_json::to_vec(&body)?)?;
    client.request_text(request).await.context("failed to say that it runs").map(drop)
}

/// Each has one of its own.
fn address(number: usize) -> Result<Ipv4Addr> {
    let number = u32::try_from(number)?;
    Ok(Ipv4Addr::from(u32::from(Ipv4Addr::new(10, 64, 0, 1)) + number))
}

/// A Node with room for as many Pods as one has by default.
fn node(number: usize) -> Value {
    let name = format!("node-{number:04}");
    let room = json!({"cpu": "32", "memory": "128Gi", "pods": PODS_OF_NODE.to_string()});
    let ready = json!({"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "simulated"});
    json!({
        "apiVersion": "v1", "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}},
        "status": {"capacity": room, "allocatable": room, "conditions": [ready]},
    })
}

#[cfg(test)]
mod tests {
    use super::{address, node};

    #[test]
    fn every_pod_has_an_address_of_its_own() {
        assert_eq!(address(0).unwrap().to_string(), "10.64.0.1");
        assert_eq!(address(40_000).unwrap().to_string(), "10.64.156.65");
    }

    #[test]
    fn a_node_is_ready_and_has_room() {
        let node: k8s_openapi::api::core::v1::Node = serde_json::from_value(node(7)).unwrap();
        let status = node.status.unwrap();
        assert_eq!(status.allocatable.unwrap()["pods"].0, "110");
        assert!(status.conditions.unwrap().iter().any(|one| one.type_ == "Ready" && one.status == "True"));
    }
}
