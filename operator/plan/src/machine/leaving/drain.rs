//! The drain: Pods leave a node by the eviction API, which keeps what PodDisruptionBudgets ask for. It takes so long
//! and no longer; who is in the way is named.

use std::collections::BTreeMap;

use crds::Conditions;
use crds::ObjectExt;
use crds::Reason;
use crds::conditions::Statement;
use crds::names::condition;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;

use super::{Leaving, Observed, Step};
use crate::Next;
use crate::cluster::NodeSeen;
use crate::moment::{after, clock};
use crate::sentence::count;

/// How often a node that is drained is looked at.
const LOOK_SECONDS: u64 = 5;
/// However long the API wants to be left alone.
const LONGEST_SECONDS: u64 = 60;
/// Pods that are evicted at once.
const BATCH: usize = 40;
/// Pods that are named in a message.
const NAMED: usize = 5;
/// What follows in a message on the Pods that are left.
const GOES_ON: &str = "; goes on without them at ";
/// Reasons of `Drained=False` with which the removal goes on.
const GIVEN_UP: [Reason; 2] = [Reason::TimedOut, Reason::PodsNotMoved];

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
    pub fn of(pod: &Pod) -> Option<Self> {
        let metadata = &pod.metadata;
        let owners = metadata.owner_references.as_deref().unwrap_or_default();
        let of_node = owners
            .iter()
            .any(|owner| owner.controller == Some(true) && owner.kind == "DaemonSet");
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

    fn title(&self) -> String {
        format!("{}/{}", self.namespace, self.name)
    }
}

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

pub(super) fn of(observed: &Observed<'_>, host: &str) -> Progress {
    if is_over(observed) {
        return Progress::Over(None);
    }
    let node = match over_at_once(observed, host) {
        Some(statement) => return Progress::Over(Some(statement)),
        None => node_of(observed, host),
    };
    let mut steps = Vec::new();
    if node.is_some_and(|node| !node.unschedulable) {
        steps.push(Step::Cordon {
            namespace: namespace(observed),
            cluster: observed.machine.spec.cluster_name.clone(),
            node: host.to_owned(),
        });
    }
    let seconds = seconds(observed);
    let until = after(
        since(observed).unwrap_or(observed.now),
        SignedDuration::from_secs(seconds),
    );
    let is_late = observed.now >= until;
    let (pods, refusals) = match observed.drain {
        None => return draining(Reason::Draining, format!("drains Node {host}"), steps),
        Some(Drain { pods: Err(why), .. }) if is_late => {
            return given_up(format!(
                "after {seconds} s the Pods of Node {host} could still not be read: {why}"
            ));
        }
        Some(Drain { pods: Err(why), .. }) => {
            let message = format!("the Pods of Node {host} cannot be read: {why}; tried again");
            return draining(Reason::PodsUnknown, message, steps);
        }
        Some(Drain {
            pods: Ok(pods),
            refusals,
        }) => (pods, refusals),
    };
    if pods.is_empty() {
        let message = format!("no Pod is left on Node {host}");
        return Progress::Over(Some(Statement::new(
            condition::DRAINED,
            true,
            Reason::Drained,
            message,
        )));
    }
    let left = tell(pods, refusals);
    if is_late {
        // Nobody is asked any more: what was in the way is what was said last.
        let left = blocked(observed).unwrap_or(&left);
        return given_up(format!("after {seconds} s {left}"));
    }
    let evicted = batch(pods, observed.now);
    let look = look_seconds(&evicted, refusals);
    if !evicted.is_empty() {
        steps.push(Step::Evict {
            namespace: namespace(observed),
            cluster: observed.machine.spec.cluster_name.clone(),
            pods: evicted,
        });
    }
    let reason = if refusals.is_empty() {
        Reason::Draining
    } else {
        Reason::PodsBlocked
    };
    let message = format!("{left}{GOES_ON}{}", clock(until));
    let mut leaving = under_way(reason, message, steps);
    leaving.next = Next::after_seconds(look);
    Progress::UnderWay(leaving)
}

/// The Pods that are asked to go now. Each look takes others: those that a budget holds keep nobody waiting.
fn batch(pods: &[PodSeen], now: Timestamp) -> Vec<PodSeen> {
    let stay: Vec<&PodSeen> = pods.iter().filter(|pod| !pod.goes).collect();
    let look = usize::try_from(now.as_second()).unwrap_or_default() / (LOOK_SECONDS as usize);
    let batches = stay.len().div_ceil(BATCH).max(1);
    let from = look % batches * BATCH;
    let most = stay.len().min(BATCH);
    stay.into_iter().cycle().skip(from).take(most).cloned().collect()
}

/// When to look again: when all that were asked for have to wait, no sooner than the API wants to be asked.
fn look_seconds(asked: &[PodSeen], refusals: &[Refusal]) -> u64 {
    let wait = |pod: &PodSeen| {
        let refusal = refusals.iter().find(|refusal| refusal.uid == pod.uid);
        refusal.map_or(0, |refusal| u64::from(refusal.retry_after_seconds))
    };
    let longest = asked.iter().map(wait).min().unwrap_or_default();
    longest.clamp(LOOK_SECONDS, LONGEST_SECONDS)
}

/// What is said of the Pods while the cluster's API does not answer; none once the drain is over.
pub(super) fn unknown(observed: &Observed<'_>) -> Option<Statement> {
    let message = "not known: the API of the cluster does not answer";
    (!is_over(observed))
        .then(|| Statement::new(condition::DRAINED, None, Reason::ClusterUnreachable, message))
}

fn draining(reason: Reason, message: String, steps: Vec<Step>) -> Progress {
    Progress::UnderWay(under_way(reason, message, steps))
}

fn under_way(reason: Reason, message: String, steps: Vec<Step>) -> Leaving {
    Leaving {
        steps,
        next: Next::after_seconds(LOOK_SECONDS),
        drained: Some(Statement::new(condition::DRAINED, false, reason, message.clone())),
        ..Leaving::waits(Reason::Draining, message)
    }
}

fn given_up(left: String) -> Progress {
    let message = format!("{left}; the removal goes on");
    Progress::Over(Some(Statement::new(
        condition::DRAINED,
        false,
        Reason::TimedOut,
        message,
    )))
}

/// What was said to be in the way.
fn blocked<'a>(observed: &Observed<'a>) -> Option<&'a str> {
    let said = drained(observed).filter(|there| there.reason == Reason::PodsBlocked)?;
    said.message.split(GOES_ON).next()
}

/// Whether the removal goes on: no Pod was left, or they are not waited for.
fn is_over(observed: &Observed<'_>) -> bool {
    drained(observed).is_some_and(|there| there.status == "True" || Reason::among(&there.reason, &GIVEN_UP))
}

fn drained<'a>(observed: &Observed<'a>) -> Option<&'a Condition> {
    observed.machine.condition(condition::DRAINED)
}

/// Since when Pods are being moved.
fn since(observed: &Observed<'_>) -> Option<Timestamp> {
    drained(observed)
        .filter(|there| there.status == "False")
        .map(|there| there.last_transition_time.0)
}

/// What is said where there is nothing to move, or nobody to move it.
fn over_at_once(observed: &Observed<'_>, host: &str) -> Option<Statement> {
    let of = |status, reason: Reason, message: String| {
        Some(Statement::new(condition::DRAINED, status, reason, message))
    };
    let machine = observed.machine;
    let provisioned = machine
        .status
        .as_ref()
        .is_some_and(|status| status.provisioned_at.is_some());
    if machine.spec.role == crds::step::Role::Etcd || !provisioned {
        return of(
            true,
            Reason::NothingToDrain,
            "it runs no Pods of the cluster's users".into(),
        );
    }
    let Some(node) = node_of(observed, host) else {
        return of(
            true,
            Reason::NothingToDrain,
            format!("the cluster has no Node {host}"),
        );
    };
    if node.ready.is_none() {
        let message = format!("the kubelet of Node {host} is silent: its Pods are not waited for");
        return of(false, Reason::PodsNotMoved, message);
    }
    if seconds(observed) == 0 {
        let message = "machineRemoval.drainTimeoutSeconds is 0: Pods are not moved".to_owned();
        return of(false, Reason::PodsNotMoved, message);
    }
    None
}

fn node_of<'a>(observed: &Observed<'a>, host: &str) -> Option<&'a NodeSeen> {
    observed.nodes?.iter().find(|node| node.name == host)
}

fn seconds(observed: &Observed<'_>) -> i64 {
    let removal = observed
        .deployment
        .map(|deployment| &deployment.spec.machine_removal);
    removal.map_or(0, |removal| i64::from(removal.drain_timeout_seconds))
}

fn namespace(observed: &Observed<'_>) -> String {
    observed.machine.namespace().to_owned()
}

/// `3 Pods are left: default/web-1 (PodDisruptionBudget web), default/web-2 and 1 more`; those in the way come first.
fn tell(pods: &[PodSeen], refusals: &[Refusal]) -> String {
    let refusal = |pod: &PodSeen| refusals.iter().find(|refusal| refusal.uid == pod.uid);
    let mut sorted: Vec<&PodSeen> = pods.iter().collect();
    sorted.sort_by_key(|pod| (refusal(pod).is_none(), pod.title()));
    let named: Vec<String> = sorted
        .iter()
        .take(NAMED)
        .map(|pod| match refusal(pod) {
            Some(refusal) if !refusal.budgets.is_empty() => {
                format!(
                    "{} (PodDisruptionBudget {})",
                    pod.title(),
                    refusal.budgets.join(", ")
                )
            }
            Some(refusal) => format!("{} ({})", pod.title(), refusal.message),
            None if pod.goes => format!("{} (terminating)", pod.title()),
            None => pod.title(),
        })
        .collect();
    let more = match pods.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let are = if pods.len() == 1 { "is" } else { "are" };
    format!(
        "{} {are} left: {}{more}",
        count(pods.len(), "Pod"),
        named.join(", ")
    )
}
