//! How a cluster becomes a member, and is kept one.

use crds::karmada_deployment::{KarmadaMemberPhase as Phase, SyncMode};
use crds::names::condition;
use crds::{Conditions, Reason};
use serde_json::Value;

use super::action::{Act, Place};
use super::context::{Context, Outcome};
use super::difference::{Difference, difference, wanted_now};
use super::leaf::Leaf;
use super::manifest::{Stage, Wanted};
use super::observed::PlaneSeen;
use super::target::Wish;
use super::unreachable::unreachable;
use super::{arrival, cluster, estimator_state, host_reading, pull, taints, taken};
use crate::addon::Problem;
use crate::cluster_addon::State;
use crate::cluster_addon::health::{Health, health};
use crate::message::quote;

pub(super) fn join(context: &Context<'_>) -> Outcome {
    if let Some(problem) = taken::problem(context) {
        return context.outcome(Phase::Blocked, problem.reason, problem.message);
    }
    let mut outcome = if context.has_begun() { go_on(context) } else { begin(context) };
    if context.is_given_up() {
        let message = "; the annotation force-remove names it, and is for a member that leaves";
        outcome.problem.message.push_str(message);
    }
    outcome
}

/// What is remembered of it is written down before anything is made for it: whoever is cut off in between finds it.
fn begin(context: &Context<'_>) -> Outcome {
    let waiting = |reason: Reason, message: &str| context.outcome(Phase::Waiting, reason, message);
    if let Wish::Wait(problem) = &context.target.wish {
        return waiting(problem.reason, &problem.message);
    }
    // It may be a member already that the status has lost.
    if context.plane.is_none() || !context.observed.object.is_true(condition::COMPONENTS_READY) {
        return waiting(Reason::WaitingForPlane, "waiting for the plane to work");
    }
    let Some(seen) = context.seen else {
        let problem = unreachable(context);
        return waiting(problem.reason, &problem.message);
    };
    if !context.may_begin {
        return waiting(Reason::WaitingForOtherMembers, "waiting for others, as many as may join or leave at once");
    }
    let mut outcome = context.outcome(Phase::Joining, Reason::JoiningMember, "beginning");
    outcome.uid = Some(seen.facts.uid.clone());
    outcome
}

fn go_on(context: &Context<'_>) -> Outcome {
    let Some(plane) = context.plane else {
        return context.outcome(held(context), Reason::PlaneUnreachable, "the plane's API server does not answer");
    };
    if let Some(cluster) = context.cluster().filter(|cluster| cluster::is_terminating(cluster)) {
        let mut outcome = context.outcome(
            held(context),
            Reason::JoiningMember,
            "somebody deletes its Cluster in the plane; it joins again once that is gone",
        );
        outcome.acts.extend(cluster::release(cluster));
        return outcome;
    }
    if context.target.sync_mode == SyncMode::Pull
        && context.member.is_some_and(|member| member.certificates.agent.is_due)
    {
        let mut outcome = context.outcome(held(context), Reason::JoiningMember, "issuing the certificate of its agent");
        outcome.acts.push(Act::IssueCertificate(Leaf::Agent, pull::leaf(&context.target.name)));
        return outcome;
    }
    let Some(wanted) = wanted_now(context, plane) else {
        let problem = unreachable(context);
        return context.outcome(held(context), problem.reason, problem.message);
    };
    apply(context, plane, &wanted)
}

/// A member that has joined stays one, whatever is not known of it.
fn held(context: &Context<'_>) -> Phase {
    if context.has_joined() { Phase::Lost } else { Phase::Joining }
}

/// Its estimator comes last, whatever becomes of that.
fn apply(context: &Context<'_>, plane: &PlaneSeen, wanted: &[Wanted]) -> Outcome {
    let mut found = difference(context, wanted);
    let (own, problem) = std::mem::take(&mut found.estimator);
    let mut outcome = apply_join(context, plane, wanted, found);
    if outcome.problem.reason == Reason::MemberTaken {
        return outcome;
    }
    let (told, acts) = estimator_state::look(context, problem);
    outcome.acts.extend(own.into_iter().chain(acts));
    if let Some(Problem { reason, message }) = told.filter(|_| outcome.problem.reason == Reason::AllReady) {
        outcome.problem = Problem { reason, message: format!("Karmada reaches it; {message}") };
    }
    outcome
}

fn apply_join(context: &Context<'_>, plane: &PlaneSeen, wanted: &[Wanted], found: Difference) -> Outcome {
    let mut outcome = told(context, plane, wanted, found.acts.is_empty());
    (outcome.acts, outcome.is_joined) = (found.acts, is_ready(context));
    if let Some(problem) = refused(context) {
        // What the plane has may work yet: it is not given what does not.
        outcome.acts.retain(|act| !matches!(act, Act::Apply { place: Place::Plane, .. }));
        (outcome.phase, outcome.problem) = (if is_ready(context) { Phase::Joined } else { held(context) }, problem);
        return outcome;
    }
    if let Some(problem) = found.problem {
        let is_new = !context.has_joined();
        let is_taken = problem.reason == Reason::MemberTaken;
        let stays = if is_ready(context) { Phase::Joined } else { held(context) };
        outcome.phase = if is_taken && is_new { Phase::Blocked } else { stays };
        outcome.problem = problem;
        if is_taken {
            outcome.acts.clear();
        }
        return outcome;
    }
    outcome.acts.extend(context.cluster().and_then(|cluster| taints::patch(context.target, cluster)));
    outcome
}

/// The token is tried before Karmada is given it.
fn refused(context: &Context<'_>) -> Option<Problem> {
    let why = context.seen?.facts.token_accepted.as_ref()?.as_ref().err()?;
    let message = format!("its API does not accept Karmada's token: {}", quote(why.clone()));
    Some(Problem { reason: Reason::MemberRefusesToken, message })
}

/// Whether the plane reaches it.
fn is_ready(context: &Context<'_>) -> bool {
    context.cluster().is_some_and(cluster::is_ready) && arrival::is_believed(context)
}

/// How far it is, as the plane says. `is_made`: whether nothing is left to be applied for it.
fn told(context: &Context<'_>, plane: &PlaneSeen, wanted: &[Wanted], is_made: bool) -> Outcome {
    if is_ready(context) {
        return joined(context);
    }
    if context.seen.is_none() {
        let problem = unreachable(context);
        return context.outcome(held(context), problem.reason, problem.message);
    }
    let Some(cluster) = plane.own_cluster(context.observed.object, &context.target.name) else {
        let has_token = wanted.iter().any(|one| one.stage == Stage::Cluster);
        let message = if has_token { "its Cluster is being made in the plane" } else { "waiting for its tokens" };
        return context.outcome(held(context), Reason::JoiningMember, message);
    };
    let agent = agent(context, wanted);
    if let Some(problem) = arrival::awaited(context, is_made, agent.clone()) {
        return context.outcome(held(context), problem.reason, problem.message);
    }
    let agent = agent.map(|why| format!("; its agent: {why}")).unwrap_or_default();
    let why = cluster::readiness(cluster)
        .map(|ready| {
            let text = |field: &str| ready[field].as_str().unwrap_or_default();
            quote(format!("{}: {}", text("reason"), text("message")))
        })
        .unwrap_or_else(|| "it has said nothing of it yet".to_owned());
    let phase = held(context);
    let reason = if context.has_joined() { Reason::MemberNotReady } else { Reason::JoiningMember };
    context.outcome(phase, reason, format!("Karmada does not reach it: {why}{agent}"))
}

fn joined(context: &Context<'_>) -> Outcome {
    let target = context.target;
    if context.seen.is_none() {
        let problem = unreachable(context);
        let message = format!("Karmada reaches it, and {}", problem.message);
        return context.outcome(Phase::Joined, problem.reason, message);
    }
    if target.named.as_ref().is_some_and(|named| named.sync_mode != target.sync_mode) {
        let message = format!(
            "it has joined with syncMode {:?}, and keeps it: take it out of spec.members, and put it back once it has left",
            target.sync_mode
        );
        return context.outcome(Phase::Joined, Reason::SyncModeKept, message);
    }
    if let Some(problem) = host_reading::may_be_taken(context) {
        let message = format!("Karmada reaches it, and {}", problem.message);
        return context.outcome(Phase::Joined, problem.reason, message);
    }
    context.outcome(Phase::Joined, Reason::AllReady, "Karmada reaches it")
}

/// Why the agent does not work.
fn agent(context: &Context<'_>, wanted: &[Wanted]) -> Option<String> {
    let in_member = wanted.iter().filter(|one| one.place == Place::Member);
    let mut states = in_member.zip(&context.seen?.states).filter(|(one, _)| one.object.kind == "Deployment");
    let live: &Value = states.find_map(|(_, state)| match state {
        State::There { live, .. } => Some(live.as_ref()),
        _ => None,
    })?;
    match health(live) {
        Health::Healthy => None,
        Health::Progressing(why) | Health::Failed(why) => Some(quote(why)),
    }
}
