//! The drain of a Node: its Pods leave by the eviction API, which keeps what PodDisruptionBudgets ask for. It takes as
//! long as it may; who is in the way is named. Whoever needs a Node empty asks with what it knows of it.

mod blocked;
mod pods;

use crds::Reason;
use crds::conditions::Statement;
use crds::machine::BlockedPod;
use crds::names::condition;
use jiff::{SignedDuration, Timestamp};

use crate::Next;
use crate::moment::{after, clock};
use blocked::{blocked, refused_before, tell};
pub use pods::{Drain, PodSeen, Refusal};

/// How often a node that is drained is looked at.
const LOOK_SECONDS: u64 = 5;
/// However long the API wants to be left alone.
const LONGEST_SECONDS: u64 = 60;
/// Pods that are evicted at once.
const BATCH: usize = 40;

/// A Node that is to be drained.
pub(crate) struct DrainObserved<'a> {
    /// The time.
    pub now: Timestamp,
    /// Name of the Node.
    pub node: &'a str,
    /// Its Pods, once they were looked at.
    pub pods: Option<&'a Drain>,
    /// Those whose eviction was refused when they were asked last.
    pub blocked: &'a [BlockedPod],
    /// How long they are waited for; `None`: until they are gone.
    pub limit: Option<DrainLimit<'a>>,
}

/// How long the Pods of a Node are waited for.
pub(crate) struct DrainLimit<'a> {
    /// Since when they are being moved; `None`: it begins now.
    pub since: Option<Timestamp>,
    /// So many seconds.
    pub seconds: i64,
    /// What happens then: "the removal goes on".
    pub then: &'a str,
}

/// Where the drain stands.
pub(crate) enum Progress {
    /// It is over: what is to be said of it. `Drained` is true where no Pod was left.
    Over(Statement),
    /// Pods are being moved.
    UnderWay(UnderWay),
}

/// A drain that goes on.
#[derive(Debug, PartialEq)]
pub(crate) struct UnderWay {
    /// The Pods that are to be asked to go now.
    pub evict: Vec<PodSeen>,
    /// When to look at the Node again.
    pub next: Next,
    /// How it is.
    pub reason: Reason,
    /// The same in a sentence.
    pub message: String,
    /// Pods that may not be evicted now.
    pub blocked: Vec<BlockedPod>,
}

/// Decides.
pub(crate) fn drain(observed: &DrainObserved<'_>) -> Progress {
    let node = observed.node;
    let until =
        |limit: &DrainLimit<'_>| after(limit.since.unwrap_or(observed.now), SignedDuration::from_secs(limit.seconds));
    let limit = observed.limit.as_ref();
    let over = limit.filter(|limit| observed.now >= until(limit));
    match (observed.pods, over) {
        (None, _) => waits(Reason::Draining, format!("drains Node {node}")),
        (Some(Drain { pods: Err(why), .. }), Some(limit)) => {
            given_up(limit, &format!("the Pods of Node {node} could still not be read: {why}"))
        }
        (Some(Drain { pods: Err(why), .. }), None) => {
            waits(Reason::PodsUnknown, format!("the Pods of Node {node} cannot be read: {why}; tried again"))
        }
        (Some(Drain { pods: Ok(pods), .. }), _) if pods.is_empty() => {
            let message = format!("no Pod is left on Node {node}");
            Progress::Over(Statement::new(condition::DRAINED, true, Reason::Drained, message))
        }
        (Some(Drain { pods: Ok(pods), refusals }), Some(limit)) => {
            // Nobody is asked any more: what is in the way is what was in the way last.
            let refusals = [refusals.as_slice(), &refused_before(observed.blocked)].concat();
            given_up(limit, &tell(pods, &refusals))
        }
        (Some(Drain { pods: Ok(pods), refusals }), None) => evict(pods, refusals, observed.now, limit.map(until)),
    }
}

fn evict(pods: &[PodSeen], refusals: &[Refusal], now: Timestamp, until: Option<Timestamp>) -> Progress {
    let evict = batch(pods, now);
    let then = until.map_or_else(String::new, |until| format!("; goes on without them at {}", clock(until)));
    Progress::UnderWay(UnderWay {
        next: Next::after_seconds(look_seconds(&evict, refusals)),
        reason: if refusals.is_empty() { Reason::Draining } else { Reason::PodsBlocked },
        message: format!("{}{then}", tell(pods, refusals)),
        blocked: blocked(pods, refusals),
        evict,
    })
}

fn waits(reason: Reason, message: String) -> Progress {
    let next = Next::after_seconds(LOOK_SECONDS);
    Progress::UnderWay(UnderWay { evict: Vec::new(), next, reason, message, blocked: Vec::new() })
}

fn given_up(limit: &DrainLimit<'_>, left: &str) -> Progress {
    let message = format!("after {} s {left}; {}", limit.seconds, limit.then);
    Progress::Over(Statement::new(condition::DRAINED, false, Reason::TimedOut, message))
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

#[cfg(test)]
mod tests;
