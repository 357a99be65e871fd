//! What a cluster's Pods can reach, seen from every node: Pods on all other nodes, a Service by its DNS name, and the
//! API server through the cluster's endpoint.

use std::fmt::Write;
use std::time::Duration;

use anyhow::{Context, Result};
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::api::{Api, DeleteParams, ListParams, LogParams};
use kube::{Client, ResourceExt};
use serde_json::{Value, json};

use crate::client::apply;
use crate::eventually::{Look, eventually};
use crate::workload::{self, IMAGE};

/// The namespace that the Pods are in.
const NAMESPACE: &str = "default";
const SERVERS: &str = "pod-network-server";
const CHECKS: &str = "pod-network-check";
/// The port that each server listens on.
const PORT: u16 = 8099;
/// How long one connection may take, in seconds.
const CONNECT_SECONDS: u16 = 3;

/// Waits until a Pod on each Ready node has connected to a Pod on every other one, to the API server by its Service's
/// DNS name, and to `endpoint` (host and port), and removes what was made for it. The error names what each node did
/// not reach.
pub async fn connected(client: &Client, endpoint: Option<(&str, u16)>, deadline: Duration) -> Result<()> {
    remove(client).await?;
    let reached = check(client, endpoint, deadline).await;
    let removed = remove(client).await;
    reached?;
    removed
}

async fn check(client: &Client, endpoint: Option<(&str, u16)>, deadline: Duration) -> Result<()> {
    apply(client, &servers()).await?;
    let addresses = eventually("a server on every Ready node", deadline, async || {
        let nodes = Api::<Node>::all(client.clone()).list(&ListParams::default()).await?;
        let nodes: Vec<String> =
            nodes.iter().filter(|node| workload::is_ready(node)).map(ResourceExt::name_any).collect();
        let pods = pods(client, SERVERS).await?;
        let of = |node: &String| {
            let on = |pod: &&Pod| pod.spec.as_ref().and_then(|spec| spec.node_name.as_ref()) == Some(node);
            let ip = |pod: &Pod| pod.status.as_ref().and_then(|status| status.pod_ip.clone());
            Some((node.clone(), pods.iter().find(on).and_then(ip)?))
        };
        let found: Vec<(String, String)> = nodes.iter().filter_map(of).collect();
        Ok(match found.len() == nodes.len() {
            true => Look::Done(found),
            false => Look::Waiting(format!("{} of {} nodes have one", found.len(), nodes.len())),
        })
    })
    .await?;
    for (node, _) in &addresses {
        apply(client, &checker(node, &script(node, &addresses, endpoint))).await?;
    }
    let connected = eventually("the Pods of every node are connected", deadline, async || {
        let pods = pods(client, CHECKS).await?;
        let pending: Vec<String> = pods.iter().filter(|pod| !succeeded(pod)).map(ResourceExt::name_any).collect();
        Ok(match pending.is_empty() && pods.len() == addresses.len() {
            true => Look::Done(()),
            false => Look::Waiting(format!("waiting for {}", pending.join(", "))),
        })
    });
    match connected.await {
        Ok(()) => Ok(()),
        Err(error) => Err(error.context(last_words(client).await)),
    }
}

fn succeeded(pod: &Pod) -> bool {
    pod.status.as_ref().and_then(|status| status.phase.as_deref()) == Some("Succeeded")
}

/// Connects to everything until all of it answered in one round; each round says what did not.
fn script(node: &str, servers: &[(String, String)], endpoint: Option<(&str, u16)>) -> String {
    let mut targets: Vec<(String, String, u16)> = servers
        .iter()
        .filter(|(name, _)| name != node)
        .map(|(name, ip)| (format!("Pod on {name}"), ip.clone(), PORT))
        .collect();
    targets.push(("kubernetes.default.svc".into(), "kubernetes.default.svc".into(), 443));
    if let Some((host, port)) = endpoint {
        targets.push(("endpoint".into(), host.to_owned(), port));
    }
    let mut text = String::from("while :; do missing=''\n");
    for (name, host, port) in targets {
        let _ = writeln!(
            text,
            "nc -w {CONNECT_SECONDS} {host} {port} </dev/null >/dev/null 2>&1 || missing=\"$missing; {name} ({host}:{port})\""
        );
    }
    text + "[ -n \"$missing\" ] || exit 0\necho \"not reached$missing\"\nsleep 1\ndone\n"
}

fn servers() -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "DaemonSet",
        "metadata": {"namespace": NAMESPACE, "name": SERVERS},
        "spec": {
            "selector": {"matchLabels": {"app": SERVERS}},
            "template": {
                "metadata": {"labels": {"app": SERVERS}},
                "spec": {
                    "terminationGracePeriodSeconds": 0,
                    "tolerations": [{"operator": "Exists"}],
                    "containers": [{
                        "name": "server", "image": IMAGE,
                        "command": ["httpd", "-f", "-p", PORT.to_string(), "-h", "/tmp"],
                    }],
                },
            },
        },
    })
}

/// Bound to its node by name, as no scheduler would put one on each.
fn checker(node: &str, script: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"namespace": NAMESPACE, "name": format!("{CHECKS}-{node}"), "labels": {"app": CHECKS}},
        "spec": {
            "nodeName": node, "restartPolicy": "Never", "terminationGracePeriodSeconds": 0,
            "tolerations": [{"operator": "Exists"}],
            "containers": [{"name": "check", "image": IMAGE, "command": ["sh", "-c", script]}],
        },
    })
}

/// The last line of each check that still runs.
async fn last_words(client: &Client) -> String {
    let api: Api<Pod> = Api::namespaced(client.clone(), NAMESPACE);
    let mut lines = Vec::new();
    for pod in pods(client, CHECKS).await.unwrap_or_default().iter().filter(|pod| !succeeded(pod)) {
        let name = pod.name_any();
        let params = LogParams { tail_lines: Some(1), ..LogParams::default() };
        let line = match api.logs(&name, &params).await {
            Ok(line) => line.trim().to_owned(),
            Err(error) => format!("its log cannot be read: {error}"),
        };
        lines.push(format!("{}: {line}", name.trim_start_matches(&format!("{CHECKS}-"))));
    }
    lines.join("\n")
}

async fn pods(client: &Client, app: &str) -> Result<Vec<Pod>> {
    let api: Api<Pod> = Api::namespaced(client.clone(), NAMESPACE);
    let pods = api.list(&ListParams::default().labels(&format!("app={app}"))).await;
    Ok(pods.with_context(|| format!("failed to list the Pods {app}"))?.items)
}

/// Also what an earlier check left.
async fn remove(client: &Client) -> Result<()> {
    use k8s_openapi::api::apps::v1::DaemonSet;
    let daemon_sets: Api<DaemonSet> = Api::namespaced(client.clone(), NAMESPACE);
    match daemon_sets.delete(SERVERS, &DeleteParams::background()).await {
        Err(kube::Error::Api(status)) if status.is_not_found() => {}
        other => drop(other.context("failed to delete the DaemonSet of servers")?),
    }
    let checks: Api<Pod> = Api::namespaced(client.clone(), NAMESPACE);
    let ours = ListParams::default().labels(&format!("app={CHECKS}"));
    checks.delete_collection(&DeleteParams::default(), &ours).await.context("failed to delete the checks")?;
    eventually("the checks of the Pod network are gone", Duration::from_secs(60), async || {
        let left = pods(client, CHECKS).await?.len() + pods(client, SERVERS).await?.len();
        Ok(match left {
            0 => Look::Done(()),
            left => Look::Waiting(format!("{left} Pods")),
        })
    })
    .await
}

#[cfg(test)]
mod tests {
    use super::script;

    #[test]
    fn a_node_asks_all_others_and_not_itself() {
        let servers = [("a", "10.1.0.2"), ("b", "10.1.1.2")].map(|(node, ip)| (node.to_owned(), ip.to_owned()));
        let text = script("a", &servers, Some(("172.30.0.9", 8443)));
        for wanted in
            ["nc -w 3 10.1.1.2 8099", "nc -w 3 kubernetes.default.svc 443", "nc -w 3 172.30.0.9 8443", "Pod on b"]
        {
            assert!(text.contains(wanted), "{wanted} is not in\n{text}");
        }
        assert!(!text.contains("10.1.0.2"), "{text}");
    }
}
