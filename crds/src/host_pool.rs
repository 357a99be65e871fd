//! HostPool: how many Hosts of the namespace match a selector, and how many of them are free.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::placement::HostSelector;

/// The Hosts that match a selector.
#[derive(CustomResource, Serialize, Deserialize, Clone, Debug, PartialEq, KubeSchema)]
#[kube(
    group = "clusterwright.dev",
    version = "v1alpha1",
    kind = "HostPool",
    plural = "hostpools",
    shortname = "hp",
    category = "clusterwright",
    namespaced,
    status = "HostPoolStatus",
    derive = "PartialEq",
    doc = "How many Hosts of the namespace match a selector, and how many of them are free. It takes none of them.",
    printcolumn(name = "Hosts", type_ = "integer", json_path = ".status.hosts"),
    printcolumn(name = "Available", type_ = "integer", json_path = ".status.available"),
    printcolumn(name = "Claimed", type_ = "integer", json_path = ".status.claimed"),
    printcolumn(name = "Cleaning", type_ = "integer", json_path = ".status.cleaning"),
    printcolumn(name = "Quarantined", type_ = "integer", json_path = ".status.quarantined"),
    printcolumn(name = "Unreachable", type_ = "integer", json_path = ".status.unreachable"),
    printcolumn(name = "Selector", type_ = "string", json_path = ".status.selector"),
    printcolumn(name = "Status", type_ = "string", json_path = ".status.message", priority = 1),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    validation = Rule::new("self.metadata.name.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$') && size(self.metadata.name) <= 63")
        .message("metadata.name: an RFC 1123 label of at most 63 characters")
)]
#[serde(rename_all = "camelCase")]
pub struct HostPoolSpec {
    /// Which Hosts are counted. Default: every Host of the namespace.
    #[serde(default)]
    pub host_selector: HostSelector,
}

/// The Hosts in numbers: each that matches is counted once in `hosts`, and once in one of the others.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HostPoolStatus {
    /// The `metadata.generation` that this status speaks of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// The selector in words, e.g. `size=large, rack in (r1, r2), minCPUs 8`; `everything` where it is empty.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 1024))]
    pub selector: Option<String>,
    /// One sentence: how many are free, and why others are not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 1024))]
    pub message: Option<String>,
    /// Hosts that match, of every phase.
    #[serde(default)]
    pub hosts: i32,
    /// Of these, those that can be claimed now.
    #[serde(default)]
    pub available: i32,
    /// Held by a Machine.
    #[serde(default)]
    pub claimed: i32,
    /// Given back, and not yet verified clean.
    #[serde(default)]
    pub cleaning: i32,
    /// Kept out of the pool by `spec.quarantine`.
    #[serde(default)]
    pub quarantined: i32,
    /// SSH does not accept the operator's login.
    #[serde(default)]
    pub unreachable: i32,
    /// Cannot be claimed for another reason: unschedulable, being deleted, or not looked at yet.
    #[serde(default)]
    pub other: i32,
    /// `HostsAvailable`: whether at least one can be claimed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Vec<Condition>,
}
