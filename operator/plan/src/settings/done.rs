//! Which steps a run has done on a machine, and with which settings.

use crds::PlaybookRun;
use crds::playbook_run::FrozenSettings;
use crds::step::{Role, Step};

use crate::attempts;

/// How a step came to be done.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Done {
    /// This run did it.
    Played,
    /// This run resumed after it: its probe said that it was done, and the run brought nothing.
    PassedOver,
}

/// How a step came to be done on the Host in this run, if it was; one that was passed over has no times.
pub(super) fn how_done(run: &PlaybookRun, host: &str, step: Step) -> Option<Done> {
    let place = run.spec.steps.iter().position(|there| *there == step)?;
    if attempts::steps_done(run, host) <= place {
        return None;
    }
    let told = run.status.iter().flat_map(|status| &status.steps);
    let mut began = told.filter(|told| told.name == step && told.started_at.is_some());
    Some(began.next().map_or(Done::PassedOver, |_| Done::Played))
}

pub(super) fn settings_of(run: &PlaybookRun) -> Option<&FrozenSettings> {
    run.status.as_ref().and_then(|status| status.settings.as_ref())
}

/// The step that makes a machine of the role part of its cluster.
pub(super) fn joins_by(role: Role) -> Step {
    match role {
        Role::ControlPlane => Step::ControlPlane,
        Role::Worker => Step::Node,
        Role::Etcd => Step::Etcd,
    }
}
