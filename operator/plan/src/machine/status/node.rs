//! What a Machine's node says of it.

use crds::Host;
use crds::ObjectExt;
use crds::Reason;
use crds::conditions::Statement;
use crds::names::condition;
use jiff::SignedDuration;

use crate::attempts::RetryDecision;
use crate::cluster::{NetworkSeen, NodeSeen};
use crate::machine::observed::Observed;

/// How long a node may take to be seen before that is spoken of.
pub(in crate::machine) const FRESH: SignedDuration = SignedDuration::from_secs(60);

pub(in crate::machine) fn find<'a>(observed: &Observed<'a>, host: &Host) -> Option<&'a NodeSeen> {
    observed.nodes?.iter().find(|node| node.name == host.name())
}

/// Whether the machine became part of its cluster only just now, so that its node may not have been seen yet.
fn is_fresh(observed: &Observed<'_>, decision: &RetryDecision) -> bool {
    let at = match decision {
        RetryDecision::Done { at, .. } => *at,
        _ => None,
    };
    at.is_some_and(|at| observed.now.duration_since(at) < FRESH)
}

pub(super) fn ready(observed: &Observed<'_>, node: Option<&NodeSeen>, decision: &RetryDecision) -> Statement {
    let done = matches!(decision, RetryDecision::Done { .. });
    let stated = |status: Option<bool>, reason: Reason, message: String| {
        Statement::new(condition::NODE_READY, status, reason, message)
    };
    match (node, observed.nodes) {
        (Some(node), _) => match node.ready {
            Some(true) => stated(Some(true), Reason::NodeReady, "its node is Ready".into()),
            Some(false) if !done => stated(Some(false), Reason::NodeStarting, node.message.clone()),
            Some(false) => {
                stated(Some(false), Reason::NodeNotReady, format!("its node is not Ready: {}", node.message))
            }
            None => stated(None, Reason::NodeSilent, format!("its kubelet is silent: {}", node.message)),
        },
        (None, _) if is_fresh(observed, decision) => {
            stated(None, Reason::NodeNotSeenYet, "provisioned; waits for its node to be seen".into())
        }
        (None, Some(_)) if done => {
            stated(Some(false), Reason::NodeNotFound, "the cluster has no Node of this machine".into())
        }
        (None, Some(_)) => {
            stated(Some(false), Reason::NodeNotThereYet, "the cluster has no Node of this machine yet".into())
        }
        (None, None) if done => stated(
            None,
            Reason::ClusterUnreachable,
            format!("the API of cluster {} does not answer", observed.machine.spec.cluster_name),
        ),
        (None, None) => stated(None, Reason::ClusterNotThereYet, "waiting for the cluster's API to answer".into()),
    }
}

/// Whether the machine's Pods reach others, by its own probe; none: it has not said.
pub(super) fn network(node: Option<&NodeSeen>) -> Option<Statement> {
    let stated = |status: bool, reason: Reason, message: String| {
        Statement::new(condition::NETWORK_READY, status, reason, message)
    };
    Some(match node?.network.as_ref()? {
        NetworkSeen::Reaches => {
            stated(true, Reason::PodsReached, "its Pods reach those of other machines, and the DNS".into())
        }
        NetworkSeen::CutOff { reason, message } => stated(false, *reason, format!("its Pods are cut off: {message}")),
    })
}

pub(super) fn healthy(ready: &Statement, node: Option<&NodeSeen>) -> Statement {
    if let Some(network) = network(node).filter(|network| network.status == Some(false) && ready.status == Some(true)) {
        return Statement::new(condition::HEALTHY, false, network.reason, network.message);
    }
    let pressures = node.map(|node| node.pressures.join(", ")).unwrap_or_default();
    if ready.status == Some(true) && !pressures.is_empty() {
        return Statement::new(condition::HEALTHY, false, Reason::NodePressure, format!("its node has {pressures}"));
    }
    let message = if ready.status == Some(true) { "its node reports no pressure" } else { &ready.message };
    Statement::new(condition::HEALTHY, ready.status, ready.reason.clone(), message)
}
