//! A Job of the executor's image that does one thing with a storage of backups, and says what came of it in its Pod's
//! termination message.

use std::collections::BTreeMap;

use crds::backup::{MOUNT_PATH, STORAGE_PREFIX, STORAGE_SECRETS, StorageInputs};
use crds::references::controller_ref;
use crds::{BackupStorage, ObjectExt};
use k8s_openapi::api::batch::v1::{Job, JobSpec};
use k8s_openapi::api::core::v1::{
    Container, KeyToPath, Pod, PodSpec, PodTemplateSpec, ResourceRequirements, SecretVolumeSource, Volume,
};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use crate::inputs::StorageSeen;
use crate::job::{restricted, volumes};
use crate::message::quote;
use crate::playbook_run::pod;

/// One that nobody read goes by itself.
const KEPT_SECONDS: i32 = 900;
/// Where the credentials are.
const SECRETS: &str = "/secrets";

/// What is done, and with which storage.
pub(crate) struct StorageJob<'a> {
    pub name: String,
    /// By which it and its Pod are found.
    pub label: (&'static str, &'a str),
    /// The Job goes with it.
    pub storage: &'a BackupStorage,
    pub seen: &'a StorageSeen,
    pub inputs: &'a StorageInputs,
    pub image: &'a str,
    /// The executor's subcommand, and what it is given beside the storage.
    pub command: &'static str,
    pub arguments: Vec<String>,
    /// How long it may take, the start of its Pod included.
    pub deadline_seconds: i64,
}

/// The Job.
pub(crate) fn storage_job(wanted: &StorageJob<'_>) -> Job {
    let (key, value) = wanted.label;
    let labels = BTreeMap::from([(key.to_owned(), value.to_owned())]);
    let storage = wanted.storage;
    let claim = storage.spec.volume.as_ref().map(|volume| volume.claim_name.as_str());
    let secret = storage.spec.s3.as_ref().map(|s3| credentials(&s3.credentials_ref.name, wanted.seen));
    Job {
        metadata: ObjectMeta {
            name: Some(wanted.name.clone()),
            namespace: storage.metadata.namespace.clone(),
            labels: Some(labels.clone()),
            owner_references: controller_ref(storage).map(|owner| vec![owner]),
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
                    containers: vec![container(wanted, claim.is_some(), secret.is_some())],
                    volumes: Some(claim.map(volumes::claimed).into_iter().chain(secret).collect()),
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
    let quantity = |name: &str, value: &str| Some([(name.to_owned(), Quantity(value.to_owned()))].into());
    Container {
        args: Some(arguments.into_iter().chain(wanted.arguments.iter().cloned()).collect()),
        volume_mounts: Some(mounts.collect()),
        resources: Some(ResourceRequirements {
            requests: quantity("memory", "64Mi"),
            limits: quantity("memory", "256Mi"),
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

/// How far a Job is.
pub(crate) enum Progress {
    /// It goes on; what its Pod waits for.
    UnderWay(Option<String>),
    /// Its Pod ended with this code and message.
    Ended(i32, String),
    /// Its Pod did not come up: why.
    NotStarted(String),
}

/// How far this Job is, by the Pods with the label.
pub(crate) fn progress(job: &Job, pods: &[Pod], label: &str) -> Progress {
    let of_job = |pod: &&Pod| {
        let labels = pod.metadata.labels.as_ref();
        labels.is_some_and(|labels| labels.contains_key(label)) && pod.is_owned_by(job.uid())
    };
    let pod = pods.iter().find(of_job);
    if let Some(ended) = pod.and_then(pod::terminated) {
        return Progress::Ended(ended.exit_code, ended.message.clone().unwrap_or_default());
    }
    let trouble = pod.filter(|pod| !pod::has_begun(pod)).map(|pod| pod::waits_for(pod).message);
    let mut conditions = job.status.iter().flat_map(|status| status.conditions.iter().flatten());
    let failed = conditions.find(|condition| condition.type_ == "Failed" && condition.status == "True");
    match failed {
        Some(failed) => {
            Progress::NotStarted(trouble.or(failed.message.clone()).unwrap_or_else(|| "its Job failed".into()))
        }
        None => Progress::UnderWay(trouble.map(quote)),
    }
}
