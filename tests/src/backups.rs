//! Backups as a user takes them, and reads them without us: by `age`, `tar` and etcd's own programs alone.

use std::fs;
use std::io::Read;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::str::FromStr;
use std::time::Duration;

use age::secrecy::ExposeSecret;
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
    take_of(scenario, name, json!({ "clusterName": cluster }), storage, identity).await
}

/// The same for one that is restored, to verify it, into an etcd of its own: waits until it is there, and says what was
/// seen once it is verified. The Secret with the identity has its name.
pub async fn take_and_verify(
    scenario: &Scenario,
    name: &str,
    cluster: &str,
    storage: &str,
    identity: &Identity,
) -> Result<BackupContent> {
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": { "namespace": scenario.name, "name": name },
        "stringData": { "identity": identity.to_string().expose_secret() }
    });
    scenario.apply(&secret).await?;
    let verify = json!({ "how": "Restore", "identityRef": { "name": name } });
    let spec = json!({ "clusterName": cluster, "verify": verify });
    let content = take_of(scenario, name, spec, storage, identity).await?;
    let verified = verified(scenario, name, Duration::from_secs(240)).await?;
    scenario.say(&format!("EtcdBackup {name}: {verified}"));
    Ok(content)
}

/// Waits until an EtcdBackup is verified, and returns what was seen; an error where it was found damaged.
pub async fn verified(scenario: &Scenario, name: &str, deadline: Duration) -> Result<String> {
    let api = scenario.api::<EtcdBackup>();
    eventually(&format!("EtcdBackup {name} Verified"), deadline, async || {
        let backup = api.get(name).await?;
        let found = backup.condition("Verified");
        let found = found.map(|found| (found.status.clone(), found.reason.clone(), found.message.clone()));
        Ok(match found {
            Some((status, _, message)) if status == "True" => Look::Done(message),
            Some((_, reason, message)) if reason == "VerificationFailed" => {
                anyhow::bail!("{name} is damaged: {message}")
            }
            other => Look::Waiting(format!("{other:?}")),
        })
    })
    .await
}

/// Takes a backup of what these fields of its spec say, and waits until it is there.
pub async fn take_of(
    scenario: &Scenario,
    name: &str,
    mut spec: Value,
    storage: &str,
    identity: &Identity,
) -> Result<BackupContent> {
    spec["storageRef"] = json!({ "name": storage });
    spec["encryption"] = json!({ "recipients": [identity.to_public().to_string()] });
    let backup = json!({
        "apiVersion": "clusterwright.dev/v1alpha1", "kind": "EtcdBackup",
        "metadata": { "namespace": scenario.name, "name": name }, "spec": spec,
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

/// What the bundle of a cluster's backup has.
pub const OF_CLUSTER: &[&str] = &["clusterdeployment.json", "machinesets.json", "pki.json"];
/// The same of a cluster whose etcd others run.
pub const OF_EXTERNAL: &[&str] = &["clusterdeployment.json", "machinesets.json", "members.json", "pki.json"];
/// The same of a plane on machines.
pub const OF_PLANE_ON_MACHINES: &[&str] = &["karmadadeployment.json", "pki.json"];
/// The same of a plane in Pods, whose etcd is read over the network.
pub const OF_PLANE_IN_PODS: &[&str] = &["karmadadeployment.json", "members.json", "pki.json"];
/// The same of an etcd without a cluster.
pub const OF_ETCD: &[&str] = &["etcdbackup.json", "members.json"];

/// Reads a backup from the directory of its storage: what it says of itself is so, and its bundle has the keys and the
/// spec. The snapshot is put into a file.
pub fn read(storage: &Path, content: &BackupContent, identity: &Identity, snapshot: &Path) -> Result<BackupManifest> {
    read_with(storage, content, identity, snapshot, OF_CLUSTER)
}

/// The same of a backup whose bundle has these files.
pub fn read_with(
    storage: &Path,
    content: &BackupContent,
    identity: &Identity,
    snapshot: &Path,
    files: &[&str],
) -> Result<BackupManifest> {
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
            Some("members.json") => ensure!(value[0]["peerURLs"].is_array(), "no members"),
            Some("etcdbackup.json") => ensure!(value["spec"]["etcd"]["endpoints"].is_array(), "no endpoints"),
            Some("karmadadeployment.json") => ensure!(value["spec"]["mode"].is_string(), "no spec"),
            Some("clusterdeployment.json") => ensure!(value["spec"]["kubernetesVersion"].is_string(), "no spec"),
            _ => {}
        }
    }
    names.sort_unstable();
    ensure!(names == files, "the bundle has {names:?}");
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
