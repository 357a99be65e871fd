//! A Job of the executor's image that does one thing with a storage of backups, and says what came of it in its Pod's
//! termination message.

mod given;
mod outcome;

use std::collections::BTreeMap;

use crds::BackupStorage;
use crds::backup::{MOUNT_PATH, STORAGE_PREFIX, STORAGE_SECRETS, StorageInputs};
use k8s_openapi::api::batch::v1::{Job, JobSpec};
use k8s_openapi::api::core::v1::{
    Container, KeyToPath, PodSpec, PodTemplateSpec, ResourceRequirements, Volume, VolumeMount,
};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference, Time};

use crate::inputs::StorageSeen;
use crate::job::{restricted, volumes};
use crate::naming::short_hash;
use given::secret_volume;
pub(crate) use given::{IDENTITY, api_access, identity_volume, secret_keys};
pub(crate) use outcome::{Progress, progress};

/// One that nobody read goes by itself.
const KEPT_SECONDS: i32 = 900;
/// Of an object's name in those of its Jobs.
const NAME: usize = 45;
/// Where the credentials are.
const SECRETS: &str = "/secrets";

/// What is done, and with which storage.
pub(crate) struct StorageJob<'a> {
    pub name: String,
    /// By which it and its Pod are found.
    pub label: (&'static str, &'a str),
    /// The Job goes with it.
    pub owner: Option<OwnerReference>,
    pub storage: &'a BackupStorage,
    pub seen: &'a StorageSeen,
    pub inputs: &'a StorageInputs,
    pub image: &'a str,
    /// The executor's subcommand, and what it is given beside the storage.
    pub command: &'static str,
    pub arguments: Vec<String>,
    /// How long it may take, the start of its Pod included.
    pub deadline_seconds: i64,
    /// What its Pod has beside.
    pub beside: Beside<'a>,
}

/// What the Pod of such a Job has beside what the storage needs.
pub(crate) struct Beside<'a> {
    /// Volumes, each with where it is.
    pub volumes: Vec<(Volume, VolumeMount)>,
    /// The most memory, in MiB.
    pub memory_mib: u64,
    /// Whom it runs as, where it asks the API for something.
    pub service_account: Option<&'a str>,
}

impl Default for Beside<'_> {
    fn default() -> Self {
        Self { volumes: Vec::new(), memory_mib: 256, service_account: None }
    }
}

/// The name of the next attempt at something that is done to an object, after the last one at that time: everyone who
/// sees the same makes the same.
pub(crate) fn attempt_name(verb: &str, object: &ObjectMeta, last: Option<&Time>) -> String {
    let (uid, name) = (object.uid.as_deref().unwrap_or_default(), object.name.as_deref().unwrap_or_default());
    let last = last.map(|time| time.0.to_string()).unwrap_or_default();
    let name: String = name.chars().take(NAME).collect();
    format!("{verb}-{name}-{}", short_hash(&[uid, &last], 8))
}

/// The Job.
pub(crate) fn storage_job(wanted: &StorageJob<'_>) -> Job {
    let (key, value) = wanted.label;
    let labels = BTreeMap::from([(key.to_owned(), value.to_owned())]);
    let storage = wanted.storage;
    let claim = storage.spec.volume.as_ref().map(|volume| volume.claim_name.as_str());
    let secret = storage.spec.s3.as_ref().map(|s3| credentials(&s3.credentials_ref.name, wanted.seen));
    let container = container(wanted, claim.is_some(), secret.is_some());
    let beside = wanted.beside.volumes.iter().map(|(volume, _)| volume.clone());
    Job {
        metadata: ObjectMeta {
            name: Some(wanted.name.clone()),
            namespace: storage.metadata.namespace.clone(),
            labels: Some(labels.clone()),
            owner_references: wanted.owner.clone().map(|owner| vec![owner]),
            ..ObjectMeta::default()
        },
        spec: Some(JobSpec {
            parallelism: Some(1),
            completions: Some(1),
            backoff_limit: Some(0),
            active_deadline_seconds: Some(wanted.deadline_seconds),
            ttl_seconds_after_finished: Some(KEPT_SECONDS),
            template: PodTemplateSpec {
                metadata: Some(ObjectMeta { labels: Some(labels), ..ObjectMeta::default() }),
                spec: Some(PodSpec {
                    containers: vec![container],
                    volumes: Some(claim.map(volumes::claimed).into_iter().chain(secret).chain(beside).collect()),
                    service_account_name: wanted.beside.service_account.map(str::to_owned),
                    ..restricted::pod()
                }),
            },
            ..JobSpec::default()
        }),
        status: None,
    }
}

fn container(wanted: &StorageJob<'_>, has_volume: bool, has_secret: bool) -> Container {
    // Plain values always become JSON.
    let inputs = serde_json::to_string(wanted.inputs).unwrap_or_default();
    let arguments = [wanted.command, "--storage", &inputs, "--secrets", SECRETS].map(str::to_owned);
    let mounts = has_volume.then(|| restricted::mount("backups", MOUNT_PATH, false)).into_iter();
    let mounts = mounts.chain(has_secret.then(|| restricted::mount("secrets", SECRETS, true)));
    let mounts = mounts.chain(wanted.beside.volumes.iter().map(|(_, mount)| mount.clone()));
    let quantity = |name: &str, value: &str| Some([(name.to_owned(), Quantity(value.to_owned()))].into());
    Container {
        args: Some(arguments.into_iter().chain(wanted.arguments.iter().cloned()).collect()),
        volume_mounts: Some(mounts.collect()),
        resources: Some(ResourceRequirements {
            requests: quantity("memory", "64Mi"),
            limits: quantity("memory", &format!("{}Mi", wanted.beside.memory_mib)),
            claims: None,
        }),
        ..restricted::container(wanted.image)
    }
}

/// The keys of the Secret that there are, named as a run's are.
fn credentials(name: &str, seen: &StorageSeen) -> Volume {
    let data = seen.credentials.as_ref().and_then(|secret| secret.data.as_ref());
    let there = STORAGE_SECRETS.into_iter().filter(|key| data.is_some_and(|data| data.contains_key(*key)));
    let items = there.map(|key| KeyToPath { key: key.into(), path: format!("{STORAGE_PREFIX}{key}"), mode: None });
    secret_volume("secrets", name, items.collect())
}
