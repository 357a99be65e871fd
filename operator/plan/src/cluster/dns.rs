//! What was seen of the cluster's DNS.

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{Pod, TopologySpreadConstraint};

use crate::drain::PodSeen;

/// What was seen of the cluster's DNS.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DnsSeen {
    /// Its Deployment's UID.
    pub uid: String,
    /// For writing.
    pub resource_version: String,
    /// The constraints that its Deployment has.
    pub constraints: Vec<TopologySpreadConstraint>,
    /// How many Pods are wanted.
    pub replicas: usize,
    /// Its Pods; empty: not read.
    pub pods: Vec<DnsPod>,
}

/// A Pod of the cluster's DNS.
#[derive(Clone, Debug, PartialEq)]
pub struct DnsPod {
    /// The Pod.
    pub pod: PodSeen,
    /// Where it runs; empty: nowhere yet.
    pub node: String,
    /// It is Ready, and not on its way out.
    pub ready: bool,
}

/// kubeadm's Deployment, in kube-system.
pub const DEPLOYMENT: &str = "coredns";

/// The label of the Deployment and of its Pods.
pub const LABEL: (&str, &str) = ("k8s-app", "kube-dns");
pub(super) const HOSTNAME: &str = "kubernetes.io/hostname";

pub(super) const REQUIRED: &str = "DoNotSchedule";

impl DnsSeen {
    /// What is kept of kubeadm's Deployment and its Pods; none: this is another one.
    pub fn from_deployment(deployment: Deployment, pods: Vec<Pod>) -> Option<Self> {
        if deployment.metadata.name.as_deref() != Some(DEPLOYMENT) {
            return None;
        }
        let spec = deployment.spec?;
        let template = spec.template.spec.unwrap_or_default();
        Some(Self {
            uid: deployment.metadata.uid.unwrap_or_default(),
            resource_version: deployment.metadata.resource_version.unwrap_or_default(),
            constraints: template.topology_spread_constraints.unwrap_or_default(),
            replicas: usize::try_from(spec.replicas.unwrap_or(1)).unwrap_or_default(),
            pods: pods.iter().filter_map(DnsPod::from_pod).collect(),
        })
    }

    pub(super) fn is_spread(&self) -> bool {
        let spreads = |constraint: &TopologySpreadConstraint| {
            constraint.topology_key == HOSTNAME && constraint.when_unsatisfiable == REQUIRED
        };
        self.constraints.iter().any(spreads)
    }
}

impl DnsPod {
    fn from_pod(pod: &Pod) -> Option<Self> {
        let seen = PodSeen::to_evict(pod)?;
        let status = pod.status.as_ref();
        let mut conditions = status.and_then(|status| status.conditions.as_ref()).into_iter().flatten();
        Some(Self {
            node: pod.spec.as_ref().and_then(|spec| spec.node_name.clone()).unwrap_or_default(),
            ready: !seen.goes && conditions.any(|c| c.type_ == "Ready" && c.status == "True"),
            pod: seen,
        })
    }
}
