//! Runs in the way of machines that leave: what has not begun never does, and a join that works for nobody else ends.

use crds::PlaybookRun;
use crds::step::{Effect, Intent};

use super::Step;
use super::scene::Scene;
use crate::attempts;

pub(super) fn steps(scene: &Scene<'_>) -> Vec<Step> {
    let runs = scene.active.iter().copied();
    runs.filter(|run| !run.spec.cancel && makes_machines(run))
        .filter_map(|run| withdraw(scene, run))
        .collect()
}

/// Whether it does something to machines that is of no use to one that leaves.
fn makes_machines(run: &PlaybookRun) -> bool {
    run.spec.intent.spec().effect == Effect::Provisions
}

fn withdraw(scene: &Scene<'_>, run: &PlaybookRun) -> Option<Step> {
    let leaves = |host: &String| scene.is_leaving(host);
    if !run.spec.hosts.iter().any(leaves) {
        return None;
    }
    let held = scene
        .deployment
        .status
        .iter()
        .flat_map(|status| &status.operations);
    let token = run.status.as_ref().map_or(0, |status| status.token);
    let granted = token > 0
        || held
            .into_iter()
            .any(|held| Some(&held.run) == run.metadata.name.as_ref());
    match granted {
        // The lock never lets it begin. Its other machines get another one; what a person asked for is canceled, and not
        // forgotten.
        false if attempts::marks(run).is_empty() => Some(Step::CancelRun(Box::new(run.clone()))),
        false => Some(Step::DeleteRun(Box::new(run.clone()))),
        true if run.spec.intent == Intent::Join && run.spec.hosts.iter().all(leaves) => {
            Some(Step::CancelRun(Box::new(run.clone())))
        }
        true => None,
    }
}
