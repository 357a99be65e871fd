//! The Job that runs Helm, and the Secret that it is given.

use std::collections::BTreeMap;

use crds::chart::{
    CA_FILE, ChartInputs, INPUTS_FILE, MASKED_FILE, PASSWORD_FILE, TOKEN_FILE, USERNAME_FILE, VALUES_FILE,
};
use crds::names::{KUBECONFIG_KEY, annotation, label};
use crds::references::controller_ref;
use crds::{ClusterAddon, ObjectExt, Reason};
use k8s_openapi::ByteString;
use k8s_openapi::api::batch::v1::{Job, JobSpec};
use k8s_openapi::api::core::v1::{
    Container, EmptyDirVolumeSource, PodSpec, PodTemplateSpec, ResourceRequirements, Secret, SecretVolumeSource, Volume,
};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use super::prepared::PreparedChart;
use crate::addon::Problem;
use crate::cluster_addon::observed::Observed;
use crate::inputs::artifacts::ca_of;
use crate::job::restricted;
use crate::storage_job::attempt_name;

/// Its Pod's log is Helm's output: it stays for a while.
const KEPT_SECONDS: i32 = 3600;
/// Until the Pod is started and the chart is fetched.
const START_SECONDS: i64 = 300;
/// What its Pod has to say of itself before the Job's deadline ends it.
const REPORT_SECONDS: i64 = 60;
/// Where the Secret is, and where Helm may write.
const INPUTS: &str = "/inputs";
const WORK: &str = "/work";

/// A Job, and the Secret that comes before it.
#[derive(Clone, Debug, PartialEq)]
pub struct Operation {
    /// What it is given.
    pub secret: Secret,
    /// The Job.
    pub job: Job,
}

/// Name of the next Job: everyone who sees the same makes the same.
pub(super) fn name(object: &ClusterAddon, verb: &str) -> String {
    let release = object.status.as_ref().and_then(|status| status.release.as_ref());
    attempt_name(verb, &object.metadata, release.and_then(|release| release.tried_at.as_ref()))
}

/// The Job of this name, and what it is for; the error says what is missing.
pub(super) fn operation(
    observed: &Observed<'_>,
    (name, wanted): (&str, &str),
    inputs: &ChartInputs,
    prepared: Option<&PreparedChart>,
) -> Result<Operation, Problem> {
    let object = observed.object;
    let metadata = ObjectMeta {
        name: Some(name.to_owned()),
        namespace: object.metadata.namespace.clone(),
        labels: Some(labels(object)),
        annotations: Some(BTreeMap::from([(annotation::WANTED.to_owned(), wanted.to_owned())])),
        owner_references: controller_ref(object).map(|owner| vec![owner]),
        ..ObjectMeta::default()
    };
    let data = data(observed, inputs, prepared)?;
    let secret = Secret { metadata: metadata.clone(), immutable: Some(true), data: Some(data), ..Secret::default() };
    let deadline = START_SECONDS + 2 * i64::from(inputs.timeout_seconds);
    let job = Job {
        metadata,
        spec: Some(JobSpec {
            parallelism: Some(1),
            completions: Some(1),
            backoff_limit: Some(0),
            active_deadline_seconds: Some(deadline),
            ttl_seconds_after_finished: Some(KEPT_SECONDS),
            template: PodTemplateSpec {
                metadata: Some(ObjectMeta { labels: Some(labels(object)), ..ObjectMeta::default() }),
                spec: Some(PodSpec {
                    containers: vec![container(&observed.chart.image, deadline)],
                    volumes: Some(volumes(name)),
                    ..restricted::pod()
                }),
            },
            ..JobSpec::default()
        }),
        status: None,
    };
    Ok(Operation { secret, job })
}

fn labels(object: &ClusterAddon) -> BTreeMap<String, String> {
    let addon = &object.spec.addon_ref.name;
    [(label::ADDON, addon.as_str()), (label::CLUSTER_ADDON, object.name())]
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .into()
}

/// The files of the Secret.
fn data(
    observed: &Observed<'_>,
    inputs: &ChartInputs,
    prepared: Option<&PreparedChart>,
) -> Result<BTreeMap<String, ByteString>, Problem> {
    let mut data = BTreeMap::new();
    let mut insert = |name: &str, bytes: &[u8]| drop(data.insert(name.to_owned(), ByteString(bytes.to_vec())));
    let Some(kubeconfig) = &observed.chart.kubeconfig else {
        let message =
            format!("the Secret with the kubeconfig of Cluster {} is not there", observed.object.spec.cluster_ref.name);
        return Err(Problem { reason: Reason::SecretNotFound, message });
    };
    insert(KUBECONFIG_KEY, kubeconfig.as_bytes());
    // Plain values always become JSON.
    let json = |value: serde_json::Result<String>| value.unwrap_or_default();
    insert(INPUTS_FILE, json(serde_json::to_string(inputs)).as_bytes());
    let Some(prepared) = prepared else { return Ok(data) };
    insert(VALUES_FILE, json(serde_json::to_string(&prepared.values)).as_bytes());
    insert(MASKED_FILE, json(serde_json::to_string(&prepared.masked)).as_bytes());
    let chart = observed.addon.and_then(|addon| addon.spec.source.chart.as_ref());
    if let Some(reference) = chart.and_then(|chart| chart.credentials_ref.as_ref()) {
        let found = observed.chart.credentials.as_ref().and_then(|secret| secret.data.as_ref());
        let has = |key: &&str| found.and_then(|data| data.get(*key)).is_some_and(|value| !value.0.is_empty());
        let is_of_bundle = inputs.chart.as_ref().is_some_and(|chart| chart.archive.is_some());
        let keys: &[&str] = match is_of_bundle && has(&TOKEN_FILE) {
            true => &[TOKEN_FILE],
            false => &[USERNAME_FILE, PASSWORD_FILE],
        };
        for key in keys {
            let Some(value) = found.and_then(|data| data.get(*key)).filter(|_| has(key)) else {
                let message = format!(
                    "Secret {} of spec.source.chart.credentialsRef is not there, or has no {key}: it needs username and password",
                    reference.name
                );
                return Err(Problem { reason: Reason::SecretNotFound, message });
            };
            insert(key, &value.0);
        }
    }
    if let Some(reference) = chart.and_then(|chart| chart.ca_ref.as_ref()) {
        let pem = ca_of("spec.source.chart.caRef", &reference.name, observed.chart.ca.as_ref());
        let pem = pem.map_err(|problem| Problem { reason: problem.reason, message: problem.message })?;
        insert(CA_FILE, pem.as_bytes());
    }
    Ok(data)
}

fn container(image: &str, deadline: i64) -> Container {
    let deadline = (deadline - REPORT_SECONDS).to_string();
    let arguments = ["chart", "--inputs", INPUTS, "--work", WORK, "--deadline-seconds", &deadline];
    let memory = |value: &str| Some([("memory".to_owned(), Quantity(value.to_owned()))].into());
    Container {
        args: Some(arguments.map(str::to_owned).to_vec()),
        volume_mounts: Some(vec![
            restricted::mount("inputs", INPUTS, true),
            restricted::mount("work", WORK, false),
            restricted::mount("tmp", "/tmp", false),
        ]),
        resources: Some(ResourceRequirements { requests: memory("128Mi"), limits: memory("512Mi"), claims: None }),
        ..restricted::container(image)
    }
}

fn volumes(secret: &str) -> Vec<Volume> {
    let room = |name: &str| Volume {
        name: name.into(),
        empty_dir: Some(EmptyDirVolumeSource { medium: None, size_limit: Some(Quantity("256Mi".into())) }),
        ..Volume::default()
    };
    let inputs = Volume {
        name: "inputs".into(),
        secret: Some(SecretVolumeSource {
            secret_name: Some(secret.into()),
            default_mode: Some(0o440),
            ..SecretVolumeSource::default()
        }),
        ..Volume::default()
    };
    vec![inputs, room("work"), room("tmp")]
}
