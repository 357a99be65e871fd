//! The kinds that are known beside those of clients that know them themselves.

use serde_json::{Value, json};

/// Group and version, kind, plural, and whether its objects are in namespaces.
const KINDS: [(&str, &str, &str, bool); 25] = [
    ("v1", "ConfigMap", "configmaps", true),
    ("v1", "Namespace", "namespaces", false),
    ("v1", "PersistentVolumeClaim", "persistentvolumeclaims", true),
    ("v1", "Pod", "pods", true),
    ("v1", "Secret", "secrets", true),
    ("v1", "Service", "services", true),
    ("v1", "ServiceAccount", "serviceaccounts", true),
    ("apps/v1", "Deployment", "deployments", true),
    ("apps/v1", "StatefulSet", "statefulsets", true),
    ("batch/v1", "Job", "jobs", true),
    ("policy/v1", "PodDisruptionBudget", "poddisruptionbudgets", true),
    ("coordination.k8s.io/v1", "Lease", "leases", true),
    ("apiextensions.k8s.io/v1", "CustomResourceDefinition", "customresourcedefinitions", false),
    ("apiregistration.k8s.io/v1", "APIService", "apiservices", false),
    ("admissionregistration.k8s.io/v1", "MutatingWebhookConfiguration", "mutatingwebhookconfigurations", false),
    ("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", "validatingwebhookconfigurations", false),
    ("rbac.authorization.k8s.io/v1", "ClusterRole", "clusterroles", false),
    ("rbac.authorization.k8s.io/v1", "ClusterRoleBinding", "clusterrolebindings", false),
    ("rbac.authorization.k8s.io/v1", "Role", "roles", true),
    ("rbac.authorization.k8s.io/v1", "RoleBinding", "rolebindings", true),
    ("cluster.karmada.io/v1alpha1", "Cluster", "clusters", false),
    ("work.karmada.io/v1alpha1", "Work", "works", true),
    ("work.karmada.io/v1alpha2", "ResourceBinding", "resourcebindings", true),
    ("work.karmada.io/v1alpha2", "ClusterResourceBinding", "clusterresourcebindings", false),
    ("policy.karmada.io/v1alpha1", "PropagationPolicy", "propagationpolicies", true),
];

/// The answer to the question for the kinds of a group and version: `/api/v1`, `/apis/apps/v1`.
pub(super) fn kinds(path: &str) -> Option<Value> {
    let of = path.strip_prefix("/apis/").or_else(|| path.strip_prefix("/api/"))?;
    let own = KINDS.iter().filter(|(version, ..)| *version == of);
    let kinds: Vec<Value> = own
        .map(|(_, kind, plural, is_namespaced)| {
            json!({ "name": plural, "kind": kind, "namespaced": is_namespaced, "singularName": "", "verbs": ["get"] })
        })
        .collect();
    let answer = json!({ "kind": "APIResourceList", "apiVersion": "v1", "groupVersion": of, "resources": kinds });
    (!kinds.is_empty()).then_some(answer)
}
