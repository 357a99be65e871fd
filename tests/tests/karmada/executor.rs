//! What the executor does for a plane that begins with a backup, done by hand: the storage is there and said to be
//! reached, and the keys are where they are fetched to.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use crds::KarmadaDeployment;
use crds::backup::{FetchedBackup, FetchedPlane, KeysFetched, SNAPSHOT_KEY};
use crds::names::{fetched_keys_secret, label};
use k8s_openapi::ByteString;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{Pod, Secret, ServiceAccount};
use kube::api::{Api, ApiResource, DynamicObject, ListParams, Patch, PatchParams, PostParams};
use kube::core::GroupVersionKind;
use kube::{Client, ResourceExt};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::time::sleep;

const LOCATION: &str = "_karmada/k1/u/1";
const DEADLINE: Duration = Duration::from_secs(60);

fn typed<K: DeserializeOwned>(value: Value) -> Result<K> {
    Ok(serde_json::from_value(value)?)
}

/// How a spec names the backup in the storage of [`store`].
pub fn restore_from() -> Value {
    let stored = json!({"storageRef": {"name": "bucket"}, "location": LOCATION});
    json!({"source": {"stored": stored}, "identityRef": {"name": "age"}})
}

/// The storage, and what the spec refers to. Nobody reaches it.
pub async fn store(client: &Client) -> Result<()> {
    let secrets: Api<Secret> = Api::namespaced(client.clone(), "fleet");
    for (name, data) in [
        ("s3", json!({"accessKeyID": "id", "secretAccessKey": "key"})),
        ("age", json!({"identity": "AGE-SECRET-KEY-1"})),
    ] {
        let secret = json!({"metadata": {"name": name}, "stringData": data});
        secrets.create(&PostParams::default(), &typed(secret)?).await?;
    }
    let kind = GroupVersionKind::gvk("clusterwright.dev", "v1alpha1", "BackupStorage");
    let storages: Api<DynamicObject> = Api::namespaced_with(client.clone(), "fleet", &ApiResource::from_gvk(&kind));
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

/// Waits for the Job that fetches the keys of a plane; it has written these, and says which backup it was.
pub async fn fetch_keys(
    client: &Client,
    plane: &str,
    former: &KarmadaDeployment,
    mut keys: BTreeMap<String, ByteString>,
) -> Result<()> {
    let job = job(client).await?;
    keys.insert(SNAPSHOT_KEY.to_owned(), ByteString(vec![7; 16]));
    let secrets: Api<Secret> = Api::namespaced(client.clone(), "fleet");
    let patch = json!({"data": keys});
    secrets.patch(&fetched_keys_secret(plane), &PatchParams::default(), &Patch::Merge(&patch)).await?;
    let fetched = FetchedPlane {
        name: former.name_any(),
        uid: former.uid().context("no UID")?,
        version: former.status.as_ref().and_then(|status| status.version.clone()),
        endpoint: former.status.as_ref().and_then(|status| status.endpoint.clone()),
    };
    let fetched = FetchedBackup {
        backup: "nightly".into(),
        cluster: String::new(),
        cluster_uid: String::new(),
        plane: Some(fetched),
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
    ends(client, (&job, plane), &KeysFetched { backup: Some(fetched), ..KeysFetched::default() }).await
}

async fn job(client: &Client) -> Result<Job> {
    let jobs: Api<Job> = Api::namespaced(client.clone(), "fleet");
    let until = Instant::now() + DEADLINE;
    loop {
        let listed = jobs.list(&ListParams::default().labels(label::RESTORE_FROM)).await?;
        if let Some(job) = listed.items.into_iter().next() {
            return Ok(job);
        }
        ensure!(Instant::now() < until, "no Job fetches the keys");
        sleep(Duration::from_millis(100)).await;
    }
}

/// Its Pod ends with this message.
async fn ends(client: &Client, (job, plane): (&Job, &str), said: &KeysFetched) -> Result<()> {
    let accounts: Api<ServiceAccount> = Api::namespaced(client.clone(), "fleet");
    // Whoever makes them where controllers run may have made it.
    let _ = accounts.create(&PostParams::default(), &typed(json!({"metadata": {"name": "default"}}))?).await;
    let pods: Api<Pod> = Api::namespaced(client.clone(), "fleet");
    let owner = json!({
        "apiVersion": "batch/v1", "kind": "Job", "name": job.name_any(), "uid": job.uid(), "controller": true,
    });
    let pod = json!({
        "metadata": {"name": "fetched", "labels": {label::RESTORE_FROM: plane}, "ownerReferences": [owner]},
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
