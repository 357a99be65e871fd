//! What templates of an Addon may name: the facts of the cluster, by the names of the variables of runs.

use crds::{Addon, Cluster, ClusterDeployment, ObjectExt};
use serde_json::{Map, Value, json};

use crate::addon::selection::labels;
use crate::inputs::manifests::node_labels;
use crate::inputs::variables::plugin;

/// The facts. Those of the network are only known of clusters that were built here.
pub fn facts(
    addon: &Addon,
    version: Option<&str>,
    cluster: &Cluster,
    deployment: Option<&ClusterDeployment>,
) -> Map<String, Value> {
    let mut facts = Map::new();
    let mut insert = |name: &str, value: Value| drop(facts.insert(name.to_owned(), value));
    insert("addon_name", json!(addon.name()));
    if let Some(version) = version {
        insert("addon_version", json!(version));
    }
    insert("cluster_name", json!(cluster.name()));
    insert("cluster_labels", json!(labels(cluster, deployment)));
    let status = cluster.status.as_ref();
    if let Some(version) = status.and_then(|status| status.version.as_ref()) {
        insert("kube_version", json!(version));
    }
    if let Some((host, port)) = status.and_then(|status| endpoint(status.endpoint.as_deref()?)) {
        insert("kube_apiserver_endpoint", json!({ "host": host, "port": port }));
    }
    if let Some(deployment) = deployment {
        let networking = &deployment.spec.networking;
        insert("dns_domain", json!(networking.dns_domain));
        insert("kube_pods_subnet", json!(networking.pod_cidr));
        insert("kube_service_addresses", json!(networking.service_cidr));
        insert("kube_network_plugin", json!(plugin(networking.plugin.name)));
        insert("node_labels", node_labels(deployment));
    }
    facts
}

/// Host and port of a server's URL.
fn endpoint(url: &str) -> Option<(&str, u16)> {
    let rest = url.strip_prefix("https://")?;
    let place = rest.split('/').next()?;
    match place.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') => {
            Some((host.trim_start_matches('[').trim_end_matches(']'), port.parse().ok()?))
        }
        _ => Some((place.trim_start_matches('[').trim_end_matches(']'), 443)),
    }
}

#[cfg(test)]
mod tests {
    use super::endpoint;

    #[test]
    fn the_endpoint_is_that_of_the_kubeconfig() {
        assert_eq!(endpoint("https://10.0.0.9:6443"), Some(("10.0.0.9", 6443)));
        assert_eq!(endpoint("https://api.example.com/k8s/clusters/a"), Some(("api.example.com", 443)));
        assert_eq!(endpoint("https://[2001:db8::1]:6443"), Some(("2001:db8::1", 6443)));
        assert_eq!(endpoint("https://[2001:db8::1]"), Some(("2001:db8::1", 443)));
        assert_eq!(endpoint("nonsense"), None);
    }
}
