//! An upgrade of a plane, or of one of its components: from the versions that run to those that are wanted, one
//! component at a time. Its record is `status.upgrade`; everything else is read off what is there, so that an operator
//! that is cut off goes on where it was.

mod approval;
mod backup_before;
mod gate;
mod go_on;
mod preflight;
mod refusal;
mod route;
mod running;
mod state;
mod text;

pub(super) use go_on::{Outcome, go_on};
pub(super) use preflight::Scene;
pub(super) use running::image_version;
pub use running::running_versions;
pub(super) use state::{Due, Upgrade, find};

use crds::KarmadaDeployment;

use super::component::Component;
use super::members::EstimatorDue;
use super::observed::{HostFacts, Observed};
use super::release::Release;

/// In which version estimators are now.
pub fn estimators_due(object: &KarmadaDeployment, facts: &HostFacts) -> EstimatorDue {
    let Some(release) = Release::wanted(&object.spec) else { return EstimatorDue::Later };
    let component = Component::Estimator;
    match find(object, facts).map_or(Due::Now, |upgrade| upgrade.due(object, component)) {
        Due::Now => EstimatorDue::Now(component.version(&object.spec, release)),
        Due::Kept(version) | Due::Stopped(version) => EstimatorDue::Kept(version),
        Due::Later => EstimatorDue::Later,
    }
}

/// The upgrade that is wanted, whose plan says where no backup precedes it; none: there is none.
pub(super) fn planned(observed: &Observed<'_>) -> Option<Upgrade> {
    let upgrade = find(observed.object, observed.facts)?;
    let warning = backup_before::warning(observed, &upgrade);
    Some(upgrade.warned(warning))
}

/// Whether versions that run are not those that are wanted, so that it matters what the plane propagates.
pub fn is_upgrading(object: &KarmadaDeployment, facts: &HostFacts) -> bool {
    find(object, facts).is_some()
}
