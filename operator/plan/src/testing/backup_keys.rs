//! What is seen of the keys of a plane's backup, as the Job that fetches them leaves it.

use crds::backup::{FetchedBackup, FetchedPlane};
use crds::names::label;
use serde_json::{Value, json};

use crate::key_transfer::{KeysSeen, RestoringSeen, SnapshotKey};

/// Where the backup is.
pub const LOCATION: &str = "_karmada/k1/uid-0/1";

/// A backup of plane k0 in BackupStorage bucket, which is there with all that it needs; nothing was fetched yet.
pub fn seen() -> RestoringSeen {
    let data = json!({ "accessKeyID": "aWQ=", "secretAccessKey": "a2V5" });
    let secret = json!({ "metadata": { "name": "s3" }, "data": data });
    let mut seen = RestoringSeen { image: "executor:1".into(), identity: true, ..RestoringSeen::default() };
    seen.storage = Some(storage(json!({ "s3": {
        "endpoint": "https://s3.example.com", "bucket": "b", "region": "r", "credentialsRef": { "name": "s3" } } })));
    seen.seen.credentials = Some(serde_json::from_value(secret).unwrap());
    seen
}

/// A storage that can be reached.
pub fn storage(spec: Value) -> crds::BackupStorage {
    serde_json::from_value(json!({
        "apiVersion": "clusterwright.dev/v1alpha1", "kind": "BackupStorage",
        "metadata": { "name": "bucket", "namespace": "fleet", "uid": "uid-bucket" }, "spec": spec,
        "status": { "conditions": [{ "type": "Reachable", "status": "True", "reason": "Answers", "message": "",
            "lastTransitionTime": "2026-01-01T00:00:00Z" }] }
    }))
    .unwrap()
}

/// What the Job says of the backup.
pub fn fetched() -> FetchedBackup {
    let plane = FetchedPlane {
        name: "k0".into(),
        uid: "uid-0".into(),
        version: Some("1.18.1".into()),
        endpoint: Some("https://10.0.0.8:5443".into()),
    };
    FetchedBackup {
        backup: "nightly".into(),
        cluster: String::new(),
        cluster_uid: String::new(),
        plane: Some(plane),
        location: LOCATION.into(),
        taken_at: serde_json::from_value(json!("2026-11-27T03:00:00Z")).unwrap(),
        revision: 77,
        size: 3_250_000,
        sha256: "a0".into(),
        etcd_version: "3.6.6".into(),
        kubernetes_version: None,
        pod_cidr: String::new(),
        service_cidr: String::new(),
        dns_domain: "cluster.local".into(),
    }
}

/// The Job that fetches the keys of plane k1 ends so, and has written them, which then stand so.
pub fn arrive(seen: &mut RestoringSeen, backup: &FetchedBackup, keys: KeysSeen) {
    seen.jobs[0].metadata.uid = Some("uid-job".into());
    let said = json!({ "backup": backup }).to_string();
    let pod = json!({
        "metadata": { "name": "p", "labels": { label::RESTORE_FROM: "k1" }, "ownerReferences": [{
            "apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": "uid-job", "controller": true }] },
        "status": { "containerStatuses": [{ "name": "executor", "image": "", "imageID": "", "ready": false,
            "restartCount": 0, "state": { "terminated": { "exitCode": 0, "message": said } } }] }
    });
    seen.pods = vec![serde_json::from_value(pod).unwrap()];
    seen.keys = keys;
    seen.snapshot_key = Some(SnapshotKey(vec![7; 16]));
}

/// What was fetched is removed.
pub fn drop_all(seen: &mut RestoringSeen) {
    (seen.keys, seen.snapshot_key) = (KeysSeen::Absent, None);
    seen.jobs.clear();
    seen.pods.clear();
}
