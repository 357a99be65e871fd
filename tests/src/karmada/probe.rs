//! The operator's probe of a plane, and what stands in for the part of karmada-controller-manager that answers it.

use anyhow::{Context, Result};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, ApiResource, DynamicObject, Patch, PatchParams};
use kube::core::GroupVersionKind;
use kube::{Client, ResourceExt};
use serde_json::{Value, json};

/// The namespace, the template, and the policy of the template.
pub const PROBE: &str = "clusterwright-probe";
/// The ResourceBinding of the template.
const BINDING: &str = "clusterwright-probe-configmap";

/// The ResourceBindings of the plane that are beside the template.
pub fn bindings(plane: &Client) -> Api<DynamicObject> {
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk("work.karmada.io", "v1alpha2", "ResourceBinding"));
    Api::namespaced_with(plane.clone(), PROBE, &resource)
}

/// The template; none: it is not there.
pub async fn template(plane: &Client) -> Result<Option<ConfigMap>> {
    let maps: Api<ConfigMap> = Api::namespaced(plane.clone(), PROBE);
    maps.get_opt(PROBE).await.context("read the template")
}

/// What the ResourceBinding says of its template, and which members it was given; none: it is not there.
pub async fn binding(plane: &Client) -> Result<Option<(Value, Value)>> {
    let binding = bindings(plane).get_opt(BINDING).await.context("read the binding")?;
    Ok(binding.map(|found| (found.data["spec"]["resource"].clone(), found.data["spec"]["clusters"].clone())))
}

/// Brings the ResourceBinding up to date, as karmada-controller-manager would.
pub async fn answer(plane: &Client) -> Result<()> {
    let Some(template) = template(plane).await? else { return Ok(()) };
    let (uid, version) = (template.uid(), template.resource_version());
    let resource = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "namespace": PROBE, "name": PROBE, "uid": uid, "resourceVersion": version,
    });
    if binding(plane).await?.is_some_and(|(found, _)| found == resource) {
        return Ok(());
    }
    let wanted = json!({
        "apiVersion": "work.karmada.io/v1alpha2", "kind": "ResourceBinding",
        "metadata": {"name": BINDING, "namespace": PROBE}, "spec": {"resource": resource},
    });
    bindings(plane).patch(BINDING, &PatchParams::apply("karmada").force(), &Patch::Apply(&wanted)).await?;
    Ok(())
}
