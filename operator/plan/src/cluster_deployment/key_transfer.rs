//! How the keys of a backup come into a cluster's Secret: a Job of the executor's image fetches and decrypts them, and
//! may write one Secret, which is there for nothing else. The operator makes the cluster's own from it.

use std::collections::BTreeMap;

use crds::names::{fetched_keys_secret, label};
use crds::references::{LocalRef, controller_ref};
use crds::{BackupStorage, ClusterDeployment, EtcdBackup, Machine, ObjectExt};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{Pod, Secret};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use crate::inputs::{InputsProblem, StorageSeen, storage};
use crate::job::permission::{Permission, permission};
use crate::naming::short_hash;
use crate::storage_job::{Beside, StorageJob, api_access, identity_volume, storage_job};

/// How long it may take, the start of its Pod included.
const DEADLINE_SECONDS: i64 = 600;

/// What was observed of a cluster that is to begin with a backup.
#[derive(Clone, Debug, Default)]
pub struct RestoringSeen {
    /// Image of the executor.
    pub image: String,
    /// The EtcdBackup of `source.backupRef`, if it is there.
    pub backup: Option<EtcdBackup>,
    /// The BackupStorage that the source is in, if it is there.
    pub storage: Option<BackupStorage>,
    /// What the references of that lead to.
    pub seen: StorageSeen,
    /// Whether the Secret of `identityRef` has an identity.
    pub identity: bool,
    /// Jobs that fetch its keys.
    pub jobs: Vec<Job>,
    /// Their Pods.
    pub pods: Vec<Pod>,
    /// The keys.
    pub keys: KeysSeen,
    /// Machines of the cluster that was backed up, as far as it is in this namespace.
    pub former: Vec<Machine>,
}

/// The keys of a backup on their way.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum KeysSeen {
    /// They have not been fetched.
    #[default]
    Absent,
    /// They were fetched, and the cluster has none yet.
    Fetched,
    /// They were fetched, and are the cluster's.
    InPlace,
    /// The cluster has others.
    Differ,
    /// What was fetched are no keys of a cluster: why.
    Unusable(String),
}

/// What fetches the keys, and what allows it to write them.
#[derive(Clone, Debug, PartialEq)]
pub struct KeyTransfer {
    /// Takes them; empty at first.
    pub secret: Secret,
    /// Whom the Pod runs as, and the right to write that one Secret.
    pub permission: Permission,
    /// Fetches them.
    pub job: Job,
}

/// What fetches the keys of the backup at this place.
pub(super) fn key_transfer(
    deployment: &ClusterDeployment,
    seen: &RestoringSeen,
    of_backup: &BackupStorage,
    location: &str,
    identity: &LocalRef,
) -> Result<KeyTransfer, InputsProblem> {
    let inputs = storage(of_backup, &seen.seen)?;
    let name = fetched_keys_secret(deployment.name());
    let namespace = deployment.namespace();
    let job = storage_job(&StorageJob {
        name: job_name(deployment, location),
        label: (label::RESTORE_FROM, deployment.name()),
        // Not with the storage.
        owner: controller_ref(deployment),
        storage: of_backup,
        seen: &seen.seen,
        inputs: &inputs,
        image: &seen.image,
        command: "fetch-keys",
        arguments: ["--location", location, "--secret", &format!("{namespace}/{name}")].map(str::to_owned).into(),
        deadline_seconds: DEADLINE_SECONDS,
        beside: Beside {
            volumes: vec![identity_volume(&identity.name), api_access()],
            service_account: Some(&name),
            ..Beside::default()
        },
    });
    Ok(KeyTransfer {
        secret: Secret { metadata: metadata(deployment, &name), type_: Some("Opaque".into()), ..Secret::default() },
        permission: permission(&metadata(deployment, &name), "", "secrets"),
        job,
    })
}

/// A name that follows from what is fetched.
pub(super) fn job_name(deployment: &ClusterDeployment, location: &str) -> String {
    format!("{}-fetch-keys-{}", deployment.name(), short_hash(&[deployment.uid(), location], 8))
}

fn metadata(deployment: &ClusterDeployment, name: &str) -> ObjectMeta {
    ObjectMeta {
        name: Some(name.to_owned()),
        namespace: deployment.metadata.namespace.clone(),
        labels: Some(BTreeMap::from([(label::CLUSTER.to_owned(), deployment.name().to_owned())])),
        owner_references: controller_ref(deployment).map(|owner| vec![owner]),
        ..ObjectMeta::default()
    }
}

#[cfg(test)]
mod tests {
    use crds::references::LocalRef;
    use crds::{BackupStorage, ClusterDeployment};
    use serde_json::json;

    use super::{RestoringSeen, key_transfer};

    #[test]
    fn the_job_may_write_one_secret_that_holds_nothing_else_and_gets_the_identity() {
        let deployment: ClusterDeployment = serde_json::from_value(json!({
            "apiVersion": "clusterwright.dev/v1alpha1", "kind": "ClusterDeployment",
            "metadata": { "name": "lyon", "namespace": "fleet", "uid": "u1" },
            "spec": { "kubernetesVersion": "1.35.4", "controlPlane": { "replicas": 1 } }
        }))
        .unwrap();
        let of_backup: BackupStorage = serde_json::from_value(json!({
            "apiVersion": "clusterwright.dev/v1alpha1", "kind": "BackupStorage",
            "metadata": { "name": "nfs", "namespace": "fleet", "uid": "u2" },
            "spec": { "volume": { "claimName": "backups" } }
        }))
        .unwrap();
        let seen = RestoringSeen { image: "executor:1".into(), ..RestoringSeen::default() };
        let made = key_transfer(&deployment, &seen, &of_backup, "paris/u/1", &LocalRef::new("age")).unwrap();
        let rules = serde_json::to_value(&made.permission.role.rules).unwrap();
        let only = json!([{"apiGroups": [""], "resources": ["secrets"], "resourceNames": ["lyon-fetched-keys"], "verbs": ["patch"]}]);
        assert_eq!(rules, only);
        let job = serde_json::to_value(&made.job).unwrap();
        let pod = &job["spec"]["template"]["spec"];
        assert_eq!(pod["serviceAccountName"], "lyon-fetched-keys");
        let arguments = pod["containers"][0]["args"].as_array().unwrap();
        let pair = |name: &str| arguments.iter().position(|word| word == name).and_then(|at| arguments.get(at + 1));
        assert_eq!(pair("--secret"), Some(&json!("fleet/lyon-fetched-keys")));
        assert_eq!(pair("--location"), Some(&json!("paris/u/1")));
        let volumes = pod["volumes"].to_string();
        assert!(volumes.contains(r#""secretName":"age""#) && volumes.contains("serviceAccountToken"), "{volumes}");
        let owners = [
            &made.secret.metadata,
            &made.permission.role.metadata,
            &made.permission.role_binding.metadata,
            &made.job.metadata,
        ];
        for metadata in owners {
            assert_eq!(metadata.owner_references.as_ref().unwrap()[0].uid, "u1");
        }
        assert!(made.secret.data.is_none(), "the keys come from the backup");
    }
}
