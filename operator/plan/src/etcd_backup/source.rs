//! Whether what is backed up is there, stands, and can be read.

use crds::{ClusterDeployment, KarmadaDeployment, ObjectExt, Reason};

use super::before;
use super::observed::Observed;
use super::run;
use super::state::State;
use crate::certificates::keeps_from_reading;
use crate::formed_cluster::FormedCluster;
use crate::karmada_deployment::backup_source::{self, has_etcd_on_machines};
use crate::lifecycle;

/// The cluster whose lock the run takes, once its etcd can be read; none: it is read by a run of no cluster. Errors:
/// why it cannot begin.
pub(super) fn source<'a>(observed: &Observed<'a>) -> Result<Option<FormedCluster<'a>>, State<'a>> {
    let spec = &observed.backup.spec;
    let source: Option<FormedCluster<'a>> = match (&spec.cluster_name, &spec.karmada_deployment_ref) {
        (Some(name), _) => Some(cluster(observed, name)?.into()),
        (None, Some(reference)) => {
            let plane = plane(observed, &reference.name)?;
            has_etcd_on_machines(plane).then(|| plane.into())
        }
        (None, None) => None,
    };
    if spec.spool && source.is_none_or(|source| source.etcd_role.is_none()) {
        let message = format!(
            "spool: true, and the etcd of {} is on no machine that could write the snapshot to its disk; make a new EtcdBackup without it",
            spec.subject()
        );
        return Err(State::GivenUp(Reason::SpoolNotPossible.into(), message));
    }
    let Some(source) = source else { return Ok(None) };
    match keeps_from_reading(&run::members(observed, source), observed.now) {
        Some(ended) => {
            let message = format!("etcd of {} cannot be read: {ended}", spec.subject());
            Err(before::unless_before_restore(observed.backup, Reason::CertificatesExpired, message))
        }
        None => Ok(Some(source)),
    }
}

/// The cluster, once it stands.
fn cluster<'a>(observed: &Observed<'a>, name: &str) -> Result<&'a ClusterDeployment, State<'a>> {
    let Some(deployment) = observed.deployment else {
        let message = format!("ClusterDeployment {name} is not there: make it, or delete this backup");
        return Err(State::Waits(Reason::ClusterNotFound, message));
    };
    if deployment.is_deleting() {
        let message = format!("ClusterDeployment {name} is being deleted");
        return Err(State::GivenUp(Reason::ClusterDeleting.into(), message));
    }
    match lifecycle::is_installed(deployment) {
        true => Ok(deployment),
        false => Err(State::Waits(Reason::NotInstalled, format!("cluster {name} is not installed yet"))),
    }
}

/// The plane, once it has been whole. One that is not Ready is backed up all the same.
fn plane<'a>(observed: &Observed<'a>, name: &str) -> Result<&'a KarmadaDeployment, State<'a>> {
    let Some(plane) = observed.plane else {
        let message = format!("KarmadaDeployment {name} is not there: make it, or delete this backup");
        return Err(State::Waits(Reason::KarmadaDeploymentNotFound, message));
    };
    if plane.is_deleting() {
        let message = format!("KarmadaDeployment {name} is being deleted");
        return Err(State::GivenUp(Reason::ClusterDeleting.into(), message));
    }
    if backup_source::is_being_restored(plane) && backup_source::is_installed(plane) {
        let message = format!("KarmadaDeployment {name} is being set back to a backup");
        return Err(before::unless_before_restore(observed.backup, Reason::Restoring, message));
    }
    match backup_source::is_installed(plane) {
        true => Ok(plane),
        false => Err(State::Waits(Reason::NotInstalled, format!("KarmadaDeployment {name} is not installed yet"))),
    }
}
