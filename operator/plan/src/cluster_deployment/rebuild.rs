//! Rebuild: a cluster all of whose machines are lost. That is said; and where `spec.recovery` wishes it, the machines are
//! forgotten, others take their places, and the cluster is installed anew under its name and with its keys.
//!
//! Lost is what nobody has answered for: neither the API nor any machine, for long enough, in probes of all of them. From
//! the moment when the condition `Rebuilding` is written, machines older than that moment are of the past; everything
//! else follows from it and may be cut off at any point.

mod asked;
mod forgetting;
mod loss;

use crds::conditions::{self, Statement};
use crds::names::condition;
use crds::{ClusterDeployment, ClusterDeploymentStatus, Machine};
use jiff::Timestamp;

use super::Step;
use super::lack::Lack;
use super::scene::{Member, Scene};
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

pub(super) fn of(scene: &Scene<'_>, works: bool) -> Rebuild {
    if let Some(since) = begun(scene.deployment) {
        return forgetting::goes_on(scene, since, works);
    }
    match silent_since(scene) {
        Some(since) if scene.installed.is_some() => loss::look(scene, since, works),
        _ => Rebuild::default(),
    }
}

/// When the machines of a cluster that is being rebuilt began to be of the past.
fn begun(deployment: &ClusterDeployment) -> Option<Timestamp> {
    let status = deployment.status.as_ref()?;
    let rebuilding = conditions::find(&status.conditions, condition::REBUILDING)?;
    (rebuilding.status == "True").then_some(rebuilding.last_transition_time.0)
}

/// An install that is not younger than this is of the past: the machines that it was of are forgotten.
pub(super) fn anew_since(deployment: &ClusterDeployment, machines: &[&Machine]) -> Option<Timestamp> {
    let since = begun(deployment)?;
    machines
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
