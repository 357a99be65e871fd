//! Labels, annotations and taints that Nodes are given: which keys are an owner's to choose.

use std::collections::BTreeMap;

use kube::KubeSchema;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};
use serde_json::json;

/// CEL: every key is a label's.
pub(crate) const LABEL_KEYS_RULE: &str = "self.all(k, size(k) <= 317 && k.matches('^([a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$'))";
pub(crate) const LABEL_KEYS_MESSAGE: &str = "a label's key is [prefix/]name: at most 63 characters of A-Za-z0-9-_. for the name, a DNS subdomain for the prefix";
/// CEL: no key is one of Kubernetes' own, but for those that administrators are meant to set.
const RESERVED_LABELS_RULE: &str = "self.all(k, !k.matches('^([a-z0-9.-]+[.])?(kubernetes|k8s)[.]io/') || k.matches('^(kubelet|node|node-restriction|node-role|topology)[.]kubernetes[.]io/'))";
const RESERVED_LABELS_MESSAGE: &str = "labels below kubernetes.io and k8s.io are reserved for Kubernetes, but for those of kubelet, node, node-restriction, node-role and topology.kubernetes.io: use a prefix of your own";
/// CEL: no key is one that a component sets by itself.
const OWNED_LABELS_RULE: &str = "!['kubernetes.io/hostname', 'kubernetes.io/os', 'kubernetes.io/arch', 'beta.kubernetes.io/os', 'beta.kubernetes.io/arch', 'node.kubernetes.io/windows-build', 'node-role.kubernetes.io/control-plane', 'node-role.kubernetes.io/master', 'node-role.kubernetes.io/worker'].exists(k, k in self)";
const OWNED_LABELS_MESSAGE: &str = "the kubelet sets kubernetes.io/hostname, kubernetes.io/os, kubernetes.io/arch, their beta forms and node.kubernetes.io/windows-build by itself; node-role.kubernetes.io/control-plane, master and worker follow from the machine's role: leave them out";

/// CEL: every key is an annotation's.
pub(crate) const ANNOTATION_KEYS_RULE: &str = LABEL_KEYS_RULE;
pub(crate) const ANNOTATION_KEYS_MESSAGE: &str = "an annotation's key is [prefix/]name: at most 63 characters of A-Za-z0-9-_. for the name, a DNS subdomain for the prefix";
/// CEL: no key is one that a component sets by itself.
const OWNED_ANNOTATIONS_RULE: &str = "self.all(k, !k.startsWith('clusterwright.dev/')) && !['alpha.kubernetes.io/provided-node-ip', 'csi.volume.kubernetes.io/nodeid', 'kubeadm.alpha.kubernetes.io/cri-socket', 'kubectl.kubernetes.io/last-applied-configuration', 'node.alpha.kubernetes.io/ttl', 'volumes.kubernetes.io/controller-managed-attach-detach'].exists(k, k in self)";
const OWNED_ANNOTATIONS_MESSAGE: &str = "the kubelet, kubeadm, kubectl and the controller manager set alpha.kubernetes.io/provided-node-ip, csi.volume.kubernetes.io/nodeid, kubeadm.alpha.kubernetes.io/cri-socket, kubectl.kubernetes.io/last-applied-configuration, node.alpha.kubernetes.io/ttl and volumes.kubernetes.io/controller-managed-attach-detach by themselves, and the operator what is below clusterwright.dev: leave them out";

/// A value of a label: at most 63 characters of `A-Za-z0-9-_.`, or empty.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, JsonSchema)]
#[serde(transparent)]
pub struct LabelValue(
    #[schemars(length(max = 63), regex(pattern = r"^([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?$"))] pub String,
);

/// A value of an annotation: any text of at most 512 characters.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, JsonSchema)]
#[serde(transparent)]
pub struct AnnotationValue(#[schemars(length(max = 512))] pub String);

/// What a taint does to Pods that do not tolerate it.
#[derive(Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, JsonSchema)]
pub enum TaintEffect {
    /// New Pods are not scheduled here.
    NoSchedule,
    /// New Pods are scheduled here only when nothing else fits.
    PreferNoSchedule,
    /// Pods are also evicted.
    NoExecute,
}

/// A taint of the nodes of a set.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct Taint {
    /// The taint's key, e.g. `dedicated` or `example.com/gpu`; not below `kubernetes.io` or `k8s.io`.
    #[schemars(
        length(min = 1, max = 317),
        regex(pattern = r"^([a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$")
    )]
    #[x_kube(validation = Rule::new("!self.matches('^([a-z0-9.-]+[.])?(kubernetes|k8s)[.]io/')")
        .message("taints below kubernetes.io and k8s.io are reserved for Kubernetes: use a prefix of your own"))]
    pub key: String,
    /// The taint's value; absent: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<LabelValue>,
    /// What it does.
    pub effect: TaintEffect,
}

/// The schema of Nodes' labels: at most 64.
pub(crate) fn labels(generator: &mut SchemaGenerator) -> Schema {
    let rules = [
        (LABEL_KEYS_RULE, LABEL_KEYS_MESSAGE),
        (RESERVED_LABELS_RULE, RESERVED_LABELS_MESSAGE),
        (OWNED_LABELS_RULE, OWNED_LABELS_MESSAGE),
    ];
    map::<LabelValue>(generator, 64, &rules)
}

/// The schema of Nodes' annotations: at most 32.
pub(crate) fn annotations(generator: &mut SchemaGenerator) -> Schema {
    let rules = [(ANNOTATION_KEYS_RULE, ANNOTATION_KEYS_MESSAGE), (OWNED_ANNOTATIONS_RULE, OWNED_ANNOTATIONS_MESSAGE)];
    map::<AnnotationValue>(generator, 32, &rules)
}

/// The schema of Nodes' taints: at most 32, one of a key and an effect.
pub(crate) fn taints(generator: &mut SchemaGenerator) -> Schema {
    let mut schema = <Vec<Taint>>::json_schema(generator);
    schema.insert("maxItems".to_owned(), json!(32));
    schema.insert("x-kubernetes-list-type".to_owned(), json!("map"));
    schema.insert("x-kubernetes-list-map-keys".to_owned(), json!(["key", "effect"]));
    schema
}

fn map<V: JsonSchema>(generator: &mut SchemaGenerator, at_most: usize, rules: &[(&str, &str)]) -> Schema {
    let mut schema = <BTreeMap<String, V>>::json_schema(generator);
    let rules: Vec<_> = rules.iter().map(|(rule, message)| json!({"message": message, "rule": rule})).collect();
    schema.insert("maxProperties".to_owned(), json!(at_most));
    schema.insert("x-kubernetes-validations".to_owned(), json!(rules));
    schema
}
