//! Members of a plane: how clusters join it, are kept as they are wanted, and leave. Each goes its own way: one that is
//! dead holds up nobody. What is made for one, in it and in the plane, is labelled; nothing else is ever deleted.

mod action;
pub(super) mod agents;
mod arrival;
mod auto_join;
mod cleaning;
mod cluster;
mod context;
mod credentials;
mod difference;
mod estimator;
mod estimator_state;
pub(super) mod estimators;
mod host_access;
mod host_reading;
mod join;
mod leaf;
mod leave;
mod manifest;
mod observed;
mod pace;
mod pull;
mod push;
mod roster;
mod summary;
mod taints;
mod taken;
mod target;
mod unreachable;
mod wanted;

use crds::Reason;
use crds::karmada_deployment::KarmadaMemberStatus;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use crate::addon::Problem;
use crate::message::{count, quote};
use crate::{Next, Plan};
pub use action::{Act, Action, Place, Planned};
pub use arrival::agents_are_awaited;
pub use cleaning::{KINDS_OF_MEMBER, KINDS_OF_PLANE};
pub use context::facts;
use context::{Context, Outcome};
pub(super) use credentials::changes as credential_changes;
pub use estimator::{ACCOUNT as ESTIMATOR_ACCOUNT, has_estimator};
pub use host_access::{Brought, HostAccess, ReadFrom};
pub use host_reading::has_read;
pub use leaf::{Certificate, Certificates, Leaf};
pub use manifest::{Stage, Wanted};
pub use observed::{
    Basis, EstimatorDue, EstimatorsSeen, Facts, Member, MemberSeen, Neighbours, Observed, OwnClusters, PlaneSeen, Seen,
};
pub use pull::works_namespace;
pub use push::{IMPERSONATOR, token_secret};
pub use roster::roster;
pub(super) use summary::{NO_MEMBERS, counts, departure, first_to_tell, members_ready, without_estimator};
pub(super) use target::known;
pub use target::{ReachedBy, Target, Wish};
pub use wanted::{leaf_wanted, wanted};

/// Decides. `status` is all of `status.members`. Those of a plane that is being deleted leave.
pub(super) fn plan(observed: &Observed<'_>) -> Planned {
    let known = known(observed.object);
    let targets = roster(observed.object, observed.seen.neighbours, observed.seen.plane.seen());
    let begin = pace::may_begin(observed, &targets);
    let follow = agents::may_follow(observed, &targets);
    let mut may_roll = estimators::may_roll(observed);
    let mut planned = Plan { actions: Vec::new(), status: Vec::new(), next: Next::OnChange, waits_for: None };
    for target in &targets {
        let context = Context::new(observed, (&targets, target), &known, begin.contains(target.name.as_str()));
        let mut outcome = match target.wish {
            Wish::Leave => leave::leave(&context),
            Wish::Join | Wish::Wait(_) => join::join(&context),
        };
        outcome.acts.extend(host_reading::acts(&context));
        if !follow.contains(target.name.as_str()) {
            outcome.acts.retain(|act| !agents::is_follow_up(observed, target, act));
        }
        outcome.acts.retain(|act| {
            let is_roll = estimators::is_roll(act);
            let may = !is_roll || may_roll > 0;
            may_roll -= usize::from(is_roll && may);
            may
        });
        if observed.object.spec.paused {
            pause(&mut outcome, &context);
        }
        if outcome.is_gone {
            continue;
        }
        let failure = context.member.and_then(|member| member.failure.clone());
        planned.next = planned.next.or_sooner(pace::look_again(&context, &outcome, failure.is_some()));
        if let Some(why) = failure {
            outcome.problem = Problem { reason: Reason::ApplyFailed, message: why };
        }
        let acts = outcome.acts.drain(..).map(|act| Action { member: target.name.clone(), act });
        planned.actions.extend(acts);
        let status = row(&context, &outcome);
        if !outcome.is_joined && !outcome.problem.reason.is_warning() {
            planned.waits_for.get_or_insert(format!("{}: {}", status.name, status.message));
        }
        planned.status.push(status);
    }
    planned
}

/// It stays as far as it is.
fn pause(outcome: &mut Outcome, context: &Context<'_>) {
    let acts = std::mem::take(&mut outcome.acts).len();
    let begins = !context.has_begun() && outcome.uid.take().is_some();
    if acts > 0 || begins {
        let changes = count(acts.max(1), "change");
        outcome.phase = context.phase();
        outcome.is_leaving = false;
        outcome.problem.reason = Reason::Paused;
        outcome.problem.message = format!("paused: {changes} to be made once spec.paused is false");
    }
}

fn row(context: &Context<'_>, outcome: &Outcome) -> KarmadaMemberStatus {
    let Context { observed, target, known, .. } = *context;
    // One that is reached by something else by now is known by its Host until what was read there is gone.
    let before = known.and_then(|known| known.host_ref.clone()).filter(|_| host_reading::is_there(context));
    let is_same = known.filter(|known| known.phase == outcome.phase);
    let now = || Time(observed.now);
    // What a pause keeps from being done has not begun.
    let leaving = known.and_then(|known| known.leaving_since.clone()).filter(|_| target.wish == Wish::Leave);
    let now_if_leaving = || outcome.is_leaving.then(now);
    KarmadaMemberStatus {
        name: target.name.clone(),
        sync_mode: target.sync_mode,
        cluster_ref: target.reached_by.cluster_ref(),
        kube_config_secret_name: target.reached_by.secret_name(),
        host_ref: target.reached_by.host_ref().or(before),
        auto_joined: target.auto_joined,
        cluster_uid: outcome.uid.clone(),
        joined_at: known.and_then(|known| known.joined_at.clone()).or_else(|| outcome.is_joined.then(now)),
        leaving_since: leaving.or_else(now_if_leaving),
        phase: outcome.phase,
        reason: outcome.problem.reason.as_str().to_owned(),
        message: quote(outcome.problem.message.clone()),
        since: is_same.map_or_else(now, |known| known.since.clone()),
    }
}

#[cfg(test)]
pub(super) mod tests;
