//! A plane begins with the snapshot of another one, as far as that goes without Karmada's programs: etcd, its API
//! server and `etcdutl` are real, and run as the operator says. What the executor would have done is done by hand: the
//! snapshot is there, and so are the keys.

use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use crds::backup::{FetchedBackup, FetchedPlane, KeysFetched, SNAPSHOT_KEY};
use crds::karmada_deployment::KarmadaRestoredFrom;
use crds::names::label;
use crds::{Cluster, KarmadaDeployment};
use jiff::Timestamp;
use k8s_openapi::ByteString;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{ConfigMap, Pod, Secret, ServiceAccount};
use kube::ResourceExt;
use kube::api::{Api, ApiResource, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams};
use kube::core::GroupVersionKind;
use serde_json::{Value, json};

use crate::{NAMESPACE, World, rights};

/// Somebody who may do everything in the plane, and is no administrator of it.
const AGENT: &str = "system:karmada:agent:m1";
const LOCATION: &str = "_karmada/k1/u/1";
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

/// The storage, and what the spec refers to. Nobody reaches it.
async fn store(world: &World) -> Result<()> {
    let secrets: Api<Secret> = Api::namespaced(world.client.clone(), "fleet");
    for (name, data) in [
        ("s3", json!({"accessKeyID": "id", "secretAccessKey": "key"})),
        ("age", json!({"identity": "AGE-SECRET-KEY-1"})),
    ] {
        let secret = json!({"metadata": {"name": name}, "stringData": data});
        secrets.create(&PostParams::default(), &typed(secret)?).await?;
    }
    let kind = GroupVersionKind::gvk("clusterwright.dev", "v1alpha1", "BackupStorage");
    let storages: Api<DynamicObject> =
        Api::namespaced_with(world.client.clone(), "fleet", &ApiResource::from_gvk(&kind));
    let s3 = json!({"endpoint": "https://s3.example.com", "bucket": "planes", "region": "r", "credentialsRef": {"name": "s3"}});
    let storage = json!({
        "apiVersion": "clusterwright.dev/v1alpha1", "kind": "BackupStorage", "metadata": {"name": "bucket"}, "spec": {"s3": s3},
    });
    storages.create(&PostParams::default(), &typed(storage)?).await?;
    let now = "2026-11-28T00:00:00Z";
    let reachable =
        json!({"type": "Reachable", "status": "True", "reason": "Answers", "message": "", "lastTransitionTime": now});
    let status = json!({"status": {"conditions": [reachable]}});
    storages.patch_status("bucket", &PatchParams::default(), &Patch::Merge(&status)).await?;
    Ok(())
}

/// The former plane goes, and its place is another one's, which begins with its backup.
async fn make_anew(world: &World, spec: &Value) -> Result<()> {
    world.planes().delete("k1", &DeleteParams::default()).await?;
    world.until("gone", async |world| Ok(world.planes().get_opt("k1").await?.is_none())).await?;
    world.programs.forget()?;
    let mut spec = spec.clone();
    spec["restoreFrom"] = json!({
        "source": {"stored": {"storageRef": {"name": "bucket"}, "location": LOCATION}}, "identityRef": {"name": "age"},
    });
    let plane = json!({
        "apiVersion": "clusterwright.dev/v1alpha1", "kind": "KarmadaDeployment", "metadata": {"name": "k1"}, "spec": spec,
    });
    world.planes().create(&PostParams::default(), &typed::<KarmadaDeployment>(plane)?).await?;
    Ok(())
}

/// The Job that fetches keys has written these, and says which backup it was.
async fn fetch(world: &World, former: &KarmadaDeployment, mut keys: BTreeMap<String, ByteString>) -> Result<()> {
    let jobs: Api<Job> = Api::namespaced(world.client.clone(), "fleet");
    let listed = async || anyhow::Ok(jobs.list(&ListParams::default().labels(label::RESTORE_FROM)).await?.items);
    world.until("fetching", async |_| Ok(!listed().await?.is_empty())).await?;
    let job = listed().await?.pop().context("no Job")?;
    keys.insert(SNAPSHOT_KEY.to_owned(), ByteString(vec![7; 16]));
    let secrets: Api<Secret> = Api::namespaced(world.client.clone(), "fleet");
    let patch = json!({"data": keys});
    secrets.patch("k1-fetched-keys", &PatchParams::default(), &Patch::Merge(&patch)).await?;
    let plane = FetchedPlane {
        name: "k1".into(),
        uid: former.uid().context("no UID")?,
        version: former.status.as_ref().and_then(|status| status.version.clone()),
        endpoint: former.status.as_ref().and_then(|status| status.endpoint.clone()),
    };
    let fetched = FetchedBackup {
        backup: "nightly".into(),
        cluster: String::new(),
        cluster_uid: String::new(),
        plane: Some(plane),
        location: LOCATION.into(),
        taken_at: typed(json!("2026-11-27T03:00:00Z"))?,
        revision: 77,
        size: 9,
        sha256: "a0".into(),
        etcd_version: "3.6.0".into(),
        kubernetes_version: None,
        pod_cidr: String::new(),
        service_cidr: String::new(),
        dns_domain: "cluster.local".into(),
    };
    ends(world, &job, &KeysFetched { backup: Some(fetched), ..KeysFetched::default() }).await
}

/// Its Pod ends with this message.
async fn ends(world: &World, job: &Job, said: &KeysFetched) -> Result<()> {
    let accounts: Api<ServiceAccount> = Api::namespaced(world.client.clone(), "fleet");
    // Whoever makes them where controllers run may have made it.
    let _ = accounts.create(&PostParams::default(), &typed(json!({"metadata": {"name": "default"}}))?).await;
    let pods: Api<Pod> = Api::namespaced(world.client.clone(), "fleet");
    let owner = json!({
        "apiVersion": "batch/v1", "kind": "Job", "name": job.name_any(), "uid": job.uid(), "controller": true,
    });
    let pod = json!({
        "metadata": {"name": "fetched", "labels": {label::RESTORE_FROM: "k1"}, "ownerReferences": [owner]},
        "spec": {"automountServiceAccountToken": false, "containers": [{"name": "executor", "image": "x"}]},
    });
    pods.create(&PostParams::default(), &typed(pod)?).await?;
    let state = json!({"terminated": {"exitCode": 0, "message": serde_json::to_string(said)?}});
    let status = json!({
        "name": "executor", "image": "x", "imageID": "", "ready": false, "restartCount": 0, "state": state,
    });
    let patch = json!({"status": {"phase": "Succeeded", "containerStatuses": [status]}});
    pods.patch_status("fetched", &PatchParams::default(), &Patch::Merge(&patch)).await?;
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
    rights::bind(&world.client).await?;
    let since = Timestamp::now();
    world.until("ready", World::is_ready).await?;
    fill(&world).await?;
    let (uid, version) = identity(&world).await?;
    ensure!(asks(&world).await? == 200, "the agent may read");
    world.programs.snapshot()?;
    let former = world.planes().get("k1").await?;
    let secrets: Api<Secret> = Api::namespaced(world.client.clone(), "fleet");
    let keys = secrets.get("k1-pki").await?.data.context("no keys")?;

    store(&world).await?;
    make_anew(&world, &serde_json::to_value(&former.spec)?).await?;
    // With the former one its Cluster and its Secrets go, once somebody collects garbage.
    let clusters: Api<Cluster> = Api::namespaced(world.client.clone(), "fleet");
    clusters.delete("k1", &DeleteParams::default()).await?;
    for name in ["k1-pki", "k1-certificates", "k1-kubeconfig"] {
        secrets.delete(name, &DeleteParams::default()).await?;
    }
    fetch(&world, &former, keys).await?;
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
    let command = message.split_once("kubectl ").and_then(|(_, rest)| rest.split_once(". What would become"));
    let (command, _) = command.with_context(|| format!("no command: {message}"))?;
    world.server.kubectl(&command.split(' ').collect::<Vec<_>>())?;
    world.until("restored", async |world| Ok(record(world).await?.is_some_and(|record| record.step.is_none()))).await?;
    world.until("ready again", World::is_ready).await?;
    ensure!(identity(&world).await?.0 == uid && asks(&world).await? == 200, "it is not as it was");
    let order = acting(&world).await?;
    ensure!(order.len() == 4, "{order:?}");
    rights::of_restores_are_used(&world, since)
}
