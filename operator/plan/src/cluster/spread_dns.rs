//! The cluster's DNS: its Pods stand on different machines, so that losing one of them is not losing every name.
//!
//! kubeadm's Deployment only prefers that, and both of its Pods are there before the second machine is. So the
//! Deployment gets a constraint that holds whenever a Pod is scheduled, and one Pod at a time is evicted where machines
//! have come since.

use crds::ObjectExt;
use k8s_openapi::api::core::v1::Taint;
use serde_json::json;

use super::action::Action;
use super::dns::{DnsPod, DnsSeen, HOSTNAME, LABEL, REQUIRED};
use super::nodes::NodeSeen;
use super::observed::Observed;
use crate::lifecycle::is_installed;

/// Taints that kubeadm's Deployment tolerates.
const TOLERATED: [&str; 2] = ["node-role.kubernetes.io/control-plane", "CriticalAddonsOnly"];

/// What spreads the DNS of a cluster that is ours; nothing while its Pods are on the move, so that one goes at a time.
pub(super) fn spread(observed: &Observed<'_>, dns: Option<&DnsSeen>, nodes: &[NodeSeen]) -> Option<Action> {
    let deployment = observed.deployment?;
    let dns = dns?;
    let stays = !deployment.is_deleting() && !deployment.spec.paused;
    // During the installation the steps wait for this Deployment's rollout.
    let installed = is_installed(deployment);
    if !stays || !installed {
        return None;
    }
    if !dns.is_spread() {
        return Some(Action::SpreadDns { patch: constrain(dns) });
    }
    let pod = misplaced(dns, nodes)?;
    Some(Action::MoveDnsPod {
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
    let fewest = nodes.iter().filter(|node| takes_pods(node)).map(|node| on(&node.name)).min()?;
    let crowded = dns.pods.iter().filter(|pod| on(&pod.node) >= fewest + 2);
    crowded.min_by(|a, b| a.pod.name.cmp(&b.pod.name))
}

fn takes_pods(node: &NodeSeen) -> bool {
    let repels = |taint: &Taint| taint.effect != "PreferNoSchedule" && !TOLERATED.contains(&taint.key.as_str());
    node.ready == Some(true) && !node.unschedulable && !node.taints.iter().any(repels)
}
