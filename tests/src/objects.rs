//! The objects that a scenario writes, as an administrator would write them.

use serde_json::{Value, json};

/// Where the lab serves its artifact bundle.
pub const BUNDLE: &str = "http://172.30.0.1:8080";
/// The Kubernetes version that the lab's bundle holds.
pub const VERSION: &str = "1.35.4";
/// Versions that the lab's bundle of upgrades holds beside it: a patch, the newest of that minor, and the next minor.
pub const OLD_PATCH: &str = "1.34.3";
pub const OLDER: &str = "1.34.4";
pub const NEWER: &str = "1.36.3";

/// A ClusterDeployment of one control plane and one set of workers, each on Hosts named. The lab is one network, so the
/// Pods of each cluster that may be there with another have addresses of their own: `pod_cidr`, as in `10.240.0.0/16`.
pub fn cluster(namespace: &str, name: &str, pod_cidr: &str, control_planes: &[&str], workers: &[&str]) -> Value {
    json!({
        "apiVersion": "clusterwright.dev/v1alpha1",
        "kind": "ClusterDeployment",
        "metadata": {"namespace": namespace, "name": name},
        "spec": {
            "kubernetesVersion": VERSION,
            "controlPlane": {"replicas": control_planes.len(), "hosts": control_planes},
            "workers": [{"name": "general", "replicas": workers.len(), "hosts": workers}],
            "networking": {"podCIDR": pod_cidr},
            "artifacts": {"url": BUNDLE},
        },
    })
}

/// A PlaybookRun as an administrator writes one.
pub fn custom_run(namespace: &str, name: &str, cluster: &str, steps: &[&str], hosts: &[&str]) -> Value {
    json!({
        "apiVersion": "clusterwright.dev/v1alpha1",
        "kind": "PlaybookRun",
        "metadata": {"namespace": namespace, "name": name},
        "spec": {"clusterName": cluster, "intent": "Custom", "steps": steps, "hosts": hosts},
    })
}
