//! What was observed of a Host's machine.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::playbook_run::{Fence, FenceOwner};

/// Where a Host is in its life; for people.
#[derive(Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq, JsonSchema)]
pub enum HostPhase {
    /// No probe has answered yet, or the last one did not.
    Unreachable,
    /// Reachable, its key right, clean, and nobody's.
    Available,
    /// A Machine's.
    Claimed,
    /// Given back and not yet proved clean.
    Cleaning,
    /// Not to be used until a person releases it.
    Quarantined,
}

/// What was observed of the machine.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HostStatus {
    /// The `metadata.generation` that this status speaks of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// For people; no controller decides by it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<HostPhase>,
    /// One sentence: what is wrong or what it waits for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 1024))]
    pub message: Option<String>,
    /// What the machine says of itself; hostile until checked, cut to 256 characters each.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub facts: Option<HostFacts>,
    /// Host keys pinned on first use.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 8), inner(length(max = 1400)))]
    pub host_keys: Vec<String>,
    /// When a probe last ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_probe_at: Option<Time>,
    /// The last probe's run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253))]
    pub last_probe_run: Option<String>,
    /// The `claimEpoch` that the machine was last seen clean in: a claim makes it dirty again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cleaned_epoch: Option<i64>,
    /// The highest fence that the machine's guard knew at the last probe, or when it refused a run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fence: Option<Fence>,
    /// Whose that fence is; absent where the guard knows of no run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fence_owner: Option<FenceOwner>,
    /// The time at which an operator took this metadata cluster up again (the annotation `resumed-at` of its Lease) and
    /// for which the machine was last probed; what was known before may be older than the machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked_since: Option<Time>,
    /// The value of the annotation `release` that the last probe was made for: it has looked since that was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64))]
    pub probed_for_release: Option<String>,
    /// `Ready` (can be claimed, or is claimed and reachable), `Reachable`, `HostKeyVerified`, `IdentityVerified`,
    /// `Clean`, `MachineIDUnique`, `StoreIsOlder`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Vec<Condition>,
}

/// What a machine says of itself.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HostFacts {
    /// `PRETTY_NAME` of os-release, e.g. `Debian GNU/Linux 12 (bookworm)`.
    #[serde(default)]
    #[schemars(length(max = 256))]
    pub os_image: String,
    /// Kernel release, e.g. `6.1.0-18-amd64`.
    #[serde(default)]
    #[schemars(length(max = 256))]
    pub kernel: String,
    /// `amd64` or `arm64`.
    #[serde(default)]
    #[schemars(length(max = 64))]
    pub architecture: String,
    /// Number of CPUs.
    #[serde(default)]
    pub cpus: i32,
    /// Memory in MiB.
    #[serde(default, rename = "memoryMiB")]
    pub memory_mib: i64,
    /// `/etc/machine-id`.
    #[serde(default)]
    #[schemars(length(max = 64))]
    pub machine_id: String,
}
