//! The configuration of etcd's members.

use kube::KubeSchema;
use serde::{Deserialize, Serialize};

/// The configuration of etcd's members, of an etcd on the cluster's machines. An edit restarts them one after the
/// other.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("has(self.heartbeatMillis) == has(self.electionMillis) && (!has(self.heartbeatMillis) || self.electionMillis >= 5 * self.heartbeatMillis)")
    .message("etcd.heartbeatMillis and electionMillis are given together, electionMillis at least 5 times heartbeatMillis"))]
pub struct EtcdSettings {
    /// Size of the data from which etcd takes no more writes, in bytes, 1 GiB to 16 GiB. Default 8 GiB (8589934592).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1_073_741_824_i64, max = 17_179_869_184_i64))]
    pub quota_backend_bytes: Option<i64>,
    /// How often a leader says that it is there, in milliseconds, 10 to 5000. Default 100. Only with `electionMillis`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 10, max = 5000))]
    pub heartbeat_millis: Option<i32>,
    /// After how long a silence another leader is elected, in milliseconds, 100 to 50000. Default 1000.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 100, max = 50_000))]
    pub election_millis: Option<i32>,
    /// After how many hours etcd itself forgets former revisions, 1 to 168. Default: it does not, and API servers have
    /// it forget them every 5 minutes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 168))]
    pub auto_compaction_hours: Option<i32>,
    /// Writes after which a member writes its state to disk, 1000 to 1000000. Default 10000.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1000, max = 1_000_000))]
    pub snapshot_count: Option<i32>,
}
