//! A cluster is backed up into a bucket and into a volume, and what is there is read without us.

use std::time::Duration;

use age::x25519::Identity;
use anyhow::{Result, ensure};
use crds::Conditions;
use e2e::backups::{self, Drill};
use e2e::client::apply;
use e2e::object_storage::ObjectStorage;
use e2e::scenario::Scenario;
use e2e::volume::Volume;
use kube::Client;
use serde_json::json;

/// A Pod is started, and asks the storage.
const STORAGE: Duration = Duration::from_secs(90);

/// Into a bucket and into a volume, from one cluster.
pub async fn holds_what_was_written_before_it_and_is_read_without_us(
    scenario: &Scenario,
    client: &Client,
    bucket: &ObjectStorage,
    identity: &Identity,
) -> Result<()> {
    for object in bucket.objects("three", "bucket") {
        scenario.apply(&object).await?;
    }
    let volume = Volume::make(scenario, "backups").await?;
    let on_volume = json!({
        "apiVersion": "clusterwright.dev/v1alpha1", "kind": "BackupStorage",
        "metadata": {"namespace": "three", "name": "volume"}, "spec": {"volume": {"claimName": "backups", "path": "etcd"}},
    });
    scenario.apply(&on_volume).await?;
    for name in ["bucket", "volume"] {
        let storage = backups::storage_is(scenario, name, "True", STORAGE).await?;
        scenario
            .say(&format!("BackupStorage {name}: {}", storage.status.and_then(|it| it.message).unwrap_or_default()));
    }
    let witness = |name: &str| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "default"}});
    apply(client, &witness("before")).await?;
    for (name, directory) in [("bucket", bucket.bucket().join("etcd")), ("volume", volume.path().join("etcd"))] {
        let backup = format!("stacked-in-{name}");
        let content = match name {
            "bucket" => backups::take_and_verify(scenario, &backup, "stacked", name, identity).await?,
            _ => backups::take(scenario, &backup, "stacked", name, identity).await?,
        };
        scenario.say(&format!("backed up into {name}: {} bytes at revision {}", content.size, content.revision));
        apply(client, &witness(&format!("after-{name}"))).await?;
        let scratch = tempfile::tempdir()?;
        let snapshot = scratch.path().join("snapshot.db");
        let manifest = backups::read(&directory, &content, identity, &snapshot)?;
        ensure!(manifest.cluster == "stacked" && manifest.keys > 100, "the manifest is {manifest:?}");
        let drill = Drill::start(&snapshot, scratch.path())?;
        ensure!(drill.has("/registry/configmaps/default/before").await?, "what was written before it is not there");
        let after = format!("/registry/configmaps/default/after-{name}");
        ensure!(!drill.has(&after).await?, "what was written after it is there");
    }
    volume.remove(scenario).await?;
    wrong_credentials_are_told(scenario, bucket).await
}

async fn wrong_credentials_are_told(scenario: &Scenario, bucket: &ObjectStorage) -> Result<()> {
    let [mut secret, _, mut storage] = bucket.objects("three", "wrong");
    secret["stringData"]["secretAccessKey"] = json!("another");
    storage["spec"]["s3"]["caRef"] = json!({"name": "bucket"});
    for object in [secret, storage] {
        scenario.apply(&object).await?;
    }
    let storage = backups::storage_is(scenario, "wrong", "False", STORAGE).await?;
    let reachable = storage.condition("Reachable").cloned().unwrap_or_else(|| unreachable!());
    scenario.say(&format!("{}: {}", reachable.reason, reachable.message));
    ensure!(reachable.reason == "StorageAccessDenied", "the reason is {}", reachable.reason);
    Ok(())
}
