//! The members of a plane: those that are named, and those that join by their labels.

use std::collections::BTreeMap;

use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::cluster_selector::ClusterSelector;
use crate::node_metadata::{LABEL_KEYS_MESSAGE, LABEL_KEYS_RULE, LabelValue, Taint};
use crate::references::LocalRef;

/// The most members that `spec.members` names.
pub const MOST_MEMBERS: usize = 256;

const REACHED_RULE: &str =
    "(has(self.clusterRef) ? 1 : 0) + (has(self.kubeConfigSecretName) ? 1 : 0) + (has(self.hostRef) ? 1 : 0) == 1";
const REACHED_MESSAGE: &str = "exactly one of clusterRef, kubeConfigSecretName and hostRef is required: the member's Cluster, a Secret with its kubeconfig, or a Host that has it in a file";

/// A member.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq, Eq, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new(REACHED_RULE).message(REACHED_MESSAGE))]
pub struct KarmadaMember {
    /// Its name in the plane: an RFC 1123 label of at most 48 characters.
    #[schemars(length(min = 1, max = 48), regex(pattern = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"))]
    pub name: String,
    /// Who carries objects to it.
    pub sync_mode: SyncMode,
    /// Its Cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster_ref: Option<LocalRef>,
    /// A Secret with its kubeconfig under the key `kubeconfig`: no `exec`, no `auth-provider`, no insecure TLS.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253), regex(pattern = r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$"))]
    pub kube_config_secret_name: Option<String>,
    /// A Host that is a control plane of it: its administrator's kubeconfig is read there over SSH, from the file of
    /// kubeadm, k3s or RKE2. The Host is claimed by nobody, and `unschedulable`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host_ref: Option<LocalRef>,
    /// Its region, for policies that spread over regions. Default: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 63))]
    pub region: Option<String>,
    /// Its zone. Default: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 63))]
    pub zone: Option<String>,
    /// Its provider. Default: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 63))]
    pub provider: Option<String>,
    /// Labels of its Cluster in the plane, by which policies choose it; at most 32. Others' labels there stay.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = 32))]
    #[x_kube(validation = Rule::new(LABEL_KEYS_RULE).message(LABEL_KEYS_MESSAGE))]
    pub labels: BTreeMap<String, LabelValue>,
    /// Taints of its Cluster in the plane, beside those that Karmada sets; at most 16.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["key".into(), "effect".into()]))]
    pub taints: Vec<Taint>,
    /// Whether it has an estimator. Default: it has one where `spec.estimator` is there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub estimator: Option<MemberEstimator>,
}

/// Whether a member has an estimator.
#[derive(Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MemberEstimator {
    /// False: it has none, and workloads that may run in it are divided by what Karmada knows of Nodes in sum, also
    /// among members that have one. Default true, which needs `spec.estimator`.
    #[serde(default = "enabled")]
    pub enabled: bool,
}

/// Who carries objects to a member.
#[derive(Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum SyncMode {
    /// The plane, over the member's API.
    Push,
    /// An agent in the member, over the plane's API.
    Pull,
}

/// Clusters that become members by themselves: those of this namespace that are selected, reachable and healthy, and in
/// no plane. Their name in the plane is that of their Cluster.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq, Eq, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct AutoJoin {
    /// Which Clusters; one that was built here has the labels of its ClusterDeployment, too.
    pub selector: ClusterSelector,
    /// How they join: the first rule whose labels a Cluster has, 1 to 16. A Cluster that none is for does not join.
    #[schemars(length(min = 1, max = 16))]
    pub rules: Vec<JoinRule>,
    /// What becomes of a member that is selected no more. Default `Keep`.
    #[serde(default)]
    pub on_deselect: OnDeselect,
    /// How many join or leave at once, 1 to 100. Default 5.
    #[serde(default = "default_max_concurrent")]
    #[schemars(range(min = 1, max = 100))]
    pub max_concurrent: i32,
}

/// How Clusters with some labels join.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq, Eq, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct JoinRule {
    /// Labels that the Cluster must have, all of them; at most 16. Empty: every Cluster.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = 16))]
    pub when_labels: BTreeMap<String, LabelValue>,
    /// Who carries objects to it.
    pub sync_mode: SyncMode,
}

/// What becomes of a member that `autoJoin.selector` selects no more.
#[derive(Serialize, Deserialize, Clone, Copy, Debug, Default, PartialEq, Eq, JsonSchema)]
pub enum OnDeselect {
    /// It stays a member.
    #[default]
    Keep,
    /// It leaves, as `unjoinPolicy` says.
    Unjoin,
}

/// What becomes of what the plane runs in a member that leaves.
#[derive(Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq, JsonSchema)]
pub enum UnjoinPolicy {
    /// It goes on running there; nobody manages it any more.
    Preserve,
    /// It is deleted there.
    Delete,
}

fn enabled() -> bool {
    true
}

fn default_max_concurrent() -> i32 {
    5
}
