//! The backup that a run is asked for.

use crds::backup::BackupInputs;
use crds::{ObjectExt, PlaybookRun, Reason};

use super::observed::{BackupSeen, ClusterSeen};
use super::problem::InputsProblem;
use super::storage::storage;

/// What the run is asked for; none for a run that takes no backup.
pub(super) fn inputs(
    run: &PlaybookRun,
    seen: Option<&BackupSeen>,
    cluster: Option<&ClusterSeen<'_>>,
) -> Result<Option<BackupInputs>, InputsProblem> {
    let Some(reference) = &run.spec.backup_ref else {
        return Ok(None);
    };
    let (Some(seen), Some(cluster)) = (seen, cluster) else {
        let message = format!("EtcdBackup {} is not there any more: nobody needs this run", reference.name);
        return Err(InputsProblem::refused(Reason::StorageNotFound, message));
    };
    let spec = &seen.backup.spec;
    if spec.cluster_name != cluster.deployment.name() {
        let message = format!(
            "EtcdBackup {} is of cluster {}, and this run of {}: make a new run",
            reference.name,
            spec.cluster_name,
            cluster.deployment.name()
        );
        return Err(InputsProblem::refused(Reason::InputsRefused, message));
    }
    let Some(of_backup) = &seen.storage else {
        let message = format!("BackupStorage {} is not there: make it", spec.storage_ref.name);
        return Err(InputsProblem::waits(Reason::StorageNotFound, message));
    };
    let deployment = cluster.deployment;
    let status = deployment.status.as_ref();
    Ok(Some(BackupInputs {
        storage: storage(of_backup, &seen.seen)?,
        volume_claim: of_backup.spec.volume.as_ref().map(|volume| volume.claim_name.clone()),
        location: location(run, deployment.name(), deployment.uid()),
        recipients: spec.encryption.recipients.clone(),
        bytes_per_second: spec.bytes_per_second.and_then(|bytes| u64::try_from(bytes).ok()),
        backup: seen.backup.name().to_owned(),
        cluster: deployment.name().to_owned(),
        cluster_uid: deployment.uid().to_owned(),
        kubernetes_version: status.and_then(|status| status.kubernetes_version.as_deref()?.parse().ok()),
    }))
}

/// A place that no other run has: the cluster's, then the moment and the run. A name alone would be another cluster's
/// after this one is gone.
fn location(run: &PlaybookRun, cluster: &str, uid: &str) -> String {
    let made = run.created_at().map(|time| time.0.strftime("%Y%m%dT%H%M%SZ").to_string()).unwrap_or_default();
    let of_run = run.uid().get(..8).unwrap_or(run.uid());
    format!("{cluster}/{uid}/{made}-{of_run}")
}
