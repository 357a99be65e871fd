//! What is seen of a plane whose programs are Karmada's own.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Secret;
use kube::api::{Api, ApiResource, DeleteParams, DynamicObject, ListParams, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::core::GroupVersionKind;
use kube::{Client, Config, ResourceExt};
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::client::apply;

/// What the operator made in a plane.
pub const OURS: &str = "app.kubernetes.io/managed-by=clusterwright";

/// A client of the plane of a KarmadaDeployment in the namespace `fleet`, with its administrator's kubeconfig.
pub async fn administrator(client: &Client, name: &str) -> Result<Client> {
    let text = kubeconfig(client, name).await?;
    let options = KubeConfigOptions::default();
    let config = Config::from_custom_kubeconfig(Kubeconfig::from_yaml(&text)?, &options).await?;
    Ok(Client::try_from(config)?)
}

/// The kubeconfig of its administrator.
pub async fn kubeconfig(client: &Client, name: &str) -> Result<String> {
    let secrets: Api<Secret> = Api::namespaced(client.clone(), "fleet");
    let secret = secrets.get(&format!("{name}-kubeconfig")).await?.data.context("it has no data")?;
    Ok(String::from_utf8(secret.get("kubeconfig").context("no kubeconfig")?.0.clone())?)
}

/// An API of objects in the namespace `default`.
pub fn objects(client: &Client, group: &str, version: &str, kind: &str) -> Api<DynamicObject> {
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
    Api::namespaced_with(client.clone(), "default", &resource)
}

/// The ConfigMap that policies select.
pub fn settings() -> Result<DynamicObject> {
    let settings =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings"}, "data": {"a": "b"}});
    Ok(serde_json::from_value(settings)?)
}

/// Writes an empty ConfigMap of this name into the namespace `default`.
pub async fn make_map(client: &Client, name: &str) -> Result<()> {
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "default"}});
    apply(client, &map).await.map(drop)
}

/// Whether ConfigMaps of these names are there.
pub async fn has_maps<const N: usize>(client: &Client, names: [&str; N]) -> Result<[bool; N]> {
    let maps = objects(client, "", "v1", "ConfigMap");
    let mut there = [false; N];
    for (found, name) in there.iter_mut().zip(names) {
        *found = maps.get_opt(name).await?.is_some();
    }
    Ok(there)
}

/// An API of the plane whose objects are in no namespace.
pub fn api_of(plane: &Client, group: &str, version: &str, kind: &str) -> Api<DynamicObject> {
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
    Api::all_with(plane.clone(), &resource)
}

/// Each APIService that the operator made is served, and no member is there.
pub async fn every_api_is_available(plane: &Client) -> Result<()> {
    let apis = api_of(plane, "apiregistration.k8s.io", "v1", "APIService");
    let listed = apis.list(&ListParams::default().labels(OURS)).await?;
    ensure!(listed.items.len() == 5, "{:?}", listed.iter().map(ResourceExt::name_any).collect::<Vec<_>>());
    for api in listed {
        let conditions = api.data["status"]["conditions"].as_array().cloned().unwrap_or_default();
        let is_available = conditions.iter().any(|one| one["type"] == "Available" && one["status"] == "True");
        ensure!(is_available, "{}: {conditions:?}", api.name_any());
    }
    let clusters = api_of(plane, "cluster.karmada.io", "v1alpha1", "Cluster").list(&ListParams::default()).await?;
    ensure!(clusters.items.is_empty(), "Clusters that nobody has joined");
    Ok(())
}

/// A policy of the ConfigMap `settings`.
pub fn policy(name: &str, placement: Value) -> Result<DynamicObject> {
    Ok(serde_json::from_value(json!({
        "apiVersion": "policy.karmada.io/v1alpha1", "kind": "PropagationPolicy", "metadata": {"name": name},
        "spec": {
            "resourceSelectors": [{"apiVersion": "v1", "kind": "ConfigMap", "name": "settings"}],
            "placement": placement,
        },
    }))?)
}

/// One webhook completes it; the other refuses what a schema cannot.
pub async fn policies_pass_the_webhooks(plane: &Client) -> Result<()> {
    let policies = objects(plane, "policy.karmada.io", "v1alpha1", "PropagationPolicy");
    let made = policies.create(&PostParams::default(), &policy("settings", json!({}))?).await?;
    let id = "propagationpolicy.karmada.io/permanent-id";
    ensure!(made.labels().contains_key(id), "nobody completed it: {:?}", made.labels());
    let spread = json!({"spreadConstraints": [{"spreadByField": "cluster", "maxGroups": 1, "minGroups": 2}]});
    let refused = policies.create(&PostParams::default(), &policy("refused", spread)?).await;
    let refused = refused.err().context("a policy with a wrong spread was admitted")?.to_string();
    ensure!(refused.contains("denied the request"), "{refused}");
    Ok(())
}

/// The ConfigMap `settings`, which a policy selects, gets a binding; it is read in the version that it is not kept in.
pub async fn bindings_are_converted(plane: &Client) -> Result<()> {
    let older = objects(plane, "work.karmada.io", "v1alpha1", "ResourceBinding");
    for _ in 0..150 {
        if let Some(binding) = older.get_opt("settings-configmap").await? {
            ensure!(binding.data["spec"]["resource"]["kind"] == "ConfigMap", "{}", binding.data);
            return Ok(());
        }
        sleep(Duration::from_millis(200)).await;
    }
    anyhow::bail!("no ResourceBinding was made")
}

/// Policies are admitted, or refused, what one selects is bound, and leaders lead: of a plane without members. Nothing
/// of it is left.
pub async fn it_does_its_work(plane: &Client) -> Result<()> {
    let policies = objects(plane, "policy.karmada.io", "v1alpha1", "PropagationPolicy");
    let maps = objects(plane, "", "v1", "ConfigMap");
    policies_pass_the_webhooks(plane).await?;
    maps.create(&PostParams::default(), &settings()?).await?;
    bindings_are_converted(plane).await?;
    leaders_renew_their_leases(plane).await?;
    for api in [policies, maps] {
        api.delete("settings", &DeleteParams::default()).await?;
    }
    Ok(())
}

/// Whoever leads renews one: the namespace and the name.
const LEASES: [(&str, &str); 4] = [
    ("kube-system", "kube-controller-manager"),
    ("karmada-system", "karmada-scheduler"),
    ("karmada-system", "karmada-controller-manager"),
    ("karmada-system", "karmada-descheduler"),
];

/// Each within 15 s.
pub async fn leaders_renew_their_leases(plane: &Client) -> Result<()> {
    let renewed = async || {
        let mut times = Vec::new();
        for (namespace, name) in LEASES {
            let lease = Api::<Lease>::namespaced(plane.clone(), namespace).get(name).await?;
            times.push((name, lease.spec.and_then(|spec| spec.renew_time).map(|time| time.0)));
        }
        anyhow::Ok(times)
    };
    let before = renewed().await?;
    sleep(Duration::from_secs(15)).await;
    for (before, after) in before.into_iter().zip(renewed().await?) {
        ensure!(before.1 < after.1, "{} was not renewed: {before:?}, {after:?}", before.0);
    }
    Ok(())
}
