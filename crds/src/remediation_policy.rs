//! RemediationPolicy: what is done about machines that are sick, when, and how many at once.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::node_metadata::LabelValue;
use crate::step::Role;

/// CEL: nothing comes after Replace, which takes the machine away, and a restart comes before a reboot.
const ACTIONS_RULE: &str = "!has(self.actions) || (self.actions.indexOf('Replace') in [-1, size(self.actions) - 1] && (self.actions.indexOf('Reboot') == -1 || self.actions.indexOf('RestartServices') < self.actions.indexOf('Reboot')))";
const ACTIONS_MESSAGE: &str = "in the order RestartServices, Reboot, Replace (any of them may be left out): nothing comes after Replace, which takes the machine away";

/// How sick machines are repaired.
#[derive(CustomResource, Serialize, Deserialize, Clone, Debug, PartialEq, KubeSchema)]
#[kube(
    group = "clusterwright.dev",
    version = "v1alpha1",
    kind = "RemediationPolicy",
    plural = "remediationpolicies",
    shortname = "rp",
    category = "clusterwright",
    namespaced,
    status = "RemediationPolicyStatus",
    derive = "PartialEq",
    doc = "How sick machines are repaired: when, by which steps, and how many at once.",
    printcolumn(name = "Cluster", type_ = "string", json_path = ".spec.clusterName"),
    printcolumn(name = "Machines", type_ = "integer", json_path = ".status.machines"),
    printcolumn(
        name = "Unhealthy",
        type_ = "integer",
        json_path = ".status.unhealthyMachines"
    ),
    printcolumn(name = "Repairing", type_ = "integer", json_path = ".status.repairing"),
    printcolumn(name = "Status", type_ = "string", json_path = ".status.message"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    validation = Rule::new("self.metadata.name.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$') && size(self.metadata.name) <= 63")
        .message("metadata.name: an RFC 1123 label of at most 63 characters")
)]
#[serde(rename_all = "camelCase")]
pub struct RemediationPolicySpec {
    /// The ClusterDeployment whose machines these are. Absent: of every cluster of the namespace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 32), regex(pattern = r"^[a-z]([-a-z0-9]*[a-z0-9])?$"))]
    pub cluster_name: Option<String>,
    /// Roles of the machines. Empty: all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 3))]
    #[x_kube(merge_strategy = ListMerge::Set)]
    pub roles: Vec<Role>,
    /// Labels of the Machine objects. Empty: all machines. Of several policies that select a machine, the first by name
    /// holds.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = 32))]
    pub match_labels: BTreeMap<String, LabelValue>,
    /// What is done.
    #[serde(flatten)]
    pub remediation: Remediation,
}

/// What is done about sick machines.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new(ACTIONS_RULE).message(ACTIONS_MESSAGE).field_path(".actions"))]
pub struct Remediation {
    /// How long a node must not have been Ready before anything is done, in seconds, 30 to 86400. Default 300.
    #[serde(default = "default_unhealthy_after")]
    #[schemars(range(min = 30, max = 86400))]
    pub unhealthy_after_seconds: i32,
    /// Conditions of a Machine that count like a node that is not Ready when they are False. Empty: none.
    /// `NetworkReady`: its Pods do not reach those of most other machines that it asks, or not the cluster's DNS; a
    /// fault of the DNS itself shows on all machines, which is what `maxUnhealthy` is for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 1))]
    #[x_kube(merge_strategy = ListMerge::Set)]
    pub unhealthy_conditions: Vec<UnhealthyCondition>,
    /// How long after its Host was claimed a machine may be tried in vain to become part of its cluster, in seconds, 60
    /// to 86400; then it is replaced. Default 1800.
    #[serde(default = "default_never_started_after")]
    #[schemars(range(min = 60, max = 86400))]
    pub never_started_after_seconds: i32,
    /// What is tried, in this order, each waited for before the next. A machine that SSH does not reach is only
    /// replaced. Default: all three.
    #[serde(default = "default_actions")]
    #[schemars(length(min = 1, max = 3))]
    #[x_kube(merge_strategy = ListMerge::Set)]
    pub actions: Vec<RemediationAction>,
    /// How long an action has to make the node Ready before the next one, in seconds, 30 to 86400. Default 180.
    #[serde(default = "default_wait")]
    #[schemars(range(min = 30, max = 86400))]
    pub wait_seconds: i32,
    /// How long a machine may take to boot, in seconds, 60 to 3000: until SSH lets us in again after a reboot. One that
    /// takes longer counts as not rebooted, and the next action follows. Default 600.
    #[serde(default = "default_reboot_timeout")]
    #[schemars(range(min = 60, max = 3000))]
    pub reboot_timeout_seconds: i32,
    /// With more sick machines of the cluster than this (a count, or a percentage, rounded up), nothing is done.
    /// Default `30%`.
    #[serde(default = "default_max_unhealthy")]
    #[schemars(extend("minimum" = 0, "maximum" = 5000, "pattern" = r"^([0-9]|[1-9][0-9]|100)%$", "nullable" = false))]
    pub max_unhealthy: IntOrString,
    /// How many machines of the namespace may be under repair at once, 1 to 100. Default 5.
    #[serde(default = "default_budget")]
    #[schemars(range(min = 1, max = 100))]
    pub max_concurrent: i32,
    /// Replacements leave at least so many spare Hosts in the pool, 0 to 5000. Default 0.
    #[serde(default)]
    #[schemars(range(min = 0, max = 5000))]
    pub keep_spare_hosts: i32,
    /// After more sick machines than `maxUnhealthy` at once: how long nothing is done yet, in seconds, 0 to 86400.
    /// Default 300.
    #[serde(default = "default_cooldown")]
    #[schemars(range(min = 0, max = 86400))]
    pub cooldown_seconds: i32,
    /// True: nothing is done. Default false.
    #[serde(default)]
    pub paused: bool,
}

impl Default for Remediation {
    fn default() -> Self {
        Self {
            unhealthy_after_seconds: default_unhealthy_after(),
            unhealthy_conditions: Vec::new(),
            never_started_after_seconds: default_never_started_after(),
            actions: default_actions(),
            wait_seconds: default_wait(),
            reboot_timeout_seconds: default_reboot_timeout(),
            max_unhealthy: default_max_unhealthy(),
            max_concurrent: default_budget(),
            keep_spare_hosts: 0,
            cooldown_seconds: default_cooldown(),
            paused: false,
        }
    }
}

/// A condition of a Machine whose node is Ready.
#[derive(Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq, JsonSchema)]
pub enum UnhealthyCondition {
    /// Its Pods do not reach those of other machines, or the cluster's DNS.
    NetworkReady,
}

impl UnhealthyCondition {
    /// The condition's type.
    pub fn type_(self) -> &'static str {
        match self {
            Self::NetworkReady => crate::names::condition::NETWORK_READY,
        }
    }
}

/// What can be done about a sick machine.
#[derive(Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, JsonSchema)]
pub enum RemediationAction {
    /// kubelet and containerd are restarted.
    RestartServices,
    /// The machine is rebooted.
    Reboot,
    /// The Machine is deleted; its set takes another Host from the pool.
    Replace,
}

fn default_unhealthy_after() -> i32 {
    300
}

fn default_never_started_after() -> i32 {
    1800
}

fn default_actions() -> Vec<RemediationAction> {
    vec![RemediationAction::RestartServices, RemediationAction::Reboot, RemediationAction::Replace]
}

fn default_wait() -> i32 {
    180
}

fn default_reboot_timeout() -> i32 {
    600
}

fn default_max_unhealthy() -> IntOrString {
    IntOrString::String("30%".into())
}

fn default_budget() -> i32 {
    5
}

fn default_cooldown() -> i32 {
    300
}

/// What the policy sees.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RemediationPolicyStatus {
    /// The `metadata.generation` that this status speaks of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// One sentence: what is being repaired, or why nothing is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 1024))]
    pub message: Option<String>,
    /// Machines that it holds for.
    #[serde(default)]
    pub machines: i32,
    /// Those that are sick.
    #[serde(default)]
    pub unhealthy_machines: i32,
    /// Those that something is being done about.
    #[serde(default)]
    pub repairing: i32,
    /// When something was last done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_action_at: Option<Time>,
    /// `Ready`: its machines are well, or are being repaired.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Vec<Condition>,
}
