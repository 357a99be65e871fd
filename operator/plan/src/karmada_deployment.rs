//! KarmadaDeployment: a Karmada control plane as Pods of a host cluster, or as services of machines. What it consists
//! of is a list of objects, on the host and in the plane itself; each belongs to a stage, and a stage begins once all
//! before it are as they are wanted and work. The same order installs a plane, repairs it, and rolls a change through
//! it.

mod action;
mod backup_access;
pub(crate) mod backup_source;
mod component;
mod confinement;
mod contact;
mod contents;
mod deletion;
mod endpoint;
mod estimators;
pub mod etcd;
mod files;
mod formed_cluster;
mod given_estimator;
mod host_seen;
mod leaves;
pub mod machines;
mod material;
pub mod members;
pub mod names;
mod observed;
mod of_members;
mod own_cluster;
pub mod pki;
mod place;
mod pod;
mod probe;
mod probe_seen;
mod programs;
mod progress;
mod release;
pub mod removal;
pub mod restore;
mod restore_seen;
mod restoring;
mod rotating;
mod seats;
mod sidecars;
mod spec_problem;
mod status;
mod token_restart;
mod unseen;
mod upgrade;
mod volume;
mod wanted;
mod work;

use crds::{KarmadaDeployment, ObjectExt};
use serde_json::{Value, json};

use crate::{Next, Plan};
pub use action::{Action, Planned};
pub use backup_access::{backup_access, backup_account, etcd_workload};
pub use backup_source::forwarding_host;
pub use component::Component;
pub use contact::{Contact, Forbidden};
pub use contents::Files;
pub use deletion::{is_left_without_probe, members_are_seen};
pub use endpoint::endpoint;
pub use etcd::{EtcdAct, EtcdMember, EtcdSeen, EtcdVolume, EtcdWorkload, Membership};
pub use given_estimator::GivenEstimator;
pub use host_seen::HostSeen;
pub use leaves::LeafWanted;
use machines::Machines;
pub(crate) use machines::endpoint_claim::claim as plane_endpoint_claim;
pub use machines::seats;
pub use material::{Material, RestoreMaterial, Source, sources};
pub use observed::{HostFacts, Observed, PlaneSeen, Propagated};
pub use own_cluster::is_cluster_of;
pub use place::{Hold, Manifest, Place, Stage, Wanted};
use probe::Probing;
pub use probe::is_probed;
pub use probe_seen::{ProbeSeen, binding as probe_binding, namespace as probe_namespace, template as probe_template};
use progress::{StageReport, progress};
pub use release::{DEFINITIONS, RELEASES, Release};
pub use restore_seen::{FormerPlane, MemberLook, RestoreSeen};
pub(crate) use restoring::is_in_place_on_machines;
pub use seats::{MachinesSeen, Seat, Seats};
use status::Found;
use upgrade::Scene;
pub use upgrade::{estimators_due, is_upgrading, running_versions};
pub use wanted::wanted;
use work::{Work, work};

/// How often a plane at rest is compared with what is wanted, in seconds.
const RESYNC_SECONDS: u64 = 300;
/// How often it is looked how far something is, in seconds.
const LOOK_AGAIN_SECONDS: u64 = 5;
/// How often it is looked whether an upgrade may begin, in seconds.
const BEGIN_SECONDS: u64 = 30;

/// The entry of the bundle that has a plane's CustomResourceDefinitions, of the kind `manifests`.
pub const DEFINITIONS_ENTRY: &str = "karmada-crds";

/// A Lease by which a component of the plane is led: the component, and the Lease's namespace and name in the plane.
pub type LeaderLease = (Component, &'static str, &'static str);

/// The Leases to look at.
pub const LEASES: [LeaderLease; 4] = [
    (Component::KubeControllerManager, "kube-system", "kube-controller-manager"),
    (Component::Scheduler, names::PLANE_NAMESPACE, "karmada-scheduler"),
    (Component::ControllerManager, names::PLANE_NAMESPACE, "karmada-controller-manager"),
    (Component::Descheduler, names::PLANE_NAMESPACE, "karmada-descheduler"),
];

/// A policy that is created by a dry run: both webhooks are asked, and nothing is written.
pub fn trial_policy() -> Value {
    json!({
        "apiVersion": "policy.karmada.io/v1alpha1", "kind": "PropagationPolicy",
        "metadata": { "name": "clusterwright-trial", "namespace": "default" },
        "spec": { "resourceSelectors": [{ "apiVersion": "v1", "kind": "ConfigMap", "name": "clusterwright-trial" }] },
    })
}

/// The certificates that are wanted.
pub fn leaves(object: &KarmadaDeployment, facts: &HostFacts) -> Vec<LeafWanted> {
    match object.spec.binary.as_ref() {
        None => leaves::in_pods(object, facts),
        Some(_) => machines::leaves(object, &facts.seats),
    }
}

/// Decides.
pub fn plan(observed: &Observed<'_>) -> Planned {
    if observed.object.is_deleting() {
        let machines = Machines::observe(observed, None, false);
        let deletion::Deleting { actions, next, told, members } = deletion::plan(observed, machines.as_ref());
        let status = status::deleting(observed, &told, &members, machines.as_ref());
        let adopted = machines.iter().flat_map(Machines::adopted).map(Action::Machines);
        let actions = adopted.chain(actions).collect();
        return Plan { actions, status, next, waits_for: Some(told.message) };
    }
    keep(observed)
}

/// A plane that stays, and its members, each of which goes on whatever the plane and the others do.
fn keep(observed: &Observed<'_>) -> Planned {
    let object = observed.object;
    let wanted = wanted(object, observed.material, observed.facts, observed.crds.unwrap_or_default());
    let upgrade = upgrade::planned(observed);
    let problem = spec_problem::find(observed);
    let may_begin = problem.is_none() && !restore::holds_machines(observed);
    let machines = Machines::observe(observed, upgrade.as_ref(), may_begin);
    let mut reports = progress(observed, &wanted);
    let of_machines = machines.as_ref().map(|machines| machines.reports(&reports)).unwrap_or_default();
    reports.extend(of_machines);
    reports.sort_by_key(|report| report.stage);
    let scaling = etcd::scaling(observed);
    scaling.iter().for_each(|scaling| scaling.add_to(&mut reports));
    let restore = restored(observed, machines.as_ref(), &wanted, &reports);
    let mut work = work(observed, (&wanted, &reports), problem, machines.as_ref(), restore.as_ref());
    if object.spec.paused && !work.actions.is_empty() {
        work.pause();
    }
    let is_held = machines.as_ref().is_some_and(Machines::are_held);
    if is_held {
        work.hold();
    }
    work.actions.extend(machines.iter().flat_map(Machines::acts).map(Action::Machines));
    let has_work = !work.actions.is_empty();
    let members = members::plan(&observed.of_members());
    let Work { actions, before, outdated } = work;
    let silent = status::silent(observed, upgrade.as_ref());
    let asks = !object.spec.paused && !is_held && before.is_none();
    let probing = match silent.is_some() || status::is_broken(&reports) {
        // What else does not work is said, and what was asked before that proves nothing afterwards.
        true => Probing::default(),
        false => probe::probing(observed, asks),
    };
    let silent = silent.or(probing.problem);
    // What is restored is not upgraded meanwhile.
    let held = before.clone().or_else(|| restore.as_ref().and_then(|restore| restore.problem.clone()));
    let upgrade = upgrade.map(|upgrade| {
        let scene =
            Scene { observed, wanted: &wanted, reports: &reports, members: &members.status, silent: silent.as_ref() };
        (upgrade::go_on(&scene, &upgrade, held.as_ref()), upgrade)
    });
    let upgrade = upgrade.as_ref().map(|(outcome, upgrade)| (outcome, upgrade));
    let restart = token_restart::token_restart(observed);
    let (outdated, restarted_at) = (outdated.or(restart.problem), restart.at);
    let mut rotating = rotating::rotating(
        observed,
        &rotating::Scene {
            reports: &reports,
            problems: &[held.as_ref(), outdated.as_ref(), silent.as_ref()],
            serves_members: !members.actions.is_empty(),
            members: &members.status,
            upgrades_to: upgrade.map(|(_, upgrade)| upgrade.record.to.as_str()),
        },
    );
    if is_held {
        rotating.action = None;
    }
    let found = Found {
        wanted: &wanted,
        reports: &reports,
        before,
        outdated,
        silent,
        upgrade,
        restore: restore.as_ref(),
        members: &members.status,
        rotating: rotating.statement.as_ref(),
        restarted_at,
        machines: machines.as_ref(),
    };
    let status = status::status(observed, &found);
    let (scales, acts) = (scaling.is_some(), scaling.is_some_and(|scaling| !scaling.actions.is_empty()));
    let is_at_rest = status::plane_works(&status) && !has_work && !scales && !probing.is_open;
    let next = Next::after_seconds(match upgrade {
        Some((outcome, _)) if outcome.has_moved => 1,
        _ if restore.as_ref().is_some_and(|restore| restore.has_moved) || rotating.action.is_some() => 1,
        _ if acts && !object.spec.paused => 1,
        Some((_, upgrade)) if !upgrade.has_begun() => BEGIN_SECONDS,
        None if is_at_rest => RESYNC_SECONDS,
        _ => LOOK_AGAIN_SECONDS,
    });
    let next = machines.iter().fold(next, |next, machines| next.or_sooner(machines.next()));
    let is_ready = crds::conditions::is_true(&status.conditions, crds::names::condition::READY);
    let waits_for = status.message.clone().filter(|_| !is_ready).or(members.waits_for);
    // What fails for a member ends nothing; what fails for the plane would end what is done for members.
    let backup = upgrade.and_then(|(outcome, _)| outcome.backup.clone()).map(Action::CreateBackup);
    let own = actions.into_iter().chain(backup.filter(|_| !is_held)).chain(rotating.action).chain(probing.action);
    let actions = members.actions.into_iter().map(Action::Member).chain(own).collect();
    Plan { actions, status, next: next.or_sooner(members.next), waits_for }
}

/// What becomes of the backup that the plane begins with, or is set back to; none: it begins empty, or stands.
fn restored(
    observed: &Observed<'_>,
    machines: Option<&Machines<'_>>,
    wanted: &[Wanted],
    reports: &[StageReport],
) -> Option<restore::Outcome> {
    if let Some(begins) = restore::begins(observed) {
        return Some(begins);
    }
    let restoring = restoring::restoring(observed.object, &observed.facts.versions)?;
    let silent = status::silent(observed, None);
    Some(restore::go_on(&restore::Scene { observed, machines, wanted, reports, silent: silent.as_ref() }, &restoring))
}

#[cfg(test)]
mod tests;
