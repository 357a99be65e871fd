//! What the former operator's install applies of `spec.addons` is the newer one's Addon, and nobody else's.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use crds::names::condition;
use crds::{Addon, Conditions, ObjectExt};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use serde_json::{Value, json};

use crate::eventually::{Look, eventually};
use crate::scenario::Scenario;

/// The ConfigMap with the manifests, and the one that they bring.
const NAME: &str = "welcome";
/// Who applies what an Addon brings.
const ADDONS: &str = "clusterwright-addon";

/// Lets clusters have manifests.
pub async fn wish(scenario: &Scenario, clusters: &mut [&mut Value]) -> Result<()> {
    let brings = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": NAME, "namespace": "default"},
        "data": {"text": "hello"},
    });
    let manifests = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": NAME, "namespace": scenario.name},
        "data": {"welcome.yaml": brings.to_string()},
    });
    scenario.apply(&manifests).await?;
    for cluster in clusters {
        cluster["spec"]["addons"] = json!({"manifestsRef": {"name": NAME}});
    }
    Ok(())
}

/// Waits until the Addon is Ready, and looks to whom its object belongs.
pub async fn is_an_addon(scenario: &Scenario, cluster: &str) -> Result<()> {
    let addons = scenario.api::<Addon>();
    eventually("the Addon of spec.addons is Ready", Duration::from_secs(180), async || {
        let addon = addons.get(&format!("{cluster}-addons")).await?;
        Ok(match addon.is_true(condition::READY) {
            true => Look::Done(()),
            false => Look::Waiting(addon.status.and_then(|status| status.message).unwrap_or_default()),
        })
    })
    .await?;
    let maps: Api<ConfigMap> = Api::namespaced(scenario.cluster_client(cluster).await?, "default");
    let brought = maps.get(NAME).await.context("what spec.addons brings is not there")?;
    let owners = brought.metadata.managed_fields.iter().flatten().map(|entry| entry.manager.as_deref());
    let owners: Vec<&str> = owners.map(Option::unwrap_or_default).collect();
    ensure!(owners == [ADDONS], "{} belongs to {owners:?}", brought.name());
    Ok(())
}
