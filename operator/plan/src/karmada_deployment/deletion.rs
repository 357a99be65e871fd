//! The end of a plane: its members leave, then what runs on the host is removed, the last started first. Its namespace
//! and etcd's volumes stay.

use crds::commands::{self, Target};
use crds::karmada_deployment::{KarmadaDeletionPolicy, KarmadaMemberStatus};
use crds::names::{annotation, condition, finalizer, label};
use crds::{Conditions, KarmadaDeployment, ObjectExt, Reason};
use serde_json::Value;

use super::action::Action;
use super::component::Component;
use super::contact::Unseen;
use super::estimators;
use super::host_seen::HostSeen;
use super::machines::{self, Machines};
use super::members;
use super::names::is_made_for;
use super::observed::Observed;
use super::place::Place;
use super::probe;
use super::removal::{by_kind, delete, kinds_of_host};
use super::unseen::unseen;
use crate::Next;
use crate::addon::Problem;
use crate::attempts::names_generation;
use crate::message::{count, quote};
use crate::store::verdict::Verdict;

/// When it goes on once the status has it that no member is left, in seconds.
const GO_ON_SECONDS: u64 = 1;
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
    /// The members that are still there.
    pub members: Vec<KarmadaMemberStatus>,
}

impl Deleting {
    /// Nothing is done.
    fn waits(reason: Reason, message: String) -> Self {
        let told = Problem { reason, message };
        Self { actions: Vec::new(), next: Next::OnChange, told, members: Vec::new() }
    }

    /// Nothing is left to do.
    fn done(object: &KarmadaDeployment, reason: Reason, message: String) -> Self {
        let has_it = object.has_finalizer(finalizer::KARMADA);
        Self {
            actions: has_it.then_some(Action::RemoveFinalizer).into_iter().collect(),
            ..Self::waits(reason, message)
        }
    }

    /// Members are left as they are.
    fn with_members(self, object: &KarmadaDeployment) -> Self {
        Self { members: object.status.as_ref().map(|status| status.members.clone()).unwrap_or_default(), ..self }
    }
}

/// Whether members are looked at, and the plane for their sake: of one that is being deleted only while they leave.
pub fn members_are_seen(object: &KarmadaDeployment) -> bool {
    !object.is_deleting() || (hold(object).is_none() && !is_past_members(object))
}

/// Whether a plane is looked at that goes on without this object, for what it was probed by: nobody asks it any more.
pub fn is_left_without_probe(object: &KarmadaDeployment) -> bool {
    let is_given_up = names_generation(&object.metadata, annotation::FORCE_REMOVE);
    let is_detached = object.spec.deletion_policy == KarmadaDeletionPolicy::Detach && is_confirmed(object);
    object.is_deleting() && is_detached && !is_given_up
}

pub(super) fn plan(observed: &Observed<'_>, machines: Option<&Machines<'_>>) -> Deleting {
    let object = observed.object;
    let hold = hold(object);
    let is_protected = hold.as_ref().is_some_and(|hold| hold.told.reason == Reason::DeletionProtected);
    if let Some(held) = machines.filter(|_| !is_protected).and_then(|machines| by_store(object, machines)) {
        return held;
    }
    if let Some(hold) = hold {
        if let Some(action) = probe::removal(observed) {
            return Deleting { actions: vec![action], next: Next::after_seconds(GO_ON_SECONDS), ..hold };
        }
        // A plane that is left as it is lets its machines go as they are.
        let end =
            machines.filter(|_| hold.told.reason == Reason::PlaneDetached).and_then(|machines| machines.end(false));
        return match end {
            Some(end) => Deleting { members: hold.members, ..of_machines(end) },
            None => hold,
        };
    }
    if !is_past_members(object) {
        let members = members::plan(&observed.of_members());
        // Whoever is cut off while the host is being cleaned must not wait for a member that has left.
        if !members.status.is_empty() || !members::known(object).is_empty() {
            return unjoin(object, members);
        }
    }
    if let Some(machines) = machines {
        let message = "every machine is given back".to_owned();
        let end = machines.end(true).map(of_machines);
        return end.unwrap_or_else(|| Deleting::done(object, Reason::PlaneRemoved, message));
    }
    match observed.host.look() {
        Ok(seen) => remove(object, seen).unwrap_or_else(|| {
            let namespace = &object.spec.host_namespace;
            let message = format!("all is removed but namespace {namespace} and etcd's volumes in it");
            Deleting::done(object, Reason::PlaneRemoved, message)
        }),
        Err(why) => give_up(observed, why),
    }
}

/// What keeps the members and the plane as they are while the machines speak against the store. That no member is left
/// stays said.
fn by_store(object: &KarmadaDeployment, machines: &Machines<'_>) -> Option<Deleting> {
    let Verdict { reason, message, .. } = machines.store().filter(|_| machines.are_held())?;
    let reason = if is_past_members(object) { Reason::WaitingForMachines } else { reason };
    let waits = Deleting::waits(reason, message).with_members(object);
    Some(Deleting { next: Next::after_seconds(ASK_AGAIN_SECONDS), ..waits })
}

/// What keeps the members and the plane as they are: it is protected or paused, or a person has them left.
fn hold(object: &KarmadaDeployment) -> Option<Deleting> {
    if !is_confirmed(object) {
        let command = annotate(object, annotation::DELETE_CONFIRMED);
        let message = format!(
            "spec.deletionProtection is true, nothing is touched: to delete the plane all the same, {command}; a deletion cannot be taken back"
        );
        return Some(Deleting::waits(Reason::DeletionProtected, message).with_members(object));
    }
    if object.spec.deletion_policy == KarmadaDeletionPolicy::Detach {
        let message = "the plane and its members stay as they are".to_owned();
        return Some(Deleting::done(object, Reason::PlaneDetached, message).with_members(object));
    }
    if names_generation(&object.metadata, annotation::FORCE_REMOVE) {
        let message = "given up: what is on the host and in members stays as it is";
        return Some(Deleting::done(object, Reason::PlaneDetached, message.to_owned()).with_members(object));
    }
    let message = "paused: nothing is removed until spec.paused is false";
    object.spec.paused.then(|| Deleting::waits(Reason::Paused, message.to_owned()).with_members(object))
}

/// Whether the host is being cleaned: then nothing answers any more that members could leave through.
fn is_past_members(object: &KarmadaDeployment) -> bool {
    let deleting = object.condition(condition::DELETING).filter(|deleting| deleting.status == "True");
    deleting.is_some_and(|deleting| Reason::among(&deleting.reason, &PAST_MEMBERS))
}

/// What is said once no member is left.
const PAST_MEMBERS: [Reason; 9] = [
    Reason::RemovingPlane,
    Reason::PlaneRemoved,
    Reason::CancelingRuns,
    Reason::DeletingMachines,
    Reason::CleaningMachines,
    Reason::ResetFailed,
    Reason::WaitingForMachines,
    Reason::QueryingMachines,
    Reason::MachinesSilent,
];

/// What becomes of the machines.
fn of_machines(end: machines::Deletion) -> Deleting {
    let actions = end.acts.into_iter().map(Action::Machines).collect();
    Deleting { actions, next: end.next, ..Deleting::waits(end.told.reason, end.told.message) }
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

/// The members leave before the plane goes: later nobody could clean them.
fn unjoin(object: &KarmadaDeployment, planned: members::Planned) -> Deleting {
    let members = planned.status;
    let Some(first) = members::first_to_tell(members.iter()) else {
        let waits = Deleting::waits(Reason::UnjoiningMembers, "all members have left".to_owned());
        return Deleting { next: Next::after_seconds(GO_ON_SECONDS), ..waits };
    };
    let names: Vec<&str> = members.iter().map(|member| member.name.as_str()).take(NAMED).collect();
    let message = format!(
        "waiting for {} to leave: {}; {}: {}; to leave them and the plane as they are, {}",
        count(members.len(), "member"),
        names.join(", "),
        first.name,
        quote(first.message.clone()),
        annotate(object, annotation::FORCE_REMOVE)
    );
    let actions = planned.actions.into_iter().map(Action::Member).collect();
    Deleting { actions, next: planned.next, members, ..Deleting::waits(Reason::UnjoiningMembers, message) }
}

/// A host that is gone for good is no reason to wait for ever, and one that is away is no reason to forget what is
/// there: a person decides.
fn give_up(observed: &Observed<'_>, why: Unseen<'_>) -> Deleting {
    let Problem { reason, message } =
        match observed.host_cluster.is_some() || observed.object.spec.host_cluster_ref.is_none() {
            true => unseen(observed, Place::Host, why),
            false => Problem {
                reason: Reason::ClusterNotFound,
                message: "the Cluster of spec.hostClusterRef is gone".to_owned(),
            },
        };
    let command = annotate(observed.object, annotation::FORCE_REMOVE);
    let message = format!("{message}; what the plane has there is not removed; to give it up, {command}");
    Deleting { next: Next::after_seconds(ASK_AGAIN_SECONDS), ..Deleting::waits(reason, message) }
}

/// Removes the workload of the component that started last, then what belongs to all; none: nothing is left.
fn remove(object: &KarmadaDeployment, seen: &HostSeen) -> Option<Deleting> {
    let own: Vec<Value> = seen.listed.iter().filter(|live| is_made_for(live, object)).cloned().collect();
    let mut last_first = [Component::Estimator].into_iter().chain(Component::ALL.into_iter().rev());
    let working = last_first.find(|component| has_any(&own, &seen.pods, object, *component));
    let next = Next::after_seconds(LOOK_AGAIN_SECONDS);
    if let Some(component) = working {
        let workloads = own.iter().filter(|live| is_workload_of(live, object, component));
        let actions = workloads.filter_map(|live| delete(Place::Host, live)).collect();
        let message = format!("removing {} and its Pods", component.name());
        return Some(Deleting { actions, next, ..Deleting::waits(Reason::RemovingPlane, message) });
    }
    let rest = by_kind(Place::Host, &own, &kinds_of_host(object));
    let first = rest.left.first()?;
    let message = format!("removing {first}, {} left", count(rest.left.len(), "object"));
    Some(Deleting { actions: rest.actions, next, ..Deleting::waits(Reason::RemovingPlane, message) })
}

fn has_any(own: &[Value], pods: &[Value], object: &KarmadaDeployment, component: Component) -> bool {
    let is_pod = |pod: &Value| {
        let labels = &pod["metadata"]["labels"];
        labels["app.kubernetes.io/name"] == component.name() && labels[label::KARMADA_UID] == object.uid()
    };
    own.iter().any(|live| is_workload_of(live, object, component)) || pods.iter().any(is_pod)
}

fn is_workload_of(live: &Value, object: &KarmadaDeployment, component: Component) -> bool {
    if component == Component::Estimator {
        return estimators::deployments(object, std::slice::from_ref(live)).next().is_some();
    }
    let kind = live["kind"].as_str().unwrap_or_default();
    ["Deployment", "StatefulSet"].contains(&kind)
        && live["metadata"]["name"] == super::names::component_name(object, component)
}
