//! Names and labels of what a plane consists of.

use crds::karmada_deployment::KarmadaRestoredFrom;
use crds::names::label;
use crds::{KarmadaDeployment, ObjectExt};
use serde_json::{Value, json};

use super::component::Component;

/// The namespace of the plane in which Karmada's programs look for what is theirs.
pub const PLANE_NAMESPACE: &str = "karmada-system";
/// The namespace of the plane with what belongs to its members.
pub const MEMBERS_NAMESPACE: &str = "karmada-cluster";
/// The name of what the plane proves by that it propagates: of a namespace of the plane, and of the template and the
/// policy in it.
pub const PROBE: &str = "clusterwright-probe";

/// Name of what a component consists of on the host: `<plane>-scheduler`.
pub fn component_name(object: &KarmadaDeployment, component: Component) -> String {
    prefixed(object, component.suffix())
}

/// What the names of estimators' Services begin with, and those of their other objects: `<prefix>-<member>`, as the
/// scheduler builds it. On machines the Services are in the plane itself, and lead to the machine that asks: a plane in
/// Pods that begins with a backup of one on machines does not look for them.
pub fn estimator_prefix(object: &KarmadaDeployment) -> String {
    match object.spec.binary {
        None => component_name(object, Component::Estimator),
        Some(_) => prefixed(object, "estimators"),
    }
}

/// Name of an object of the plane on the host: `<plane>-<suffix>`.
pub fn prefixed(object: &KarmadaDeployment, suffix: &str) -> String {
    format!("{}-{suffix}", object.name())
}

/// Name of the Service by which the API server is reached.
pub fn api_server_service(object: &KarmadaDeployment) -> String {
    component_name(object, Component::ApiServer)
}

/// Name of the Service by which members of etcd find each other.
pub fn etcd_peers(object: &KarmadaDeployment) -> String {
    prefixed(object, "etcd-peers")
}

/// DNS name of a Service in the host namespace: `k1-webhook.karmada-system.svc`.
pub fn host_name(object: &KarmadaDeployment, service: &str) -> String {
    format!("{service}.{}.svc", object.spec.host_namespace)
}

/// The same with the host cluster's domain: `k1-webhook.karmada-system.svc.cluster.local`.
pub fn full_host_name(object: &KarmadaDeployment, service: &str) -> String {
    format!("{}.{}", host_name(object, service), object.spec.host_dns_domain)
}

/// The selector of all that was made for this object: `clusterwright.dev/karmada-uid=<uid>`.
pub fn selector(object: &KarmadaDeployment) -> String {
    format!("{}={}", label::KARMADA_UID, object.uid())
}

/// Labels of all that is made for this object.
pub(super) fn labels(object: &KarmadaDeployment) -> Value {
    json!({
        "app.kubernetes.io/managed-by": "clusterwright",
        "app.kubernetes.io/part-of": "karmada",
        (label::KARMADA): object.name(),
        (label::KARMADA_UID): object.uid(),
    })
}

/// The metadata of an object of the plane in the host namespace.
pub(super) fn host_metadata(object: &KarmadaDeployment, name: &str) -> Value {
    json!({ "name": name, "namespace": object.spec.host_namespace, "labels": labels(object) })
}

/// Labels by which the Pods of a component are selected; they never change.
pub(super) fn pod_selector(object: &KarmadaDeployment, component: Component) -> Value {
    json!({ "app.kubernetes.io/name": component.name(), (label::KARMADA_UID): object.uid() })
}

/// Whether an object was made for this one.
pub(super) fn is_made_for(live: &Value, object: &KarmadaDeployment) -> bool {
    live["metadata"]["labels"][label::KARMADA_UID] == object.uid()
}

/// Whether it was made for this one, or for the plane whose backup this one began with: that is taken over, in the
/// plane and in members.
pub(super) fn is_taken_over(live: &Value, object: &KarmadaDeployment) -> bool {
    let former = object.status.as_ref().and_then(|status| status.restored_from.as_ref());
    let is_former = |record: &KarmadaRestoredFrom| live["metadata"]["labels"][label::KARMADA_UID] == *record.plane_uid;
    is_made_for(live, object) || former.is_some_and(is_former)
}
