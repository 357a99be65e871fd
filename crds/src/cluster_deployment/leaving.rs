//! How machines leave a cluster that goes on, what its deletion does with them, and what is done when all are lost.

use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::references::LocalRef;

/// How machines leave while the cluster goes on.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq, Eq, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct MachineRemoval {
    /// How long a machine's Pods may take to move away, in seconds, 0 to 86400; after that the removal goes on without
    /// them. 0: they are not moved. Default 600.
    #[serde(default = "default_drain_timeout")]
    #[schemars(range(min = 0, max = 86400))]
    pub drain_timeout_seconds: i32,
    /// After how long a machine that leaves and cannot be reached is forgotten without cleaning it, in seconds, 60 to
    /// 604800; its Host is quarantined. Absent: never by itself (annotation `force-remove` on the Machine).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 60, max = 604800))]
    pub force_remove_after_seconds: Option<i32>,
    /// What is done with a machine that was given up without being cleaned and that answers again. Default `Always`.
    #[serde(default)]
    pub fence_returned: FenceReturned,
}

/// What is done with a machine that was given up without being cleaned (removed by force, replaced, or left behind by a
/// rebuild) and that answers again.
#[derive(Serialize, Deserialize, Clone, Copy, Debug, Default, PartialEq, Eq, JsonSchema)]
pub enum FenceReturned {
    /// What serves or speaks for the cluster there (keepalived, haproxy, the kubelet, etcd, static Pods) is stopped and
    /// disabled. No data is deleted.
    #[default]
    Always,
    /// Nothing: a person looks after it.
    Never,
}

impl Default for MachineRemoval {
    fn default() -> Self {
        Self {
            drain_timeout_seconds: default_drain_timeout(),
            force_remove_after_seconds: None,
            fence_returned: FenceReturned::default(),
        }
    }
}

fn default_drain_timeout() -> i32 {
    600
}

/// What is done when all machines are lost.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq, Eq, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("self.strategy != 'RestoreLatest' || has(self.identityRef)")
    .message("identityRef is required with RestoreLatest: name the Secret with the age identity that decrypts the backups"))]
pub struct Recovery {
    /// Default `None`.
    #[serde(default)]
    pub strategy: RecoveryStrategy,
    /// How long neither the API nor any machine must have answered, in seconds, 60 to 86400. Default 600.
    #[serde(default = "default_lost_after")]
    #[schemars(range(min = 60, max = 86400))]
    pub lost_after_seconds: i32,
    /// With `RestoreLatest`: the Secret with the age identity that decrypts the cluster's backups, in the key
    /// `identity`. It stays there for as long as the strategy: whoever reads it can read every Secret of the cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub identity_ref: Option<LocalRef>,
}

impl Default for Recovery {
    fn default() -> Self {
        Self { strategy: RecoveryStrategy::default(), lost_after_seconds: default_lost_after(), identity_ref: None }
    }
}

fn default_lost_after() -> i32 {
    600
}

/// What is done when all machines are lost.
#[derive(Serialize, Deserialize, Clone, Copy, Debug, Default, PartialEq, Eq, JsonSchema)]
pub enum RecoveryStrategy {
    /// Nothing but to say so: a person restores the machines, or deletes the cluster.
    #[default]
    None,
    /// Spare Hosts are claimed, and the cluster is installed anew and empty under the same name, with the same
    /// authorities and keys. All that it held is lost: etcd's data, so every object, Secret and claim in it, and what
    /// its old machines stored. Those are forgotten, their Hosts quarantined, and never taken back.
    Rebuild,
    /// As with `Rebuild`, and the cluster begins with the newest good EtcdBackup of it in the namespace: what was
    /// written since is lost. Without one, nothing is done but to say so.
    RestoreLatest,
}

/// What deletion does with the machines.
#[derive(Serialize, Deserialize, Clone, Copy, Debug, Default, PartialEq, Eq, JsonSchema)]
pub enum DeletionPolicy {
    /// Clean them, verify, give them back to the pool.
    #[default]
    Reset,
    /// Leave them running as they are; their Hosts go back as not clean.
    Detach,
}
