//! How an upgrade goes on: it begins, takes its next step, halts, or is over.

use crds::karmada_deployment::{KarmadaUpgradeStatus, UpgradeStep};
use crds::{EtcdBackup, Reason};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::super::component::Component;
use super::preflight::{self, Scene};
use super::state::{Upgrade, minor};
use super::text::{step as about, title};
use super::{backup_before, gate, refusal};
use crate::addon::Problem;

/// Where an upgrade is from now on.
pub(in super::super) struct Outcome {
    /// As the status shows it; none: it is over.
    pub record: Option<KarmadaUpgradeStatus>,
    /// What is said of it.
    pub problem: Option<Problem>,
    /// The backup that is to be made before it begins.
    pub backup: Option<Box<EtcdBackup>>,
    /// Whether it has begun, is over, or is at another step than before.
    pub has_moved: bool,
}

/// Decides. `before`: what keeps all work on the plane from being done.
pub(in super::super) fn go_on(scene: &Scene<'_>, upgrade: &Upgrade, before: Option<&Problem>) -> Outcome {
    let record = &upgrade.record;
    let stays = |problem: Problem| Outcome {
        record: Some(record.clone()),
        problem: Some(problem),
        backup: None,
        has_moved: false,
    };
    let titled = |problem: Problem| Problem { message: format!("{}: {}", title(record), problem.message), ..problem };
    if scene.observed.object.spec.paused {
        let message = format!("paused: {} goes on once spec.paused is false", title(record));
        return stays(Problem { reason: Reason::Paused, message });
    }
    if let Some(problem) = before.cloned().or_else(|| refusal::find(upgrade)) {
        return stays(problem);
    }
    match record.step {
        None => match preflight::find(scene, upgrade) {
            Some(problem) => stays(titled(problem)),
            // The last of all, so that it is young.
            None => match backup_before::find(scene.observed, upgrade) {
                Some((problem, backup)) => Outcome { backup, ..stays(titled(problem)) },
                None => begin(scene, record),
            },
        },
        Some(step) => match gate::find(scene, upgrade, step) {
            Some(problem) => stays(halted(upgrade, step, problem)),
            None => next(record, step),
        },
    }
}

fn begin(scene: &Scene<'_>, record: &KarmadaUpgradeStatus) -> Outcome {
    let propagated = scene.observed.plane.seen().and_then(|plane| plane.propagated.as_ref());
    let begun = KarmadaUpgradeStatus {
        step: record.steps.first().copied(),
        started_at: Some(Time(scene.observed.now)),
        works: propagated.and_then(|propagated| i64::try_from(propagated.works).ok()),
        ..record.clone()
    };
    let problem = Problem { reason: Reason::Upgrading, message: format!("{}: beginning", title(record)) };
    Outcome { record: Some(begun), problem: Some(problem), backup: None, has_moved: true }
}

fn next(record: &KarmadaUpgradeStatus, step: UpgradeStep) -> Outcome {
    let at = record.steps.iter().position(|one| *one == step);
    let next = at.and_then(|at| record.steps.get(at + 1)).copied();
    let record = next.map(|step| KarmadaUpgradeStatus { step: Some(step), ..record.clone() });
    let problem = record.as_ref().zip(next).map(|(record, step)| Problem {
        reason: Reason::Upgrading,
        message: format!("{}: beginning", place(record, step)),
    });
    Outcome { record, problem, backup: None, has_moved: true }
}

/// `Upgrade 1.17.5 -> 1.18.2, step 4 of 13 (karmada-webhook)`.
fn place(record: &KarmadaUpgradeStatus, step: UpgradeStep) -> String {
    let at = record.steps.iter().position(|one| *one == step).unwrap_or_default() + 1;
    format!("{}, step {at} of {} ({})", title(record), record.steps.len(), about(step))
}

/// What is waited for; and what can be done, where somebody must do something.
fn halted(upgrade: &Upgrade, step: UpgradeStep, problem: Problem) -> Problem {
    let place = place(&upgrade.record, step);
    match problem.reason {
        Reason::WorksMissing => problem,
        reason if reason.is_warning() => Problem {
            reason: Reason::UpgradeHalted,
            message: format!("{place}: {}; it goes on when that works{}", problem.message, way_back(upgrade)),
        },
        _ => Problem { reason: Reason::Upgrading, message: format!("{place}: {}", problem.message) },
    }
}

/// How to go back, if one can.
fn way_back(upgrade: &Upgrade) -> String {
    let record = &upgrade.record;
    let controllers = upgrade.running.get(&Component::ControllerManager).and_then(|version| minor(version));
    if upgrade.is_minor() && controllers == minor(&record.to) {
        return "; karmada-controller-manager has run in the new minor version: only restoring etcd from a backup goes back".to_owned();
    }
    let fields = match record.from == record.to {
        false => vec![format!("spec.version to {}", record.from)],
        true => {
            let field = |change: &crds::karmada_deployment::KarmadaComponentChange| {
                let component = Component::from_name(&change.name)?;
                Some(format!("spec.{}.version to {}", component.field(), change.from))
            };
            record.changes.iter().filter_map(field).collect()
        }
    };
    format!("; to go back set {}", fields.join(" and "))
}
