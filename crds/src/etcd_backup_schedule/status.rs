//! What a schedule has done, and does next.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::etcd_backup::{BackupPhase, VerifyMethod};

/// What the schedule has done, and does next.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EtcdBackupScheduleStatus {
    /// The `metadata.generation` that this status speaks of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// One sentence: when it is due next, what it is doing, or what is wrong.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 1024))]
    pub message: Option<String>,
    /// How many clusters it is for; 1 with `etcd`.
    #[serde(default)]
    pub cluster_count: i32,
    /// When a good backup was last completed; of several clusters: of the one where that is longest ago. Absent: one
    /// has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_successful_time: Option<Time>,
    /// When the next backup is due. Absent while `suspend` is true.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_schedule_time: Option<Time>,
    /// The clusters, by name; of more than 500 the first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 500), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub clusters: Vec<ScheduledCluster>,
    /// `Ready`: the schedule is valid, and the last backup of each of its clusters is good and not overdue, as is the
    /// last that was verified.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 8), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Vec<Condition>,
}

/// How it stands with the backups of one cluster.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ScheduledCluster {
    /// Name of the ClusterDeployment; `etcd` where the schedule is for `spec.etcd`.
    #[schemars(length(max = 63))]
    pub name: String,
    /// When the backup was due that was begun last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_schedule_time: Option<Time>,
    /// The backup that was begun last, as far as it is still there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_attempt: Option<LastAttempt>,
    /// The newest good backup.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_good: Option<LastGood>,
    /// The backup that was verified last, also where it is kept no longer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_verified: Option<LastVerified>,
    /// Good backups of the schedule that are kept.
    #[serde(default)]
    pub backups: i32,
    /// When the next backup begins, its share of `spreadSeconds` included. Absent while `suspend` is true.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_schedule_time: Option<Time>,
    /// From when on the newest good backup is too old: a backup was due twice since it was completed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overdue_at: Option<Time>,
    /// What is wrong, or waited for. Absent: nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 512))]
    pub message: Option<String>,
}

/// The last backup that was begun.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LastAttempt {
    /// Name of the EtcdBackup.
    #[schemars(length(max = 63))]
    pub name: String,
    /// Where it is.
    pub phase: BackupPhase,
}

/// The newest good backup.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LastGood {
    /// Name of the EtcdBackup.
    #[schemars(length(max = 63))]
    pub name: String,
    /// When it was stored and read back.
    pub completed_at: Time,
}

/// The backup that was verified last.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LastVerified {
    /// Name of the EtcdBackup.
    #[schemars(length(max = 63))]
    pub name: String,
    /// When.
    pub at: Time,
    /// What was done.
    pub how: VerifyMethod,
}
