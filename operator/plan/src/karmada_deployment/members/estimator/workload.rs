//! An estimator on the host: the Deployment, the Service by whose name the scheduler finds it, and its files.

use crds::KarmadaDeployment;
use crds::names::{annotation, label};
use serde_json::{Value, json};

use super::super::super::component::Component;
use super::super::super::files::{File, secret};
use super::super::super::names::{host_metadata, pod_selector};
use super::super::super::pod::{deployment, template};
use super::super::super::programs::{ESTIMATOR_PORT, container};
use super::super::super::release::Release;

/// The Deployment of the estimator of this member, under this name and in this version; and what it needs beside.
pub(super) fn objects(
    object: &KarmadaDeployment,
    (member, name): (&str, &str),
    (version, release): (&str, &Release),
    files: &[File],
) -> (Vec<Value>, Value) {
    let component = Component::Estimator;
    let mut metadata = host_metadata(object, name);
    metadata["labels"][label::KARMADA_MEMBER] = json!(member);
    let mut selector = pod_selector(object, component);
    selector[label::KARMADA_MEMBER] = json!(member);
    let mut program = container(object, release, component);
    program.command.insert(1, format!("--cluster-name={member}"));
    let mut template = template(object, (component, version), (name, files), &program);
    template["metadata"]["labels"][label::KARMADA_MEMBER] = json!(member);
    let replicas = component.replicas(&object.spec).unwrap_or(1);
    let port = json!({ "name": "grpc", "port": ESTIMATOR_PORT, "targetPort": ESTIMATOR_PORT, "protocol": "TCP" });
    let service = json!({
        "apiVersion": "v1", "kind": "Service", "metadata": metadata,
        "spec": { "selector": selector, "ports": [port] },
    });
    let mut beside = vec![secret(metadata.clone(), files), service];
    if replicas > 1 {
        beside.push(json!({
            "apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": metadata,
            "spec": { "maxUnavailable": 1, "selector": { "matchLabels": selector } },
        }));
    }
    metadata["annotations"] = json!({ (annotation::VERSION): version });
    let mut workload = deployment(metadata, object, component, (replicas, template));
    workload["spec"]["selector"]["matchLabels"] = selector;
    (beside, workload)
}
