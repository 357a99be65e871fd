//! What the API server's Pods are given besides: volumes, mounts, and containers beside it. As part of the Pods'
//! template, a change of it rolls them; and a Pod is ready once all of its containers are.

mod refusal;
mod restricted;
mod typed;

use crds::KarmadaDeployment;
use crds::karmada_deployment::PodPart;
use serde_json::{Value, json};

use super::component::Component;
use super::confinement::confined;
pub(super) use refusal::problem;

/// Further volumes of a component's Pods.
pub(super) fn volumes(object: &KarmadaDeployment, component: Component) -> impl Iterator<Item = Value> {
    given(component, &object.spec.api_server.extra_volumes).map(Value::Object)
}

/// Further mounts of a component's own container.
pub(super) fn mounts(object: &KarmadaDeployment, component: Component) -> impl Iterator<Item = Value> {
    given(component, &object.spec.api_server.extra_volume_mounts).map(Value::Object)
}

/// Containers beside a component in its Pods, which may no more than the plane's own.
pub(super) fn containers(object: &KarmadaDeployment, component: Component) -> impl Iterator<Item = Value> {
    let policy = object.spec.images.pull_policy.as_str();
    given(component, &object.spec.api_server.sidecar_containers).map(move |mut container| {
        container.entry("imagePullPolicy").or_insert_with(|| json!(policy));
        let given = container.get("securityContext").cloned().unwrap_or_default();
        container.insert("securityContext".to_owned(), confined_by_default(&given));
        Value::Object(container)
    })
}

fn given(component: Component, parts: &[PodPart]) -> impl Iterator<Item = PodPart> {
    let parts = if component == Component::ApiServer { parts } else { &[] };
    parts.iter().cloned()
}

/// The security context of a container, with what it does not say of the plane's own.
fn confined_by_default(given: &Value) -> Value {
    let mut context = confined();
    let fields = |value: &Value| value.as_object().cloned().unwrap_or_default();
    let capabilities = given.get("capabilities").map(fields).unwrap_or_default();
    for (field, value) in fields(given).into_iter().filter(|(field, _)| field != "capabilities") {
        context[&field] = value;
    }
    for (field, value) in capabilities {
        context["capabilities"][&field] = value;
    }
    context
}
