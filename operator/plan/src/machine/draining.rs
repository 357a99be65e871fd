//! The drain of the Node of a machine that stays: while `spec.drainFor` has a value it takes no new Pods, and those
//! that it has are moved away, however long that takes.

use crds::conditions::Statement;
use crds::machine::BlockedPod;
use crds::names::condition;
use crds::{Conditions, Host, Machine, ObjectExt, Reason};

use super::action::Action;
use super::hindrance::hindrance;
use super::observed::Observed;
use super::status::node_of;
use crate::Next;
use crate::cluster::NodeSeen;
use crate::drain::{self, DrainObserved, Progress, UnderWay};

/// What is done at the Node, and what is said of it.
#[derive(Default)]
pub(super) struct Draining {
    pub actions: Vec<Action>,
    pub next: Next,
    /// Of its Pods; none: it takes them as any other Node.
    pub drained: Option<Statement>,
    /// Those of them that may not be evicted now.
    pub blocked_pods: Vec<BlockedPod>,
}

impl Draining {
    fn says(status: Option<bool>, reason: Reason, message: impl Into<String>) -> Self {
        Self { drained: Some(Statement::new(condition::DRAINED, status, reason, message.into())), ..Self::default() }
    }

    /// Whether Pods are being moved, or are to be.
    pub fn is_under_way(&self) -> bool {
        self.drained.as_ref().is_some_and(|drained| drained.status != Some(true))
    }
}

/// What the Node is drained for: `Maintenance`.
pub(super) fn reasons(machine: &Machine) -> String {
    let reasons: Vec<String> = machine.spec.drain_for.iter().map(|reason| format!("{reason:?}")).collect();
    reasons.join(", ")
}

pub(super) fn plan(observed: &Observed<'_>, host: Option<&Host>) -> Draining {
    let (machine, node) = (observed.machine, host.and_then(|host| node_of(observed, host)));
    if machine.spec.drain_for.is_empty() {
        return node.map(|node| give_back(observed, node)).unwrap_or_default();
    }
    if !observed.has_node() {
        return Draining::says(Some(true), Reason::NothingToDrain, "it has no Node");
    }
    let Some(node) = node else { return without_node(observed, host) };
    if is_drained(observed, node) {
        return as_before(observed);
    }
    if let Some(why) = hindrance(observed) {
        return Draining::says(None, Reason::DrainOnHold, format!("Node {} is not drained: {why}", node.name));
    }
    let cordon = (!node.owners.drains).then(|| Action::cordon(machine, node));
    let status = machine.status.as_ref();
    let progress = drain::drain(&DrainObserved {
        now: observed.now,
        node: &node.name,
        pods: observed.drain,
        blocked: status.map(|status| status.blocked_pods.as_slice()).unwrap_or_default(),
        limit: None,
    });
    match progress {
        // A Pod may have come until it was cordoned.
        Progress::Over(_) if cordon.is_some() => Draining {
            next: Next::after_seconds(1),
            actions: cordon.into_iter().collect(),
            ..Draining::says(Some(false), Reason::Draining, format!("drains Node {}", node.name))
        },
        Progress::Over(statement) => Draining { drained: Some(statement), ..Draining::default() },
        Progress::UnderWay(UnderWay { evict, next, reason, message, blocked }) => Draining {
            actions: cordon.into_iter().chain(Action::evict(machine, evict)).collect(),
            next,
            blocked_pods: blocked,
            ..Draining::says(Some(false), reason, message)
        },
    }
}

/// Whether the Pods of the Node are to be looked at.
pub(super) fn looks_at_pods(observed: &Observed<'_>, host: &Host) -> bool {
    let machine = observed.machine;
    let is_wanted = !machine.spec.drain_for.is_empty() && observed.has_node();
    let node = node_of(observed, host).filter(|_| is_wanted && hindrance(observed).is_none());
    node.is_some_and(|node| !is_drained(observed, node))
}

/// Whether no Pod was left on the Node, and it has been cordoned ever since.
fn is_drained(observed: &Observed<'_>, node: &NodeSeen) -> bool {
    node.owners.drains && observed.machine.is_true(condition::DRAINED)
}

fn as_before(observed: &Observed<'_>) -> Draining {
    let said = observed.machine.condition(condition::DRAINED);
    let drained = said.map(|said| Statement::new(condition::DRAINED, true, said.reason.clone(), said.message.clone()));
    Draining { drained, ..Draining::default() }
}

/// There is nothing to drain, or nobody to tell.
fn without_node(observed: &Observed<'_>, host: Option<&Host>) -> Draining {
    match (observed.nodes, host) {
        (None, _) if observed.machine.is_true(condition::DRAINED) => as_before(observed),
        (None, _) => {
            let message = "not known: the API of the cluster does not answer";
            Draining::says(None, Reason::ClusterUnreachable, message)
        }
        (Some(_), Some(host)) => {
            Draining::says(Some(true), Reason::NothingToDrain, format!("the cluster has no Node {}", host.name()))
        }
        (Some(_), None) => Draining::says(Some(true), Reason::NothingToDrain, "it has no Node"),
    }
}

/// What nobody wants drained any more takes Pods again.
fn give_back(observed: &Observed<'_>, node: &NodeSeen) -> Draining {
    if !node.owners.drains {
        return Draining::default();
    }
    match hindrance(observed) {
        Some(why) => {
            Draining::says(None, Reason::DrainOnHold, format!("Node {} takes no new Pods still: {why}", node.name))
        }
        None => Draining { actions: vec![uncordon(observed.machine, node)], ..Draining::default() },
    }
}

fn uncordon(machine: &Machine, node: &NodeSeen) -> Action {
    let (namespace, cluster) = (machine.namespace().to_owned(), machine.spec.cluster_name.clone());
    Action::Uncordon { namespace, cluster, node: node.name.clone(), uid: node.uid.clone() }
}

#[cfg(test)]
mod tests;
