//! The kubelet's configuration, under the names of KubeletConfiguration.

use std::collections::BTreeMap;

use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::flags::GATES_RULE;

/// The kubelet's configuration. What is taken back is again as the kubelet has it by itself.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("has(self.imageGCHighThresholdPercent) == has(self.imageGCLowThresholdPercent) && (!has(self.imageGCHighThresholdPercent) || self.imageGCLowThresholdPercent < self.imageGCHighThresholdPercent)")
    .message("imageGCHighThresholdPercent and imageGCLowThresholdPercent are given together, the low one below the high one"))]
#[x_kube(validation = Rule::new("!has(self.maxParallelImagePulls) || (has(self.serializeImagePulls) && !self.serializeImagePulls)")
    .message("maxParallelImagePulls needs serializeImagePulls: false beside it"))]
#[x_kube(validation = Rule::new("has(self.shutdownGracePeriodSeconds) == has(self.shutdownGracePeriodCriticalPodsSeconds) && (!has(self.shutdownGracePeriodSeconds) || self.shutdownGracePeriodCriticalPodsSeconds <= self.shutdownGracePeriodSeconds)")
    .message("shutdownGracePeriodSeconds and shutdownGracePeriodCriticalPodsSeconds are given together; the latter is a part of the former"))]
pub struct KubeletSettings {
    /// Pods that run on a Node at most, 10 to 250: a Node has a /24 of the Pods' network. Default 110.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 10, max = 250))]
    pub max_pods: Option<i32>,
    /// What Pods may not have because the operating system needs it. Default: by the machine's size, for `cpu` and
    /// `memory`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system_reserved: Option<ReservedResources>,
    /// What Pods may not have because the kubelet and the container runtime need it. Default: by the machine's size,
    /// for `cpu` and `memory`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kube_reserved: Option<ReservedResources>,
    /// Below what is left of a resource Pods are evicted at once. Signals that are not given keep their defaults.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub eviction_hard: Option<EvictionThresholds>,
    /// How full the images' disk is when unused images are removed, in percent, 1 to 100; 100: never. Default 85. Only
    /// with `imageGCLowThresholdPercent`.
    #[serde(default, rename = "imageGCHighThresholdPercent", skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 100))]
    pub image_gc_high_threshold_percent: Option<i32>,
    /// Down to how full it then is, in percent, 0 to 99. Default 80.
    #[serde(default, rename = "imageGCLowThresholdPercent", skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 99))]
    pub image_gc_low_threshold_percent: Option<i32>,
    /// Size at which a container's log file is rotated, in `Ki`, `Mi` or `Gi`. Default `10Mi`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 12), regex(pattern = r"^[1-9][0-9]{0,5}(Ki|Mi|Gi)$"))]
    pub container_log_max_size: Option<String>,
    /// Log files that are kept of a container, 2 to 100. Default 5.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 2, max = 100))]
    pub container_log_max_files: Option<i32>,
    /// Whether images are pulled one after the other. Default true.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub serialize_image_pulls: Option<bool>,
    /// Images that are pulled at once at most, 1 to 100; only with `serializeImagePulls: false`. Default: no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 100))]
    pub max_parallel_image_pulls: Option<i32>,
    /// Pulls of images a second at most, 0 to 1000; 0: no limit. Default 5.
    #[serde(default, rename = "registryPullQPS", skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 1000))]
    pub registry_pull_qps: Option<i32>,
    /// How CPUs are given to containers. Default `none`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_manager_policy: Option<CpuManagerPolicy>,
    /// How CPUs, memory and devices of a container are kept near each other. Default `none`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub topology_manager_policy: Option<TopologyManagerPolicy>,
    /// Processes of a Pod at most, 64 to 4194304. Default: no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 64, max = 4_194_304))]
    pub pod_pids_limit: Option<i64>,
    /// Feature gates of the kubelet, by name; at most 32. A kubelet that does not know one does not start, and the
    /// former configuration is put back.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = 32))]
    #[x_kube(validation = Rule::new(GATES_RULE).message("a feature gate's name is letters and digits, and begins with a capital: GracefulNodeShutdown"))]
    pub feature_gates: BTreeMap<String, bool>,
    /// How often the Node's status is computed, in seconds, 1 to 300. Default 10.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 300))]
    pub node_status_update_frequency_seconds: Option<i32>,
    /// How long a shutdown of the machine waits for its Pods to end, in seconds, 1 to 3600. Default: not at all. Only
    /// with `shutdownGracePeriodCriticalPodsSeconds`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 3600))]
    pub shutdown_grace_period_seconds: Option<i32>,
    /// The part of it that is left to critical Pods, in seconds, 1 to 3600.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 3600))]
    pub shutdown_grace_period_critical_pods_seconds: Option<i32>,
}

/// Resources that Pods may not have. Those that are not given stay as they are.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq, KubeSchema)]
#[serde(rename_all = "kebab-case")]
pub struct ReservedResources {
    /// CPUs: `500m`, or `2`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 8), regex(pattern = r"^[1-9][0-9]{0,5}m?$"))]
    pub cpu: Option<String>,
    /// Memory, in `Ki`, `Mi` or `Gi`: `512Mi`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 12), regex(pattern = r"^[1-9][0-9]{0,8}(Ki|Mi|Gi)$"))]
    pub memory: Option<String>,
    /// Disk of the kubelet's directory, in `Ki`, `Mi` or `Gi`: `2Gi`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 12), regex(pattern = r"^[1-9][0-9]{0,8}(Ki|Mi|Gi)$"))]
    pub ephemeral_storage: Option<String>,
    /// Process IDs: `1000`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 8), regex(pattern = r"^[1-9][0-9]{0,6}$"))]
    pub pid: Option<String>,
}

/// What must be left of resources, by the kubelet's signals: a percentage (`10%`), or an amount (`500Mi`).
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq, KubeSchema)]
pub struct EvictionThresholds {
    /// Memory. Default `100Mi`.
    #[serde(default, rename = "memory.available", skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 12), regex(pattern = r"^([1-9][0-9]?%|[1-9][0-9]{0,8}(Ki|Mi|Gi))$"))]
    pub memory_available: Option<String>,
    /// Disk of the kubelet's directory. Default `10%`.
    #[serde(default, rename = "nodefs.available", skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 12), regex(pattern = r"^([1-9][0-9]?%|[1-9][0-9]{0,8}(Ki|Mi|Gi))$"))]
    pub nodefs_available: Option<String>,
    /// Inodes of that disk: a percentage, or their number. Default `5%`.
    #[serde(default, rename = "nodefs.inodesFree", skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 12), regex(pattern = r"^([1-9][0-9]?%|[1-9][0-9]{0,10})$"))]
    pub nodefs_inodes_free: Option<String>,
    /// Disk of the images. Default `15%`.
    #[serde(default, rename = "imagefs.available", skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 12), regex(pattern = r"^([1-9][0-9]?%|[1-9][0-9]{0,8}(Ki|Mi|Gi))$"))]
    pub imagefs_available: Option<String>,
    /// Inodes of that disk: a percentage, or their number. Default `5%`.
    #[serde(default, rename = "imagefs.inodesFree", skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 12), regex(pattern = r"^([1-9][0-9]?%|[1-9][0-9]{0,10})$"))]
    pub imagefs_inodes_free: Option<String>,
    /// Process IDs: a percentage, or their number. Default: none is watched.
    #[serde(default, rename = "pid.available", skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 12), regex(pattern = r"^([1-9][0-9]?%|[1-9][0-9]{0,6})$"))]
    pub pid_available: Option<String>,
}

/// How CPUs are given to containers.
#[derive(Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CpuManagerPolicy {
    /// They share all CPUs.
    None,
    /// A container of a Guaranteed Pod that asks for whole CPUs has them to itself.
    Static,
}

/// How CPUs, memory and devices of a container are kept near each other.
#[derive(Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TopologyManagerPolicy {
    /// They are not.
    None,
    /// They are where that is possible.
    BestEffort,
    /// A Pod for which it is not possible is refused.
    Restricted,
    /// A Pod that does not fit on one NUMA node is refused.
    SingleNumaNode,
}
