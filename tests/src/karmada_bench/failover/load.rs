//! What runs in the members, as the plane is given it: Deployments, the policy that keeps each in one member, and the
//! policy that taints a member which does not answer.

use anyhow::{Context, Result};
use futures::{StreamExt, TryStreamExt, stream};
use kube::Client;
use kube::api::PostParams;
use serde_json::{Value, json};

use super::size::Load;
use crate::client::apply;
use crate::karmada::works::objects;
use crate::karmada_bench::settings::Setting;

/// The taint by which a member that is not Ready loses what runs there.
pub const TAINT: &str = "failover-bench";
/// Requests at once.
const AT_ONCE: usize = 8;

/// What a plane is given whose members run many Pods.
pub const OF_PLANE: &[Setting] = &[
    of_controllers("enable-no-execute-taint-eviction", "true", "false"),
    of_controllers("no-execute-taint-eviction-purge-mode", "Directly", "Gracefully"),
    of_controllers("resource-eviction-rate", "100", "0.5"),
    of_controllers("rate-limiter-qps", "200", "10"),
    of_controllers("rate-limiter-bucket-size", "1000", "100"),
    of_controllers("enable-cluster-resource-modeling", "false", "true"),
    of_controllers("kube-api-qps", "400", "40"),
    of_controllers("kube-api-burst", "800", "60"),
    of_controllers("cluster-api-qps", "400", "40"),
    of_controllers("cluster-api-burst", "800", "60"),
    of_controllers("concurrent-resourcebinding-syncs", "20", "5"),
    of_controllers("concurrent-work-syncs", "20", "5"),
    Setting { of: "scheduler", flag: "kube-api-qps", value: "400", default: "40" },
    Setting { of: "scheduler", flag: "kube-api-burst", value: "800", default: "60" },
    Setting { of: "webhook", flag: "allow-no-execute-taint-policy", value: "true", default: "false" },
];

const fn of_controllers(flag: &'static str, value: &'static str, default: &'static str) -> Setting {
    Setting { of: "controllerManager", flag, value, default }
}

/// Gives the plane all of it; the policies first.
pub async fn create(plane: &Client, load: &Load, members: [&str; 2]) -> Result<()> {
    for policy in [propagation(members), tainting()] {
        apply(plane, &policy).await?;
    }
    let deployments = objects(plane, "apps", "v1", "Deployment");
    let created = stream::iter(0..load.deployments).map(|number| {
        let deployments = deployments.clone();
        async move {
            let deployment = serde_json::from_value(deployment(number, load.replicas))?;
            let created = deployments.create(&PostParams::default(), &deployment).await;
            created.with_context(|| format!("failed to create Deployment {number}")).map(drop)
        }
    });
    created.buffer_unordered(AT_ONCE).try_collect().await
}

/// Each Deployment is in one member, whichever.
fn propagation(members: [&str; 2]) -> Value {
    let selector = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "labelSelector": {"matchLabels": {"bench": "failover"}},
    });
    json!({
        "apiVersion": "policy.karmada.io/v1alpha1", "kind": "PropagationPolicy",
        "metadata": {"name": "bench", "namespace": "default"},
        "spec": {
            "resourceSelectors": [selector],
            "placement": {
                "clusterAffinity": {"clusterNames": members},
                "spreadConstraints": [{"spreadByField": "cluster", "minGroups": 1, "maxGroups": 1}],
            },
        },
    })
}

fn tainting() -> Value {
    let ready = |operator: &str| json!([{"conditionType": "Ready", "operator": operator, "statusValues": ["True"]}]);
    json!({
        "apiVersion": "policy.karmada.io/v1alpha1", "kind": "ClusterTaintPolicy", "metadata": {"name": "bench"},
        "spec": {
            "addOnConditions": ready("NotIn"), "removeOnConditions": ready("In"),
            "taints": [{"key": TAINT, "effect": "NoExecute"}],
        },
    })
}

fn deployment(number: usize, replicas: usize) -> Value {
    let name = format!("web-{number:03}");
    let labels = json!({"app": name});
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": name, "labels": {"app": name, "bench": "failover"}},
        "spec": {
            "replicas": replicas, "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"containers": [{
                    "name": "web", "image": "web.test/web:1",
                    "resources": {"requests": {"cpu": "10m", "memory": "16Mi"}},
                }]},
            },
        },
    })
}
