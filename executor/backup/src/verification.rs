//! Verifies a backup from what is stored alone, against what was written down of it when it was taken.

use std::collections::BTreeMap;

use crds::backup::{BackupManifest, ObjectManifest, VerificationInputs};
use futures::TryStreamExt;
use serde::Deserialize;
use tokio::io::AsyncWrite;

use crate::digest::Summing;
use crate::error::BackupError;
use crate::fetch::fetch;
use crate::location::Location;
use crate::manifest::verify;
use crate::ranges::ranges;
use crate::source::Source;
use crate::store::Store;
use crate::text::sanitize;
use crate::unpack::unpack;

/// The file of a bundle with the ClusterDeployment.
const DEPLOYMENT_FILE: &str = "clusterdeployment.json";
const BACKUP_FILE: &str = "etcdbackup.json";
/// The file of a bundle with the cluster's keys.
pub(crate) const KEYS_FILE: &str = "pki.json";

/// The files of a bundle by name.
pub(crate) type Bundle = BTreeMap<String, Vec<u8>>;

/// Reads all that a backup's manifest names, as it is stored, and returns how many bytes that were. Errors: the
/// manifest is not of the backup that is wanted, or an object has another size or SHA-256 than it says
/// (`BackupCorrupt`); or those of the storage.
pub async fn verify_stored(store: &Store, wanted: &VerificationInputs) -> Result<u64, BackupError> {
    let corrupt = |problem| corrupt(store, wanted, problem);
    let manifest = verify(store, &wanted.location).await?;
    agrees(&manifest, wanted).map_err(corrupt)?;
    let location = Location::parse(&wanted.location).map_err(corrupt)?;
    for object in [&manifest.snapshot, &manifest.bundle] {
        let path = location.object(&object.name);
        let mut bytes = std::pin::pin!(ranges(store, &path, object.size));
        let mut summing = Summing::default();
        while let Some(bytes) = bytes.try_next().await? {
            summing.update(&bytes);
        }
        same(object, summing).map_err(corrupt)?;
    }
    Ok(manifest.snapshot.size + manifest.bundle.size)
}

/// Reads all that a backup's manifest names, decrypts it, and passes the snapshot on to a sink. Returns the files of
/// its bundle. Errors: as those of [`verify_stored`]; what was decrypted is not what the manifest says, or the bundle
/// is of another cluster (`BackupCorrupt`); or it was encrypted for others (`IdentityDoesNotMatch`).
pub async fn verify_decrypted(
    source: &Source<'_>,
    wanted: &VerificationInputs,
    sink: &mut (impl AsyncWrite + Unpin),
) -> Result<BTreeMap<String, Vec<u8>>, BackupError> {
    let manifest = source.manifest();
    agrees(manifest, wanted).map_err(|problem| source.corrupt(problem))?;
    fetch(source, sink, |_| ()).await?;
    let bundle = unpack(source).await?;
    let named = names_cluster(&bundle, manifest);
    named.map_err(|problem| source.corrupt(format!("{}: {problem}", manifest.bundle.name)))?;
    Ok(bundle)
}

fn same(object: &ObjectManifest, found: Summing) -> Result<(), String> {
    let found = found.finish();
    match (found.size, &found.sha256) == (object.size, &object.sha256) {
        true => Ok(()),
        false => Err(format!(
            "{} has {} bytes with the SHA-256 {}, and its manifest says {} and {}",
            object.name, found.size, found.sha256, object.size, object.sha256
        )),
    }
}

/// Whether a manifest is that of the backup that was taken; the error says which field differs.
fn agrees(manifest: &BackupManifest, wanted: &VerificationInputs) -> Result<(), String> {
    let snapshot = &manifest.snapshot;
    let fields = [
        ("backup", manifest.backup.clone(), wanted.backup.clone()),
        ("cluster", manifest.cluster.clone(), wanted.cluster.clone()),
        ("revision", manifest.revision.to_string(), wanted.revision.to_string()),
        ("keys", manifest.keys.to_string(), wanted.keys.to_string()),
        ("snapshot.plainSize", snapshot.plain_size.to_string(), wanted.size.to_string()),
        ("snapshot.plainSha256", snapshot.plain_sha256.clone(), wanted.sha256.clone()),
    ];
    match fields.into_iter().find(|(_, found, wanted)| found != wanted) {
        None => Ok(()),
        Some((field, found, wanted)) => {
            let found = sanitize(&found);
            Err(format!("its manifest says {field} {found}, and {wanted} was written down when it was taken"))
        }
    }
}

/// What there is of an object of Kubernetes in a bundle.
#[derive(Deserialize)]
struct Named {
    metadata: Metadata,
}

#[derive(Deserialize)]
struct Metadata {
    name: String,
    #[serde(default)]
    uid: String,
}

/// Whether the bundle is of the manifest's cluster; of an etcd without one, of its backup.
fn names_cluster(bundle: &Bundle, manifest: &BackupManifest) -> Result<(), String> {
    if manifest.cluster.is_empty() {
        let backup = named(bundle, BACKUP_FILE)?;
        return match backup.name == manifest.backup {
            true => Ok(()),
            false => Err(format!("{BACKUP_FILE} is of EtcdBackup {}, not {}", sanitize(&backup.name), manifest.backup)),
        };
    }
    let deployment = named(bundle, DEPLOYMENT_FILE)?;
    let (cluster, uid) = (&manifest.cluster, &manifest.cluster_uid);
    if (&deployment.name, &deployment.uid) != (cluster, uid) {
        let (name, other) = (sanitize(&deployment.name), sanitize(&deployment.uid));
        return Err(format!(
            "{DEPLOYMENT_FILE} is of cluster {name} with the UID {other}, and the manifest is of {cluster} with {uid}"
        ));
    }
    let (keys, secret) = (named(bundle, KEYS_FILE)?, crds::names::pki_secret(cluster));
    match keys.name == secret {
        true => Ok(()),
        false => Err(format!("{KEYS_FILE} is the Secret {}, and not {secret}", sanitize(&keys.name))),
    }
}

fn named(bundle: &Bundle, file: &str) -> Result<Metadata, String> {
    let text = bundle.get(file).ok_or_else(|| format!("{file} is missing"))?;
    // The error of the parser would show what it found.
    let named: Named = serde_json::from_slice(text).map_err(|_| format!("{file} is no object of Kubernetes"))?;
    Ok(named.metadata)
}

fn corrupt(store: &Store, wanted: &VerificationInputs, problem: String) -> BackupError {
    BackupError::Corrupt { storage: store.name().to_owned(), location: wanted.location.clone(), problem }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn manifest() -> BackupManifest {
        let object = json!({"name": "x", "size": 1, "sha256": "", "plainSize": 2, "plainSha256": "00"});
        serde_json::from_value(json!({
            "format": crds::backup::FORMAT, "backup": "nightly", "cluster": "paris", "clusterUid": "7f1c",
            "etcdClusterID": "1", "member": "m", "revision": 7, "keys": 5, "etcdVersion": "3.6.0",
            "startedAt": "2026-03-01T12:00:00Z", "completedAt": "2026-03-01T12:00:00Z",
            "snapshot": object, "bundle": object,
        }))
        .unwrap()
    }

    #[test]
    fn a_manifest_that_was_changed_since_is_told_by_the_field() {
        let wanted: VerificationInputs = serde_json::from_value(json!({
            "how": "Hash", "location": "l", "backup": "nightly", "cluster": "paris", "revision": 7, "keys": 5,
            "size": 2, "sha256": "00"
        }))
        .unwrap();
        assert_eq!(agrees(&manifest(), &wanted), Ok(()));
        let other = BackupManifest { revision: 8, ..manifest() };
        let said = agrees(&other, &wanted).unwrap_err();
        assert_eq!(said, "its manifest says revision 8, and 7 was written down when it was taken");
        assert!(agrees(&BackupManifest { cluster: "rome".into(), ..manifest() }, &wanted).is_err());
    }

    #[test]
    fn a_bundle_names_the_cluster_of_its_manifest_in_both_files() {
        let bundle = |name: &str, uid: &str, keys: &str| -> Bundle {
            let object = |meta| json!({ "metadata": meta }).to_string().into_bytes();
            [
                (DEPLOYMENT_FILE.to_owned(), object(json!({ "name": name, "uid": uid }))),
                (KEYS_FILE.to_owned(), object(json!({ "name": keys }))),
            ]
            .into()
        };
        let check = |bundle: Bundle, words: &str| {
            let said = names_cluster(&bundle, &manifest()).err().unwrap_or_default();
            assert!(said.contains(words) && words.is_empty() == said.is_empty(), "{said}");
        };
        check(bundle("paris", "7f1c", "paris-pki"), "");
        check(bundle("rome", "7f1c", "paris-pki"), "clusterdeployment.json is of cluster rome");
        check(bundle("paris", "0000", "paris-pki"), "with the UID 0000, and the manifest is of paris with 7f1c");
        check(bundle("paris", "7f1c", "rome-pki"), "pki.json is the Secret rome-pki, and not paris-pki");
        check(Bundle::new(), "clusterdeployment.json is missing");
        let broken = [(DEPLOYMENT_FILE.to_owned(), b"hunter2".to_vec())].into();
        check(broken, "clusterdeployment.json is no object of Kubernetes");
    }
}
