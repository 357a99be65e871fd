//! Looks at the backup that a run brings to the machines: whether it is whole as far as that is known without the
//! snapshot, of this cluster, and of a version that goes with it.

use backup::{BackupError, Identities, Source, Store, unpack};
use crds::Reason;
use crds::backup::{BackupManifest, IDENTITY_SECRET, PKI_SECRET, PlaneManifest, StagingInputs};

use super::answer::Answer;
use super::cluster_keys::{Difference, difference};
use super::found::FoundBackup;
use super::secrets::credentials;
use crate::secrets::Secrets;

/// The file of a bundle with the cluster's keys.
const KEYS_FILE: &str = "pki.json";

/// Opens the storage with the run's credentials, and reads its identity.
pub(super) async fn opened(inputs: &StagingInputs, secrets: &Secrets) -> Result<(Store, Identities), BackupError> {
    let identities = Identities::parse(secrets.get(IDENTITY_SECRET).unwrap_or_default())?;
    let store = Store::open(&inputs.storage, &credentials(secrets)).await?;
    Ok((store, identities))
}

/// The backup, if it may be restored. The snapshot is not downloaded; its size is asked for.
pub(super) async fn inspect(inputs: &StagingInputs, secrets: &Secrets) -> Result<FoundBackup, Answer> {
    let (store, identities) = opened(inputs, secrets).await?;
    let source = Source::open(&store, &inputs.location, &identities).await?;
    fits(source.manifest(), inputs)?;
    let bundle = unpack(&source).await?;
    let Some(stored) = bundle.get(KEYS_FILE) else {
        return Err(source.corrupt(format!("its bundle has no {KEYS_FILE}")).into());
    };
    match difference(stored, secrets.get(PKI_SECRET).unwrap_or_default()) {
        Ok(None) => Ok(FoundBackup::new(source.manifest(), &inputs.location)),
        Ok(Some(Difference::FormerKey(entry))) => Err(Answer::refused(
            Reason::BackupNeedsFormerKey,
            format!(
                "the Secrets in the backup at {} are encrypted with a former key, which machines do not have any more: put the value of {entry} in \
                 the Secret {} there once more, as encryption-next.key, and try again with a new EtcdRestore or run",
                inputs.location, inputs.keys
            ),
        )),
        Ok(Some(Difference::FormerPlugin(plugin))) => Err(Answer::refused(
            Reason::BackupNeedsFormerKey,
            format!(
                "the backup at {} is encrypted by the KMS plug-in {}, which API servers do not ask: name it in spec.encryption of the \
                 ClusterDeployment, wait until that has taken effect, and try again with a new EtcdRestore or run",
                inputs.location,
                crate::sanitize::clean(&plugin, 200)
            ),
        )),
        Ok(Some(Difference::FormerResources(resources))) => Err(Answer::refused(
            Reason::BackupNeedsFormerKey,
            format!(
                "the backup at {} has {} encrypted, which API servers do not decrypt any more: add them to spec.encryption.resources of the \
                 ClusterDeployment, wait until that has taken effect, and try again with a new EtcdRestore or run",
                inputs.location,
                crate::sanitize::clean(&resources.join(", "), 500)
            ),
        )),
        Ok(Some(Difference::OtherCluster(found))) => Err(Answer::refused(
            Reason::BackupOfOtherCluster,
            format!(
                "the backup at {} has other keys than the Secret {}: {found}; restore a backup that was taken with these keys",
                inputs.location, inputs.keys
            ),
        )),
        Err(problem) => Err(Answer::refused(
            Reason::BackupCorrupt,
            format!("the keys in the backup at {} cannot be compared: {problem}", inputs.location),
        )),
    }
}

/// Whether the backup is of the plane; or of the cluster, and of its minor version of Kubernetes where both are known.
fn fits(manifest: &BackupManifest, inputs: &StagingInputs) -> Result<(), Answer> {
    let plane = inputs.karmada_deployment.as_ref();
    let uid = |plane: Option<&PlaneManifest>| plane.map(|plane| plane.uid.clone());
    if manifest.cluster != inputs.cluster || uid(manifest.karmada_deployment.as_ref()) != uid(plane) {
        let wanted = match plane {
            Some(plane) => format!("KarmadaDeployment {} (UID {})", plane.name, plane.uid),
            None => format!("cluster {}", inputs.cluster),
        };
        let message = format!(
            "the backup at {} is of {}, and {wanted} is to be restored: name a backup of it",
            inputs.location,
            manifest.subject(),
        );
        return Err(Answer::refused(Reason::BackupOfOtherCluster, message));
    }
    match (manifest.kubernetes_version, inputs.kubernetes_version) {
        (Some(then), Some(now)) if then.minor() != now.minor() => Err(Answer::refused(
            Reason::KubernetesVersionDiffers,
            format!(
                "cluster {} ran Kubernetes {then} when the backup at {} was taken, and runs {now}: name a backup of the same \
                 minor version",
                inputs.cluster, inputs.location
            ),
        )),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::fits;

    /// Why a backup of this cluster, or of the plane with this UID, is not restored as what is asked for.
    fn refusal(of: Value, asked: Value) -> String {
        let object = json!({"name": "o", "size": 1, "sha256": "a0", "plainSize": 1, "plainSha256": "a0"});
        let mut manifest = json!({
            "format": crds::backup::FORMAT, "backup": "b", "etcdClusterID": "1", "member": "m", "revision": 7, "keys": 1,
            "etcdVersion": "3.6.6", "kubernetesVersion": "1.35.2", "startedAt": "2026-01-01T00:00:00Z",
            "completedAt": "2026-01-01T00:00:01Z", "snapshot": object, "bundle": object,
        });
        let mut inputs = json!({"storage": {"directory": "/b"}, "location": "a/b", "id": "k3x9a0b1", "restore": "r"});
        for (whole, part) in [(&mut manifest, of), (&mut inputs, asked)] {
            whole.as_object_mut().unwrap().extend(part.as_object().unwrap().clone());
        }
        let said = fits(&serde_json::from_value(manifest).unwrap(), &serde_json::from_value(inputs).unwrap());
        said.err().map(|answer| answer.message).unwrap_or_default()
    }

    #[test]
    fn a_backup_is_restored_as_what_was_backed_up_and_as_nothing_else() {
        let plane = |uid: &str| json!({"karmadaDeployment": {"name": "k1", "uid": uid}});
        let cluster = |name: &str| json!({"cluster": name});
        assert_eq!(refusal(cluster("paris"), cluster("paris")), "");
        assert_eq!(refusal(plane("u1"), plane("u1")), "");
        let words = "is of cluster rome, and cluster paris is to be restored";
        assert!(refusal(cluster("rome"), cluster("paris")).contains(words));
        let words = "is of KarmadaDeployment k1, and KarmadaDeployment k1 (UID u1) is to be restored";
        assert!(refusal(plane("u2"), plane("u1")).contains(words));
        assert!(refusal(plane("u1"), cluster("paris")).contains("and cluster paris is to be restored"));
        assert!(refusal(cluster("paris"), plane("u1")).contains("and KarmadaDeployment k1 (UID u1) is to be"));
        let other = json!({"cluster": "paris", "kubernetesVersion": "1.34.0"});
        assert!(refusal(cluster("paris"), other).contains("name a backup of the same minor version"));
    }
}
