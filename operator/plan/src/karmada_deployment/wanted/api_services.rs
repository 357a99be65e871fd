//! APIs that the plane's API server passes on: to a Service in the plane, which names the one on the host.

use crds::KarmadaDeployment;
use serde_json::json;

use super::super::component::Component;
use super::super::machines::served_at;
use super::super::names::{PLANE_NAMESPACE, component_name, full_host_name, labels};
use super::super::place::{Stage, Wanted};

/// An API: its group, its version, and how it is sorted among others.
struct Served {
    group: &'static str,
    version: &'static str,
    priorities: (i32, i32),
}

const fn served(group: &'static str, version: &'static str, priorities: (i32, i32)) -> Served {
    Served { group, version, priorities }
}

const CLUSTER: &[Served] = &[served("cluster.karmada.io", "v1alpha1", (2000, 10))];
const SEARCH: &[Served] = &[served("search.karmada.io", "v1alpha1", (2000, 10))];
const METRICS: &[Served] = &[
    served("metrics.k8s.io", "v1beta1", (2000, 10)),
    served("custom.metrics.k8s.io", "v1beta1", (100, 200)),
    served("custom.metrics.k8s.io", "v1beta2", (100, 200)),
];

/// The APIs of a component, and the Service that they lead to.
pub(super) fn api_services(object: &KarmadaDeployment, component: Component, authority: &str) -> Vec<Wanted> {
    let (stage, served) = match component {
        Component::Search => (Stage::SearchApi, SEARCH),
        Component::MetricsAdapter => (Stage::MetricsApis, METRICS),
        _ => (Stage::ClusterApi, CLUSTER),
    };
    let (target, port) = match served_at(component).filter(|_| object.spec.binary.as_ref().is_some()) {
        Some((host, port)) => (host.to_owned(), port),
        None => (full_host_name(object, &component_name(object, component)), 443),
    };
    let service = json!({
        "apiVersion": "v1", "kind": "Service",
        "metadata": { "name": component.name(), "namespace": PLANE_NAMESPACE, "labels": labels(object) },
        "spec": { "type": "ExternalName", "externalName": target },
    });
    let api = |one: &Served| {
        json!({
            "apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService",
            "metadata": { "name": format!("{}.{}", one.version, one.group), "labels": labels(object) },
            "spec": {
                "group": one.group, "version": one.version,
                "groupPriorityMinimum": one.priorities.0, "versionPriority": one.priorities.1,
                "service": { "name": component.name(), "namespace": PLANE_NAMESPACE, "port": port },
                "caBundle": authority,
            },
        })
    };
    [service].into_iter().chain(served.iter().map(api)).map(|manifest| Wanted::in_plane(stage, manifest)).collect()
}
