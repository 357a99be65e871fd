//! Rebuild: a cluster all of whose machines are lost. That is said; and where `spec.recovery` wishes it, the machines are
//! forgotten, others take their places, and the cluster is installed anew under its name and with its keys.
//!
//! Lost is what nobody has answered for: neither the API nor any machine, for long enough, in probes of all of them. From
//! the moment when the condition `Rebuilding` is written, machines older than that moment are of the past. The moment is
//! written on each of them before anything is done, and a status that is lost is made from that again: once they are all
//! gone, the cluster is one that was never installed. So everything may be cut off, and forgotten, at any point.

mod asked;
mod forgetting;
mod loss;

use crds::cluster_deployment::RecoveryStrategy;
use crds::conditions::{self, Statement};
use crds::names::{annotation, condition};
use crds::{ClusterDeployment, ClusterDeploymentStatus, Machine};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};

use super::lack::Lack;
use super::scene::{Member, Scene};
use super::{Observed, Step};
use crate::Next;
use crate::sentence::cut;

/// Where a cluster stands that may have lost all of its machines.
#[derive(Default)]
pub(super) struct Rebuild {
    pub steps: Vec<Step>,
    /// When to look again.
    pub next: Option<Next>,
    /// `MachinesLost` and `Rebuilding`, while they say something.
    pub statements: Vec<Statement>,
    /// What the cluster lacks, if it is this.
    pub lack: Option<Lack>,
    /// Nothing else is done meanwhile.
    pub stops: bool,
    /// Since when machines are of the past.
    since: Option<Timestamp>,
}

impl Rebuild {
    /// States its conditions, and drops those that have nothing more to say.
    pub fn tell(&self, status: &mut ClusterDeploymentStatus, statements: &mut Vec<Statement>) {
        let ours = [condition::MACHINES_LOST, condition::REBUILDING];
        let is_over = |type_: &str| {
            let stated = self.statements.iter().any(|statement| statement.type_ == type_);
            ours.contains(&type_) && !stated
        };
        status.conditions.retain(|there| !is_over(&there.type_));
        let known = conditions::find(&status.conditions, condition::REBUILDING);
        if let Some(since) = self
            .since
            .filter(|_| known.is_none_or(|known| known.status != "True"))
        {
            // A status that was lost: it did not begin only now.
            status
                .conditions
                .retain(|there| there.type_ != condition::REBUILDING);
            status.conditions.push(Condition {
                type_: condition::REBUILDING.into(),
                status: "True".into(),
                reason: "Rebuilding".into(),
                message: "the cluster is being built anew".into(),
                observed_generation: None,
                last_transition_time: Time(since),
            });
        }
        statements.extend(self.statements.iter().cloned().map(|statement| Statement {
            message: cut(statement.message),
            ..statement
        }));
    }
}

/// What comes back into a cluster that was installed anew, before anything else is done with it. A snapshot of its etcd
/// will be named here; for now there is none, and the cluster begins empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Restore {
    /// It begins empty.
    Nothing,
}

/// What is to be restored.
pub(super) fn restore(_: &ClusterDeployment) -> Restore {
    Restore::Nothing
}

/// Decides. That a cluster is lost is seen, and its machines are forgotten, also while its lock is closed: dead machines
/// cannot tell what would open it, and none of their tokens is of use to others.
pub(super) fn of(scene: &Scene<'_>, may_work: bool, lock_is_open: bool) -> Rebuild {
    if let Some(since) = begun(scene.observed) {
        return forgetting::goes_on(scene, since, may_work);
    }
    match silent_since(scene) {
        Some(since) if scene.installed.is_some() => loss::look(scene, since, may_work, lock_is_open),
        _ => Rebuild::default(),
    }
}

/// Runs by which it is decided whether the cluster is lost.
pub(super) fn needed(scene: &Scene<'_>) -> Vec<String> {
    let held = members(scene).filter_map(Member::host_name).collect();
    silent_since(scene)
        .map(|since| asked::needed(scene, since, &held))
        .unwrap_or_default()
}

/// When the machines of a cluster that is being rebuilt began to be of the past: as the cluster says, or, where its status
/// was lost, one of its Machines. What is written on a Machine begins nothing by itself.
fn begun(observed: &Observed<'_>) -> Option<Timestamp> {
    let deployment = observed.deployment;
    let conditions = deployment.status.as_ref().map(|status| &status.conditions);
    let told = conditions.and_then(|conditions| conditions::find(conditions, condition::REBUILDING));
    let told = told.filter(|told| told.status == "True");
    let told = told.map(|told| told.last_transition_time.0);
    told.or_else(|| marked(observed))
}

/// The time that is written on the Machines of a rebuild that has begun: where one is wanted, on all that were there then,
/// and while the API of the old cluster is not known to answer, or once they are being deleted.
fn marked(observed: &Observed<'_>) -> Option<Timestamp> {
    let since = observed
        .machines
        .iter()
        .filter_map(|machine| lost_since(machine))
        .max()?;
    let mut old = observed.machines.iter().filter(|machine| is_old(machine, since));
    let all = old.clone().all(|machine| lost_since(machine).is_some());
    let deletes = old.any(|machine| machine.metadata.deletion_timestamp.is_some());
    let seen = observed.cluster.and_then(|cluster| cluster.status.as_ref());
    let answers = seen.is_some_and(|seen| seen.unreachable_since.is_none());
    let wanted = observed.deployment.spec.recovery.strategy == RecoveryStrategy::Rebuild;
    (wanted && all && (deletes || !answers)).then_some(since)
}

/// Since when a Machine counts as lost, as is written on it.
fn lost_since(machine: &Machine) -> Option<Timestamp> {
    // The operator writes both at once.
    let annotations = machine.metadata.annotations.as_ref()?;
    annotations.get(annotation::FORCE_REMOVE)?;
    annotations.get(annotation::LOST_SINCE)?.parse().ok()
}

/// Whether a Machine is one of those that a rebuild forgets.
pub(super) fn is_of_the_past(observed: &Observed<'_>, machine: &Machine) -> bool {
    begun(observed).is_some_and(|since| is_old(machine, since))
}

/// An install that is not younger than this is of the past: the machines that it was of are forgotten.
pub(super) fn anew_since(observed: &Observed<'_>) -> Option<Timestamp> {
    let since = begun(observed)?;
    observed
        .machines
        .iter()
        .all(|machine| !is_old(machine, since))
        .then_some(since)
}

fn is_old(machine: &Machine, since: Timestamp) -> bool {
    let made = machine.metadata.creation_timestamp.as_ref();
    made.is_none_or(|made| made.0 <= since)
}

/// Since when the API has not answered.
fn silent_since(scene: &Scene<'_>) -> Option<Timestamp> {
    let status = scene.observed.cluster?.status.as_ref()?;
    status.unreachable_since.as_ref().map(|since| since.0)
}

fn members<'s, 'a>(scene: &'s Scene<'a>) -> impl Iterator<Item = &'s Member<'a>> {
    scene.live.iter().chain(&scene.leaving)
}

fn lack(reason: &str, message: String) -> Option<Lack> {
    Some(Lack {
        known: true,
        reason: reason.into(),
        message,
    })
}
