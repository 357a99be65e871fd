//! What the planner of restores looks at.

use crds::{BackupStorage, ClusterDeployment, EtcdBackup, EtcdRestore, KarmadaDeployment, Machine, PlaybookRun};
use jiff::Timestamp;

use crate::key_transfer::RestoringSeen;

/// What was observed.
pub struct Observed<'a> {
    /// The time.
    pub now: Timestamp,
    /// When an operator took the metadata cluster up again.
    pub resumed_at: Option<Timestamp>,
    /// The restore.
    pub restore: &'a EtcdRestore,
    /// The EtcdBackup of `source.backupRef`, if it is there.
    pub backup: Option<&'a EtcdBackup>,
    /// The BackupStorage that the source is in, if it is there.
    pub storage: Option<&'a BackupStorage>,
    /// The EtcdBackup of what is there, by its name, if there is one.
    pub safety: Option<&'a EtcdBackup>,
    /// The BackupStorage that it goes to, if it is there.
    pub safety_storage: Option<&'a BackupStorage>,
    /// Its cluster, if it is there.
    pub deployment: Option<&'a ClusterDeployment>,
    /// Machines of the cluster.
    pub machines: &'a [&'a Machine],
    /// Runs of the cluster.
    pub runs: &'a [&'a PlaybookRun],
    /// Restores of the cluster or the plane, this one among them.
    pub restores: &'a [&'a EtcdRestore],
    /// The plane that it restores, if it is of one and that is there.
    pub plane: Option<&'a KarmadaDeployment>,
    /// The keys of the backup, while `needs_keys` says so.
    pub keys: &'a RestoringSeen,
}
