//! A backup of a plane: whether its etcd can be read.

use crds::{ObjectExt, Reason};

use super::observed::Observed;
use super::state::State;
use crate::karmada_deployment::backup_source::{etcd_not_reached, is_installed};

/// Why it cannot begin; none: it can, or is of no plane. A plane that is not Ready is backed up all the same.
pub(super) fn blocker<'a>(observed: &Observed<'a>) -> Option<State<'a>> {
    let name = &observed.backup.spec.karmada_deployment_ref.as_ref()?.name;
    let Some(plane) = observed.plane else {
        let message = format!("KarmadaDeployment {name} is not there: make it, or delete this backup");
        return Some(State::Waits(Reason::KarmadaDeploymentNotFound, message));
    };
    if plane.is_deleting() {
        let message = format!("KarmadaDeployment {name} is being deleted");
        return Some(State::GivenUp(Reason::ClusterDeleting.into(), message));
    }
    if let Some(message) = etcd_not_reached(plane) {
        return Some(State::GivenUp(Reason::BackupNotSupported.into(), message));
    }
    let message = || format!("KarmadaDeployment {name} is not installed yet");
    (!is_installed(plane)).then(|| State::Waits(Reason::NotInstalled, message()))
}
