//! The drain of the Node of a machine that leaves: whether there is anything to move, and what is said of it.

use crds::Conditions;
use crds::Reason;
use crds::conditions::Statement;
use crds::names::condition;
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;

use super::deletion::Leaving;
use crate::cluster::NodeSeen;
use crate::drain::{self, DrainLimit, DrainObserved, UnderWay};
use crate::lifecycle::is_provisioned;
use crate::machine::action::Action;
use crate::machine::observed::Observed;

/// Reasons of `Drained=False` with which the removal goes on.
const GIVEN_UP: [Reason; 2] = [Reason::TimedOut, Reason::PodsNotMoved];

/// Where the drain stands.
pub(super) enum Progress {
    /// It is over, or there is nothing to do; what is to be said of it, if that is new.
    Over(Option<Statement>),
    /// Pods are being moved.
    UnderWay(Leaving),
}

/// Whether the Pods of the machine's node are to be looked at now.
pub(super) fn is_under_way(observed: &Observed<'_>, node: &str) -> bool {
    !is_over(observed) && over_at_once(observed, node).is_none()
}

pub(super) fn drain(observed: &Observed<'_>, host: &str) -> Progress {
    if is_over(observed) {
        return Progress::Over(None);
    }
    if let Some(statement) = over_at_once(observed, host) {
        return Progress::Over(Some(statement));
    }
    let status = observed.machine.status.as_ref();
    let progress = drain::drain(&DrainObserved {
        now: observed.now,
        node: host,
        pods: observed.drain,
        blocked: status.map(|status| status.blocked_pods.as_slice()).unwrap_or_default(),
        limit: Some(DrainLimit { since: since(observed), seconds: seconds(observed), then: "the removal goes on" }),
    });
    match progress {
        drain::Progress::Over(statement) => Progress::Over(Some(statement)),
        drain::Progress::UnderWay(under_way) => Progress::UnderWay(leaving(observed, host, under_way)),
    }
}

/// What is done at the Node, and said of the Machine.
fn leaving(observed: &Observed<'_>, node: &str, under_way: UnderWay) -> Leaving {
    let (machine, UnderWay { evict, next, reason, message, blocked }) = (observed.machine, under_way);
    let open = node_of(observed, node).filter(|node| !node.unschedulable);
    let cordon = open.map(|node| Action::cordon(machine, node));
    Leaving {
        actions: cordon.into_iter().chain(Action::evict(machine, evict)).collect(),
        next,
        drained: Some(Statement::new(condition::DRAINED, false, reason, message.clone())),
        blocked_pods: blocked,
        ..Leaving::waits(Reason::Draining, message)
    }
}

/// What is said of the Pods while the cluster's API does not answer; none once the drain is over.
pub(super) fn unknown(observed: &Observed<'_>) -> Option<Statement> {
    let message = "not known: the API of the cluster does not answer";
    (!is_over(observed)).then(|| Statement::new(condition::DRAINED, None, Reason::ClusterUnreachable, message))
}

/// Whether the removal goes on: no Pod was left, or they are not waited for.
fn is_over(observed: &Observed<'_>) -> bool {
    drained(observed).is_some_and(|there| there.status == "True" || Reason::among(&there.reason, &GIVEN_UP))
}

/// What was said since the removal began: the machine may have been drained before, and have taken Pods again.
fn drained<'a>(observed: &Observed<'a>) -> Option<&'a Condition> {
    observed.machine.condition(condition::DRAINED).filter(|_| observed.machine.condition(condition::DELETING).is_some())
}

/// Since when Pods are being moved.
fn since(observed: &Observed<'_>) -> Option<Timestamp> {
    drained(observed).filter(|there| there.status == "False").map(|there| there.last_transition_time.0)
}

/// What is said where there is nothing to move, or nobody to move it.
fn over_at_once(observed: &Observed<'_>, host: &str) -> Option<Statement> {
    let stated =
        |status, reason: Reason, message: String| Some(Statement::new(condition::DRAINED, status, reason, message));
    let machine = observed.machine;
    if !observed.has_node() || !is_provisioned(machine) {
        return stated(true, Reason::NothingToDrain, "it runs no Pods of the cluster's users".into());
    }
    let Some(node) = node_of(observed, host) else {
        return stated(true, Reason::NothingToDrain, format!("the cluster has no Node {host}"));
    };
    if node.ready.is_none() {
        let message = format!("the kubelet of Node {host} is silent: its Pods are not waited for");
        return stated(false, Reason::PodsNotMoved, message);
    }
    if seconds(observed) == 0 {
        let message = "machineRemoval.drainTimeoutSeconds is 0: Pods are not moved".to_owned();
        return stated(false, Reason::PodsNotMoved, message);
    }
    None
}

fn node_of<'a>(observed: &Observed<'a>, host: &str) -> Option<&'a NodeSeen> {
    observed.nodes?.iter().find(|node| node.name == host)
}

fn seconds(observed: &Observed<'_>) -> i64 {
    observed.formed.map_or(0, |cluster| i64::from(cluster.drain_timeout_seconds))
}
