//! Who may do what in the plane, beside Kubernetes' own roles.

use crds::KarmadaDeployment;
use serde_json::{Value, json};

use super::super::names::labels;
use super::super::place::{Stage, Wanted};

/// Karmada's objects in namespaces, by their groups: those that have a status of their own, and those that have none.
const IN_NAMESPACES: [(&str, &[&str]); 5] = [
    (
        "autoscaling.karmada.io",
        &["cronfederatedhpas", "cronfederatedhpas/status", "federatedhpas", "federatedhpas/status"],
    ),
    ("multicluster.x-k8s.io", &["serviceexports", "serviceexports/status", "serviceimports", "serviceimports/status"]),
    (
        "networking.karmada.io",
        &[
            "multiclusteringresses",
            "multiclusteringresses/status",
            "multiclusterservices",
            "multiclusterservices/status",
        ],
    ),
    ("policy.karmada.io", &["overridepolicies", "propagationpolicies"]),
    ("work.karmada.io", &["resourcebindings", "resourcebindings/status", "works", "works/status"]),
];

/// Whoever may view or edit the objects of a namespace may do so with Karmada's; the administrator reaches members
/// through the plane, which no group may by itself.
pub(super) fn roles(object: &KarmadaDeployment) -> Vec<Wanted> {
    let proxy = json!([{ "apiGroups": ["cluster.karmada.io"], "resources": ["clusters/proxy"], "verbs": ["*"] }]);
    let binding = json!({
        "apiVersion": API, "kind": "ClusterRoleBinding",
        "metadata": { "name": "cluster-proxy-admin", "labels": labels(object) },
        "roleRef": { "apiGroup": GROUP, "kind": "ClusterRole", "name": "cluster-proxy-admin" },
        "subjects": [{ "apiGroup": GROUP, "kind": "User", "name": "system:admin" }],
    });
    let roles = [
        role(object, "karmada-view", Some("view"), rules(&["get", "list", "watch"])),
        role(object, "karmada-edit", Some("edit"), rules(&["create", "delete", "deletecollection", "patch", "update"])),
        role(object, "cluster-proxy-admin", None, proxy),
        binding,
    ];
    roles.map(|manifest| Wanted::in_plane(Stage::Access, manifest)).into()
}

const GROUP: &str = "rbac.authorization.k8s.io";
const API: &str = "rbac.authorization.k8s.io/v1";

fn rules(verbs: &[&str]) -> Value {
    IN_NAMESPACES
        .map(|(group, resources)| json!({ "apiGroups": [group], "resources": resources, "verbs": verbs }))
        .into()
}

fn role(object: &KarmadaDeployment, name: &str, part_of: Option<&str>, rules: Value) -> Value {
    let mut labels = labels(object);
    if let Some(part_of) = part_of {
        labels[format!("{GROUP}/aggregate-to-{part_of}")] = json!("true");
    }
    json!({
        "apiVersion": API, "kind": "ClusterRole",
        "metadata": { "name": name, "labels": labels },
        "rules": rules,
    })
}
