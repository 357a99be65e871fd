//! What a machine says of its cluster's etcd.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a machine says of its cluster's etcd.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EtcdSeen {
    /// ID of its own member, hexadecimal as etcdctl shows it; absent: it is none, or does not say.
    #[serde(default, rename = "memberID", skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 16))]
    pub member_id: Option<String>,
    /// Whether its own member answers and has a leader; absent: that was not asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub well: Option<bool>,
    /// What is wrong with its own member; control characters stripped, cut to 256 characters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 256))]
    pub message: Option<String>,
    /// Hosts of the other members that are well, as this machine finds; at most 16.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16), inner(length(max = 63)))]
    pub well_peers: Vec<String>,
    /// Hosts of the other members that are not; at most 16.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16), inner(length(max = 63)))]
    pub sick_peers: Vec<String>,
    /// Version of etcd that its own member runs, e.g. `3.6.16`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 32))]
    pub version: Option<String>,
    /// Size of its own member's database, in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size_bytes: Option<i64>,
    /// How much of that is in use, in bytes: the rest is given back by a defragmentation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_use_bytes: Option<i64>,
    /// What the database may come to, in bytes; absent: etcd is older than 3.6, and does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quota_bytes: Option<i64>,
    /// Whether its own member leads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub is_leader: Option<bool>,
    /// Whether its own member is a learner, which takes part in no vote.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub is_learner: Option<bool>,
    /// Raft's term, as its own member knows it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub raft_term: Option<i64>,
    /// Up to where its own member has applied raft's log.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub applied_index: Option<i64>,
    /// Alarms of its own member: `NOSPACE`, `CORRUPT`; at most 4.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 4), inner(length(max = 16)))]
    pub alarms: Vec<String>,
    /// What came of comparing all members; only of the one that leads, where that was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hash_check: Option<EtcdHashSeen>,
}

/// What came of comparing what the members of etcd hold.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EtcdHashSeen {
    /// The revision at which they were compared; absent: they were not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<i64>,
    /// The hash of all keys up to that revision, of each member; at most 16.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    pub members: Vec<EtcdMemberHash>,
    /// Why they were not compared; control characters stripped, cut to 256 characters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 256))]
    pub message: Option<String>,
}

/// The hash of what one member of etcd holds.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq, Eq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EtcdMemberHash {
    /// Its Host.
    #[schemars(length(max = 63))]
    pub host: String,
    /// The hash, as `etcdctl endpoint hashkv` shows it.
    pub hash: i64,
}
