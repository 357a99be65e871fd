//! How the keys of a backup come into the Secret of a cluster, or a Karmada control plane, that begins with it: a Job
//! of the executor's image fetches and decrypts them, and may write one Secret, which is there for nothing else. The
//! operator makes the object's own from it.

use std::collections::BTreeMap;
use std::fmt;

use crds::cluster_deployment::RestoreFrom;
use crds::names::{fetched_keys_secret, label};
use crds::references::{LocalRef, controller_ref};
use crds::{BackupStorage, ClusterDeployment, EtcdBackup, KarmadaDeployment, Machine};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{Pod, Secret};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};

use crate::inputs::{InputsProblem, StorageSeen, storage};
use crate::job::permission::{Permission, permission};
use crate::naming::short_hash;
use crate::storage_job::{Beside, StorageJob, api_access, identity_volume, storage_job};

/// How long it may take, the start of its Pod included.
const DEADLINE_SECONDS: i64 = 600;

/// What was observed of an object that is to begin with a backup.
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
    /// The key of the snapshot, where it was fetched with them: of a plane alone.
    pub snapshot_key: Option<SnapshotKey>,
    /// Machines of the cluster that was backed up, as far as it is in this namespace.
    pub former: Vec<Machine>,
}

/// What decrypts one snapshot and nothing else. It is not printed.
#[derive(Clone, PartialEq, Eq)]
pub struct SnapshotKey(pub Vec<u8>);

impl fmt::Debug for SnapshotKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SnapshotKey")
    }
}

/// The keys of a backup on their way.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum KeysSeen {
    /// They have not been fetched.
    #[default]
    Absent,
    /// They were fetched, and the object has none yet.
    Fetched,
    /// They were fetched, and are the object's.
    InPlace,
    /// The object has others.
    Differ,
    /// What was fetched are no keys of it: why.
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

/// Whom keys are fetched for, and of which backup.
pub(crate) struct Receiver<'a> {
    metadata: &'a ObjectMeta,
    owner: Option<OwnerReference>,
    /// The kind of the object that names the backup, as messages call it.
    pub kind: &'static str,
    /// The field in which that does.
    pub field: &'static str,
    /// Whether it has data and keys of its own, which stay.
    pub is_in_place: bool,
    /// The label that its Secrets have, and those of others have not.
    label: &'static str,
    /// Further arguments of the executor.
    arguments: &'static [&'static str],
    pub from: &'a RestoreFrom,
}

impl<'a> Receiver<'a> {
    /// A cluster.
    pub fn cluster(deployment: &'a ClusterDeployment, from: &'a RestoreFrom) -> Self {
        Self {
            metadata: &deployment.metadata,
            owner: controller_ref(deployment),
            kind: "ClusterDeployment",
            field: "spec.restoreFrom",
            is_in_place: false,
            label: label::CLUSTER,
            arguments: &[],
            from,
        }
    }

    /// A Karmada control plane.
    pub fn plane(object: &'a KarmadaDeployment, from: &'a RestoreFrom) -> Self {
        Self {
            metadata: &object.metadata,
            owner: controller_ref(object),
            kind: "KarmadaDeployment",
            field: "spec.restoreFrom",
            is_in_place: false,
            label: label::KARMADA,
            arguments: &["--plane"],
            from,
        }
    }

    /// A Karmada control plane that an EtcdRestore sets back.
    pub fn plane_in_place(object: &'a KarmadaDeployment, from: &'a RestoreFrom) -> Self {
        Self { kind: "EtcdRestore", field: "spec", is_in_place: true, ..Self::plane(object, from) }
    }

    pub fn name(&self) -> &'a str {
        self.metadata.name.as_deref().unwrap_or_default()
    }

    pub fn namespace(&self) -> &'a str {
        self.metadata.namespace.as_deref().unwrap_or_default()
    }

    fn uid(&self) -> &'a str {
        self.metadata.uid.as_deref().unwrap_or_default()
    }

    fn metadata(&self, name: &str) -> ObjectMeta {
        ObjectMeta {
            name: Some(name.to_owned()),
            namespace: self.metadata.namespace.clone(),
            labels: Some(BTreeMap::from([(self.label.to_owned(), self.name().to_owned())])),
            owner_references: self.owner.clone().map(|owner| vec![owner]),
            ..ObjectMeta::default()
        }
    }
}

/// What fetches the keys of the backup at this place.
pub(crate) fn key_transfer(
    receiver: &Receiver<'_>,
    seen: &RestoringSeen,
    of_backup: &BackupStorage,
    location: &str,
    identity: &LocalRef,
) -> Result<KeyTransfer, InputsProblem> {
    let inputs = storage(of_backup, &seen.seen)?;
    let name = fetched_keys_secret(receiver.name());
    let namespace = receiver.namespace();
    let arguments = ["--location", location, "--secret", &format!("{namespace}/{name}")].map(str::to_owned);
    let job = storage_job(&StorageJob {
        name: job_name(receiver, location),
        label: (label::RESTORE_FROM, receiver.name()),
        // Not with the storage.
        owner: receiver.owner.clone(),
        storage: of_backup,
        seen: &seen.seen,
        inputs: &inputs,
        image: &seen.image,
        command: "fetch-keys",
        arguments: arguments.into_iter().chain(receiver.arguments.iter().map(|word| (*word).to_owned())).collect(),
        deadline_seconds: DEADLINE_SECONDS,
        beside: Beside {
            volumes: vec![identity_volume(&identity.name), api_access()],
            service_account: Some(&name),
            ..Beside::default()
        },
    });
    Ok(KeyTransfer {
        secret: Secret { metadata: receiver.metadata(&name), type_: Some("Opaque".into()), ..Secret::default() },
        permission: permission(&receiver.metadata(&name), "", "secrets"),
        job,
    })
}

/// A name that follows from what is fetched.
pub(crate) fn job_name(receiver: &Receiver<'_>, location: &str) -> String {
    format!("{}-fetch-keys-{}", receiver.name(), short_hash(&[receiver.uid(), location], 8))
}

#[cfg(test)]
mod tests {
    use crds::cluster_deployment::RestoreFrom;
    use crds::references::LocalRef;
    use crds::{BackupStorage, ClusterDeployment, KarmadaDeployment};
    use serde_json::{Value, json};

    use super::{KeyTransfer, Receiver, RestoringSeen, key_transfer};

    fn made(receiver: &Receiver<'_>) -> (KeyTransfer, Value) {
        let of_backup: BackupStorage = serde_json::from_value(json!({
            "apiVersion": "clusterwright.dev/v1alpha1", "kind": "BackupStorage",
            "metadata": { "name": "nfs", "namespace": "fleet", "uid": "u2" },
            "spec": { "volume": { "claimName": "backups" } }
        }))
        .unwrap();
        let seen = RestoringSeen { image: "executor:1".into(), ..RestoringSeen::default() };
        let made = key_transfer(receiver, &seen, &of_backup, "paris/u/1", &LocalRef::new("age")).unwrap();
        let job = serde_json::to_value(&made.job).unwrap();
        (made, job["spec"]["template"]["spec"].clone())
    }

    fn from() -> RestoreFrom {
        serde_json::from_value(json!({ "source": { "backupRef": { "name": "b" } }, "identityRef": { "name": "age" } }))
            .unwrap()
    }

    #[test]
    fn the_job_may_write_one_secret_that_holds_nothing_else_and_gets_the_identity() {
        let deployment: ClusterDeployment = serde_json::from_value(json!({
            "apiVersion": "clusterwright.dev/v1alpha1", "kind": "ClusterDeployment",
            "metadata": { "name": "lyon", "namespace": "fleet", "uid": "u1" },
            "spec": { "kubernetesVersion": "1.35.4", "controlPlane": { "replicas": 1 } }
        }))
        .unwrap();
        let (made, pod) = made(&Receiver::cluster(&deployment, &from()));
        let rules = serde_json::to_value(&made.permission.role.rules).unwrap();
        let only = json!([{"apiGroups": [""], "resources": ["secrets"], "resourceNames": ["lyon-fetched-keys"], "verbs": ["patch"]}]);
        assert_eq!(rules, only);
        assert_eq!(pod["serviceAccountName"], "lyon-fetched-keys");
        let arguments = pod["containers"][0]["args"].as_array().unwrap();
        let pair = |name: &str| arguments.iter().position(|word| word == name).and_then(|at| arguments.get(at + 1));
        assert_eq!(pair("--secret"), Some(&json!("fleet/lyon-fetched-keys")));
        assert_eq!(pair("--location"), Some(&json!("paris/u/1")));
        assert!(!arguments.contains(&json!("--plane")), "{arguments:?}");
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

    #[test]
    fn of_a_plane_the_executor_is_told_that_it_is_one() {
        let object: KarmadaDeployment = serde_json::from_value(json!({
            "apiVersion": "clusterwright.dev/v1alpha1", "kind": "KarmadaDeployment",
            "metadata": { "name": "k2", "namespace": "fleet", "uid": "u3" },
            "spec": { "version": "1.18.2", "crds": { "bundle": { "url": "https://bundle.example.com" } } }
        }))
        .unwrap();
        let (made, pod) = made(&Receiver::plane(&object, &from()));
        assert!(pod["containers"][0]["args"].as_array().unwrap().contains(&json!("--plane")));
        assert_eq!(made.secret.metadata.owner_references.unwrap()[0].kind, "KarmadaDeployment");
    }
}
