//! What was seen of the Pods of a node that is drained.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::Pod;

/// What was seen of the Pods of a node that is drained.
#[derive(Clone, Debug, PartialEq)]
pub struct Drain {
    /// The Pods that have to go; `Err`: why they are not known.
    pub pods: Result<Vec<PodSeen>, String>,
    /// What the last evictions were answered.
    pub refusals: Vec<Refusal>,
}

/// A Pod that has to go.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PodSeen {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Its UID: no other one of this name is evicted.
    pub uid: String,
    /// Its labels, by which budgets hold it.
    pub labels: BTreeMap<String, String>,
    /// It is on its way already.
    pub goes: bool,
}

/// An eviction that was not granted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Refusal {
    /// UID of the Pod.
    pub uid: String,
    /// The PodDisruptionBudgets in its way.
    pub budgets: Vec<String>,
    /// What the API said, if it was no budget.
    pub message: String,
    /// When it wants to be asked again at the soonest; 0: it did not say.
    pub retry_after_seconds: u32,
}

impl PodSeen {
    /// What is kept of a Pod; none when it may stay: a DaemonSet's, the kubelet's own, or one that has ended.
    pub fn to_evict(pod: &Pod) -> Option<Self> {
        let metadata = &pod.metadata;
        let owners = metadata.owner_references.as_deref().unwrap_or_default();
        let of_node = owners.iter().any(|owner| owner.controller == Some(true) && owner.kind == "DaemonSet");
        let mirror = metadata
            .annotations
            .as_ref()
            .is_some_and(|annotations| annotations.contains_key("kubernetes.io/config.mirror"));
        let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
        let ended = matches!(phase, Some("Succeeded" | "Failed"));
        if of_node || mirror || ended {
            return None;
        }
        Some(Self {
            namespace: metadata.namespace.clone().unwrap_or_default(),
            name: metadata.name.clone().unwrap_or_default(),
            uid: metadata.uid.clone().unwrap_or_default(),
            labels: metadata.labels.clone().unwrap_or_default(),
            goes: metadata.deletion_timestamp.is_some(),
        })
    }

    pub(super) fn title(&self) -> String {
        format!("{}/{}", self.namespace, self.name)
    }
}
