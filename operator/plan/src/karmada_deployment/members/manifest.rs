//! What all objects of members have in common.

use crds::KarmadaDeployment;
use crds::cluster_addon::AppliedObject;
use crds::names::label;
use serde_json::{Value, json};

use super::super::names;
use super::super::place::{Hold, Manifest, object_of};
use super::action::Place;
use super::target::Target;

/// When an object of a member is applied: once all of the stages before it are as they are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// What Karmada is in the member (Push), or the agent in the plane (Pull).
    Access,
    /// What Karmada is given to be so (Push).
    Credentials,
    /// The Cluster in the plane.
    Cluster,
    /// The agent in the member (Pull).
    Agent,
    /// The estimator on the host, and what it is in the member: nothing else waits for it.
    Estimator,
}

/// An object that is wanted.
#[derive(Clone, Debug, PartialEq)]
pub struct Wanted {
    /// When it is applied.
    pub stage: Stage,
    /// Whether the plane's upgrade lets it be applied.
    pub hold: Hold,
    /// Where.
    pub place: Place,
    /// Which object.
    pub object: AppliedObject,
    /// The object as it is applied.
    pub manifest: Manifest,
}

impl Wanted {
    pub(super) fn new(stage: Stage, place: Place, manifest: Value) -> Self {
        Self { stage, hold: Hold::Free, place, object: object_of(&manifest), manifest: Manifest(manifest) }
    }

    /// The same, held.
    pub(super) fn held(self, hold: Hold) -> Self {
        Self { hold, ..self }
    }
}

/// Labels of all that is made for a member.
pub(super) fn labels(object: &KarmadaDeployment, target: &Target) -> Value {
    let mut labels = names::labels(object);
    labels[label::KARMADA_MEMBER] = json!(target.name);
    labels
}

/// The metadata of an object of a member.
pub(super) fn metadata(object: &KarmadaDeployment, target: &Target, name: &str, namespace: Option<&str>) -> Value {
    let mut metadata = json!({ "name": name, "labels": labels(object, target) });
    if let Some(namespace) = namespace {
        metadata["namespace"] = json!(namespace);
    }
    metadata
}

/// A namespace of a member. It is found there or made, and stays.
pub(super) fn namespace(object: &KarmadaDeployment, target: &Target, name: &str) -> Value {
    json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": metadata(object, target, name, None) })
}

/// A ServiceAccount, and a Secret that its token is put into and stays in.
pub(super) fn account(object: &KarmadaDeployment, target: &Target, (name, namespace): (&str, &str)) -> [Value; 2] {
    let metadata = metadata(object, target, name, Some(namespace));
    let mut token = json!({ "apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/service-account-token", "metadata": metadata });
    token["metadata"]["annotations"] = json!({ "kubernetes.io/service-account.name": name });
    [json!({ "apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata }), token]
}

/// A role over all namespaces, or over one, and whom it is bound to.
pub(super) fn role(
    object: &KarmadaDeployment,
    target: &Target,
    (name, namespace): (&str, Option<&str>),
    rules: Value,
    subject: Value,
) -> [Value; 2] {
    let kind = if namespace.is_some() { "Role" } else { "ClusterRole" };
    let role = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": kind,
        "metadata": metadata(object, target, name, namespace),
        "rules": rules,
    });
    let binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": format!("{kind}Binding"),
        "metadata": metadata(object, target, name, namespace),
        "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": name },
        "subjects": [subject],
    });
    [role, binding]
}

/// Karmada carries whatever users give it.
pub(super) fn all_rights() -> Value {
    json!([
        { "apiGroups": ["*"], "resources": ["*"], "verbs": ["*"] },
        { "nonResourceURLs": ["*"], "verbs": ["get"] },
    ])
}
