//! What stands in for the API of Clusters that karmada-aggregated-apiserver serves: a definition of the same name on
//! the host's API server, to which requests are passed on.

use anyhow::{Context, Result};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Client;
use kube::api::{Api, ApiResource, DynamicObject};
use kube::client::Body;
use kube::core::GroupVersionKind;
use serde_json::{Value, json};

const GROUP: &str = "cluster.karmada.io";

/// An answer to a request.
pub struct Reply {
    pub code: u16,
    pub media_type: String,
    pub body: Vec<u8>,
}

impl Reply {
    pub fn well(body: &Value) -> Self {
        Self { code: 200, media_type: "application/json".to_owned(), body: body.to_string().into_bytes() }
    }
}

/// Clusters, whose schema takes anything.
pub fn definition() -> Result<CustomResourceDefinition> {
    let any = json!({"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}});
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("clusters.{GROUP}")},
        "spec": {
            "group": GROUP, "scope": "Cluster",
            "names": {"plural": "clusters", "singular": "cluster", "kind": "Cluster", "listKind": "ClusterList"},
            "versions": [{
                "name": "v1alpha1", "served": true, "storage": true, "schema": any, "subresources": {"status": {}},
            }],
        },
    });
    Ok(serde_json::from_value(definition)?)
}

/// The Clusters as they are kept.
pub fn api(host: Client) -> Api<DynamicObject> {
    Api::all_with(host, &ApiResource::from_gvk(&GroupVersionKind::gvk(GROUP, "v1alpha1", "Cluster")))
}

/// Whether a request with this head is for them.
pub fn is_asked(head: &str) -> bool {
    let path = head.split_whitespace().nth(1).unwrap_or_default();
    path.starts_with(&format!("/apis/{GROUP}/"))
}

/// Passes it on to where they are kept.
pub async fn ask(host: &Client, head: &str, body: Vec<u8>) -> Result<Reply> {
    let mut words = head.split_whitespace();
    let (method, path) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let mut request = http::Request::builder().method(method).uri(path);
    for line in head.lines().skip(1) {
        let Some((name, value)) = line.split_once(':') else { continue };
        if ["accept", "content-type"].contains(&name.to_lowercase().as_str()) {
            request = request.header(name, value.trim());
        }
    }
    let answer = host.send(request.body(Body::from(body))?).await.context("failed to ask for Clusters")?;
    let code = answer.status().as_u16();
    let media_type = answer.headers().get("content-type").and_then(|value| value.to_str().ok());
    let media_type = media_type.unwrap_or("application/json").to_owned();
    let body = answer.into_body().collect_bytes().await?.to_vec();
    Ok(Reply { code, media_type, body })
}
