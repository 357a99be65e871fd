//! Pods that are in the way of a drain, in the status and in a sentence.

use crds::machine::BlockedPod;

use super::pods::{PodSeen, Refusal};
use crate::message::count;

/// Pods that are named in a message, and in the status.
const NAMED: usize = 5;
/// Budgets of a Pod, and characters of an answer, that the status takes.
const MOST_BUDGETS: usize = 8;
const MOST_MESSAGE: usize = 512;

/// The first Pods whose eviction was refused.
pub(super) fn blocked(pods: &[PodSeen], refusals: &[Refusal]) -> Vec<BlockedPod> {
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
pub(super) fn refused_before(blocked: &[BlockedPod]) -> Vec<Refusal> {
    let refusal = |pod: &BlockedPod| Refusal {
        uid: pod.uid.clone(),
        budgets: pod.budgets.clone(),
        message: pod.message.clone().unwrap_or_default(),
        retry_after_seconds: 0,
    };
    blocked.iter().map(refusal).collect()
}

/// `3 Pods are left: default/web-1 (PodDisruptionBudget web), default/web-2 and 1 more`; those in the way come first.
pub(super) fn tell(pods: &[PodSeen], refusals: &[Refusal]) -> String {
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
