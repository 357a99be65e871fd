//! A workload on a new cluster: Pods on two nodes that talk through a Service and its DNS name.

use std::time::Duration;

use anyhow::Result;
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::api::{Api, ListParams};
use kube::{Client, ResourceExt};
use serde_json::json;

use crate::client::apply;
use crate::eventually::{Look, eventually};

/// An image of the bundle with a shell.
pub const IMAGE: &str = "clusterwright.dev/busybox:1.35";

/// Waits until every one of `count` nodes is Ready.
pub async fn nodes_ready(client: &Client, count: usize, deadline: Duration) -> Result<Vec<Node>> {
    let api: Api<Node> = Api::all(client.clone());
    eventually(&format!("{count} nodes Ready"), deadline, async || {
        let nodes = api.list(&ListParams::default()).await?.items;
        let ready = nodes.iter().filter(|node| is_ready(node)).count();
        Ok(if ready == count && nodes.len() == count {
            Look::Done(nodes)
        } else {
            Look::Waiting(format!("{ready} of {} nodes", nodes.len()))
        })
    })
    .await
}

/// True when the node's Ready condition is.
pub fn is_ready(node: &Node) -> bool {
    let conditions = node.status.as_ref().and_then(|status| status.conditions.as_ref());
    conditions.is_some_and(|all| all.iter().any(|c| c.type_ == "Ready" && c.status == "True"))
}

/// Puts a web server on one node and asks it from another, by the Service's DNS name. `-w`: a connection begun before
/// kube-proxy knows the Service is not translated however often its SYN is repeated, and would hang for two minutes.
pub async fn service_answers(client: &Client, server: &str, asker: &str, deadline: Duration) -> Result<()> {
    for object in [
        pod("web", server, "echo it-works > /tmp/index.html && exec httpd -f -p 8080 -h /tmp"),
        json!({
            "apiVersion": "v1", "kind": "Service", "metadata": {"namespace": "default", "name": "web"},
            "spec": {"selector": {"app": "web"}, "ports": [{"port": 80, "targetPort": 8080}]},
        }),
        pod(
            "ask",
            asker,
            "until printf 'GET / HTTP/1.0\\r\\n\\r\\n' | nc -w 3 web.default.svc 80 | grep it-works; do sleep 0.3; done",
        ),
    ] {
        apply(client, &object).await?;
    }
    let api: Api<Pod> = Api::namespaced(client.clone(), "default");
    eventually("the Service's DNS name answers from another node", deadline, async || {
        let phase = api.get("ask").await?.status.and_then(|status| status.phase).unwrap_or_default();
        Ok(if phase == "Succeeded" { Look::Done(()) } else { Look::Waiting(format!("Pod ask is {phase}")) })
    })
    .await
}

fn pod(name: &str, node: &str, script: &str) -> serde_json::Value {
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"namespace": "default", "name": name, "labels": {"app": name}},
        "spec": {
            "nodeName": node, "restartPolicy": "Never", "terminationGracePeriodSeconds": 0,
            "containers": [{"name": name, "image": IMAGE, "command": ["sh", "-c", script]}],
        },
    })
}

/// Names of nodes, sorted.
pub fn node_names(nodes: &[Node]) -> Vec<String> {
    let mut names: Vec<String> = nodes.iter().map(ResourceExt::name_any).collect();
    names.sort();
    names
}
