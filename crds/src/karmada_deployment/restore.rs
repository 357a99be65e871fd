//! The backup that a plane begins with, or is set back to, and how far it is with that.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::etcd_restore::StagedBackup;
use crate::references::LocalRef;

/// What a plane that begins with a backup, or is set back to one, is at. They follow each other in this order.
#[derive(Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, JsonSchema)]
pub enum KarmadaRestoreStep {
    /// A plane on machines that is set back by an EtcdRestore: the backup is laid ready on the machines beside the data
    /// that is there. The plane works on.
    Stage,
    /// A plane that is set back by an EtcdRestore stops: first what acts, then what serves, etcd last. On machines one
    /// run does that, and has etcd go on with the backup's data.
    Stop,
    /// The members of etcd get data of a new etcd, made of the snapshot: each in its volume, or on its machine, where
    /// etcd starts with it. Nothing else runs. A plane on machines that is set back passes over it.
    Data,
    /// etcd, the API servers and the webhook start, and what has addresses or authorities in it is applied again. The
    /// API server lets administrators in, and nobody else.
    Serve,
    /// What would become of members is reported, and waits for approval; the former plane has to be stopped.
    Compare,
    /// What schedules and propagates starts.
    Release,
    /// What collects garbage starts.
    Collect,
}

/// What would become of a member once the restored plane propagates to it.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq, Eq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct KarmadaMemberReport {
    /// Its name in the plane.
    #[schemars(length(max = 63))]
    pub name: String,
    /// What would be deleted, overwritten, created, or left without a Work: how many objects, and the first of them.
    #[schemars(length(max = 1024))]
    pub message: String,
}

/// The backup that a plane began with or was set back to, or is about to.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct KarmadaRestoredFrom {
    /// Name of the EtcdBackup that it was made by.
    #[schemars(length(max = 63))]
    pub backup: String,
    /// Name of the KarmadaDeployment that was backed up.
    #[schemars(length(max = 63))]
    pub plane: String,
    /// Its UID. What carries it in the plane and in members is taken over.
    #[serde(rename = "planeUID")]
    #[schemars(length(max = 64))]
    pub plane_uid: String,
    /// URL of its API server when it was backed up. Absent: it had none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 300))]
    pub endpoint: Option<String>,
    /// The BackupStorage that it is in.
    pub storage_ref: LocalRef,
    /// Its directory in the storage, below the prefix.
    #[schemars(length(max = 512))]
    pub location: String,
    /// When it was begun.
    pub taken_at: Time,
    /// Every write up to this revision is in it.
    pub revision: i64,
    /// Bytes of the snapshot.
    pub size: i64,
    /// SHA-256 of the snapshot, hexadecimal.
    #[schemars(length(max = 64))]
    pub sha256: String,
    /// etcd's version when it was taken.
    #[schemars(length(max = 64))]
    pub etcd_version: String,
    /// The version of Karmada that the plane had, if it was known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64))]
    pub version: Option<String>,
    /// `hostDNSDomain` of the plane that was backed up, which is in the tokens of its service accounts.
    #[schemars(length(max = 63))]
    pub dns_domain: String,
    /// How many members of etcd its data is made for. Absent: as many as the spec wants, or on machines as many as
    /// there are when the data is made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub etcd_members: Option<i32>,
    /// The EtcdRestore that sets the plane back. Absent: the plane begins with the backup.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restore_ref: Option<LocalRef>,
    /// UID of that EtcdRestore.
    #[serde(default, rename = "restoreUID", skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64))]
    pub restore_uid: Option<String>,
    /// What the names of the PersistentVolumeClaims begin with in which etcd gets its data. Absent: `data`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 16))]
    pub claims: Option<String>,
    /// The PersistentVolumeClaims with the data of etcd from before the plane was set back. Nothing removes them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 5), inner(length(max = 253)))]
    pub former_claims: Vec<String>,
    /// What lies ready on the machines of a plane that is set back. Absent: nothing yet, or the plane is in Pods.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub staged: Option<StagedBackup>,
    /// By how much revisions are raised, so that none is given out twice. Absent: by 1000000000.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bump: Option<i64>,
    /// What it is at. Absent: it is over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<KarmadaRestoreStep>,
    /// What would become of each member, while that waits for approval; what was approved afterwards.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 256), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub members: Vec<KarmadaMemberReport>,
    /// When a person approved that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approved_at: Option<Time>,
    /// When it was settled that the plane goes back to the data of before, before anything had acted by that of the
    /// backup. Absent: it was not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub undo_began_at: Option<Time>,
    /// When the plane could go on with the data of before. Absent: it did not go back, or cannot yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub undone_at: Option<Time>,
    /// When the plane worked with it. Absent: it does not yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restored_at: Option<Time>,
}
