//! The data of etcd's members: each volume gets that of a new etcd, made of the one snapshot, by a Pod that two
//! programs are in. One fetches and decrypts the snapshot; the other is `etcdutl` in etcd's own image, which has no
//! shell. etcd starts once all of them are done.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use crds::KarmadaDeployment;
use crds::backup::{MOUNT_PATH, SNAPSHOT_KEY};
use crds::karmada_deployment::KarmadaRestoredFrom;
use serde_json::{Value, json};

use super::super::component::Component;
use super::super::contents::Files;
use super::super::etcd::{CLAIMS, claim_name, etcd_member_name, first_members, initial_cluster};
use super::super::material::RestoreMaterial;
use super::super::names::{component_name, host_metadata, pod_selector, prefixed};
use super::super::place::{Hold, Stage, Wanted};
use super::super::pod::{confined, pull_secret_refs, security};
use super::super::release::Release;
use super::super::volume::claim;
use super::revision::bump;

/// Where the snapshot is put, and where etcd's volume is.
const SNAPSHOT: &str = "/restore";
const VOLUME: &str = "/var/lib/etcd";
/// Where the credentials and the key are.
const SECRETS: &str = "/secrets";
/// What Pods that restore are called by.
pub(super) const NAME: &str = "etcd-restore";
/// Attempts of one Job, each later than the one before; then it is made anew.
const ATTEMPTS: i32 = 20;

/// What makes the data: a Secret, and for each member its volume and a Job.
pub(in super::super) fn wanted(
    object: &KarmadaDeployment,
    release: &Release,
    material: &RestoreMaterial,
    record: &KarmadaRestoredFrom,
) -> Vec<Wanted> {
    let Some(local) = object.spec.etcd.local() else { return Vec::new() };
    let mut wanted = vec![Wanted::on_host(Stage::Foundation, secret(object, &material.files))];
    for ordinal in 0..first_members(object) {
        let volume = claim_name(object, claims(record), ordinal);
        let mut metadata = host_metadata(object, &volume);
        let selector = pod_selector(object, Component::Etcd);
        metadata["labels"]["app.kubernetes.io/name"] = selector["app.kubernetes.io/name"].clone();
        let manifest = json!({
            "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "spec": claim(&local.storage),
        });
        wanted.push(Wanted::on_host(Stage::Foundation, manifest));
        let job = job(object, (release, record), material, (ordinal, &volume));
        // Its template cannot be changed, and what makes data is not exchanged on its way.
        wanted.push(Wanted::on_host(Stage::EtcdData, job).held(Hold::Kept));
    }
    wanted
}

/// What the names of the claims begin with.
fn claims(record: &KarmadaRestoredFrom) -> &str {
    record.claims.as_deref().unwrap_or(CLAIMS)
}

/// What this and no other restore of the plane puts behind names: a Job of an earlier one made other data.
fn mark(record: &KarmadaRestoredFrom) -> String {
    record.claims.as_ref().map(|claims| format!("-{claims}")).unwrap_or_default()
}

/// Name of what they are given.
fn secret_name(object: &KarmadaDeployment) -> String {
    prefixed(object, NAME)
}

fn secret(object: &KarmadaDeployment, files: &Files) -> Value {
    let data: serde_json::Map<String, Value> =
        files.0.iter().map(|(name, content)| (name.clone(), json!(STANDARD.encode(content)))).collect();
    let metadata = host_metadata(object, &secret_name(object));
    json!({ "apiVersion": "v1", "kind": "Secret", "type": "Opaque", "metadata": metadata, "data": data })
}

fn job(
    object: &KarmadaDeployment,
    (release, record): (&Release, &KarmadaRestoredFrom),
    material: &RestoreMaterial,
    (ordinal, volume): (i32, &str),
) -> Value {
    let metadata = host_metadata(object, &format!("{}{}-{ordinal}", secret_name(object), mark(record)));
    let mut labels = metadata["labels"].clone();
    labels["app.kubernetes.io/name"] = json!(NAME);
    let pod = Component::Etcd.pod(&object.spec);
    let apart = json!([{ "weight": 100, "podAffinityTerm": {
        "topologyKey": "kubernetes.io/hostname", "labelSelector": { "matchLabels": labels },
    } }]);
    let affinity = match pod.affinity.is_empty() {
        true => json!({ "podAntiAffinity": { "preferredDuringSchedulingIgnoredDuringExecution": apart } }),
        false => json!(pod.affinity),
    };
    let mut volumes = vec![
        json!({ "name": "data", "persistentVolumeClaim": { "claimName": volume } }),
        json!({ "name": "snapshot", "emptyDir": {} }),
        json!({ "name": "secrets", "secret": { "secretName": secret_name(object), "defaultMode": 0o440 } }),
    ];
    if let Some(claim) = &material.claim {
        volumes.push(json!({ "name": "backups", "persistentVolumeClaim": { "claimName": claim, "readOnly": true } }));
    }
    json!({
        "apiVersion": "batch/v1", "kind": "Job", "metadata": metadata,
        "spec": {
            "parallelism": 1, "completions": 1, "backoffLimit": ATTEMPTS,
            "template": {
                "metadata": { "labels": labels },
                "spec": {
                    "restartPolicy": "Never",
                    "automountServiceAccountToken": false,
                    "enableServiceLinks": false,
                    "securityContext": security(),
                    "affinity": affinity,
                    "tolerations": pod.tolerations,
                    "imagePullSecrets": pull_secret_refs(object),
                    "initContainers": [fetch(material, record)],
                    "containers": [restore(object, (release, record), ordinal)],
                    "volumes": volumes,
                },
            },
        },
    })
}

/// Fetches the snapshot, after it has removed what an attempt before it has left in the volume.
fn fetch(material: &RestoreMaterial, record: &KarmadaRestoredFrom) -> Value {
    // Plain values always become JSON.
    let inputs = serde_json::to_string(&material.storage).unwrap_or_default();
    let mut mounts = vec![mount("data", VOLUME), mount("snapshot", SNAPSHOT), mount("secrets", SECRETS)];
    if material.claim.is_some() {
        mounts.push(mount("backups", MOUNT_PATH));
    }
    json!({
        "name": "snapshot",
        "image": material.image,
        "imagePullPolicy": "IfNotPresent",
        "args": [
            "fetch-snapshot", "--storage", inputs, "--secrets", SECRETS, "--location", record.location,
            "--key", format!("{SECRETS}/{SNAPSHOT_KEY}"), "--sha256", record.sha256,
            "--to", snapshot_file(), "--clear", data_directory(),
        ],
        "resources": { "requests": { "memory": "64Mi" }, "limits": { "memory": "256Mi" } },
        "securityContext": confined(),
        "volumeMounts": mounts,
    })
}

fn restore(object: &KarmadaDeployment, (release, record): (&Release, &KarmadaRestoredFrom), ordinal: i32) -> Value {
    let name = format!("{}-{ordinal}", component_name(object, Component::Etcd));
    let version = Component::Etcd.version(&object.spec, release);
    let flags = [
        format!("--name={name}"),
        format!("--data-dir={}", data_directory()),
        format!("--initial-cluster={}", initial_cluster(object, 0..first_members(object))),
        format!("--initial-cluster-token={}{}", crds::ObjectExt::uid(object), mark(record)),
        format!("--initial-advertise-peer-urls=https://{}:2380", etcd_member_name(object, ordinal)),
        format!("--bump-revision={}", bump(record)),
        "--mark-compacted".to_owned(),
    ];
    let program = ["/usr/local/bin/etcdutl", "snapshot", "restore", &snapshot_file()].map(str::to_owned);
    json!({
        "name": "restore",
        "image": Component::Etcd.image(&object.spec, &version),
        "imagePullPolicy": object.spec.images.pull_policy.as_str(),
        "command": program.into_iter().chain(flags).collect::<Vec<_>>(),
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "securityContext": confined(),
        "volumeMounts": [mount("data", VOLUME), mount("snapshot", SNAPSHOT)],
    })
}

fn snapshot_file() -> String {
    format!("{SNAPSHOT}/snapshot.db")
}

/// Where etcd looks for it.
fn data_directory() -> String {
    format!("{VOLUME}/data")
}

fn mount(name: &str, path: &str) -> Value {
    json!({ "name": name, "mountPath": path })
}
