//! A plane begins with the snapshot of another one, as far as that goes without Karmada's programs: etcd, its API
//! server and `etcdutl` are real, and run as the operator says. What the executor would have done is done by hand.

use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use crds::karmada_deployment::KarmadaRestoredFrom;
use crds::{Cluster, KarmadaDeployment};
use e2e::api_server::ApiServer;
use jiff::Timestamp;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::ResourceExt;
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};

use crate::{NAMESPACE, World, executor, rights};

/// Somebody who may do everything in the plane, and is no administrator of it.
const AGENT: &str = "system:karmada:agent:m1";
const BUMP: u64 = 1_000_000_000;

fn typed<K: serde::de::DeserializeOwned>(value: Value) -> Result<K> {
    Ok(serde_json::from_value(value)?)
}

/// UID and resourceVersion of an object of the plane.
async fn identity(world: &World) -> Result<(String, u64)> {
    let maps: Api<ConfigMap> = Api::default_namespaced(world.programs.plane().context("the plane does not answer")?);
    let found = maps.get("kept").await?;
    Ok((found.uid().context("no UID")?, found.resource_version().context("no version")?.parse()?))
}

/// What the agent is answered.
async fn asks(world: &World) -> Result<u16> {
    let plane = world.programs.plane().context("the plane does not answer")?;
    let request = http::Request::get("/api/v1/namespaces/default/configmaps").header("Impersonate-User", AGENT);
    match plane.request_text(request.body(Vec::new())?).await {
        Ok(_) => Ok(200),
        Err(kube::Error::Api(status)) => Ok(status.code),
        Err(error) => Err(error.into()),
    }
}

/// What the former plane has when it is backed up.
async fn fill(world: &World) -> Result<()> {
    let plane = world.programs.plane().context("the plane does not answer")?;
    let maps: Api<ConfigMap> = Api::default_namespaced(plane.clone());
    maps.create(&PostParams::default(), &typed(json!({"metadata": {"name": "kept"}, "data": {"a": "1"}}))?).await?;
    let binding = json!({
        "metadata": {"name": "agent"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": AGENT}],
    });
    let bindings: Api<k8s_openapi::api::rbac::v1::ClusterRoleBinding> = Api::all(plane);
    bindings.create(&PostParams::default(), &typed(binding)?).await?;
    Ok(())
}

/// The former plane goes, and its place is another one's, which begins with its backup.
async fn make_anew(world: &World, spec: &Value) -> Result<()> {
    world.planes().delete("k1", &DeleteParams::default()).await?;
    world.until("gone", async |world| Ok(world.planes().get_opt("k1").await?.is_none())).await?;
    world.programs.forget()?;
    let mut spec = spec.clone();
    spec["restoreFrom"] = executor::restore_from();
    let plane = json!({
        "apiVersion": "clusterwright.dev/v1alpha1", "kind": "KarmadaDeployment", "metadata": {"name": "k1"}, "spec": spec,
    });
    world.planes().create(&PostParams::default(), &typed::<KarmadaDeployment>(plane)?).await?;
    Ok(())
}

/// Runs the command of the message that asks for it.
pub fn approve(server: &ApiServer, message: &str) -> Result<()> {
    let command = message.split_once("kubectl ").and_then(|(_, rest)| rest.split_once(". What would become"));
    let (command, _) = command.with_context(|| format!("no command: {message}"))?;
    server.kubectl(&command.split(' ').collect::<Vec<_>>())?;
    Ok(())
}

async fn record(world: &World) -> Result<Option<KarmadaRestoredFrom>> {
    Ok(world.planes().get("k1").await?.status.and_then(|status| status.restored_from))
}

/// The Deployments of the plane that act by what is in it.
async fn acting(world: &World) -> Result<Vec<String>> {
    let deployments: Api<Deployment> = Api::namespaced(world.client.clone(), NAMESPACE);
    let serves = ["k1-apiserver", "k1-aggregated-apiserver", "k1-webhook"];
    let names = deployments.list(&ListParams::default()).await?.into_iter().map(|one| one.name_any());
    Ok(names.filter(|name| !serves.contains(&name.as_str())).collect())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plane_begins_with_the_snapshot_of_another_one_and_nobody_acts_or_is_let_in_before_it_is_approved()
-> Result<()> {
    let world = Arc::new(World::start().await?);
    rights::bind(&world.client, NAMESPACE).await?;
    let since = Timestamp::now();
    world.until("ready", World::is_ready).await?;
    fill(&world).await?;
    let (uid, version) = identity(&world).await?;
    ensure!(asks(&world).await? == 200, "the agent may read");
    world.programs.snapshot()?;
    let former = world.planes().get("k1").await?;
    let secrets: Api<Secret> = Api::namespaced(world.client.clone(), "fleet");
    let keys = secrets.get("k1-pki").await?.data.context("no keys")?;

    executor::store(&world.client).await?;
    make_anew(&world, &serde_json::to_value(&former.spec)?).await?;
    // With the former one its Cluster and its Secrets go, once somebody collects garbage.
    let clusters: Api<Cluster> = Api::namespaced(world.client.clone(), "fleet");
    clusters.delete("k1", &DeleteParams::default()).await?;
    for name in ["k1-pki", "k1-certificates", "k1-kubeconfig"] {
        secrets.delete(name, &DeleteParams::default()).await?;
    }
    executor::fetch_keys(&world.client, "k1", &former, keys).await?;
    let asking = async |world: &World| Ok(world.shown().await?.1.contains("clusterwright.dev/approve="));
    let said = world.until("asking", asking).await?;
    ensure!(said.iter().any(|message| message.contains("members of etcd have their data")), "{said:?}");
    let (restored, now) = identity(&world).await?;
    ensure!(restored == uid && now == version, "{restored} at {now}, and it was {uid} at {version}");
    ensure!(asks(&world).await? == 403, "somebody is let in");
    ensure!(acting(&world).await?.is_empty(), "{:?}", acting(&world).await?);
    let maps: Api<ConfigMap> = Api::default_namespaced(world.programs.plane().context("no plane")?);
    let written = maps.patch("kept", &PatchParams::default(), &Patch::Merge(&json!({"data": {"b": "2"}}))).await?;
    let raised: u64 = written.resource_version().context("no version")?.parse()?;
    ensure!(raised > version + BUMP, "{raised} is given out twice");

    let (_, message) = world.shown().await?;
    println!("{message}");
    approve(&world.server, &message)?;
    world.until("restored", async |world| Ok(record(world).await?.is_some_and(|record| record.step.is_none()))).await?;
    world.until("ready again", World::is_ready).await?;
    ensure!(identity(&world).await?.0 == uid && asks(&world).await? == 200, "it is not as it was");
    let order = acting(&world).await?;
    ensure!(order.len() == 4, "{order:?}");
    rights::of_restores_are_used(&world, since)
}
