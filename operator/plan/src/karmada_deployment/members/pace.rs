//! How many members join or leave at once, and how often they are looked at. One that does not answer, for which all is
//! made, or that has been at it for long, does not count: others do not wait for it.

use std::collections::BTreeSet;

use crds::karmada_deployment::{KarmadaMemberPhase as Phase, SyncMode};
use crds::names::condition;
use crds::{Conditions, Reason};
use serde_json::Value;

use super::action::Act;
use super::agents::AGENT;
use super::arrival;
use super::context::{Context, Outcome};
use super::observed::{Member, Observed};
use super::target::{Target, Wish, has_begun, known};
use crate::Next;

/// How many, where `spec.autoJoin` does not say.
const MAX_CONCURRENT: usize = 5;
/// How long one that joins or leaves counts, in seconds.
const COUNTS_SECONDS: i64 = 600;
/// How often members at rest are looked at, and those that wait, in seconds.
const RESYNC_SECONDS: u64 = 60;
/// When what was done is looked at of one that joins or leaves, in seconds.
const GO_ON_SECONDS: u64 = 1;
/// How often it is looked how far one is that joins or leaves, in seconds.
const LOOK_AGAIN_SECONDS: u64 = 5;
/// When something is tried again that failed for the first time, in seconds.
const RETRY_SECONDS: u64 = 15;

/// Names of those that may begin now, the first by name.
pub(super) fn may_begin<'a>(observed: &'a Observed<'a>, targets: &'a [Target]) -> BTreeSet<&'a str> {
    let known = known(observed.object);
    let answers =
        |target: &Target| observed.seen.members.get(&target.name).is_some_and(|member| Member::seen(member).is_some());
    let busy = targets.iter().filter(|target| {
        let is_busy = known.get(target.name.as_str()).is_some_and(|status| {
            let seconds = observed.now.duration_since(status.since.0).as_secs();
            let waits = is_made(observed, target) || arrival::waits_for_agent(status);
            let joins = has_begun(status) && status.joined_at.is_none() && !waits;
            let is_at_it = joins || status.leaving_since.is_some();
            is_at_it && seconds < COUNTS_SECONDS
        });
        is_busy && answers(target)
    });
    let auto_join = observed.object.spec.auto_join.as_ref();
    let most = auto_join.map_or(MAX_CONCURRENT, |auto_join| usize::try_from(auto_join.max_concurrent).unwrap_or(1));
    let free = most.saturating_sub(busy.count());
    let plane_works = observed.object.is_true(condition::COMPONENTS_READY);
    let is_new = |target: &&Target| {
        let status = known.get(target.name.as_str());
        match target.wish {
            Wish::Join => plane_works && answers(target) && !status.is_some_and(|status| has_begun(status)),
            Wish::Leave => status.is_none_or(|status| status.leaving_since.is_none()),
            Wish::Wait(_) => false,
        }
    };
    // One that is away takes no place from others when it begins to leave.
    let away = targets.iter().filter(|target| is_new(target) && !answers(target));
    let first = targets.iter().filter(|target| is_new(target) && answers(target)).take(free);
    away.chain(first).map(|target| target.name.as_str()).collect()
}

/// Whether what is made last for a member that joins is there: from then on Karmada, which looks at one after the
/// other, and its agent are waited for.
fn is_made(observed: &Observed<'_>, target: &Target) -> bool {
    let (seen, object) = (&observed.seen, observed.object);
    let in_member = || seen.members.get(&target.name).and_then(Member::seen).map(|seen| seen.listed.as_slice());
    let is_agent = |live: &Value| live["kind"] == "Deployment" && live["metadata"]["name"] == AGENT;
    match target.sync_mode {
        SyncMode::Push => seen.plane.seen().is_some_and(|plane| plane.own_cluster(object, &target.name).is_some()),
        SyncMode::Pull => in_member().is_some_and(|listed| listed.iter().any(is_agent)),
    }
}

/// When a member is looked at again. All of the plane is looked at with it: seldom, where nothing is on its way.
pub(super) fn look_again(context: &Context<'_>, outcome: &Outcome, has_failed: bool) -> Next {
    let reason = outcome.problem.reason;
    let is_slow = context.known.is_some_and(|known| {
        let seconds = context.observed.now.duration_since(known.since.0).as_secs();
        known.phase == outcome.phase && seconds >= COUNTS_SECONDS
    });
    let has_failed_before = context.known.is_some_and(|known| known.reason == Reason::ApplyFailed);
    let waits = reason.is_warning() || reason == Reason::Paused || outcome.phase == Phase::Waiting;
    Next::after_seconds(match () {
        () if has_failed && !has_failed_before => RETRY_SECONDS,
        // Nobody says when a Secret beside the object has changed.
        () if outcome.acts.iter().any(changes_secret) && !has_failed => GO_ON_SECONDS,
        () if has_failed || outcome.is_joined || waits || is_slow => RESYNC_SECONDS,
        () if !outcome.acts.is_empty() => GO_ON_SECONDS,
        () => LOOK_AGAIN_SECONDS,
    })
}

fn changes_secret(act: &Act) -> bool {
    matches!(act, Act::IssueCertificate(..) | Act::KeepKubeconfig { .. } | Act::DeleteKubeconfig)
}
