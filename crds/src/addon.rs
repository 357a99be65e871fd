//! Addon: what clusters need beside Kubernetes itself, applied to them and kept as it is wanted.

mod bundle;
mod chart;
mod health;
mod source;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::cluster_selector::ClusterSelector;
use crate::references::LocalRef;

pub use bundle::{BundleManifests, BundlePlace};
pub use chart::{Chart, ChartOverride, ValuesRef};
pub use health::{HEALTH_CHECKS, HealthCheck};
pub use source::{AddonSource, Manifests, ManifestsRef};

/// CEL: one cluster, or those with some labels.
const CLUSTERS_RULE: &str = "has(self.clusterRef) != has(self.clusterSelector)";
const CLUSTERS_MESSAGE: &str =
    "exactly one of clusterRef and clusterSelector is required; clusterSelector: {} selects every cluster";
const CANARIES_RULE: &str = "!has(self.rollout) || self.rollout.canaries > 0 || self.rollout.pauseSeconds == 0";
const CANARIES_MESSAGE: &str =
    "rollout.pauseSeconds is the pause after the canaries: set rollout.canaries too, or leave it out";

/// What is wanted on which clusters.
#[derive(CustomResource, Serialize, Deserialize, Clone, Debug, PartialEq, KubeSchema)]
#[kube(
    group = "clusterwright.dev",
    version = "v1alpha1",
    kind = "Addon",
    plural = "addons",
    category = "clusterwright",
    namespaced,
    status = "AddonStatus",
    derive = "PartialEq",
    doc = "What clusters need beside Kubernetes itself: manifests, or a Helm chart, that are applied to each of them, and kept as they are wanted.",
    printcolumn(name = "Version", type_ = "string", json_path = ".spec.version"),
    printcolumn(name = "Clusters", type_ = "integer", json_path = ".status.clusters"),
    printcolumn(name = "Updated", type_ = "integer", json_path = ".status.updatedClusters"),
    printcolumn(name = "Healthy", type_ = "integer", json_path = ".status.healthyClusters"),
    printcolumn(name = "Ready", type_ = "string", json_path = ".status.conditions[?(@.type==\"Ready\")].status"),
    printcolumn(name = "Status", type_ = "string", json_path = ".status.message"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    validation = Rule::new("self.metadata.name.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$') && size(self.metadata.name) <= 40")
        .message("metadata.name: an RFC 1123 label of at most 40 characters: its ClusterAddons are named after it")
)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new(CLUSTERS_RULE).message(CLUSTERS_MESSAGE))]
#[x_kube(validation = Rule::new(CANARIES_RULE).message(CANARIES_MESSAGE))]
pub struct AddonSpec {
    /// The Cluster that gets it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster_ref: Option<LocalRef>,
    /// Labels of the Clusters that get it; one that was built here has those of its ClusterDeployment, too. `{}`:
    /// every one of the namespace but Karmada control planes, which are selected only by who asks for a value of their
    /// label `clusterwright.dev/karmada`, or for it to exist. From one that is selected no more it is removed, as
    /// `deletionPolicy` says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster_selector: Option<ClusterSelector>,
    /// What is applied.
    pub source: AddonSource,
    /// The version, as it is shown, and as templates find it in `addon_version`: 1 to 64 characters of
    /// `A-Za-z0-9._+-`. Another version is rolled out like any edit of the source. Default: that of the chart; of
    /// manifests none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 64), regex(pattern = r"^[A-Za-z0-9]([A-Za-z0-9._+-]*[A-Za-z0-9])?$"))]
    pub version: Option<String>,
    /// Names of Addons of the namespace that come first, at most 16: on each cluster that has them too, nothing new of
    /// this one is applied until they are Ready there. Empty: none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(max = 16),
        inner(length(min = 1, max = 40), regex(pattern = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"))
    )]
    #[x_kube(merge_strategy = ListMerge::Set)]
    pub depends_on: Vec<String>,
    /// All Addons of a lower wave come first, as if `dependsOn` named them; 0 to 100. Default 0.
    #[serde(default)]
    #[schemars(range(min = 0, max = 100))]
    pub wave: i32,
    /// What becomes of the objects on a cluster when this Addon is deleted, or selects the cluster no more. Default
    /// `Delete`. A single object is kept by its annotation `clusterwright.dev/deletion-policy: Orphan`.
    #[serde(default)]
    pub deletion_policy: AddonDeletionPolicy,
    /// Whose fields an object keeps that another field manager has set otherwise, and whose release of a chart's name
    /// stays. Default `Report`.
    #[serde(default)]
    pub conflicts: ConflictPolicy,
    /// True: nothing is applied, put back or removed on any cluster. Health is still looked at. Default false.
    #[serde(default)]
    pub paused: bool,
    /// How a change reaches the clusters.
    #[serde(default)]
    pub rollout: AddonRollout,
    /// When an object counts as healthy, beside what its own status says; at most 16.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    pub health_checks: Vec<HealthCheck>,
    /// How long the objects may take to become healthy after they were applied, in seconds, 30 to 86400. After that
    /// the cluster counts as failed. Default 600.
    #[serde(default = "default_health_timeout")]
    #[schemars(range(min = 30, max = 86400))]
    pub health_timeout_seconds: i32,
    /// How often each cluster is compared with what is wanted, in seconds, 60 to 86400. Default 600.
    #[serde(default = "default_resync")]
    #[schemars(range(min = 60, max = 86400))]
    pub resync_seconds: i32,
}

/// What becomes of what was applied.
#[derive(Serialize, Deserialize, Clone, Copy, Debug, Default, PartialEq, Eq, JsonSchema)]
pub enum AddonDeletionPolicy {
    /// It is deleted, the last applied first.
    #[default]
    Delete,
    /// It stays on the cluster as it is.
    Orphan,
}

/// What is done about a field that another field manager has set otherwise. A field of an object of this Addon that
/// was changed by hand, by kubectl, is put back in any case.
#[derive(Serialize, Deserialize, Clone, Copy, Debug, Default, PartialEq, Eq, JsonSchema)]
pub enum ConflictPolicy {
    /// The object is left as it is; the condition `Applied` names the manager and the fields.
    #[default]
    Report,
    /// The field is taken over.
    Force,
}

/// How a change reaches the clusters. One that does not answer holds up no other.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq, Eq, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct AddonRollout {
    /// How many clusters may have a change and not be Ready with it yet, 1 to 1000; failed ones count until they are.
    /// Default 10.
    #[serde(default = "default_max_concurrent")]
    #[schemars(range(min = 1, max = 1000))]
    pub max_concurrent: i32,
    /// How many clusters, the first by name, get a change before all others, 0 to 100. If one of them fails, no other
    /// gets it. Default 0.
    #[serde(default)]
    #[schemars(range(min = 0, max = 100))]
    pub canaries: i32,
    /// How long the canaries must have been Ready with a change before others get it, in seconds, 0 to 604800.
    /// Default 0.
    #[serde(default)]
    #[schemars(range(min = 0, max = 604_800))]
    pub pause_seconds: i32,
}

impl AddonSpec {
    /// The version, as it is shown: its own, or that of its chart.
    pub fn shown_version(&self) -> Option<&String> {
        self.version.as_ref().or(self.source.chart.as_ref().map(|chart| &chart.version))
    }
}

impl Default for AddonRollout {
    fn default() -> Self {
        Self { max_concurrent: default_max_concurrent(), canaries: 0, pause_seconds: 0 }
    }
}

fn default_max_concurrent() -> i32 {
    10
}

fn default_health_timeout() -> i32 {
    600
}

fn default_resync() -> i32 {
    600
}

/// How far it is.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AddonStatus {
    /// The `metadata.generation` that this status speaks of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// One sentence: how far it is, or what is wrong.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 1024))]
    pub message: Option<String>,
    /// The revision that is wanted: a digest of the source, the version and the health checks. Its content is in the
    /// Secret `<name>-<revision>`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 32))]
    pub revision: Option<String>,
    /// The revisions whose content is kept: the one that is wanted, and those that clusters still have.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64), inner(length(max = 32)))]
    pub revisions: Vec<String>,
    /// Clusters that are selected.
    #[serde(default)]
    pub clusters: i32,
    /// Those of them that have the revision wanted.
    #[serde(default)]
    pub updated_clusters: i32,
    /// Those of them that have it and are Ready with it.
    #[serde(default)]
    pub healthy_clusters: i32,
    /// Those of them that do not answer.
    #[serde(default)]
    pub unreachable_clusters: i32,
    /// `Ready`: all selected clusters that answer have the revision wanted, and are healthy with it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 8), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Vec<Condition>,
}
