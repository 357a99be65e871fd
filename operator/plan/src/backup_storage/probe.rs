//! The Job that looks at a storage.

use crds::backup::{MOUNT_PATH, STORAGE_PREFIX, STORAGE_SECRETS, StorageInputs};
use crds::names::label;
use crds::references::controller_ref;
use crds::{BackupStorage, ObjectExt};
use k8s_openapi::api::batch::v1::{Job, JobSpec};
use k8s_openapi::api::core::v1::{
    Container, KeyToPath, PodSpec, PodTemplateSpec, ResourceRequirements, SecretVolumeSource, Volume,
};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use crate::inputs::StorageSeen;
use crate::job::{restricted, volumes};
use crate::naming::short_hash;

/// How long a look may take, the start of its Pod included.
const DEADLINE_SECONDS: i64 = 180;
/// One that nobody read goes by itself.
const KEPT_SECONDS: i32 = 900;
/// Where the credentials are.
const SECRETS: &str = "/secrets";

/// A name that follows from the last look: everyone who sees the same makes the same.
pub(super) fn name(storage: &BackupStorage) -> String {
    let last = storage.status.as_ref().and_then(|status| status.probed_at.as_ref());
    let last = last.map(|time| time.0.to_string()).unwrap_or_default();
    let hash = short_hash(&[storage.uid(), &storage.generation().to_string(), &last], 8);
    format!("storage-{}-{hash}", storage.name())
}

/// The Job.
pub(super) fn job(storage: &BackupStorage, seen: &StorageSeen, inputs: &StorageInputs, image: &str) -> Job {
    let labels = [(label::STORAGE.to_owned(), storage.name().to_owned())];
    let labels: std::collections::BTreeMap<String, String> = labels.into();
    let claim = storage.spec.volume.as_ref().map(|volume| volume.claim_name.as_str());
    let secret = storage.spec.s3.as_ref().map(|s3| credentials(&s3.credentials_ref.name, seen));
    Job {
        metadata: ObjectMeta {
            name: Some(name(storage)),
            namespace: storage.metadata.namespace.clone(),
            labels: Some(labels.clone()),
            owner_references: controller_ref(storage).map(|owner| vec![owner]),
            ..ObjectMeta::default()
        },
        spec: Some(JobSpec {
            parallelism: Some(1),
            completions: Some(1),
            backoff_limit: Some(0),
            active_deadline_seconds: Some(DEADLINE_SECONDS),
            ttl_seconds_after_finished: Some(KEPT_SECONDS),
            template: PodTemplateSpec {
                metadata: Some(ObjectMeta { labels: Some(labels), ..ObjectMeta::default() }),
                spec: Some(PodSpec {
                    containers: vec![container(inputs, image, claim.is_some(), secret.is_some())],
                    volumes: Some(claim.map(volumes::claimed).into_iter().chain(secret).collect()),
                    ..restricted::pod()
                }),
            },
            ..JobSpec::default()
        }),
        status: None,
    }
}

fn container(inputs: &StorageInputs, image: &str, has_volume: bool, has_secret: bool) -> Container {
    // Plain values always become JSON.
    let inputs = serde_json::to_string(inputs).unwrap_or_default();
    let arguments = ["storage", "--storage", &inputs, "--secrets", SECRETS];
    let mounts = has_volume.then(|| restricted::mount("backups", MOUNT_PATH, false)).into_iter();
    let mounts = mounts.chain(has_secret.then(|| restricted::mount("secrets", SECRETS, true)));
    let quantity = |name: &str, value: &str| Some([(name.to_owned(), Quantity(value.to_owned()))].into());
    Container {
        args: Some(arguments.map(str::to_owned).into()),
        volume_mounts: Some(mounts.collect()),
        resources: Some(ResourceRequirements {
            requests: quantity("memory", "64Mi"),
            limits: quantity("memory", "256Mi"),
            claims: None,
        }),
        ..restricted::container(image)
    }
}

/// The keys of the Secret that there are, named as a run's are.
fn credentials(name: &str, seen: &StorageSeen) -> Volume {
    let data = seen.credentials.as_ref().and_then(|secret| secret.data.as_ref());
    let there = STORAGE_SECRETS.into_iter().filter(|key| data.is_some_and(|data| data.contains_key(*key)));
    let items = there.map(|key| KeyToPath { key: key.into(), path: format!("{STORAGE_PREFIX}{key}"), mode: None });
    Volume {
        name: "secrets".into(),
        secret: Some(SecretVolumeSource {
            secret_name: Some(name.into()),
            items: Some(items.collect()),
            default_mode: Some(0o440),
            ..SecretVolumeSource::default()
        }),
        ..Volume::default()
    }
}
