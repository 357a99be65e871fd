//! How a member leaves. What the plane runs there goes when its Works do, so Karmada is first kept from the member
//! where it is to stay: it is given a token that nobody accepts, or its agent goes with its rights. Only then, and
//! once Karmada has noticed, its Cluster is deleted in the plane.

use crds::karmada_deployment::{KarmadaMemberPhase as Phase, SyncMode, UnjoinPolicy};
use crds::{ObjectExt, Reason};
use jiff::Timestamp;
use serde_json::Value;

use super::action::{Act, Place};
use super::cleaning::{self, Cleaning, clean};
use super::cluster::{deletion, is_held_by_others, is_ready, is_terminating, patch_of, readiness, released};
use super::context::{Context, Outcome};
use super::difference::{difference, wanted_now};
use super::host_reading::{has_left, leftovers};
use super::observed::PlaneSeen;
use super::target::ReachedBy;
use super::{auto_join, estimator_state, push};
use crate::message::count;

/// How long an agent that the operator does not reach must have been silent, in seconds: by then no request of it is
/// under way any more.
const SILENCE_SECONDS: i64 = 60;

/// What becomes of what the plane runs in the member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Course {
    Preserve,
    Delete,
    Unsaid,
}

/// A course that has begun goes on: a member from which Karmada is kept has lost nothing, and loses nothing.
fn course(context: &Context<'_>, plane: Option<&PlaneSeen>) -> Course {
    let object = context.observed.object;
    let is_fenced = plane.is_some_and(|plane| fence(context, plane).is_empty());
    match object.spec.unjoin_policy {
        _ if is_fenced || context.is_given_up() => Course::Preserve,
        // A plane that goes takes nothing with it unless that is said, and a cluster that goes waits for nobody's word.
        None if object.is_deleting() || is_going(context) => Course::Preserve,
        None => Course::Unsaid,
        Some(UnjoinPolicy::Preserve) => Course::Preserve,
        Some(UnjoinPolicy::Delete) => Course::Delete,
    }
}

fn is_going(context: &Context<'_>) -> bool {
    match &context.target.reached_by {
        ReachedBy::Cluster(name) => auto_join::is_going(context.observed.seen.neighbours, name),
        ReachedBy::Secret(_) | ReachedBy::Host(_) => false,
    }
}

/// Its estimator goes at once, also that of one that is dead. The kubeconfig that was read for it goes last: the status
/// says before that it has left.
pub(super) fn leave(context: &Context<'_>) -> Outcome {
    if has_left(context) {
        let acts = leftovers(context);
        let outcome = context.leaving(Reason::UnjoiningMembers, "removing its kubeconfig".to_owned());
        return Outcome { is_gone: acts.is_empty(), acts, ..outcome };
    }
    let mut outcome = go_on(context);
    if outcome.is_leaving {
        let Cleaning { acts, left } = estimator_state::on_the_host(context);
        if outcome.is_gone && !(acts.is_empty() && left.is_empty()) {
            outcome.is_gone = false;
            outcome.problem.message = "removing its estimator".to_owned();
        }
        outcome.acts.splice(0..0, acts);
    }
    if outcome.is_gone && !leftovers(context).is_empty() {
        (outcome.is_gone, outcome.uid) = (false, None);
        outcome.problem.message = "it has left: its kubeconfig is removed next".to_owned();
    }
    outcome
}

fn go_on(context: &Context<'_>) -> Outcome {
    let is_new = !context.is_leaving();
    if is_new && !context.may_begin {
        let message = "it leaves once others have, as many as may join or leave at once";
        return context.outcome(context.phase(), Reason::WaitingForOtherMembers, message);
    }
    let course = course(context, context.plane);
    let is_last = context.observed.object.is_deleting() && course == Course::Preserve;
    let Some(plane) = context.plane else {
        return match is_last {
            true => cleaning::member_alone(context),
            false => context.leaving(Reason::PlaneUnreachable, "the plane's API server does not answer".to_owned()),
        };
    };
    let with_karmada = context.cluster().filter(|cluster| !is_terminating(cluster) || is_held_by_others(cluster));
    match (with_karmada, course) {
        (None, _) => clean(context, plane),
        // Its Cluster goes with the plane: without it nobody would delete Works.
        (Some(cluster), Course::Preserve) if is_last => leave_plane(context, plane, cluster),
        (Some(cluster), Course::Preserve) => preserve(context, plane, cluster),
        (Some(cluster), Course::Delete) => delete(context, plane, cluster),
        (Some(_), Course::Unsaid) => {
            let message =
                "it is to leave: set spec.unjoinPolicy to Preserve, and what the plane runs there stays, or to Delete";
            context.outcome(Phase::Blocked, Reason::UnjoinPolicyMissing, message)
        }
    }
}

/// Karmada deletes what it runs there, which it does only where it reaches the member: what it needs for that is put
/// back until it has.
fn delete(context: &Context<'_>, plane: &PlaneSeen, cluster: &Value) -> Outcome {
    let is_ready = is_ready(cluster);
    if !is_ready && plane.works.get(&context.target.name).copied().unwrap_or_default() == 0 {
        return preserve(context, plane, cluster);
    }
    let works = works(context, plane);
    let (reason, message) = match (is_terminating(cluster), is_ready) {
        (false, true) => {
            let message = format!("deleting its Cluster in the plane, and what the plane runs there: {works}");
            (Reason::UnjoiningMembers, message)
        }
        (true, true) => {
            (Reason::UnjoiningMembers, format!("waiting for Karmada to delete what it runs there: {works} left"))
        }
        (_, false) => {
            let message = format!(
                "Karmada does not reach it, and can delete nothing of {works} there; it goes on when it does; to leave that there, {}",
                context.give_up_command()
            );
            (Reason::MemberNotReady, message)
        }
    };
    let mut outcome = context.leaving(reason, message);
    let differs = wanted_now(context, plane).map(|wanted| difference(context, &wanted).acts).unwrap_or_default();
    let is_cluster = |act: &Act| matches!(act, Act::Apply { object, .. } if object.kind == "Cluster");
    outcome.acts.extend(differs.into_iter().filter(|act| !is_cluster(act)));
    outcome.acts.extend(is_ready.then(|| deletion(Place::Plane, cluster)).flatten());
    outcome
}

/// What it runs stays: Karmada is kept from it before anything is deleted.
fn preserve(context: &Context<'_>, plane: &PlaneSeen, cluster: &Value) -> Outcome {
    let fence = fence(context, plane);
    let is_fenced = fence.is_empty();
    let in_member = cleaning::in_member(context);
    let agent_is_there = context.target.sync_mode == SyncMode::Pull && !in_member.left.is_empty();
    let waits = |message: &str| context.leaving(Reason::UnjoiningMembers, message.to_owned());
    let mut outcome = match () {
        () if !is_fenced || agent_is_there => waits("keeping Karmada from it, so that all that runs there stays"),
        () if !is_silent(context, cluster) => waits("waiting for Karmada to find that it does not reach it any more"),
        () if !is_terminating(cluster) => {
            let mut outcome = waits("deleting its Cluster in the plane; all that runs there stays");
            outcome.acts.extend(deletion(Place::Plane, cluster));
            outcome
        }
        () => {
            let works = works(context, plane);
            let message = format!("waiting for Karmada to give it up: {works} left, all that runs there stays");
            context.leaving(Reason::UnjoiningMembers, message)
        }
    };
    outcome.acts.splice(0..0, fence.into_iter().chain(in_member.acts));
    outcome
}

/// The plane goes: Karmada is kept from the member, what the join made there is removed, and the Cluster stays behind.
fn leave_plane(context: &Context<'_>, plane: &PlaneSeen, cluster: &Value) -> Outcome {
    let fence = fence(context, plane);
    let is_fenced = fence.is_empty();
    let mut outcome = cleaning::member_alone(context);
    outcome.acts.splice(0..0, fence);
    if outcome.is_gone {
        let ours = released(cluster);
        outcome.is_gone = is_fenced && ours.is_none();
        outcome.acts.extend(ours.filter(|_| is_fenced));
    }
    outcome
}

/// What keeps Karmada from the member, as far as it is not done: in the plane, so that it holds for one that is away
/// and comes back, too.
fn fence(context: &Context<'_>, plane: &PlaneSeen) -> Vec<Act> {
    let made_for = plane.made_for(context.observed.object, &context.target.name);
    match context.target.sync_mode {
        SyncMode::Push => {
            let is_it =
                |live: &&&Value| live["kind"] == "Secret" && live["metadata"]["name"] == context.target.name.as_str();
            let secret = made_for.iter().find(is_it);
            secret.and_then(|secret| Some(patch_of(secret, push::voided(secret)?))).into_iter().collect()
        }
        SyncMode::Pull => {
            let is_right = |live: &&&Value| live["kind"].as_str().is_some_and(|kind| kind.ends_with("Binding"));
            made_for
                .into_iter()
                .filter(|live| is_right(&live))
                .filter_map(|live| deletion(Place::Plane, live))
                .collect()
        }
    }
}

/// Whether Karmada knows that it does not reach the member. The agent of one that the operator does not reach may be at
/// work yet when the first heartbeat is missing.
fn is_silent(context: &Context<'_>, cluster: &Value) -> bool {
    if is_ready(cluster) {
        return false;
    }
    let is_far = context.target.sync_mode == SyncMode::Pull && context.seen.is_none();
    let since = readiness(cluster)
        .and_then(|ready| ready["lastTransitionTime"].as_str())
        .and_then(|text| text.parse::<Timestamp>().ok());
    !is_far || since.is_none_or(|since| context.observed.now.duration_since(since).as_secs() >= SILENCE_SECONDS)
}

fn works(context: &Context<'_>, plane: &PlaneSeen) -> String {
    count(plane.works.get(&context.target.name).copied().unwrap_or_default(), "Work")
}
