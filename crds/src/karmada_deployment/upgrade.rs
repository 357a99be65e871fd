//! How a plane is brought to another version: whether a person is asked, what is waited for, and how far it is.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::cluster_deployment::Approval;

/// What precedes an upgrade of the plane, or of one of its components.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct PlaneUpgrade {
    /// Whether it waits for a person. Settings that are edited without a version are not asked. Default `Automatic`.
    #[serde(default)]
    pub approval: Approval,
    /// What it does not wait for before it begins; at most 5. Default: it waits for all of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 5))]
    #[x_kube(merge_strategy = ListMerge::Set)]
    pub ignore: Vec<UpgradeCheck>,
}

/// What is waited for before an upgrade begins.
#[derive(Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq, JsonSchema)]
pub enum UpgradeCheck {
    /// Every component works, and what is wanted is applied.
    Health,
    /// Every member is reached, and none is leaving.
    Members,
    /// No Work and no binding is being deleted: what that ends in members would end in the midst of the upgrade.
    Terminating,
    /// No certificate ends within 30 days, or within a third of `certificates.validityDays` if that is sooner.
    Certificates,
    /// A good backup of etcd of the last hour, where an EtcdBackupSchedule is for the plane: else it is made as that
    /// makes its own. One that goes back does not wait for it.
    Backup,
}

/// A step of an upgrade.
#[derive(Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq, JsonSchema)]
pub enum UpgradeStep {
    /// karmada-scheduler, karmada-descheduler and karmada-controller-manager are stopped. Only where a minor version
    /// changes.
    StopControllers,
    /// etcd.
    Etcd,
    /// kube-apiserver.
    APIServer,
    /// kube-controller-manager.
    KubeControllerManager,
    /// CustomResourceDefinitions; none is ever deleted, or set back.
    Definitions,
    /// The webhook is not asked any more for what the other version does not answer.
    RetireWebhooks,
    /// karmada-webhook.
    Webhook,
    /// The webhook is asked for all that it answers.
    AddWebhooks,
    /// karmada-aggregated-apiserver.
    AggregatedAPIServer,
    /// Estimators of members, some at a time; one whose member does not answer is not waited for.
    Estimators,
    /// karmada-scheduler.
    Scheduler,
    /// karmada-descheduler.
    Descheduler,
    /// karmada-controller-manager.
    ControllerManager,
    /// karmada-search.
    Search,
    /// karmada-metrics-adapter.
    MetricsAdapter,
    /// Agents of Pull members, some at a time; one that does not answer follows when it does.
    Agents,
    /// Leaders work, a policy would be admitted, and no Work is missing.
    Verify,
}

/// An upgrade: what is planned, and how far it is.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct KarmadaUpgradeStatus {
    /// The version of Karmada that it begins with.
    #[schemars(length(max = 64))]
    pub from: String,
    /// The one that it ends with: the same where other components alone change.
    #[schemars(length(max = 64))]
    pub to: String,
    /// All of it in one line.
    #[serde(default)]
    #[schemars(length(max = 1024))]
    pub summary: String,
    /// What stands for it: `clusterwright.dev/approve: upgrade.<digest>` approves it, of this generation of the object.
    #[serde(default)]
    #[schemars(length(max = 32))]
    pub digest: String,
    /// The components whose version changes, in the order of the list of components.
    #[serde(default)]
    #[schemars(length(max = 16), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub changes: Vec<KarmadaComponentChange>,
    /// Its steps, in their order. Each begins once the one before works.
    #[serde(default)]
    #[schemars(length(max = 32))]
    pub steps: Vec<UpgradeStep>,
    /// The step that it is at. Absent: it has not begun.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<UpgradeStep>,
    /// When it began. Absent: it has not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Time>,
    /// True: it takes the place of one that had begun, e.g. to go back. It does not wait for a plane that works.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub interrupts: bool,
    /// How many Works there were when it began. Absent: it has not, or they could not be counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub works: Option<i64>,
}

/// The change of a component's version.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq, Eq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct KarmadaComponentChange {
    /// E.g. `karmada-scheduler`.
    #[schemars(length(max = 63))]
    pub name: String,
    /// The version that its Pods are made with before.
    #[schemars(length(max = 64))]
    pub from: String,
    /// The one that they are made with after.
    #[schemars(length(max = 64))]
    pub to: String,
}
