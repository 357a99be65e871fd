//! The estimator of a member: a program on the plane's host, or on each of its machines, that reads the member's Nodes
//! and Pods, and answers the scheduler how many replicas there is room for. In the member it is a ServiceAccount that
//! may read that, and nothing else.

mod files;
mod on_machines;
mod wish;
mod workload;

use crds::karmada_deployment::SyncMode;
use crds::names::label;
use crds::{KarmadaDeployment, ObjectExt};
use serde_json::{Value, json};

use super::super::files::path;
use super::super::leaves::{self, LeafWanted};
use super::super::names::MEMBERS_NAMESPACE;
use super::super::place::Hold;
use super::super::release::Release;
use super::action::Place;
use super::leaf::Certificate;
use super::manifest::{Stage, Wanted, account, role};
use super::observed::{Basis, EstimatorDue, Facts};
use super::pull::AGENT_NAMESPACE;
use super::target::{Target, Wish};
use files::files;
pub(super) use on_machines::given;
pub use wish::ACCOUNT;
pub(super) use wish::{has_legal_name, is_wanted, is_wished, name};

/// Its certificate.
pub(super) fn leaf(object: &KarmadaDeployment, member: &str) -> LeafWanted {
    leaves::estimator(object, &name(object, member))
}

/// Whether its certificate may be there, or is wanted.
pub fn has_estimator(basis: &Basis<'_>, target: &Target) -> bool {
    is_wanted(basis.object, target)
        || target.wish == Wish::Leave
        || on_host(basis, &target.name).next().is_some()
        || basis.material.estimators.contains_key(&target.name)
}

/// What was made for a member on the host.
pub(super) fn on_host<'a>(basis: &Basis<'a>, member: &str) -> impl Iterator<Item = &'a Value> {
    let (uid, member) = (basis.object.uid().to_owned(), member.to_owned());
    let listed = basis.host.map(|host| host.listed.as_slice()).unwrap_or_default();
    listed.iter().filter(move |live| {
        let labels = &live["metadata"]["labels"];
        labels[label::KARMADA_UID] == *uid && labels[label::KARMADA_MEMBER] == *member
    })
}

/// What its account may read.
fn rules() -> Value {
    let read = |group: &str, resources: &[&str]| json!({ "apiGroups": [group], "resources": resources, "verbs": ["get", "list", "watch"] });
    json!([read("", &["nodes", "pods", "resourcequotas"]), read("apps", &["deployments", "replicasets"])])
}

/// Its objects in the member; and, once its token and its certificate are there, on the host.
pub(super) fn wanted(basis: &Basis<'_>, target: &Target, facts: &Facts, certificate: &Certificate) -> Vec<Wanted> {
    let object = basis.object;
    if !is_wanted(object, target) {
        return Vec::new();
    }
    let namespace = match target.sync_mode {
        SyncMode::Push => MEMBERS_NAMESPACE,
        SyncMode::Pull => AGENT_NAMESPACE,
    };
    let subject = json!({ "kind": "ServiceAccount", "name": ACCOUNT, "namespace": namespace });
    let mut in_member: Vec<Value> = account(object, target, (ACCOUNT, namespace)).into();
    in_member.extend(role(object, target, (ACCOUNT, None), rules(), subject));
    let made = |place: Place, manifest| Wanted::new(Stage::Estimator, place, manifest);
    let mut wanted: Vec<Wanted> = in_member.into_iter().map(|manifest| made(Place::Member, manifest)).collect();
    if object.spec.binary.is_some() {
        let service = on_machines::service(basis, target);
        wanted.extend(service.into_iter().map(|manifest| made(Place::Plane, manifest)));
        return wanted;
    }
    let (version, hold) = match basis.estimators {
        EstimatorDue::Now(version) => (version, Hold::Free),
        EstimatorDue::Kept(version) => (version, Hold::Kept),
        EstimatorDue::Later => return wanted,
    };
    let files = files(basis, facts, certificate, path);
    if let (Some(files), Some(release)) = (files, Release::wanted(&object.spec)) {
        let names = (target.name.as_str(), name(object, &target.name));
        let (beside, workload) = workload::objects(object, (names.0, &names.1), (version, release), &files);
        wanted.extend(beside.into_iter().map(|manifest| made(Place::Host, manifest)));
        wanted.push(made(Place::Host, workload).held(hold));
    }
    wanted
}
