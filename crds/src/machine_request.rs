//! MachineRequest: machines that a platform orders for a set of workers, and what became of the order.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::placement::{HostNames, HostSelector};

/// CEL: what may be edited is that it is canceled, once, and what becomes of its Machines.
const IMMUTABLE_RULE: &str = "self.clusterName == oldSelf.clusterName && self.set == oldSelf.set && has(self.count) == has(oldSelf.count) && (!has(self.count) || self.count == oldSelf.count) && has(self.hosts) == has(oldSelf.hosts) && (!has(self.hosts) || self.hosts == oldSelf.hosts) && has(self.hostSelector) == has(oldSelf.hostSelector) && (!has(self.hostSelector) || self.hostSelector == oldSelf.hostSelector) && has(self.requestID) == has(oldSelf.requestID) && (!has(self.requestID) || self.requestID == oldSelf.requestID) && self.deadlineSeconds == oldSelf.deadlineSeconds";
/// CEL on the object: what has been answered cannot be canceled.
const CANCEL_RULE: &str =
    "!self.spec.cancel || oldSelf.spec.cancel || !has(self.status) || !has(self.status.answeredAt)";

/// Machines that are requested.
#[derive(CustomResource, Serialize, Deserialize, Clone, Debug, PartialEq, KubeSchema)]
#[kube(
    group = "clusterwright.dev",
    version = "v1alpha1",
    kind = "MachineRequest",
    plural = "machinerequests",
    shortname = "mr",
    category = "clusterwright",
    namespaced,
    status = "MachineRequestStatus",
    derive = "PartialEq",
    doc = "Machines that a platform requests for a set of workers, until a deadline. Beside the set's replicas, which it does not change.",
    printcolumn(name = "Cluster", type_ = "string", json_path = ".spec.clusterName"),
    printcolumn(name = "Set", type_ = "string", json_path = ".spec.set"),
    printcolumn(name = "Ready", type_ = "string", json_path = ".status.summary"),
    printcolumn(name = "Answer", type_ = "string", json_path = ".status.answer"),
    printcolumn(name = "Request-ID", type_ = "string", json_path = ".spec.requestID", priority = 1),
    printcolumn(name = "Deadline", type_ = "string", json_path = ".status.deadline", priority = 1),
    printcolumn(name = "Status", type_ = "string", json_path = ".status.message"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    validation = Rule::new("self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$') && size(self.metadata.name) <= 54")
        .message("metadata.name: a MachineRequest's name is an RFC 1123 label that begins with a letter, of at most 54 characters: the names of its machines derive from it"),
    validation = Rule::new(CANCEL_RULE)
        .message("spec.cancel: the request has been answered: delete it; spec.onDelete says what becomes of its Machines"),
    selectable = ".spec.clusterName",
    selectable = ".spec.requestID"
)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("has(self.count) != has(self.hosts)")
    .message("exactly one of count and hosts is required: how many machines, or which ones"))]
#[x_kube(validation = Rule::new("!has(self.hosts) || !has(self.hostSelector)")
    .message("hosts and hostSelector exclude each other: name the Hosts, or select them by labels"))]
#[x_kube(validation = Rule::new(IMMUTABLE_RULE)
    .message("Forbidden: only cancel and onDelete may be changed; make another MachineRequest for more, or other, machines"))]
#[x_kube(validation = Rule::new("!oldSelf.cancel || self.cancel")
    .message("Forbidden: a request that was canceled stays canceled; make another one"))]
pub struct MachineRequestSpec {
    /// The ClusterDeployment that the machines join, in the same namespace. It may be made later.
    #[schemars(length(min = 1, max = 32), regex(pattern = r"^[a-z]([-a-z0-9]*[a-z0-9])?$"))]
    pub cluster_name: String,
    /// The set of workers that they join: a name of the ClusterDeployment's `spec.workers`. They have its labels,
    /// annotations and taints, and follow them when they are edited.
    #[schemars(length(min = 1, max = 20), regex(pattern = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"))]
    #[x_kube(validation = Rule::new("!(self in ['control-plane', 'etcd'])")
        .message("machines are requested for sets of workers: name one of spec.workers of the ClusterDeployment"))]
    pub set: String,
    /// How many machines, 1 to 500. Any Host that suits the set and `hostSelector`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 500))]
    pub count: Option<i32>,
    /// A machine on each of these Hosts, 1 to 500, whatever the set selects.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("minItems" = 1))]
    #[x_kube(merge_strategy = ListMerge::Set)]
    pub hosts: Option<HostNames>,
    /// Which Hosts may be taken, beside what the set selects: a Host must suit both. Default: what the set selects.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host_selector: Option<HostSelector>,
    /// After how many seconds since it was made it is answered with what is Ready by then, 1 to 604800. Machines that
    /// are not are given back. Default 3600.
    #[serde(default = "default_deadline")]
    #[schemars(range(min = 1, max = 604_800))]
    pub deadline_seconds: i32,
    /// What the platform calls it, at most 128 characters: it is found by the field selector `spec.requestID`, is in
    /// the Events, and its Machines have it as annotation `clusterwright.dev/request-id`. Default: none.
    #[serde(default, rename = "requestID", skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 128), regex(pattern = r"^[A-Za-z0-9]([-A-Za-z0-9_.:/]*[A-Za-z0-9])?$"))]
    pub request_id: Option<String>,
    /// True: it is answered at once with what is Ready, as if its deadline were over. It cannot be taken back, nor set
    /// once the request is answered. Default false.
    #[serde(default)]
    pub cancel: bool,
    /// What becomes of its Machines when it is deleted. Default `Return`.
    #[serde(default)]
    pub on_delete: OnDelete,
}

impl MachineRequestSpec {
    /// How many machines are requested.
    pub fn wanted(&self) -> usize {
        let named = self.hosts.as_ref().map(|hosts| hosts.len());
        let count = self.count.and_then(|count| usize::try_from(count).ok());
        named.or(count).unwrap_or_default()
    }
}

fn default_deadline() -> i32 {
    3600
}

/// What becomes of the Machines of a request that is deleted.
#[derive(Serialize, Deserialize, Clone, Copy, Debug, Default, PartialEq, Eq, JsonSchema)]
pub enum OnDelete {
    /// They are deleted, drained and cleaned as any Machine; the request goes once they have gone.
    #[default]
    Return,
    /// Those that it delivered stay in their set, which takes them over once its `replicas` is raised; others are given
    /// back.
    Keep,
}

/// How a request was answered.
#[derive(Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq, JsonSchema)]
pub enum RequestAnswer {
    /// All its machines became Ready.
    Fulfilled,
    /// Some did; the others were given back.
    PartiallyFulfilled,
    /// None did; all were given back.
    Failed,
}

/// Where a machine of a request is.
#[derive(Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq, JsonSchema)]
pub enum RequestedMachineState {
    /// On its way to its cluster.
    Pending,
    /// Ready.
    Ready,
    /// It was Ready, and is not now.
    NotReady,
    /// It was Ready once, and is being removed.
    Leaving,
    /// It was Ready once, and is gone.
    Gone,
    /// It was not Ready when the request was answered, and was given back.
    GivenBack,
}

/// What became of a machine of a request.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq, Eq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RequestedMachine {
    /// The Machine's name.
    #[schemars(length(max = 63))]
    pub name: String,
    /// Its Host, and the name of its Node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253))]
    pub host: Option<String>,
    /// Where it is.
    pub state: RequestedMachineState,
    /// Why: the reason of the Machine's condition `Ready`, as it is now, or was when the Machine was given back.
    #[schemars(length(max = 64))]
    pub reason: String,
    /// The sentence to that.
    #[schemars(length(max = 1024))]
    pub message: String,
    /// When it was first seen Ready: since then it counts as delivered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delivered_at: Option<Time>,
}

/// What became of a request.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MachineRequestStatus {
    /// The `metadata.generation` that this status speaks of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// One sentence: what it waits for, or how it was answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 1024))]
    pub message: Option<String>,
    /// Machines that are Ready, of those requested: `2/3`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 16))]
    pub summary: Option<String>,
    /// When it is answered at the latest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<Time>,
    /// When it was answered; from then on no Machine is made for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answered_at: Option<Time>,
    /// How it was answered. It stays, whatever becomes of the Machines later.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<RequestAnswer>,
    /// Its Machines, those that were given back among them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 1000), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub machines: Vec<RequestedMachine>,
    /// `Ready`, `Fulfilled`; `PartiallyFulfilled` or `Failed` once it was answered so, `Deleting`, `Reconciling` or
    /// `Stalled` only while it is so.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Vec<Condition>,
}
