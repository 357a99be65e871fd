//! Backups as a user takes them, and reads them without us: by `age`, `tar` and etcd's own programs alone.

use std::fs;
use std::io::Read;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::str::FromStr;
use std::time::Duration;

use age::x25519::Identity;
use anyhow::{Context, Result, ensure};
use crds::backup::{BUNDLE_FILE, BackupManifest, MANIFEST_FILE, SNAPSHOT_FILE};
use crds::etcd_backup::{BackupContent, BackupPhase};
use crds::{BackupStorage, Conditions, EtcdBackup};
use lab::cache::Cache;
use lab::programs::Programs;
use serde_json::{Value, json};

use crate::eventually::{Look, eventually};
use crate::scenario::Scenario;

/// Waits until a storage can be used, or cannot: the status of its condition `Reachable`, and the whole status.
pub async fn storage_is(scenario: &Scenario, name: &str, status: &str, deadline: Duration) -> Result<BackupStorage> {
    let api = scenario.api::<BackupStorage>();
    eventually(&format!("BackupStorage {name} Reachable {status}"), deadline, async || {
        let storage = api.get(name).await?;
        let found = storage.condition("Reachable").map(|found| (found.status.clone(), found.message.clone()));
        Ok(match found {
            Some((found, _)) if found == status => Look::Done(storage),
            other => Look::Waiting(format!("{other:?}")),
        })
    })
    .await
}

/// Takes a backup of a cluster under this name, and waits until it is there.
pub async fn take(
    scenario: &Scenario,
    name: &str,
    cluster: &str,
    storage: &str,
    identity: &Identity,
) -> Result<BackupContent> {
    let backup = json!({
        "apiVersion": "clusterwright.dev/v1alpha1", "kind": "EtcdBackup",
        "metadata": { "namespace": scenario.name, "name": name },
        "spec": {
            "clusterName": cluster, "storageRef": { "name": storage },
            "encryption": { "recipients": [identity.to_public().to_string()] }
        }
    });
    scenario.apply(&backup).await?;
    let api = scenario.api::<EtcdBackup>();
    let status = eventually(&format!("EtcdBackup {name}"), Duration::from_secs(180), async || {
        let status = api.get(name).await?.status.unwrap_or_default();
        Ok(match status.phase {
            Some(BackupPhase::Succeeded | BackupPhase::Failed) => Look::Done(status),
            Some(BackupPhase::Pending | BackupPhase::Running) | None => {
                Look::Waiting(format!("{:?}: {:?}", status.phase, status.message))
            }
        })
    })
    .await?;
    status.backup.with_context(|| format!("EtcdBackup {name} failed: {:?}", status.message))
}

/// Reads a backup from the directory of its storage: what it says of itself is so, and its bundle has the keys and the
/// spec. The snapshot is put into a file.
pub fn read(storage: &Path, content: &BackupContent, identity: &Identity, snapshot: &Path) -> Result<BackupManifest> {
    let directory = storage.join(&content.location);
    let of =
        |name: &str| fs::read(directory.join(name)).with_context(|| format!("{} lacks {name}", directory.display()));
    let manifest = BackupManifest::parse(&of(MANIFEST_FILE)?)?;
    let plain = age::decrypt(identity, &of(SNAPSHOT_FILE)?)?;
    ensure!(i64::try_from(plain.len())? == content.size, "{} bytes, not {}", plain.len(), content.size);
    fs::write(snapshot, &plain)?;
    let digest = sha256(snapshot)?;
    ensure!(digest == content.sha256 && digest == manifest.snapshot.plain_sha256, "the digest is {digest}");
    let bundle = age::decrypt(identity, &of(BUNDLE_FILE)?)?;
    let mut names = Vec::new();
    for entry in tar::Archive::new(bundle.as_slice()).entries()? {
        let mut entry = entry?;
        let mut text = String::new();
        entry.read_to_string(&mut text)?;
        let value: Value = serde_json::from_str(&text)?;
        names.push(entry.path()?.display().to_string());
        match names.last().map(String::as_str) {
            Some("pki.json") => ensure!(value["data"]["ca.key"].is_string(), "the bundle has no key"),
            Some("clusterdeployment.json") => ensure!(value["spec"]["kubernetesVersion"].is_string(), "no spec"),
            _ => {}
        }
    }
    names.sort_unstable();
    ensure!(names == ["clusterdeployment.json", "machinesets.json", "pki.json"], "the bundle has {names:?}");
    Ok(manifest)
}

fn sha256(file: &Path) -> Result<String> {
    let said = Command::new("sha256sum").arg(file).output()?;
    let said = String::from_utf8(said.stdout)?;
    Ok(said.split(' ').next().unwrap_or_default().to_owned())
}

/// An etcd of one member that was restored from a snapshot; it ends with this.
pub struct Drill {
    etcd: Child,
    endpoint: String,
    programs: Programs,
}

impl Drill {
    /// Restores the snapshot below `directory`, and starts etcd from it.
    pub fn start(snapshot: &Path, directory: &Path) -> Result<Self> {
        let programs = Programs::from_env(&Cache::from_env());
        let data = directory.join("restored");
        let restored = Command::new(programs.find("etcdutl")?)
            .args(["snapshot", "restore"])
            .arg(snapshot)
            .arg("--data-dir")
            .arg(&data)
            .output()?;
        ensure!(restored.status.success(), "etcdutl: {}", String::from_utf8_lossy(&restored.stderr));
        let [client, peer] = [free_port()?, free_port()?].map(|port| format!("http://127.0.0.1:{port}"));
        let etcd = Command::new(programs.find("etcd")?)
            .arg("--data-dir")
            .arg(&data)
            .args(["--listen-client-urls", &client, "--advertise-client-urls", &client])
            .args(["--listen-peer-urls", &peer, "--log-level", "error"])
            .stdin(Stdio::null())
            .spawn()
            .context("failed to start etcd")?;
        Ok(Self { etcd, endpoint: client, programs })
    }

    /// Whether a key is there; waits until etcd answers.
    pub async fn has(&self, key: &str) -> Result<bool> {
        let etcdctl = self.programs.find("etcdctl")?;
        eventually("the restored etcd answers", Duration::from_secs(20), async || {
            let mut get = tokio::process::Command::new(&etcdctl);
            let said = get.args(["--endpoints", &self.endpoint, "get", "--keys-only", key]).output().await?;
            Ok(match said.status.success() {
                true => Look::Done(String::from_utf8_lossy(&said.stdout).trim() == key),
                false => Look::Waiting(String::from_utf8_lossy(&said.stderr).into_owned()),
            })
        })
        .await
    }
}

impl Drop for Drill {
    fn drop(&mut self) {
        let _ = self.etcd.kill();
        let _ = self.etcd.wait();
    }
}

fn free_port() -> Result<u16> {
    Ok(std::net::TcpListener::bind(("127.0.0.1", 0))?.local_addr()?.port())
}

/// An identity from its text, as `age-keygen` prints it.
pub fn identity(text: &str) -> Result<Identity> {
    Identity::from_str(text).map_err(|why| anyhow::anyhow!("{why}"))
}
