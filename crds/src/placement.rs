//! Which Hosts a set of machines may take, and what their nodes carry.

use std::collections::BTreeMap;
use std::ops::Deref;

use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::configuration::KubeletSettings;
use crate::node_metadata::{self, AnnotationValue, LabelValue, Taint};

/// Selects Hosts by their labels.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct HostSelector {
    /// Labels that a Host must carry, all of them. Empty: every Host of the namespace.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = 32))]
    pub match_labels: BTreeMap<String, LabelValue>,
    /// Requirements of a Host's labels, all of them, beside `matchLabels`; at most 16.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    pub match_expressions: Vec<LabelRequirement>,
    /// CPUs that a Host must have at least, as its facts say, 1 to 4096. Default: any.
    #[serde(default, rename = "minCPUs", skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 4096))]
    pub min_cpus: Option<i32>,
    /// Memory in MiB that a Host must have at least, as its facts say. Default: any.
    #[serde(default, rename = "minMemoryMiB", skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1_000_000_000))]
    pub min_memory_mib: Option<i64>,
}

/// A requirement of a label, as Kubernetes' label selectors have it.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq, Eq, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("(self.operator in ['In', 'NotIn']) == (has(self.values) && size(self.values) > 0)")
    .message("values go with operator In and NotIn, at least one, and not with Exists and DoesNotExist"))]
pub struct LabelRequirement {
    /// The label's key.
    #[schemars(
        length(min = 1, max = 317),
        regex(pattern = r"^([a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$")
    )]
    pub key: String,
    /// How the label is compared with the values.
    pub operator: LabelOperator,
    /// The values of `In` and `NotIn`; at most 32.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32))]
    #[x_kube(merge_strategy = ListMerge::Set)]
    pub values: Vec<LabelValue>,
}

impl LabelRequirement {
    /// Whether a Host with these labels meets it.
    pub fn is_met(&self, labels: Option<&BTreeMap<String, String>>) -> bool {
        let value = labels.and_then(|labels| labels.get(&self.key));
        let listed = value.is_some_and(|value| self.values.iter().any(|listed| listed.0 == *value));
        match self.operator {
            LabelOperator::In => listed,
            LabelOperator::NotIn => !listed,
            LabelOperator::Exists => value.is_some(),
            LabelOperator::DoesNotExist => value.is_none(),
        }
    }
}

/// How a label is compared.
#[derive(Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq, JsonSchema)]
pub enum LabelOperator {
    /// The label is there, with one of the values.
    In,
    /// The label has none of the values, or is not there.
    NotIn,
    /// The label is there, whatever its value.
    Exists,
    /// The label is not there.
    DoesNotExist,
}

/// Names of Hosts, in the order in which they are preferred: RFC 1123 labels, at most 500.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq, JsonSchema)]
#[serde(transparent)]
pub struct HostNames(
    #[schemars(
        length(max = 500),
        inner(length(min = 1, max = 63), regex(pattern = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"))
    )]
    pub Vec<String>,
);

impl Deref for HostNames {
    type Target = [String];

    fn deref(&self) -> &[String] {
        &self.0
    }
}

/// Keys of labels over whose values machines are spread, the first first: at most 4.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq, JsonSchema)]
#[serde(transparent)]
pub struct SpreadKeys(#[schemars(length(max = 4), inner(length(min = 1, max = 317)))] pub Vec<String>);

impl SpreadKeys {
    /// Whether there is none: then nothing is spread.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl Deref for SpreadKeys {
    type Target = [String];

    fn deref(&self) -> &[String] {
        &self.0
    }
}

/// The machines of one role, as a set of workers describes them.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("!(has(self.hosts) && has(self.hostSelector))")
    .message("hosts and hostSelector exclude each other: name the Hosts, or select them by labels"))]
#[x_kube(validation = Rule::new("!has(self.replicas) || self.replicas == 0 || type(self.maxUnavailable) != int || self.maxUnavailable <= self.replicas")
    .message("maxUnavailable is more than there are replicas: give at most that count, or a percentage")
    .field_path(".maxUnavailable"))]
pub struct WorkerSet {
    /// Name of the set, unique in the cluster; its MachineSet is `<cluster>-<name>`. An RFC 1123 label of at most 20
    /// characters, not `control-plane` or `etcd`.
    #[schemars(length(min = 1, max = 20), regex(pattern = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"))]
    #[x_kube(validation = Rule::new("!(self in ['control-plane', 'etcd'])")
        .message("control-plane and etcd are the names of other sets of the cluster: choose another"))]
    pub name: String,
    /// How many machines, 0 to 5000. Absent: whoever scales the MachineSet owns the count (starts at 0).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 5000))]
    pub replicas: Option<i32>,
    /// Which Hosts may be taken: those with these labels. Absent, with `hosts` absent too: any spare Host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host_selector: Option<HostSelector>,
    /// Which Hosts may be taken, by name; at most 500.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[x_kube(merge_strategy = ListMerge::Set)]
    pub hosts: Option<HostNames>,
    /// Keys of Host labels over whose values the machines are spread, the first first, e.g. `[zone, rack]`; at most 4.
    #[serde(default, skip_serializing_if = "SpreadKeys::is_empty")]
    pub spread_by: SpreadKeys,
    /// Labels of the nodes; at most 64. Below `kubernetes.io` and `k8s.io` only those of `kubelet`, `node`,
    /// `node-restriction`, `node-role` and `topology.kubernetes.io`, and none that the kubelet sets. An edit is written
    /// to existing Nodes within seconds; keys that others put there stay (docs/operations/change.md).
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "node_metadata::labels")]
    pub labels: BTreeMap<String, LabelValue>,
    /// Annotations of the nodes; at most 32. An edit is written to existing Nodes, as with `labels`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "node_metadata::annotations")]
    pub annotations: BTreeMap<String, AnnotationValue>,
    /// Taints of the nodes; at most 32. An edit is written to existing Nodes, as with `labels`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "node_metadata::taints")]
    pub taints: Vec<Taint>,
    /// What is different on the kubelets of the set from `configuration.kubelet`, field by field.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kubelet: Option<KubeletSettings>,
    /// How many machines of the set may be out of service at once for our own doing: a count (1 to 5000) or a
    /// percentage of the set's `replicas` (1 % to 99 %), rounded down, at least 1. Default `10%`. Counted are machines
    /// under repair (restart, reboot, replacement) until they are Ready again, or out of the cluster; those that never
    /// joined and those that SSH does not reach serve nobody, and are not. A set that shrinks lets a Ready machine go
    /// only while `replicas` less this many Ready ones stay; others go at once. Control planes and etcd: always 1.
    #[serde(default = "default_max_unavailable")]
    #[schemars(extend("minimum" = 1, "maximum" = 5000, "pattern" = r"^[1-9][0-9]?%$", "nullable" = false))]
    pub max_unavailable: IntOrString,
    /// How many machines more join before those of the set are drained for an upgrade or a configuration, so that its
    /// capacity never falls below `replicas`: a count (0 to 5000) or a percentage of the set's `replicas` (1 % to 99
    /// %), rounded up. Default 0. With it, no Ready machine is drained for that unless `replicas` others are Ready,
    /// whatever `maxUnavailable` says: the rollout waits for spare Hosts, and for those machines to join. When all are
    /// brought, as many leave again. What needs no drain takes no spare Host. A set in mode `Manual` makes no machines:
    /// there, what its platform made beyond `replicas` counts.
    #[serde(default = "no_surge", skip_serializing_if = "is_no_surge")]
    #[schemars(extend("minimum" = 0, "maximum" = 5000, "pattern" = r"^[1-9][0-9]?%$", "nullable" = false))]
    pub max_surge: IntOrString,
    /// How long a machine must have been Ready to count among the MachineSet's `availableReplicas`, in seconds, 0 to
    /// 86400. Default 0.
    #[serde(default)]
    #[schemars(range(min = 0, max = 86400))]
    pub min_ready_seconds: i32,
}

/// What holds for a set of workers that does not say it.
pub fn default_max_unavailable() -> IntOrString {
    IntOrString::String("10%".into())
}

/// None, for a set of workers that does not say it.
pub fn no_surge() -> IntOrString {
    IntOrString::Int(0)
}

fn is_no_surge(surge: &IntOrString) -> bool {
    *surge == no_surge()
}

/// Plain strings of a map of label values.
pub fn plain(labels: &BTreeMap<String, LabelValue>) -> BTreeMap<String, String> {
    labels.iter().map(|(key, value)| (key.clone(), value.0.clone())).collect()
}
