//! The cluster's DNS: its Pods stand on different machines, so that losing one of them is not losing every name.
//!
//! kubeadm's Deployment only prefers that, and both of its Pods are there before the second machine is. So the
//! Deployment gets a constraint that holds whenever a Pod is scheduled, and one Pod at a time is evicted where machines
//! have come since.

use crds::ObjectExt;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{Pod, Taint, TopologySpreadConstraint};
use serde_json::json;

use super::nodes::NodeSeen;
use super::{Observed, Step};
use crate::machine::leaving::drain::PodSeen;

/// kubeadm's Deployment, in kube-system.
pub const DEPLOYMENT: &str = "coredns";
/// The label of the Deployment and of its Pods.
pub const LABEL: (&str, &str) = ("k8s-app", "kube-dns");
const HOSTNAME: &str = "kubernetes.io/hostname";
const REQUIRED: &str = "DoNotSchedule";
/// Taints that kubeadm's Deployment tolerates.
const TOLERATED: [&str; 2] = ["node-role.kubernetes.io/control-plane", "CriticalAddonsOnly"];

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

impl DnsSeen {
    /// What is kept of kubeadm's Deployment and its Pods; none: this is another one.
    pub fn of(deployment: Deployment, pods: Vec<Pod>) -> Option<Self> {
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
            pods: pods.iter().filter_map(DnsPod::of).collect(),
        })
    }

    fn is_spread(&self) -> bool {
        let spreads = |constraint: &TopologySpreadConstraint| {
            constraint.topology_key == HOSTNAME && constraint.when_unsatisfiable == REQUIRED
        };
        self.constraints.iter().any(spreads)
    }
}

impl DnsPod {
    fn of(pod: &Pod) -> Option<Self> {
        let seen = PodSeen::of(pod)?;
        let status = pod.status.as_ref();
        let mut conditions = status
            .and_then(|status| status.conditions.as_ref())
            .into_iter()
            .flatten();
        Some(Self {
            node: pod
                .spec
                .as_ref()
                .and_then(|spec| spec.node_name.clone())
                .unwrap_or_default(),
            ready: !seen.goes && conditions.any(|c| c.type_ == "Ready" && c.status == "True"),
            pod: seen,
        })
    }
}

/// What spreads the DNS of a cluster that is ours; nothing while its Pods are on the move, so that one goes at a time.
pub(super) fn spread(observed: &Observed<'_>, dns: Option<&DnsSeen>, nodes: &[NodeSeen]) -> Option<Step> {
    let deployment = observed.deployment?;
    let dns = dns?;
    let stays = !deployment.is_deleting() && !deployment.spec.paused;
    // During the installation the steps wait for this Deployment's rollout.
    let installed = deployment
        .status
        .as_ref()
        .is_some_and(|status| status.installed_at.is_some());
    if !stays || !installed {
        return None;
    }
    if !dns.is_spread() {
        return Some(Step::SpreadDns {
            patch: constrain(dns),
        });
    }
    let pod = misplaced(dns, nodes)?;
    Some(Step::MoveDnsPod {
        pod: pod.pod.clone(),
        tells: format!(
            "Pod {} of the cluster's DNS leaves Node {}, where another one runs, for another machine",
            pod.pod.name, pod.node
        ),
    })
}

/// On one machine all Pods may stand; on two or more none has two more than another. Machines that take no Pods do not
/// count, and Pods of an older revision do not keep those of a newer one away.
fn constrain(dns: &DnsSeen) -> serde_json::Value {
    let ours = json!({
        "maxSkew": 1,
        "topologyKey": HOSTNAME,
        "whenUnsatisfiable": REQUIRED,
        "labelSelector": { "matchLabels": { LABEL.0: LABEL.1 } },
        "matchLabelKeys": ["pod-template-hash"],
        "nodeTaintsPolicy": "Honor",
    });
    let others = dns.constraints.iter().map(|constraint| json!(constraint));
    let constraints: Vec<_> = others.chain([ours]).collect();
    json!({
        // The list goes as a whole: another's constraint must not be lost in between.
        "metadata": { "uid": dns.uid, "resourceVersion": dns.resource_version },
        "spec": { "template": { "spec": { "topologySpreadConstraints": constraints } } },
    })
}

/// A Pod that would be placed elsewhere now.
fn misplaced<'a>(dns: &'a DnsSeen, nodes: &[NodeSeen]) -> Option<&'a DnsPod> {
    let at_rest = dns.pods.len() == dns.replicas && dns.pods.iter().all(|pod| pod.ready);
    if !at_rest {
        return None;
    }
    let on = |node: &str| dns.pods.iter().filter(|pod| pod.node == node).count();
    let fewest = nodes
        .iter()
        .filter(|node| takes_pods(node))
        .map(|node| on(&node.name))
        .min()?;
    let crowded = dns.pods.iter().filter(|pod| on(&pod.node) >= fewest + 2);
    crowded.min_by(|a, b| a.pod.name.cmp(&b.pod.name))
}

fn takes_pods(node: &NodeSeen) -> bool {
    let repels =
        |taint: &Taint| taint.effect != "PreferNoSchedule" && !TOLERATED.contains(&taint.key.as_str());
    node.ready == Some(true) && !node.unschedulable && !node.taints.iter().any(repels)
}
