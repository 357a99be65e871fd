//! The labels, annotations and taints of a machine's Node: whether they are written now.

use crds::Host;

use super::action::Action;
use super::hindrance::hindrance;
use super::observed::{NodeAnswer, Observed};
use super::status::node_of;
use crate::Next;
use crate::node_metadata::{compare, wait};

/// What could not be written is tried again after so many seconds.
const REFUSED_SECONDS: u64 = 60;
/// A Node that another wrote first is read again after so many seconds.
const CHANGED_SECONDS: u64 = 2;

/// What is done about the Node, and when to look again.
#[derive(Default)]
pub(super) struct OnNode {
    pub action: Option<Action>,
    pub next: Next,
}

pub(super) fn plan(observed: &Observed<'_>, host: &Host) -> OnNode {
    if hindrance(observed).is_some() {
        return OnNode::default();
    }
    let Some(node) = node_of(observed, host) else {
        return OnNode::default();
    };
    let Some(write) = compare(observed.machine, node).write else {
        return OnNode::default();
    };
    match (observed.node_answer, wait(node, observed.now)) {
        (Some(NodeAnswer::Refused(_)), _) => OnNode { action: None, next: Next::after_seconds(REFUSED_SECONDS) },
        (Some(NodeAnswer::Changed), _) => OnNode { action: None, next: Next::after_seconds(CHANGED_SECONDS) },
        (None, Some(wait)) => OnNode { action: None, next: Next::After(wait.unsigned_abs()) },
        (None, None) => {
            let machine = observed.machine;
            let namespace = machine.metadata.namespace.clone().unwrap_or_default();
            let cluster = machine.spec.cluster_name.clone();
            let action = Action::ApplyNode { namespace, cluster, write: Box::new(write) };
            OnNode { action: Some(action), next: Next::OnChange }
        }
    }
}
