//! What the planner of schedules looks at.

use crds::{ClusterDeployment, EtcdBackup, EtcdBackupSchedule, EtcdRestore, KarmadaDeployment};
use jiff::Timestamp;

/// What was observed.
pub struct Observed<'a> {
    /// The time.
    pub now: Timestamp,
    /// The schedule.
    pub schedule: &'a EtcdBackupSchedule,
    /// ClusterDeployments of the namespace.
    pub deployments: &'a [&'a ClusterDeployment],
    /// The KarmadaDeployment of `spec.karmadaDeploymentRef`, if it is there.
    pub plane: Option<&'a KarmadaDeployment>,
    /// EtcdBackups with the label of the schedule.
    pub backups: &'a [&'a EtcdBackup],
    /// EtcdRestores of the namespace. None: not all of them, or of the ClusterDeployments, can be read, and no backup
    /// is deleted.
    pub restores: Option<&'a [&'a EtcdRestore]>,
}
