//! Clients of a cluster: from the text of a kubeconfig, and applying any object with one.

use std::time::Duration;

use anyhow::{Context, Result, anyhow};
use kube::api::{Api, DynamicObject, Patch, PatchParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config, ResourceExt};
use serde_json::Value;

/// A client from the text of a kubeconfig.
pub async fn client_of(kubeconfig: &str) -> Result<Client> {
    let kubeconfig = Kubeconfig::from_yaml(kubeconfig)?;
    let mut config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?;
    config.connect_timeout = Some(Duration::from_secs(5));
    config.read_timeout = Some(Duration::from_secs(30));
    Ok(Client::try_from(config)?)
}

/// Applies an object server-side, with strict field validation.
pub async fn apply(client: &Client, object: &Value) -> Result<DynamicObject> {
    let object: DynamicObject = serde_json::from_value(object.clone())?;
    let types = object.types.clone().ok_or_else(|| anyhow!("the object has no kind"))?;
    let gvk = kube::core::GroupVersionKind::try_from(&types)?;
    let (resource, capabilities) = kube::discovery::oneshot::pinned_kind(client, &gvk).await?;
    let name = object.name_any();
    let api: Api<DynamicObject> = match (capabilities.scope, object.namespace()) {
        (kube::discovery::Scope::Namespaced, Some(namespace)) => {
            Api::namespaced_with(client.clone(), &namespace, &resource)
        }
        (kube::discovery::Scope::Namespaced, None) => Api::default_namespaced_with(client.clone(), &resource),
        (kube::discovery::Scope::Cluster, _) => Api::all_with(client.clone(), &resource),
    };
    let params = PatchParams::apply("e2e").force().validation_strict();
    api.patch(&name, &params, &Patch::Apply(&object))
        .await
        .with_context(|| format!("failed to apply {} {name}", gvk.kind))
}
