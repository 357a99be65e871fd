//! Where a run's Pod may run, and with what its image is pulled.

use std::collections::BTreeMap;

use crds::cluster_deployment::{ExecutorPod, PodToleration, TolerationOperator};
use k8s_openapi::api::core::v1::{LocalObjectReference, Toleration};

/// What is tolerated: a node that is gone for half a minute keeps the Pod no longer, and what the cluster says.
pub(super) fn tolerations(pod: Option<&ExecutorPod>) -> Vec<Toleration> {
    let asked = pod.map(|pod| pod.tolerations.as_slice()).unwrap_or_default();
    [lost_node("not-ready"), lost_node("unreachable")].into_iter().chain(asked.iter().map(toleration)).collect()
}

pub(super) fn pull_secrets(pod: Option<&ExecutorPod>) -> Option<Vec<LocalObjectReference>> {
    let secrets = &pod?.image_pull_secrets;
    let reference = |name: &str| LocalObjectReference { name: name.to_owned() };
    (!secrets.is_empty()).then(|| secrets.iter().map(|secret| reference(&secret.name)).collect())
}

pub(super) fn node_selector(pod: Option<&ExecutorPod>) -> Option<BTreeMap<String, String>> {
    let labels = &pod?.node_selector;
    let label = |(key, value): (&String, &crds::node_metadata::LabelValue)| (key.clone(), value.0.clone());
    (!labels.is_empty()).then(|| labels.iter().map(label).collect())
}

fn lost_node(taint: &str) -> Toleration {
    Toleration {
        key: Some(format!("node.kubernetes.io/{taint}")),
        operator: Some("Exists".into()),
        effect: Some("NoExecute".into()),
        toleration_seconds: Some(30),
        value: None,
    }
}

fn toleration(asked: &PodToleration) -> Toleration {
    let operator = match asked.operator {
        TolerationOperator::Equal => "Equal",
        TolerationOperator::Exists => "Exists",
    };
    Toleration {
        key: asked.key.clone(),
        operator: Some(operator.into()),
        value: asked.value.as_ref().map(|value| value.0.clone()),
        effect: asked.effect.map(|effect| format!("{effect:?}")),
        toleration_seconds: None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_executors_pod_is_scheduled_as_its_cluster_says() {
        let pod: ExecutorPod = serde_json::from_value(json!({
            "imagePullSecrets": [{"name": "registry"}],
            "nodeSelector": {"pool": "infra"},
            "tolerations": [{"key": "dedicated", "value": "infra", "effect": "NoSchedule"}, {"operator": "Exists"}],
        }))
        .unwrap();
        let said = |value: serde_json::Value, expected: serde_json::Value| assert_eq!(value, expected);
        said(json!(pull_secrets(Some(&pod))), json!([{"name": "registry"}]));
        said(json!(node_selector(Some(&pod))), json!({"pool": "infra"}));
        let tolerated = tolerations(Some(&pod));
        said(
            json!(tolerated.get(2..)),
            json!([{"key": "dedicated", "operator": "Equal", "value": "infra", "effect": "NoSchedule"},
                {"operator": "Exists"}]),
        );
        assert_eq!(tolerated.get(..2), Some(tolerations(None).as_slice()));
        assert_eq!((pull_secrets(None), node_selector(Some(&ExecutorPod::default()))), (None, None));
    }
}
