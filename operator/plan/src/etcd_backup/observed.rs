//! What the planner of backups looks at.

use crds::{BackupStorage, ClusterDeployment, EtcdBackup, EtcdRestore, Machine, PlaybookRun};
use jiff::Timestamp;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;

use crate::inputs::StorageSeen;

/// What was observed.
pub struct Observed<'a> {
    /// The time.
    pub now: Timestamp,
    /// The backup.
    pub backup: &'a EtcdBackup,
    /// Its storage, if it is there.
    pub storage: Option<&'a BackupStorage>,
    /// Its cluster, if it is there.
    pub deployment: Option<&'a ClusterDeployment>,
    /// Machines of the cluster.
    pub machines: &'a [&'a Machine],
    /// Runs of the cluster.
    pub runs: &'a [&'a PlaybookRun],
    /// Restores of the cluster. None: not all can be read, and nothing is removed.
    pub restores: Option<&'a [&'a EtcdRestore]>,
    /// What the references of the storage lead to; read when the backup is being removed.
    pub seen: &'a StorageSeen,
    /// Image of the executor.
    pub image: &'a str,
    /// Jobs that remove what it has stored; read then.
    pub jobs: &'a [Job],
    /// Their Pods.
    pub pods: &'a [Pod],
}
