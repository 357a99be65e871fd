//! A bundle with a file of CustomResourceDefinitions; and those that stand in for Karmada's: their names, and schemas
//! that take anything.

use anyhow::Result;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

/// Names, kinds, and whether their objects are in namespaces.
const DEFINITIONS: [(&str, &str, bool); 19] = [
    ("clusteroverridepolicies.policy.karmada.io", "ClusterOverridePolicy", false),
    ("clusterpropagationpolicies.policy.karmada.io", "ClusterPropagationPolicy", false),
    ("clusterresourcebindings.work.karmada.io", "ClusterResourceBinding", false),
    ("clustertaintpolicies.policy.karmada.io", "ClusterTaintPolicy", false),
    ("cronfederatedhpas.autoscaling.karmada.io", "CronFederatedHPA", true),
    ("federatedhpas.autoscaling.karmada.io", "FederatedHPA", true),
    ("federatedresourcequotas.policy.karmada.io", "FederatedResourceQuota", true),
    ("multiclusteringresses.networking.karmada.io", "MultiClusterIngress", true),
    ("multiclusterservices.networking.karmada.io", "MultiClusterService", true),
    ("overridepolicies.policy.karmada.io", "OverridePolicy", true),
    ("propagationpolicies.policy.karmada.io", "PropagationPolicy", true),
    ("remedies.remedy.karmada.io", "Remedy", false),
    ("resourcebindings.work.karmada.io", "ResourceBinding", true),
    ("resourceinterpretercustomizations.config.karmada.io", "ResourceInterpreterCustomization", false),
    ("resourceinterpreterwebhookconfigurations.config.karmada.io", "ResourceInterpreterWebhookConfiguration", false),
    ("serviceexports.multicluster.x-k8s.io", "ServiceExport", true),
    ("serviceimports.multicluster.x-k8s.io", "ServiceImport", true),
    ("workloadrebalancers.apps.karmada.io", "WorkloadRebalancer", false),
    ("works.work.karmada.io", "Work", true),
];

fn definition((name, kind, is_namespaced): &(&str, &str, bool)) -> Value {
    let (plural, group) = name.split_once('.').unwrap_or_default();
    let version = |version: &str, storage: bool| {
        json!({
            "name": version, "served": true, "storage": storage,
            "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
        })
    };
    let versions = match plural.ends_with("bindings") {
        true => vec![version("v1alpha1", false), version("v1alpha2", true)],
        false => vec![version("v1alpha1", true)],
    };
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": name, "annotations": {"api-approved.kubernetes.io": "unapproved, stands in for Karmada's"}},
        "spec": {
            "group": group, "scope": if *is_namespaced { "Namespaced" } else { "Cluster" },
            "names": {"plural": plural, "singular": kind.to_lowercase(), "kind": kind, "listKind": format!("{kind}List")},
            "versions": versions,
        },
    })
}

/// The definitions that stand in for Karmada's, in one file.
pub fn stand_ins() -> String {
    DEFINITIONS.iter().map(|one| definition(one).to_string()).collect::<Vec<_>>().join("\n---\n")
}

/// Serves a bundle with a file of definitions for each of these versions, for as long as the test runs: the place, as
/// the spec has it.
pub async fn serve(files: Vec<(&'static str, String)>) -> Result<Value> {
    let digest = |text: &str| Sha256::digest(text).iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let artifact = |(version, file): &(&str, String)| {
        json!({
            "name": "karmada-crds", "kind": "manifests", "version": version, "path": format!("files/{version}.yaml"),
            "size": file.len(), "sha256": digest(file),
        })
    };
    let index = json!({"formatVersion": 1, "artifacts": files.iter().map(artifact).collect::<Vec<_>>()});
    let index = index.to_string();
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let place = json!({"url": format!("http://{}", listener.local_addr()?), "indexSHA256": digest(&index)});
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut request = vec![0; 4096];
            let Ok(length) = stream.read(&mut request).await else { continue };
            let request = String::from_utf8_lossy(&request[..length]).into_owned();
            let asked = |(version, _): &&(&str, String)| request.starts_with(&format!("GET /files/{version}.yaml "));
            let body = files.iter().find(asked).map_or(&index, |(_, file)| file);
            let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", body.len());
            // A client that is gone asks again.
            let _ = stream.write_all(format!("{head}{body}").as_bytes()).await;
        }
    });
    Ok(place)
}
