//! A namespace is deleted by mistake, and comes back: etcd is set back to a backup on the machines that it has.

use std::fs;
use std::path::Path;
use std::time::Duration;

use age::x25519::Identity;
use anyhow::{Context, Result, ensure};
use crds::EtcdBackup;
use crds::backup::SNAPSHOT_FILE;
use crds::etcd_restore::{EtcdRestoreStatus, RestorePhase};
use e2e::backups;
use e2e::client::apply;
use e2e::eventually::{Look, eventually};
use e2e::lifecycle::whole::{healthy, list_members};
use e2e::lifecycle::writer::Writer;
use e2e::object_storage::ObjectStorage;
use e2e::restores::{self, Of};
use e2e::scenario::Scenario;
use e2e::workload;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::api::DeleteParams;
use kube::{Api, Client};
use lab::machines::Machine;
use serde_json::{Value, json};

const STACKED: Of = Of::Cluster("stacked");
const STAGED: Duration = Duration::from_secs(180);
const RESTORED: Duration = Duration::from_secs(300);

/// A namespace with a workload.
pub async fn something_is_there_to_lose(client: &Client) -> Result<()> {
    apply(client, &json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}})).await?;
    let labels = json!({"app": "till"});
    let till = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "till", "namespace": "shop"},
        "spec": {"replicas": 2, "selector": {"matchLabels": labels}, "template": {
            "metadata": {"labels": labels},
            "spec": {
                "tolerations": [{"operator": "Exists"}], "terminationGracePeriodSeconds": 0,
                "containers": [{"name": "till", "image": workload::IMAGE, "command": ["sleep", "86400"]}],
            },
        }},
    });
    apply(client, &till).await?;
    sells(client).await
}

async fn sells(client: &Client) -> Result<()> {
    let api: Api<Deployment> = Api::namespaced(client.clone(), "shop");
    eventually("Deployment shop/till is there", Duration::from_secs(120), async || {
        let ready = match api.get_opt("till").await {
            Ok(found) => found.and_then(|till| till.status?.ready_replicas),
            Err(error) => return Ok(Look::Waiting(error.to_string())),
        };
        Ok(if ready == Some(2) { Look::Done(()) } else { Look::Waiting(format!("{ready:?} of 2 Pods")) })
    })
    .await
}

/// The backup in the bucket was taken while the namespace was there.
pub async fn brings_back_what_was_deleted(
    scenario: &Scenario,
    client: &Client,
    machines: &[Machine],
    bucket: &ObjectStorage,
    identity: &Identity,
) -> Result<()> {
    let namespaces: Api<Namespace> = Api::all(client.clone());
    namespaces.delete("shop", &DeleteParams::default()).await?;
    let taken = json!({"backupRef": {"name": "stacked-in-bucket"}});
    what_is_not_the_backup_is_refused_before_anything_is_touched(scenario, bucket, &taken, identity).await?;

    restores::begin(scenario, "back", STACKED, taken, identity).await?;
    let staged = restores::reaches(scenario, "back", RestorePhase::AwaitingApproval, STAGED).await?;
    let of = staged.staged.context("nothing is staged")?;
    ensure!(of.current_revision > Some(of.revision), "what is lost is told: {of:?}");
    let writer = Writer::to(scenario, "stacked").await?;
    tokio::time::sleep(Duration::from_secs(2)).await;
    ensure!(namespaces.get_opt("shop").await?.is_none_or(|shop| shop.metadata.deletion_timestamp.is_some()));
    restores::approve(scenario, "back", restores::DO_IT).await?;
    let restored = restores::reaches(scenario, "back", RestorePhase::Succeeded, RESTORED).await?;
    what_was_there_is_backed_up(scenario, bucket, identity, &restored).await?;
    scenario.say(&format!("restored under a client: {}", writer.written().told()));
    drop(writer);

    sells(client).await?;
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), "default");
    ensure!(maps.get_opt("before").await?.is_some(), "what was written before the backup is not there");
    ensure!(maps.get_opt("after-bucket").await?.is_none(), "what was written after the backup is there");
    let new = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "new", "namespace": "default"}});
    let revision: i64 = apply(client, &new).await?.metadata.resource_version.unwrap_or_default().parse()?;
    ensure!(Some(revision) > of.current_revision, "revision {revision} was given out before");
    workload::nodes_ready(client, 3, Duration::from_secs(60)).await?;
    let members = scenario.ssh(&machines[0], &list_members()).await?;
    ensure!(members.matches("started").count() == 3, "three etcd members are started: {members}");
    healthy(scenario, "stacked").await?;
    scenario.ready("stacked", Duration::from_secs(120)).await?;

    ensure!(!restores::left(scenario, &machines[1]).await?.is_empty(), "the data of before is kept");
    restores::delete(scenario, "back").await?;
    restores::nothing_is_left(scenario, machines).await
}

/// Before the control plane was stopped: it is no worse than what the restore was approved for, and stays.
async fn what_was_there_is_backed_up(
    scenario: &Scenario,
    bucket: &ObjectStorage,
    identity: &Identity,
    restored: &EtcdRestoreStatus,
) -> Result<()> {
    let name = &restored.safety_backup.as_ref().context("no backup was made of what was there")?.name;
    ensure!(name == "back-before", "it is EtcdBackup {name}");
    let (directory, key) = (bucket.bucket().join("etcd"), "/registry/configmaps/default/after-bucket");
    let expected = (backups::OF_CLUSTER, key);
    let content = restores::what_was_there(scenario, restored, &directory, identity, expected).await?;
    let of = restored.staged.as_ref().context("nothing was staged")?;
    ensure!(Some(content.revision) >= of.current_revision, "revision {} is too early", content.revision);
    let stopped = restored.began_at.as_ref().context("it never began")?;
    ensure!(content.completed_at <= *stopped, "it was completed at {:?}, after {stopped:?}", content.completed_at);
    Ok(())
}

/// By an identity of nobody, and by a copy in which one byte is another.
async fn what_is_not_the_backup_is_refused_before_anything_is_touched(
    scenario: &Scenario,
    bucket: &ObjectStorage,
    taken: &Value,
    identity: &Identity,
) -> Result<()> {
    restores::begin(scenario, "stranger", STACKED, taken.clone(), &Identity::generate()).await?;
    restores::is_refused(scenario, "stranger", "IdentityDoesNotMatch").await?;

    let backup = scenario.api::<EtcdBackup>().get("stacked-in-bucket").await?;
    let content = backup.status.and_then(|status| status.backup).context("the backup is not there")?;
    let stored = bucket.bucket().join("etcd");
    let copy = format!("{}-copy", content.location);
    copy_of(&stored.join(&content.location), &stored.join(&copy))?;
    let source = json!({"stored": {"storageRef": {"name": "bucket"}, "location": copy}});
    restores::begin(scenario, "damaged", STACKED, source, identity).await?;
    restores::is_refused(scenario, "damaged", "BackupCorrupt").await
}

/// A backup's directory once more, with one byte of its snapshot changed.
fn copy_of(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let mut bytes = fs::read(entry.path())?;
        if entry.file_name() == SNAPSHOT_FILE {
            let middle = bytes.len() / 2;
            bytes[middle] ^= 1;
        }
        fs::write(to.join(entry.file_name()), bytes)?;
    }
    Ok(())
}
