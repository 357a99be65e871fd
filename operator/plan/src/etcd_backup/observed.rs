//! What the planner of backups looks at.

use crds::{BackupStorage, ClusterDeployment, EtcdBackup, EtcdRestore, KarmadaDeployment, Machine, PlaybookRun};
use jiff::Timestamp;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{Pod, Secret};

use crate::inputs::artifacts::ArtifactsSeen;
use crate::inputs::{InputsProblem, StorageSeen};

/// What was observed.
pub struct Observed<'a> {
    /// The time.
    pub now: Timestamp,
    /// The backup.
    pub backup: &'a EtcdBackup,
    /// Its storage, if it is there.
    pub storage: Option<&'a BackupStorage>,
    /// Its cluster, if it has one that is there.
    pub deployment: Option<&'a ClusterDeployment>,
    /// Its plane, if it has one that is there.
    pub plane: Option<&'a KarmadaDeployment>,
    /// Machines of the cluster.
    pub machines: &'a [&'a Machine],
    /// Runs of the cluster, or of the backup where it has none.
    pub runs: &'a [&'a PlaybookRun],
    /// Restores of the cluster, or of the namespace where it has none. None: not all of them, or of the
    /// ClusterDeployments, can be read, and nothing is removed.
    pub restores: Option<&'a [&'a EtcdRestore]>,
    /// ClusterDeployments of the namespace: one of them may begin with it.
    pub deployments: &'a [&'a ClusterDeployment],
    /// What the references of the storage lead to; read when the backup is being verified or removed.
    pub seen: &'a StorageSeen,
    /// Image of the executor.
    pub image: &'a str,
    /// The Secret of `spec.verify.identityRef`, if it is there; read when the backup is verified.
    pub identity: Option<&'a Secret>,
    /// What the references of the cluster's artifact source lead to; read when the backup is verified by `Restore`.
    pub artifacts: &'a Result<ArtifactsSeen, InputsProblem>,
    /// Jobs that verify or remove what it has stored; read then.
    pub jobs: &'a [Job],
    /// Their Pods.
    pub pods: &'a [Pod],
}
