//! The Job that verifies a backup.

use crds::backup::VerificationInputs;
use crds::cluster_deployment::EtcdTopology;
use crds::etcd_backup::{BackupContent, Verify, VerifyMethod};
use crds::names::label;
use crds::references::controller_ref;
use crds::{ClusterDeployment, EtcdBackup, ObjectExt};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{EmptyDirVolumeSource, Volume, VolumeMount};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;

use super::programs::programs;
use crate::backup_storage::usable;
use crate::etcd_backup::observed::Observed;
use crate::inputs::{identity, storage};
use crate::job::restricted::mount;
use crate::storage_job::{Beside, IDENTITY, StorageJob, attempt_name, identity_volume, secret_keys, storage_job};

/// Until it is read and restored, whatever its size: its Pod is started, and programs are downloaded.
const DEADLINE_SECONDS: i64 = 900;
/// What is read and restored in a second at the least, in bytes.
const BYTES_PER_SECOND: i64 = 2 << 20;
/// What its Pod has to say of itself before the Job's deadline ends it.
const REPORT_SECONDS: i64 = 60;
/// Memory of the executor, and of etcd beside it, in MiB, whatever the size of the database.
const MEMORY_MIB: u64 = 256;
const ETCD_MEMORY_MIB: u64 = 512;
/// Room for programs and for etcd's log, in MiB.
const ROOM_MIB: u64 = 768;
/// Where the login of the bundle is, and where the snapshot is restored.
const LOGIN: &str = "/artifacts";
const SCRATCH: &str = "/scratch";

/// A name that follows from the last attempt: everyone who sees the same makes the same.
pub(super) fn name(backup: &EtcdBackup) -> String {
    let last = backup.status.as_ref().and_then(|status| status.verification_tried_at.as_ref());
    attempt_name("verify", &backup.metadata, last)
}

/// The Job; the error says what is missing.
pub(super) fn make(observed: &Observed<'_>, verify: &Verify, content: &BackupContent) -> Result<Job, String> {
    let backup = observed.backup;
    let of_backup = usable(&backup.spec.storage_ref.name, observed.storage).map_err(|unusable| unusable.message)?;
    let inputs = storage(of_backup, observed.seen).map_err(|problem| problem.message)?;
    let restores = verify.how == VerifyMethod::Restore;
    let deployment = restores.then(|| deployment(observed)).transpose()?;
    let programs = deployment.map(|deployment| programs(observed, deployment, content)).transpose()?;
    let login = deployment.and_then(|deployment| deployment.spec.artifacts.as_ref()?.credentials_ref.as_ref());
    let deadline = DEADLINE_SECONDS.saturating_add(content.size / BYTES_PER_SECOND);
    let wanted = VerificationInputs {
        how: verify.how,
        location: content.location.clone(),
        backup: backup.name().to_owned(),
        cluster: backup.spec.cluster_name.clone().unwrap_or_default(),
        revision: content.revision,
        keys: content.keys,
        size: u64::try_from(content.size).unwrap_or_default(),
        sha256: content.sha256.clone(),
        programs,
    };
    // Plain values always become JSON.
    let wanted = serde_json::to_string(&wanted).unwrap_or_default();
    let mut arguments = vec!["--backup".to_owned(), wanted, "--deadline-seconds".to_owned()];
    arguments.push((deadline - REPORT_SECONDS).to_string());
    let mut volumes = Vec::new();
    if let Some(reference) = &verify.identity_ref {
        identity(&reference.name, observed.identity).map_err(|problem| problem.message)?;
        volumes.push(identity_volume(&reference.name));
        arguments.extend(["--identity".to_owned(), IDENTITY.to_owned()]);
    }
    if let Some(keys) = observed.artifacts.as_ref().ok().and_then(|seen| seen.login).map(|login| login.keys())
        && let Some(reference) = login
    {
        volumes.push(secret_keys("artifacts", &reference.name, keys, LOGIN));
        arguments.extend(["--artifacts-login".to_owned(), LOGIN.to_owned()]);
    }
    volumes.extend(restores.then(|| scratch(content)));
    Ok(storage_job(&StorageJob {
        name: name(backup),
        label: (label::BACKUP, backup.name()),
        owner: controller_ref(backup),
        storage: of_backup,
        seen: observed.seen,
        inputs: &inputs,
        image: observed.image,
        command: "verify-backup",
        arguments,
        deadline_seconds: deadline,
        beside: Beside { volumes, memory_mib: memory(verify.how, content), ..Beside::default() },
    }))
}

/// The cluster whose programs are taken.
fn deployment<'a>(observed: &Observed<'a>) -> Result<&'a ClusterDeployment, String> {
    let cluster = observed.backup.spec.cluster_name.as_deref().unwrap_or_default();
    let Some(deployment) = observed.deployment else {
        return Err(format!(
            "ClusterDeployment {cluster} is not there: it says where the programs of etcd are that restore it"
        ));
    };
    // Its bundle need not have the version that others run, and their data is below other prefixes, too.
    match deployment.spec.etcd.topology {
        EtcdTopology::Stacked | EtcdTopology::Dedicated => Ok(deployment),
        EtcdTopology::External => Err(format!(
            "the etcd of cluster {cluster} is external: it is not restored here; make EtcdBackups of it with verify.how: Hash"
        )),
    }
}

/// The snapshot, and the database that is made of it, on the disk of the Pod's node.
fn scratch(content: &BackupContent) -> (Volume, VolumeMount) {
    let mib = mib(content).saturating_mul(2).saturating_add(ROOM_MIB);
    let empty = EmptyDirVolumeSource { medium: None, size_limit: Some(Quantity(format!("{mib}Mi"))) };
    let volume = Volume { name: "scratch".into(), empty_dir: Some(empty), ..Volume::default() };
    (volume, mount("scratch", SCRATCH, false))
}

/// etcd keeps an index of its keys in memory, which is smaller than its database.
fn memory(how: VerifyMethod, content: &BackupContent) -> u64 {
    match how {
        VerifyMethod::Hash => MEMORY_MIB,
        VerifyMethod::Restore => MEMORY_MIB + ETCD_MEMORY_MIB + mib(content),
    }
}

fn mib(content: &BackupContent) -> u64 {
    u64::try_from(content.size).unwrap_or_default().div_ceil(1 << 20)
}
