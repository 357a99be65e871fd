//! What is wanted no more: first what the plane's API server passes on, then what served it. An API that nobody serves
//! keeps namespaces from ending, and garbage from being collected.

use crds::KarmadaDeployment;
use crds::cluster_addon::AppliedObject;
use serde_json::Value;

use super::action::Action;
use super::component::Component;
use super::contact::Contact;
use super::estimators;
use super::members;
use super::names::is_made_for;
use super::observed::Observed;
use super::place::{Place, Wanted, object_of};
use super::restoring::{is_later, is_wanted};
use crate::cluster_addon::Deletion;

/// A kind: group, version, kind.
pub type Kind = (&'static str, &'static str, &'static str);

/// The kinds that run Pods.
pub const WORKLOADS: [Kind; 2] = [("apps", "v1", "Deployment"), ("apps", "v1", "StatefulSet")];
/// The kinds of which objects on the host are removed, in this order. A namespace and volumes never are.
pub const KINDS_OF_HOST: [Kind; 5] =
    [WORKLOADS[0], WORKLOADS[1], ("policy", "v1", "PodDisruptionBudget"), ("", "v1", "Service"), ("", "v1", "Secret")];
/// What makes the data of a plane that begins with a backup: of no other one it is looked for.
const JOB: Kind = ("batch", "v1", "Job");
/// The kinds of which objects in the plane are removed, in this order. A CustomResourceDefinition never is: with it all
/// of its objects would go, and what members run of them.
pub const KINDS_OF_PLANE: [Kind; 6] = [
    ("apiregistration.k8s.io", "v1", "APIService"),
    ("admissionregistration.k8s.io", "v1", "MutatingWebhookConfiguration"),
    ("admissionregistration.k8s.io", "v1", "ValidatingWebhookConfiguration"),
    ("", "v1", "Service"),
    ("rbac.authorization.k8s.io", "v1", "ClusterRoleBinding"),
    ("rbac.authorization.k8s.io", "v1", "ClusterRole"),
];

/// The kinds of which objects of this plane are removed from its host, in this order.
pub fn kinds_of_host(object: &KarmadaDeployment) -> Vec<Kind> {
    let job = is_wanted(object).then_some(JOB);
    job.into_iter().chain(KINDS_OF_HOST).collect()
}

/// What is removed now, and what is still there.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Removal {
    pub actions: Vec<Action>,
    pub left: Vec<AppliedObject>,
}

/// What becomes of the objects that are there and not wanted. On the host nothing is removed while the plane cannot be
/// looked at: it may still pass something on to it.
pub(super) fn removal(observed: &Observed<'_>, wanted: &[Wanted]) -> Removal {
    let (Contact::Made(host), Contact::Made(plane)) = (observed.host, observed.plane) else {
        return Removal::default();
    };
    // One that has stopped to be set back is looked at by nothing that still answers.
    if is_later(observed.object, &observed.facts.versions, Component::Etcd) {
        return Removal::default();
    }
    let known = members::roster(observed.object, observed.members.neighbours, observed.members.plane.seen());
    let is_known = |name: &str| known.iter().any(|target| target.name == name);
    let is_wanted = |place: Place, live: &Value| {
        let object = object_of(live);
        wanted.iter().any(|one| one.place == place && one.object.is_same(&object))
    };
    let unwanted = |place: Place, listed: &[Value], kinds: &[Kind]| {
        // What was made for a member is the members' own affair; of one that has left nobody else removes what is left.
        let is_of_member =
            |live: &Value| estimators::member(live).is_some_and(|name| place == Place::Plane || is_known(name));
        let gone = listed
            .iter()
            .filter(|live| is_made_for(live, observed.object) && !is_of_member(live) && !is_wanted(place, live));
        by_kind(place, &gone.cloned().collect::<Vec<_>>(), kinds)
    };
    let (in_plane, on_host) = (
        unwanted(Place::Plane, &plane.listed, &KINDS_OF_PLANE),
        unwanted(Place::Host, &host.listed, &kinds_of_host(observed.object)),
    );
    let actions = if in_plane.left.is_empty() { on_host.actions } else { in_plane.actions };
    Removal { actions, left: in_plane.left.into_iter().chain(on_host.left).collect() }
}

/// Deletes those of the first of these kinds that there are any of.
pub(super) fn by_kind(place: Place, listed: &[Value], kinds: &[Kind]) -> Removal {
    let is_of = |live: &Value, kind: &Kind| {
        let object = object_of(live);
        object.group == kind.0 && object.kind == kind.2
    };
    let of = |kind: &Kind| listed.iter().filter(|live| is_of(live, kind)).collect::<Vec<&Value>>();
    let first = kinds.iter().map(of).find(|objects| !objects.is_empty()).unwrap_or_default();
    let left = kinds.iter().flat_map(of).map(object_of).collect();
    Removal { actions: first.into_iter().filter_map(|live| delete(place, live)).collect(), left }
}

/// Deletes this very object; none: it is being deleted.
pub(super) fn delete(place: Place, live: &Value) -> Option<Action> {
    let metadata = &live["metadata"];
    let uid = metadata["uid"].as_str().unwrap_or_default().to_owned();
    let deletion = Deletion { object: object_of(live), uid };
    metadata["deletionTimestamp"].is_null().then_some(Action::Delete { place, deletion })
}
