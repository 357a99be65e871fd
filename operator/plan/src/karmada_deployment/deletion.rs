//! The end of a plane: its members leave, then what runs on the host is removed, the last started first. Its namespace
//! and etcd's volumes stay.

use crds::commands::{self, Target};
use crds::karmada_deployment::KarmadaDeletionPolicy;
use crds::names::{annotation, condition, finalizer, label};
use crds::{Conditions, KarmadaDeployment, ObjectExt, Reason};
use serde_json::Value;

use super::action::Action;
use super::component::Component;
use super::names::is_made_for;
use super::observed::{Contact, HostSeen, Observed};
use super::place::Place;
use super::progress::unreachable;
use super::removal::{KINDS_OF_HOST, by_kind, delete};
use crate::Next;
use crate::addon::Problem;
use crate::attempts::names_generation;
use crate::message::count;

/// How often it is looked whether something is gone, in seconds.
const LOOK_AGAIN_SECONDS: u64 = 5;
/// How often a host is asked that does not answer, in seconds.
const ASK_AGAIN_SECONDS: u64 = 30;
/// Members that a message names.
const NAMED: usize = 5;

/// What is to be done, and why.
pub(super) struct Deleting {
    pub actions: Vec<Action>,
    pub next: Next,
    pub told: Problem,
}

fn waits(reason: Reason, message: String) -> Deleting {
    Deleting { actions: Vec::new(), next: Next::OnChange, told: Problem { reason, message } }
}

pub(super) fn plan(observed: &Observed<'_>) -> Deleting {
    let object = observed.object;
    let done = |reason: Reason, message: &str| {
        let has_it = object.has_finalizer(finalizer::KARMADA);
        let actions = if has_it { vec![Action::RemoveFinalizer] } else { Vec::new() };
        Deleting { actions, ..waits(reason, message.to_owned()) }
    };
    if !is_confirmed(object) {
        let command = annotate(object, annotation::DELETE_CONFIRMED);
        let message = format!(
            "spec.deletionProtection is true, nothing is touched: to delete the plane all the same, {command}; a deletion cannot be taken back"
        );
        return waits(Reason::DeletionProtected, message);
    }
    if object.spec.deletion_policy == KarmadaDeletionPolicy::Detach {
        return done(Reason::PlaneDetached, "the plane and its members stay as they are");
    }
    if names_generation(&object.metadata, annotation::FORCE_REMOVE) {
        return done(Reason::PlaneDetached, "given up: what is on the host and in members stays as it is");
    }
    if object.spec.paused {
        return waits(Reason::Paused, "paused: nothing is removed until spec.paused is false".to_owned());
    }
    if let Some(message) = members_left(object) {
        return Deleting { next: Next::after_seconds(LOOK_AGAIN_SECONDS), ..waits(Reason::UnjoiningMembers, message) };
    }
    match observed.host {
        Contact::Made(seen) => remove(object, seen).unwrap_or_else(|| {
            let namespace = &object.spec.host_namespace;
            done(Reason::PlaneRemoved, &format!("all is removed but namespace {namespace} and etcd's volumes in it"))
        }),
        Contact::Lost(why) => give_up(observed, Some(why)),
        Contact::NotMade => give_up(observed, None),
    }
}

/// Whether it may go: it is not protected, or a person said so, or it has begun.
fn is_confirmed(object: &KarmadaDeployment) -> bool {
    let meant = |value: &str| value.split('.').next().and_then(|value| value.parse::<i64>().ok());
    let generation = object.generation();
    let confirmed = object.annotation(annotation::DELETE_CONFIRMED).and_then(meant);
    let has_begun = object
        .condition(condition::DELETING)
        .is_some_and(|deleting| deleting.status == "True" && deleting.reason != Reason::DeletionProtected);
    // The deletion itself has made one more generation.
    !object.spec.deletion_protection
        || has_begun
        || confirmed.is_some_and(|confirmed| (generation - 1..=generation).contains(&confirmed))
}

fn annotate(object: &KarmadaDeployment, key: &str) -> String {
    commands::annotate(Target::KarmadaDeployment, &object.metadata, key, object.generation())
}

/// The members that have to leave before the plane goes: later nobody could clean them.
fn members_left(object: &KarmadaDeployment) -> Option<String> {
    let members = object.status.as_ref().map(|status| status.members.as_slice()).unwrap_or_default();
    let names: Vec<&str> = members.iter().map(|member| member.name.as_str()).take(NAMED).collect();
    let command = annotate(object, annotation::FORCE_REMOVE);
    (!members.is_empty()).then(|| {
        format!(
            "waiting for {} to leave: {}; to leave them and the plane as they are, {command}",
            count(members.len(), "member"),
            names.join(", ")
        )
    })
}

/// A host that is gone for good is no reason to wait for ever, and one that is away is no reason to forget what is
/// there: a person decides.
fn give_up(observed: &Observed<'_>, why: Option<&str>) -> Deleting {
    let Problem { reason, message } =
        match observed.host_cluster.is_some() || observed.object.spec.host_cluster_ref.is_none() {
            true => unreachable(observed, Place::Host, why),
            false => Problem {
                reason: Reason::ClusterNotFound,
                message: "the Cluster of spec.hostClusterRef is gone".to_owned(),
            },
        };
    let command = annotate(observed.object, annotation::FORCE_REMOVE);
    let message = format!("{message}; what the plane has there is not removed; to give it up, {command}");
    Deleting { next: Next::after_seconds(ASK_AGAIN_SECONDS), ..waits(reason, message) }
}

/// Removes the workload of the component that started last, then what belongs to all; none: nothing is left.
fn remove(object: &KarmadaDeployment, seen: &HostSeen) -> Option<Deleting> {
    let own: Vec<Value> = seen.listed.iter().filter(|live| is_made_for(live, object)).cloned().collect();
    let working = Component::ALL.into_iter().rev().find(|component| has_any(&own, &seen.pods, object, *component));
    let next = Next::after_seconds(LOOK_AGAIN_SECONDS);
    if let Some(component) = working {
        let workloads = own.iter().filter(|live| is_workload_of(live, object, component));
        let actions = workloads.filter_map(|live| delete(Place::Host, live)).collect();
        let message = format!("removing {} and its Pods", component.name());
        return Some(Deleting { actions, next, ..waits(Reason::RemovingPlane, message) });
    }
    let rest = by_kind(Place::Host, &own, &KINDS_OF_HOST);
    let first = rest.left.first()?;
    let message = format!("removing {first}, {} left", count(rest.left.len(), "object"));
    Some(Deleting { actions: rest.actions, next, ..waits(Reason::RemovingPlane, message) })
}

fn has_any(own: &[Value], pods: &[Value], object: &KarmadaDeployment, component: Component) -> bool {
    let is_pod = |pod: &Value| {
        let labels = &pod["metadata"]["labels"];
        labels["app.kubernetes.io/name"] == component.name() && labels[label::KARMADA_UID] == object.uid()
    };
    own.iter().any(|live| is_workload_of(live, object, component)) || pods.iter().any(is_pod)
}

fn is_workload_of(live: &Value, object: &KarmadaDeployment, component: Component) -> bool {
    let kind = live["kind"].as_str().unwrap_or_default();
    ["Deployment", "StatefulSet"].contains(&kind)
        && live["metadata"]["name"] == super::names::component_name(object, component)
}
