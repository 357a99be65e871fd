//! What the planner of backups looks at.

use crds::{BackupStorage, ClusterDeployment, EtcdBackup, Machine, PlaybookRun};
use jiff::Timestamp;

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
}
