//! Labels, annotations and taints that Nodes are given: which keys are an owner's to choose.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// CEL: every key is a label's.
pub(crate) const LABEL_KEYS_RULE: &str = "self.all(k, size(k) <= 317 && k.matches('^([a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$'))";
pub(crate) const LABEL_KEYS_MESSAGE: &str = "a label's key is [prefix/]name: at most 63 characters of A-Za-z0-9-_. for the name, a DNS subdomain for the prefix";
/// CEL: no key is one of Kubernetes' own, but for those that administrators are meant to set.
pub(crate) const RESERVED_LABELS_RULE: &str = "self.all(k, !k.matches('^([a-z0-9.-]+[.])?(kubernetes|k8s)[.]io/') || k.matches('^(kubelet|node|node-restriction|node-role|topology)[.]kubernetes[.]io/'))";
pub(crate) const RESERVED_LABELS_MESSAGE: &str = "labels below kubernetes.io and k8s.io are reserved for Kubernetes, but for those of kubelet, node, node-restriction, node-role and topology.kubernetes.io: use a prefix of your own";
/// CEL: no key is one that a component sets by itself.
pub(crate) const OWNED_LABELS_RULE: &str = "!['kubernetes.io/hostname', 'kubernetes.io/os', 'kubernetes.io/arch', 'beta.kubernetes.io/os', 'beta.kubernetes.io/arch', 'node.kubernetes.io/windows-build', 'node-role.kubernetes.io/control-plane', 'node-role.kubernetes.io/master', 'node-role.kubernetes.io/worker'].exists(k, k in self)";
pub(crate) const OWNED_LABELS_MESSAGE: &str = "the kubelet sets kubernetes.io/hostname, kubernetes.io/os, kubernetes.io/arch, their beta forms and node.kubernetes.io/windows-build by itself; node-role.kubernetes.io/control-plane, master and worker follow from the machine's role: leave them out";

/// CEL: every key is an annotation's.
pub(crate) const ANNOTATION_KEYS_RULE: &str = LABEL_KEYS_RULE;
pub(crate) const ANNOTATION_KEYS_MESSAGE: &str = "an annotation's key is [prefix/]name: at most 63 characters of A-Za-z0-9-_. for the name, a DNS subdomain for the prefix";
/// CEL: no key is one that a component sets by itself.
pub(crate) const OWNED_ANNOTATIONS_RULE: &str = "self.all(k, !k.startsWith('clusterwright.dev/')) && !['alpha.kubernetes.io/provided-node-ip', 'csi.volume.kubernetes.io/nodeid', 'kubeadm.alpha.kubernetes.io/cri-socket', 'kubectl.kubernetes.io/last-applied-configuration', 'node.alpha.kubernetes.io/ttl', 'volumes.kubernetes.io/controller-managed-attach-detach'].exists(k, k in self)";
pub(crate) const OWNED_ANNOTATIONS_MESSAGE: &str = "the kubelet, kubeadm, kubectl and the controller manager set alpha.kubernetes.io/provided-node-ip, csi.volume.kubernetes.io/nodeid, kubeadm.alpha.kubernetes.io/cri-socket, kubectl.kubernetes.io/last-applied-configuration, node.alpha.kubernetes.io/ttl and volumes.kubernetes.io/controller-managed-attach-detach by themselves, and the operator what is below clusterwright.dev: leave them out";

/// A value of an annotation: any text of at most 512 characters.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, JsonSchema)]
#[serde(transparent)]
pub struct AnnotationValue(#[schemars(length(max = 512))] pub String);
