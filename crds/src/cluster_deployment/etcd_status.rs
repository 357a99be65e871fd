//! etcd of a cluster as it was seen last, and what was done to keep it in order.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::playbook_run::EtcdMemberHash;

/// etcd of a cluster. Sizes are written when they have changed by 16 MiB or a sixteenth.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EtcdStatus {
    /// Size of the database in bytes: as the API server sees it, looked at every ten minutes; of the largest member
    /// where it does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size_bytes: Option<i64>,
    /// What the database may come to, in bytes, the least of all members. Absent: not known, or etcd is older than 3.6.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quota_bytes: Option<i64>,
    /// The members, by Host, as they were when their machines were asked; none where etcd is external.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["host"]))]
    pub members: Vec<EtcdMember>,
    /// When the machines were asked last, to an hour.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub looked_at: Option<Time>,
    /// The last comparison of what the members hold.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hash_check: Option<EtcdHashCheck>,
    /// The last defragmentation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub defragmentation: Option<EtcdDefragmentation>,
    /// Value of the annotation `clusterwright.dev/defragment` that was followed last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64))]
    pub defragment_request: Option<String>,
}

/// A member of etcd.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EtcdMember {
    /// Its Host.
    #[schemars(length(max = 63))]
    pub host: String,
    /// Its ID, hexadecimal as etcdctl shows it.
    #[serde(default, rename = "memberID", skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 16))]
    pub member_id: Option<String>,
    /// Version of etcd that it runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 32))]
    pub version: Option<String>,
    /// Size of its database, in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size_bytes: Option<i64>,
    /// How much of that is in use, in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_use_bytes: Option<i64>,
    /// Whether it led.
    #[serde(default)]
    pub is_leader: bool,
    /// Whether it was a learner, which takes part in no vote.
    #[serde(default)]
    pub is_learner: bool,
    /// Its alarms: `NOSPACE`, `CORRUPT`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 4), inner(length(max = 16)))]
    pub alarms: Vec<String>,
}

/// A comparison of what the members of etcd hold, by the hashes of all keys up to one revision.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EtcdHashCheck {
    /// When.
    pub checked_at: Time,
    /// At which revision.
    pub revision: i64,
    /// The hash of each member.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["host"]))]
    pub members: Vec<EtcdMemberHash>,
}

impl EtcdHashCheck {
    /// Whether members hold different data.
    pub fn differs(&self) -> bool {
        self.members.windows(2).any(|pair| pair[0].hash != pair[1].hash)
    }
}

/// A defragmentation of etcd's members.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EtcdDefragmentation {
    /// Name of the PlaybookRun.
    #[schemars(length(max = 253))]
    pub run: String,
    /// When it ended.
    pub finished_at: Time,
    /// Whether it went well.
    pub succeeded: bool,
    /// Why it did not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 512))]
    pub message: Option<String>,
}
