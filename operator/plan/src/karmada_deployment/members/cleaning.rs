//! What the join made, and nothing besides, is removed: in the member, and in the plane. A member that is away holds up
//! nothing there; what it still has is removed when it comes back, or given up.

use crds::Reason;
use crds::karmada_deployment::SyncMode;
use serde_json::Value;

use super::super::names::is_made_for;
use super::super::place::object_of;
use super::super::removal::Kind;
use super::action::{Act, Place};
use super::cluster::{deletion, release};
use super::context::{Context, Outcome};
use super::leaf::Leaf;
use super::observed::{PlaneSeen, is_of};
use super::push::IMPERSONATOR;
use super::unreachable::unreachable;
use crate::message::count;

const RBAC: &str = "rbac.authorization.k8s.io";

/// The kinds of which objects in a member are removed, in this order: what gives rights first. A namespace stays:
/// nothing tells what else is in it.
pub const KINDS_OF_MEMBER: [Kind; 5] = [
    (RBAC, "v1", "ClusterRoleBinding"),
    ("apps", "v1", "Deployment"),
    (RBAC, "v1", "ClusterRole"),
    ("", "v1", "Secret"),
    ("", "v1", "ServiceAccount"),
];
/// The kinds of which objects of a member in the plane are removed, in this order, beside its Cluster.
pub const KINDS_OF_PLANE: [Kind; 7] = [
    ("", "v1", "Service"),
    (RBAC, "v1", "ClusterRoleBinding"),
    (RBAC, "v1", "RoleBinding"),
    (RBAC, "v1", "ClusterRole"),
    (RBAC, "v1", "Role"),
    ("", "v1", "Secret"),
    ("", "v1", "Namespace"),
];

/// What is removed now, and what is there yet.
pub(super) struct Cleaning<'a> {
    pub acts: Vec<Act>,
    pub left: Vec<&'a Value>,
}

pub(super) fn by_kind<'a>(place: Place, left: Vec<&'a Value>, kinds: &[Kind]) -> Cleaning<'a> {
    let is_of = |live: &Value, kind: &Kind| {
        let object = object_of(live);
        object.group == kind.0 && object.kind == kind.2
    };
    let first = kinds.iter().find(|kind| left.iter().any(|live| is_of(live, kind)));
    let now = left.iter().filter(|live| first.is_some_and(|kind| is_of(live, kind)));
    Cleaning { acts: now.filter_map(|live| deletion(place, live)).collect(), left }
}

/// In the member; nothing, if it does not answer.
pub(super) fn in_member<'a>(context: &Context<'a>) -> Cleaning<'a> {
    let (object, name) = (context.observed.object, &context.target.name);
    let Some(seen) = context.seen else { return Cleaning { acts: Vec::new(), left: Vec::new() } };
    let mut left: Vec<&Value> =
        seen.listed.iter().filter(|live| is_made_for(live, object) && is_of(live, name)).collect();
    left.retain(|live| live["kind"] != "Namespace");
    // What Karmada made there for that account goes with it.
    let is_account = |live: &&&Value| live["kind"] == "ServiceAccount" && live["metadata"]["name"] == IMPERSONATOR;
    if context.target.sync_mode == SyncMode::Push && left.iter().any(|live| is_account(&live)) {
        left.extend(&seen.impersonation);
    }
    by_kind(Place::Member, left, &KINDS_OF_MEMBER)
}

/// The member's side alone.
pub(super) fn member_alone(context: &Context<'_>) -> Outcome {
    if context.seen.is_none() {
        return away(context);
    }
    let Cleaning { acts, left } = in_member(context);
    let message = left.first().map(|first| removing(first, left.len(), "member"));
    let mut outcome = context.leaving(Reason::UnjoiningMembers, message.unwrap_or_else(|| "it has left".to_owned()));
    (outcome.acts, outcome.is_gone) = (acts, left.is_empty());
    outcome
}

/// Both sides, of one that Karmada is done with.
pub(super) fn clean(context: &Context<'_>, plane: &PlaneSeen) -> Outcome {
    let member = member_alone(context);
    // The agent is gone before the Cluster is: while it works, its Cluster has its name.
    if context.seen.is_some() && !member.is_gone {
        return member;
    }
    let works = plane.works.get(&context.target.name).copied().unwrap_or_default();
    let mut made_for = plane.made_for(context.observed.object, &context.target.name);
    made_for.retain(|live| works == 0 || live["kind"] != "Namespace");
    // Its estimator goes by itself.
    made_for.retain(|live| live["kind"] != "Service");
    let Cleaning { mut acts, left } = by_kind(Place::Plane, made_for, &KINDS_OF_PLANE);
    if context.member.is_some_and(|member| member.certificates.agent.files.is_some()) {
        acts.push(Act::DeleteCertificate(Leaf::Agent));
    }
    let cluster = context.cluster();
    if left.is_empty() {
        acts.extend(cluster.and_then(release));
    }
    let message = match (left.first(), cluster) {
        (Some(first), _) => removing(first, left.len(), "plane"),
        (None, Some(_)) => "its Cluster is going".to_owned(),
        (None, None) if works > 0 && !context.is_given_up() => {
            let works = count(works, "Work");
            let message = format!(
                "{works} left in the plane whose Cluster was taken away; to leave them, {}",
                context.give_up_command()
            );
            return Outcome { acts, ..context.leaving(Reason::MemberNotReady, message) };
        }
        (None, None) if acts.is_empty() => return member,
        (None, None) => "removing the certificate of its agent".to_owned(),
    };
    Outcome { acts, ..context.leaving(Reason::UnjoiningMembers, message) }
}

/// One that does not answer.
fn away(context: &Context<'_>) -> Outcome {
    if context.is_given_up() {
        let mut outcome = context.leaving(Reason::UnjoiningMembers, "given up".to_owned());
        outcome.is_gone = true;
        return outcome;
    }
    let why = unreachable(context);
    let message = format!(
        "{}; what the join made there is removed when it answers; to leave it there, {}",
        why.message,
        context.give_up_command()
    );
    context.leaving(why.reason, message)
}

fn removing(first: &Value, left: usize, place: &str) -> String {
    format!("removing {} in the {place}, {} left", object_of(first), count(left, "object"))
}
