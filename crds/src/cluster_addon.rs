//! ClusterAddon: one Addon on one cluster. Small, so that a thousand clusters make no object too large.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::addon::AddonDeletionPolicy;
use crate::references::LocalRef;

/// The most objects that an Addon has on a cluster.
pub const MOST_OBJECTS: usize = 1000;

/// An Addon on a cluster: written by the controller of Addons.
#[derive(CustomResource, Serialize, Deserialize, Clone, Debug, PartialEq, KubeSchema)]
#[kube(
    group = "clusterwright.dev",
    version = "v1alpha1",
    kind = "ClusterAddon",
    plural = "clusteraddons",
    shortname = "ca",
    category = "clusterwright",
    namespaced,
    status = "ClusterAddonStatus",
    derive = "PartialEq",
    doc = "An Addon on one cluster: which revision of it the cluster may have, what was applied, and whether it is healthy. The operator makes it.",
    printcolumn(name = "Addon", type_ = "string", json_path = ".spec.addonRef.name"),
    printcolumn(name = "Cluster", type_ = "string", json_path = ".spec.clusterRef.name"),
    printcolumn(name = "Version", type_ = "string", json_path = ".status.version"),
    printcolumn(name = "Objects", type_ = "integer", json_path = ".status.objects"),
    printcolumn(name = "Ready", type_ = "string", json_path = ".status.conditions[?(@.type==\"Ready\")].status"),
    printcolumn(name = "Status", type_ = "string", json_path = ".status.message"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    validation = Rule::new("self.metadata.name.matches('^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$') && size(self.metadata.name) <= 63")
        .message("metadata.name: an RFC 1123 subdomain of at most 63 characters")
)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("self.addonRef == oldSelf.addonRef && self.clusterRef == oldSelf.clusterRef")
    .message("addonRef and clusterRef cannot be changed: the operator makes a ClusterAddon for each cluster that an Addon selects"))]
pub struct ClusterAddonSpec {
    /// The Addon.
    pub addon_ref: LocalRef,
    /// The Cluster.
    pub cluster_ref: LocalRef,
    /// The revision of the Addon that the cluster may have now: that is how a change is rolled out. Absent: none yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 32), regex(pattern = r"^[a-z0-9]+$"))]
    pub revision: Option<String>,
    /// Addons that come first and are not Ready on the cluster; nothing newer is given to it until they are.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32), inner(length(min = 1, max = 40)))]
    pub waits_for: Vec<String>,
    /// What becomes of the objects on the cluster when this object is deleted, as the Addon says.
    #[serde(default)]
    pub deletion_policy: AddonDeletionPolicy,
}

/// How it stands with an Addon on a cluster.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterAddonStatus {
    /// The `metadata.generation` that this status speaks of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// One sentence: what is done, what it waits for, or what is wrong.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 1024))]
    pub message: Option<String>,
    /// The revision that was applied as a whole last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 32))]
    pub revision: Option<String>,
    /// Its version, where the Addon gives one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64))]
    pub version: Option<String>,
    /// Digest of the manifests as they were rendered for this cluster; or of the chart and its values.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 32))]
    pub digest: Option<String>,
    /// When this digest was applied as a whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub applied_at: Option<Time>,
    /// How many objects the inventory has.
    #[serde(default)]
    pub objects: i32,
    /// The objects on the cluster, in the order in which they are applied; also those that are about to be applied, or
    /// still to be removed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 2000))]
    pub inventory: Vec<AppliedObject>,
    /// The first object that is not healthy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unhealthy: Option<UnhealthyObject>,
    /// The release of the Addon's chart.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub release: Option<ChartRelease>,
    /// `Ready`, `Applied`, `Healthy`; `Reconciling` or `Stalled` while it is so.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 8), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Vec<Condition>,
}

/// A Helm release on a cluster, and what is done about it.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ChartRelease {
    /// Its name.
    #[schemars(length(max = 53))]
    pub name: String,
    /// Its namespace.
    #[schemars(length(max = 63))]
    pub namespace: String,
    /// Its revision, as Helm counts them, that was seen last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<i64>,
    /// What Helm says of that revision: `deployed`, `failed`, `pending-upgrade`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64))]
    pub status: Option<String>,
    /// The chart's version of that revision.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 128))]
    pub chart_version: Option<String>,
    /// The version of what the chart installs, as the chart gives it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 128))]
    pub app_version: Option<String>,
    /// SHA-256 of the chart's archive that was installed last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 71))]
    pub digest: Option<String>,
    /// The Job that runs Helm now. Its Pod's log has Helm's output.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 63))]
    pub job: Option<String>,
    /// When the last Job ended: the next one is named after it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tried_at: Option<Time>,
    /// What went wrong last, until it succeeds or something else is wanted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<ChartFailure>,
}

/// Why Helm did not succeed.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ChartFailure {
    /// What was tried: a digest of the chart, its values and the release, or `uninstall`.
    #[schemars(length(max = 32))]
    pub wanted: String,
    /// How often in a row.
    pub attempts: i32,
    /// A reason of the condition `Applied`.
    #[schemars(length(max = 64))]
    pub reason: String,
    /// The end of what Helm said.
    #[schemars(length(max = 1024))]
    pub message: String,
    /// The retry that was answered by the last attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64))]
    pub retry: Option<String>,
}

/// An object on a cluster.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AppliedObject {
    /// Its API group; empty for the core group.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 253))]
    pub group: String,
    /// The version by which it was applied.
    #[schemars(length(max = 63))]
    pub version: String,
    /// Its kind.
    #[schemars(length(max = 63))]
    pub kind: String,
    /// Its namespace; absent for an object of none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 63))]
    pub namespace: Option<String>,
    /// Its name.
    #[schemars(length(max = 253))]
    pub name: String,
}

impl AppliedObject {
    /// Whether both are the same object, by whichever version of its API.
    pub fn is_same(&self, other: &Self) -> bool {
        (&self.group, &self.kind, &self.namespace, &self.name)
            == (&other.group, &other.kind, &other.namespace, &other.name)
    }

    /// Its `apiVersion`.
    pub fn api_version(&self) -> String {
        match self.group.as_str() {
            "" => self.version.clone(),
            group => format!("{group}/{}", self.version),
        }
    }
}

impl std::fmt::Display for AppliedObject {
    /// `Deployment monitoring/agent`.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.namespace {
            Some(namespace) => write!(f, "{} {namespace}/{}", self.kind, self.name),
            None => write!(f, "{} {}", self.kind, self.name),
        }
    }
}

/// An object that is not healthy.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UnhealthyObject {
    /// The object: `Deployment monitoring/agent`.
    #[schemars(length(max = 400))]
    pub object: String,
    /// Why it is not.
    #[schemars(length(max = 512))]
    pub message: String,
    /// Since when it is the first that is not.
    pub since: Time,
}
