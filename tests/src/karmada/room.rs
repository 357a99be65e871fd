//! Room in members whose Nodes have no kubelet, and Deployments that are divided by it.

use anyhow::Result;
use k8s_openapi::api::core::v1::Node;
use kube::Client;
use kube::api::{Api, DynamicObject, Patch, PatchParams, PostParams};
use serde_json::{Value, json};

use super::works::objects;

/// The label of Nodes on which the Pods of [`divide`] may be.
pub fn with_disk() -> Value {
    json!({"disk": "ssd"})
}

/// A Node of a member that is ready, free and untainted, with these labels.
pub async fn free_node(member: &Client, name: &str, labels: Value) -> Result<()> {
    let nodes: Api<Node> = Api::all(member.clone());
    let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}});
    nodes.create(&PostParams::default(), &serde_json::from_value(node)?).await?;
    let untainted = json!({"spec": {"taints": null}});
    nodes.patch(name, &PatchParams::default(), &Patch::Merge(&untainted)).await?;
    let amounts = json!({"cpu": "64", "memory": "64Gi", "pods": "110"});
    let status = json!({"status": {
        "capacity": amounts, "allocatable": amounts,
        "conditions": [{"type": "Ready", "status": "True", "reason": "Said", "message": "so"}],
    }});
    nodes.patch_status(name, &PatchParams::default(), &Patch::Merge(&status)).await?;
    Ok(())
}

/// Gives the plane a Deployment of four replicas, on Nodes with [`with_disk`], wherever among these members is room.
pub async fn divide(plane: &Client, name: &str, among: &[&str]) -> Result<()> {
    let deployment = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name},
        "spec": {
            "replicas": 4, "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {
                    "nodeSelector": with_disk(),
                    "containers": [{"name": "web", "image": "web.test/web:1", "resources": {"requests": {"cpu": "1"}}}],
                },
            },
        },
    });
    let policy = json!({
        "apiVersion": "policy.karmada.io/v1alpha1", "kind": "PropagationPolicy", "metadata": {"name": name},
        "spec": {
            "resourceSelectors": [{"apiVersion": "apps/v1", "kind": "Deployment", "name": name}],
            "placement": {
                "clusterAffinity": {"clusterNames": among},
                "replicaScheduling": {
                    "replicaSchedulingType": "Divided", "replicaDivisionPreference": "Weighted",
                    "weightPreference": {"dynamicWeight": "AvailableReplicas"},
                },
            },
        },
    });
    for (group, version, kind, object) in
        [("apps", "v1", "Deployment", deployment), ("policy.karmada.io", "v1alpha1", "PropagationPolicy", policy)]
    {
        let object: DynamicObject = serde_json::from_value(object)?;
        objects(plane, group, version, kind).create(&PostParams::default(), &object).await?;
    }
    Ok(())
}

/// The lines of an estimator's metrics that count who asked it and was answered.
pub fn answers(metrics: &str) -> Vec<&str> {
    let counted = "karmada_scheduler_estimator_estimating_request_total";
    metrics.lines().filter(|line| line.starts_with(counted) && line.contains("result=\"success\"")).collect()
}
