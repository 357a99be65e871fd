//! What a Machine wants on its Node.

use std::collections::BTreeMap;

use crds::Machine;
use crds::placement::plain;
use crds::step::Role;
use k8s_openapi::api::core::v1::Taint;

/// The label that shows a worker's role in `kubectl get nodes`; kubeadm puts the control planes'.
const WORKER_LABEL: &str = "node-role.kubernetes.io/worker";

/// What a Machine wants on its Node.
pub(super) struct Wanted {
    pub labels: BTreeMap<String, String>,
    pub annotations: BTreeMap<String, String>,
    pub taints: Vec<Taint>,
}

impl Wanted {
    pub fn new(machine: &Machine) -> Self {
        let spec = &machine.spec;
        let mut labels = plain(&spec.labels);
        if spec.role == Role::Worker {
            labels.insert(WORKER_LABEL.into(), String::new());
        }
        let taints = spec.taints.iter().map(|taint| Taint {
            key: taint.key.clone(),
            value: taint.value.as_ref().map(|value| value.0.clone()).filter(|value| !value.is_empty()),
            effect: format!("{:?}", taint.effect),
            time_added: None,
        });
        let annotations = spec.annotations.iter().map(|(key, value)| (key.clone(), value.0.clone()));
        Self { labels, annotations: annotations.collect(), taints: taints.collect() }
    }
}
