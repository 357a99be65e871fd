//! What is printed when a scenario fails: the objects of its namespace, as the person on call would see them.

use crds::{ClusterDeployment, Host, Machine, MachineSet, PlaybookRun};
use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, ListParams, LogParams};
use kube::{Client, Resource, ResourceExt};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Lines of a log that are read, and that are shown of them.
const READ: i64 = 2000;
const SHOWN: usize = 60;

/// Prints spec and status of our objects, and the ends of the Pods' logs.
pub async fn print(client: &Client, namespace: &str) {
    println!("---- objects of namespace {namespace}");
    objects::<Host>(client, namespace, false).await;
    objects::<ClusterDeployment>(client, namespace, true).await;
    objects::<MachineSet>(client, namespace, false).await;
    objects::<Machine>(client, namespace, true).await;
    objects::<PlaybookRun>(client, namespace, true).await;
    logs(client, namespace, |_| true).await;
    // Not what the operator did elsewhere; and whatever it says of itself.
    let elsewhere = |line: &str| line.contains(" namespace=") && !line.contains(&format!(" namespace={namespace} "));
    logs(client, "clusterwright-system", |line| !elsewhere(line)).await;
    println!("---- end of {namespace}");
}

/// Prints how the Pods of a cluster's namespace are, and the ends of their logs.
pub async fn print_pods(client: &Client, namespace: &str) {
    println!("---- Pods of namespace {namespace}");
    if let Ok(pods) = Api::<Pod>::namespaced(client.clone(), namespace).list(&ListParams::default()).await {
        for pod in pods {
            let status = serde_json::to_value(&pod.status).unwrap_or_default();
            println!("Pod {}: {}", pod.name_any(), status["containerStatuses"]);
        }
    }
    logs(client, namespace, |_| true).await;
}

async fn objects<K>(client: &Client, namespace: &str, whole: bool)
where
    K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>
        + Clone
        + std::fmt::Debug
        + DeserializeOwned
        + Serialize,
{
    let api: Api<K> = Api::namespaced(client.clone(), namespace);
    let list = match api.list(&ListParams::default()).await {
        Ok(list) => list,
        Err(error) => return println!("{}: {error}", K::kind(&())),
    };
    for object in list {
        let value = serde_json::to_value(&object).unwrap_or_default();
        let status = if whole { value["status"].to_string() } else { value["status"]["message"].to_string() };
        println!("{} {}: {status}", K::kind(&()), object.name_any());
    }
}

/// The last lines, of those that are shown, of each Pod's container, and of the one before it.
async fn logs(client: &Client, namespace: &str, is_shown: impl Fn(&str) -> bool) {
    let api: Api<Pod> = Api::namespaced(client.clone(), namespace);
    let Ok(pods) = api.list(&ListParams::default()).await else {
        return;
    };
    for pod in pods {
        let name = pod.name_any();
        for previous in [true, false] {
            let params = LogParams { tail_lines: Some(READ), previous, ..LogParams::default() };
            let log = match api.logs(&name, &params).await {
                Ok(log) => log,
                // Most containers are the first ones of their Pods.
                Err(_) if previous => continue,
                Err(error) => error.to_string(),
            };
            let lines: Vec<&str> = log.lines().filter(|line| is_shown(line)).collect();
            let end = lines[lines.len().saturating_sub(SHOWN)..].join("\n");
            println!(
                "---- log of Pod {namespace}/{name}{}\n{end}",
                if previous { ", the container before" } else { "" }
            );
        }
    }
}
