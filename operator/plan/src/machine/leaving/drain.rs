//! The drain: Pods leave a node by the eviction API, which keeps what PodDisruptionBudgets ask for. It takes so long
//! and no longer; who is in the way is named.

use crds::Conditions;
use crds::ObjectExt;
use crds::Reason;
use crds::conditions::Statement;
use crds::machine::BlockedPod;
use crds::names::condition;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;

use super::deletion::Leaving;
use crate::Next;
use crate::cluster::NodeSeen;
use crate::lifecycle::is_provisioned;
use crate::machine::action::Action;
use crate::machine::observed::Observed;
use crate::machine::pods::{Drain, PodSeen, Refusal};
use crate::message::count;
use crate::moment::{after, clock};

/// How often a node that is drained is looked at.
const LOOK_SECONDS: u64 = 5;
/// However long the API wants to be left alone.
const LONGEST_SECONDS: u64 = 60;
/// Pods that are evicted at once.
const BATCH: usize = 40;
/// Pods that are named in a message, and in the status.
const NAMED: usize = 5;
/// Budgets of a Pod, and characters of an answer, that the status takes.
const MOST_BUDGETS: usize = 8;
const MOST_MESSAGE: usize = 512;
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
    let mut actions = Vec::new();
    if node_of(observed, host).is_some_and(|node| !node.unschedulable) {
        actions.push(Action::Cordon {
            namespace: namespace(observed),
            cluster: observed.machine.spec.cluster_name.clone(),
            node: host.to_owned(),
        });
    }
    let seconds = seconds(observed);
    let until = after(since(observed).unwrap_or(observed.now), SignedDuration::from_secs(seconds));
    let is_late = observed.now >= until;
    match observed.drain {
        None => draining(Reason::Draining, format!("drains Node {host}"), actions),
        Some(Drain { pods: Err(why), .. }) if is_late => {
            given_up(format!("after {seconds} s the Pods of Node {host} could still not be read: {why}"))
        }
        Some(Drain { pods: Err(why), .. }) => {
            let message = format!("the Pods of Node {host} cannot be read: {why}; tried again");
            draining(Reason::PodsUnknown, message, actions)
        }
        Some(Drain { pods: Ok(pods), .. }) if pods.is_empty() => {
            let message = format!("no Pod is left on Node {host}");
            let drained = Statement::new(condition::DRAINED, true, Reason::Drained, message);
            Progress::Over(Some(drained))
        }
        Some(Drain { pods: Ok(pods), refusals }) if is_late => {
            // Nobody is asked any more: what is in the way is what was in the way last.
            let refusals = [refusals.as_slice(), &refused_before(observed)].concat();
            given_up(format!("after {seconds} s {}", tell(pods, &refusals)))
        }
        Some(Drain { pods: Ok(pods), refusals }) => evict(observed, pods, refusals, actions, until),
    }
}

fn evict(
    observed: &Observed<'_>,
    pods: &[PodSeen],
    refusals: &[Refusal],
    mut actions: Vec<Action>,
    until: Timestamp,
) -> Progress {
    let evicted = batch(pods, observed.now);
    let look = look_seconds(&evicted, refusals);
    if !evicted.is_empty() {
        actions.push(Action::Evict {
            namespace: namespace(observed),
            cluster: observed.machine.spec.cluster_name.clone(),
            pods: evicted,
        });
    }
    let reason = match refusals.is_empty() {
        true => Reason::Draining,
        false => Reason::PodsBlocked,
    };
    let message = format!("{}; goes on without them at {}", tell(pods, refusals), clock(until));
    Progress::UnderWay(Leaving {
        next: Next::after_seconds(look),
        blocked_pods: blocked(pods, refusals),
        ..under_way(reason, message, actions)
    })
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
    (!is_over(observed)).then(|| Statement::new(condition::DRAINED, None, Reason::ClusterUnreachable, message))
}

fn draining(reason: Reason, message: String, actions: Vec<Action>) -> Progress {
    Progress::UnderWay(under_way(reason, message, actions))
}

fn under_way(reason: Reason, message: String, actions: Vec<Action>) -> Leaving {
    Leaving {
        actions,
        next: Next::after_seconds(LOOK_SECONDS),
        drained: Some(Statement::new(condition::DRAINED, false, reason, message.clone())),
        ..Leaving::waits(Reason::Draining, message)
    }
}

fn given_up(left: String) -> Progress {
    let message = format!("{left}; the removal goes on");
    Progress::Over(Some(Statement::new(condition::DRAINED, false, Reason::TimedOut, message)))
}

/// The first Pods whose eviction was refused.
fn blocked(pods: &[PodSeen], refusals: &[Refusal]) -> Vec<BlockedPod> {
    let blocked = pods.iter().filter_map(|pod| {
        let refusal = refusals.iter().find(|refusal| refusal.uid == pod.uid)?;
        Some(BlockedPod {
            namespace: pod.namespace.clone(),
            name: pod.name.clone(),
            uid: pod.uid.clone(),
            budgets: refusal.budgets.iter().take(MOST_BUDGETS).cloned().collect(),
            message: refusal.budgets.is_empty().then(|| refusal.message.chars().take(MOST_MESSAGE).collect()),
        })
    });
    let mut blocked: Vec<BlockedPod> = blocked.collect();
    blocked.sort_by(|one, other| (&one.namespace, &one.name).cmp(&(&other.namespace, &other.name)));
    blocked.truncate(NAMED);
    blocked
}

/// What was refused when evictions were asked for last.
fn refused_before(observed: &Observed<'_>) -> Vec<Refusal> {
    let blocked = observed.machine.status.iter().flat_map(|status| &status.blocked_pods);
    let refusal = |pod: &BlockedPod| Refusal {
        uid: pod.uid.clone(),
        budgets: pod.budgets.clone(),
        message: pod.message.clone().unwrap_or_default(),
        retry_after_seconds: 0,
    };
    blocked.map(refusal).collect()
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
    drained(observed).filter(|there| there.status == "False").map(|there| there.last_transition_time.0)
}

/// What is said where there is nothing to move, or nobody to move it.
fn over_at_once(observed: &Observed<'_>, host: &str) -> Option<Statement> {
    let stated =
        |status, reason: Reason, message: String| Some(Statement::new(condition::DRAINED, status, reason, message));
    let machine = observed.machine;
    if machine.spec.role == crds::step::Role::Etcd || !is_provisioned(machine) {
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
    let removal = observed.deployment.map(|deployment| &deployment.spec.machine_removal);
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
                format!("{} (PodDisruptionBudget {})", pod.title(), refusal.budgets.join(", "))
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
    format!("{} {are} left: {}{more}", count(pods.len(), "Pod"), named.join(", "))
}
