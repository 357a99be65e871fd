//! The Job of a run: one Pod, one attempt, held until its outcome is recorded, and nothing that Pod Security's
//! `restricted` refuses.

pub mod permission;
pub(crate) mod restricted;
mod scheduling;
pub(crate) mod volumes;

use std::collections::BTreeMap;

use crds::ObjectExt;
use crds::backup::MOUNT_PATH;
use crds::cluster_deployment::ExecutorPod;
use crds::inputs::RUN_UID_VARIABLE;
use crds::names::{finalizer, label};
use crds::playbook_run::FrozenInputs;
use crds::references::controller_ref;
use crds::{Intent, PlaybookRun};
use k8s_openapi::api::batch::v1::{Job, JobSpec};
use k8s_openapi::api::core::v1::{Container, EnvVar, PodSpec, PodTemplateSpec, ResourceRequirements};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
pub use restricted::CONTAINER;
use restricted::mount;
use volumes::volumes;

/// What the executor has for its last report, between its own deadline and the Job's.
pub const REPORT_SECONDS: i32 = 120;
/// From a request to end to SIGKILL.
pub const GRACE_SECONDS: i64 = 120;
/// Where clients look for the way to the API, and for their token.
pub(crate) const API_ACCESS: &str = "/var/run/secrets/kubernetes.io/serviceaccount";

/// What a Job is made from.
#[derive(Clone, Debug, PartialEq)]
pub struct JobWanted<'a> {
    /// Its run.
    pub run: &'a PlaybookRun,
    /// Image of the executor.
    pub image: &'a str,
    /// What the operator gave the run.
    pub token: i64,
    /// How often the same was tried before.
    pub attempt: i32,
    /// The frozen inputs.
    pub inputs: &'a FrozenInputs,
    /// What its Pod is given beside.
    pub pod: Option<&'a ExecutorPod>,
    /// The PersistentVolumeClaim of the storage that it writes to.
    pub volume_claim: Option<&'a str>,
}

/// Labels of everything that belongs to a run.
pub fn labels(run: &PlaybookRun) -> BTreeMap<String, String> {
    let mut labels: BTreeMap<String, String> = [
        (label::RUN.to_owned(), run.name().to_owned()),
        (label::INTENT.to_owned(), run.spec.intent.spec().slug.to_owned()),
    ]
    .into();
    if let Some(cluster) = &run.spec.cluster_name {
        labels.insert(label::CLUSTER.to_owned(), cluster.clone());
    }
    labels
}

/// Name, namespace, labels and owner of something that belongs to a run and goes with it.
pub fn metadata(run: &PlaybookRun, name: &str) -> ObjectMeta {
    ObjectMeta {
        name: Some(name.to_owned()),
        namespace: run.metadata.namespace.clone(),
        labels: Some(labels(run)),
        owner_references: controller_ref(run).map(|owner| vec![owner]),
        ..ObjectMeta::default()
    }
}

/// The Job.
pub fn job(wanted: &JobWanted<'_>) -> Job {
    let run = wanted.run;
    let name = run.name().to_owned();
    let held = Some(vec![finalizer::OUTCOME_RECORDED.to_owned()]);
    Job {
        metadata: ObjectMeta { finalizers: held.clone(), ..metadata(run, &name) },
        spec: Some(JobSpec {
            parallelism: Some(1),
            completions: Some(1),
            backoff_limit: Some(0),
            pod_replacement_policy: Some("Failed".into()),
            active_deadline_seconds: Some(run.spec.timeout_seconds.into()),
            template: PodTemplateSpec {
                metadata: Some(ObjectMeta {
                    labels: Some(labels(run)),
                    annotations: Some(
                        [("cluster-autoscaler.kubernetes.io/safe-to-evict".to_owned(), "false".to_owned())].into(),
                    ),
                    // A deadline or a deletion takes the Pod away, and its last message with it, unless it is held.
                    finalizers: held,
                    ..ObjectMeta::default()
                }),
                spec: Some(pod(wanted)),
            },
            ..JobSpec::default()
        }),
        status: None,
    }
}

fn pod(wanted: &JobWanted<'_>) -> PodSpec {
    PodSpec {
        // A ServiceAccount of its own, named as the run.
        service_account_name: wanted.run.metadata.name.clone(),
        termination_grace_period_seconds: Some(GRACE_SECONDS),
        tolerations: Some(scheduling::tolerations(wanted.pod)),
        image_pull_secrets: scheduling::pull_secrets(wanted.pod),
        node_selector: scheduling::node_selector(wanted.pod),
        priority_class_name: wanted.pod.and_then(|pod| pod.priority_class_name.clone()),
        containers: vec![container(wanted)],
        volumes: Some(volumes(wanted.inputs, wanted.volume_claim)),
        ..restricted::pod()
    }
}

fn container(wanted: &JobWanted<'_>) -> Container {
    let variable = |name: &str, value: &str| EnvVar { name: name.into(), value: Some(value.into()), value_from: None };
    let storage = wanted.volume_claim.map(|_| mount("backups", MOUNT_PATH, false));
    let mounts = [
        mount("work", "/work", false),
        mount("model", "/inputs/model", true),
        mount("secrets", "/inputs/secrets", true),
        mount("api-access", API_ACCESS, true),
    ];
    Container {
        args: Some(arguments(wanted)),
        env: Some(vec![
            variable("HOME", "/work"),
            variable("TMPDIR", "/work"),
            variable(RUN_UID_VARIABLE, wanted.run.uid()),
        ]),
        working_dir: Some("/work".into()),
        volume_mounts: Some(mounts.into_iter().chain(storage).collect()),
        resources: Some(resources(wanted.run)),
        ..restricted::container(wanted.image)
    }
}

fn arguments(wanted: &JobWanted<'_>) -> Vec<String> {
    let meta = &wanted.run.metadata;
    let run = format!("{}/{}", meta.namespace.as_deref().unwrap_or_default(), meta.name.as_deref().unwrap_or_default());
    let own_deadline = (wanted.run.spec.timeout_seconds - REPORT_SECONDS).max(1);
    let pairs = [
        ("--inputs", "/inputs".to_owned()),
        ("--run", run),
        ("--token", wanted.token.to_string()),
        ("--attempt", wanted.attempt.to_string()),
        ("--digest", wanted.inputs.digest.clone()),
        ("--deadline-seconds", own_deadline.to_string()),
    ];
    let pairs = pairs.into_iter().flat_map(|(name, value)| [name.to_owned(), value]);
    ["run".to_owned()].into_iter().chain(pairs).collect()
}

/// Ansible forks for its hosts: memory grows with them. Files in `/work` count as memory.
fn resources(run: &PlaybookRun) -> ResourceRequirements {
    let quantities = |pairs: &[(&str, String)]| -> Option<BTreeMap<String, Quantity>> {
        Some(pairs.iter().map(|(name, value)| ((*name).to_owned(), Quantity(value.clone()))).collect())
    };
    let small = run.spec.intent == Intent::Probe || run.spec.hosts.len() <= 10;
    let limit = if small { "1Gi" } else { "2Gi" };
    ResourceRequirements {
        requests: quantities(&[("cpu", "100m".into()), ("memory", "256Mi".into())]),
        limits: quantities(&[("memory", limit.into()), ("ephemeral-storage", "1Gi".into())]),
        claims: None,
    }
}

#[cfg(test)]
mod tests {
    use super::{JobWanted, job};
    use crds::PlaybookRun;
    use crds::playbook_run::FrozenInputs;

    #[test]
    fn a_job_is_one_attempt_that_is_held_until_recorded_and_restricted() {
        let run: PlaybookRun = serde_yaml::from_str(
            "{apiVersion: clusterwright.dev/v1alpha1, kind: PlaybookRun, metadata: {name: r, namespace: fleet, uid: u}, spec: {clusterName: a, intent: Install, steps: [prepare], hosts: [x], timeoutSeconds: 600}}",
        )
        .unwrap();
        let inputs = FrozenInputs { digest: "sha256:00".into(), config_map: "r".into(), secret: "r".into() };
        let wanted =
            JobWanted { run: &run, image: "x", token: 7, attempt: 1, inputs: &inputs, pod: None, volume_claim: None };
        let job = serde_json::to_value(job(&wanted)).unwrap();
        let check = |pointer: &str, expected: serde_json::Value| {
            assert_eq!(job.pointer(pointer), Some(&expected), "{pointer}");
        };
        check("/metadata/ownerReferences/0/uid", "u".into());
        check("/metadata/finalizers/0", "clusterwright.dev/outcome-recorded".into());
        check("/spec/template/metadata/finalizers/0", "clusterwright.dev/outcome-recorded".into());
        check("/spec/template/metadata/labels/clusterwright.dev~1run", "r".into());
        check("/spec/backoffLimit", 0.into());
        check("/spec/activeDeadlineSeconds", 600.into());
        check("/spec/podReplacementPolicy", "Failed".into());
        assert_eq!(job.pointer("/spec/ttlSecondsAfterFinished"), None);
        check("/spec/template/spec/restartPolicy", "Never".into());
        check("/spec/template/spec/securityContext/runAsNonRoot", true.into());
        let pod = "/spec/template/spec";
        check(&format!("{pod}/serviceAccountName"), "r".into());
        check(&format!("{pod}/automountServiceAccountToken"), false.into());
        check(&format!("{pod}/volumes/3/projected/sources/0/serviceAccountToken/expirationSeconds"), 1800.into());
        let container = "/spec/template/spec/containers/0";
        check(&format!("{container}/securityContext/allowPrivilegeEscalation"), false.into());
        check(&format!("{container}/securityContext/capabilities/drop/0"), "ALL".into());
        check(&format!("{container}/securityContext/readOnlyRootFilesystem"), true.into());
        let arguments =
            "run --inputs /inputs --run fleet/r --token 7 --attempt 1 --digest sha256:00 --deadline-seconds 480";
        check(&format!("{container}/args"), arguments.split(' ').collect::<Vec<_>>().into());
    }
}
