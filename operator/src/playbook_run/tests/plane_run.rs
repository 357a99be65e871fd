//! A run on machines of a Karmada control plane, beside a cluster of the same name.

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::ByteString;
use plan::encryption::Scheme;
use plan::karmada_deployment::pki::TABLE;
use serde_json::{Value, json};

use super::{JOB, RUN, turn, world};
use crate::fake_api::FakeApi;
use crate::pki::Pki;

const PLANE: &str = "karmadadeployments/fleet/a";

/// The world of a run of the cluster `a`, whose run is one of the plane `a`.
fn of_plane(steps: &str) -> FakeApi {
    let api = world();
    let group = "apiVersion: clusterwright.dev/v1alpha1";
    api.put("karmadadeployments", &format!("{{{group}, kind: KarmadaDeployment, metadata: {{name: a, namespace: fleet}}, spec: {{version: 1.18.2, mode: Binary, binary: {{controlPlane: {{replicas: 1}}, artifacts: {{url: 'https://b.example.com'}}, executor: {{image: 'plane/executor:1'}}}}, crds: {{bundle: {{url: 'https://b.example.com'}}}}}}}}"));
    api.edit("machines/fleet/m", |machine| {
        machine["spec"] = json!({ "clusterName": "a", "clusterKind": "KarmadaDeployment", "role": "control-plane", "hostRef": { "name": "h" } });
    });
    api.edit(RUN, |run| {
        run["spec"] = json!({ "clusterName": "a", "clusterKind": "KarmadaDeployment", "intent": "Install", "steps": steps.split(", ").collect::<Vec<_>>(), "hosts": ["h"], "timeoutSeconds": 600 });
    });
    let made = Pki::generate(TABLE, &Scheme::default(), Timestamp::now()).unwrap();
    let data = serde_json::to_value(made.data()).unwrap();
    api.edit("secrets/fleet/a-pki", |secret| secret["data"] = data);
    api
}

async fn turns(api: &FakeApi) {
    let ctx = api.context();
    for _ in 0..3 {
        turn(&ctx, api).await;
    }
}

fn message(api: &FakeApi) -> String {
    api.get(RUN).unwrap()["status"]["message"].to_string()
}

#[tokio::test]
async fn it_begins_by_the_lock_of_its_plane_whatever_a_cluster_of_the_same_name_has_given_out() {
    let api = of_plane("prepare, etcd");
    turns(&api).await;
    assert!(api.get(JOB).is_none(), "only the cluster's lock is given out");
    assert!(message(&api).contains("waits for the lock of KarmadaDeployment a"), "{}", message(&api));
    api.edit(PLANE, |plane| {
        plane["status"] = json!({ "operations": [{ "run": "r", "mode": "Exclusive", "hosts": ["h"], "token": 5, "startedAt": "2026-01-01T00:00:00Z" }] });
    });
    turns(&api).await;
    let job = api.get(JOB).unwrap_or_else(|| panic!("{}", message(&api)));
    let container = &job["spec"]["template"]["spec"]["containers"][0];
    assert_eq!(container["image"], json!("plane/executor:1"));
    assert!(container["args"].as_array().unwrap().contains(&json!("5")), "{}", container["args"]);
    let model: Value =
        serde_json::from_str(api.get("configmaps/fleet/r").unwrap()["data"]["inputs.json"].as_str().unwrap()).unwrap();
    assert_eq!(model["vars"]["cluster_kind"], json!("KarmadaDeployment"));
    assert_eq!(model["hosts"]["h"]["groups"], json!(["karmada_control_plane", "etcd"]));
    let secret: BTreeMap<String, ByteString> =
        serde_json::from_value(api.get("secrets/fleet/r").unwrap()["data"].clone()).unwrap();
    let of_etcd: Vec<&str> = secret.keys().map(String::as_str).filter(|key| key.starts_with("etcd.h.")).collect();
    assert_eq!(of_etcd, ["etcd.h.peer.crt", "etcd.h.peer.key", "etcd.h.server.crt", "etcd.h.server.key"]);
    assert!(!secret.keys().any(|key| key.starts_with("join.") || key.ends_with("ca.key")), "{:?}", secret.keys());
}

#[tokio::test]
async fn it_waits_for_a_plane_that_is_not_there_or_has_no_machines() {
    let api = of_plane("prepare");
    api.edit(PLANE, |plane| {
        plane["spec"]["mode"] = json!("Containers");
        plane["spec"].as_object_mut().unwrap().remove("binary");
    });
    turns(&api).await;
    assert!(message(&api).contains("waits for KarmadaDeployment a, which is not there"), "{}", message(&api));
    assert!(api.get(JOB).is_none());
}

#[tokio::test]
async fn a_backup_of_its_etcd_gets_the_keys_of_the_plane_and_a_certificate_that_its_members_trust() {
    let api = of_plane("backup-etcd");
    let group = "clusterwright.dev/v1alpha1";
    let put = |kind: &str, plural: &str, name: &str, spec: Value| {
        let meta = json!({ "name": name, "namespace": "fleet" });
        let object = json!({ "apiVersion": group, "kind": kind, "metadata": meta, "spec": spec });
        api.put(plural, &object.to_string());
    };
    put("BackupStorage", "backupstorages", "nfs", json!({ "volume": { "claimName": "c" } }));
    let backup = json!({ "karmadaDeploymentRef": { "name": "a" }, "storageRef": { "name": "nfs" },
        "encryption": { "recipients": ["age1x"] } });
    put("EtcdBackup", "etcdbackups", "b", backup);
    api.edit(RUN, |run| {
        run["spec"]["intent"] = json!("Backup");
        run["spec"]["backupRef"] = json!({ "name": "b" });
    });
    api.edit("machines/fleet/m", |machine| machine["status"] = json!({ "provisionedAt": "2026-01-01T00:00:00Z" }));
    api.edit(PLANE, |plane| {
        plane["status"] = json!({ "version": "1.18.2", "firstInstalledAt": "2026-01-01T00:00:00Z", "operations": [
            { "run": "r", "mode": "Exclusive", "hosts": ["h"], "token": 5, "startedAt": "2026-01-01T00:00:00Z" }] });
    });
    turns(&api).await;
    assert!(api.get(JOB).is_some(), "{}", message(&api));
    let model: Value =
        serde_json::from_str(api.get("configmaps/fleet/r").unwrap()["data"]["inputs.json"].as_str().unwrap()).unwrap();
    assert_eq!(model["hosts"]["h"]["groups"], json!(["karmada_control_plane", "etcd"]));
    assert!(model["backup"]["etcd"].is_null(), "{}", model["backup"]);
    assert_eq!(model["backup"]["karmadaDeployment"]["version"], json!("1.18.2"));
    let secret: BTreeMap<String, ByteString> =
        serde_json::from_value(api.get("secrets/fleet/r").unwrap()["data"].clone()).unwrap();
    let names: Vec<&str> = secret.keys().map(String::as_str).filter(|key| !key.starts_with("ssh-")).collect();
    let expected = [
        "bundle.karmadadeployment.json",
        "bundle.pki.json",
        "etcd.backup-client.crt",
        "etcd.backup-client.key",
        "pki.etcd-ca.crt",
    ];
    assert_eq!(names, expected);
    let kept = api.get("secrets/fleet/a-pki").unwrap();
    assert_eq!(json!(secret["pki.etcd-ca.crt"]), kept["data"]["etcd-ca.crt"]);
    let bundled: Value = serde_json::from_slice(&secret["bundle.pki.json"].0).unwrap();
    assert_eq!((&bundled["metadata"]["name"], &bundled["data"]), (&json!("a-pki"), &kept["data"]));
    let object: Value = serde_json::from_slice(&secret["bundle.karmadadeployment.json"].0).unwrap();
    assert_eq!(object["spec"]["mode"], json!("Binary"));
}

#[tokio::test]
async fn an_install_that_begins_with_a_backup_gets_what_decrypts_it_and_the_keys_that_it_must_have() {
    let api = of_plane("prepare, stage-backup, etcd");
    let group = "clusterwright.dev/v1alpha1";
    let storage = json!({ "apiVersion": group, "kind": "BackupStorage",
        "metadata": { "name": "bucket", "namespace": "fleet" }, "spec": { "s3": {
            "endpoint": "https://s3.example.com", "bucket": "b", "region": "r", "credentialsRef": { "name": "s3" } } } });
    api.put("backupstorages", &storage.to_string());
    let secret = |name: &str, data: Value| {
        let meta = json!({ "name": name, "namespace": "fleet" });
        let object = json!({ "apiVersion": "v1", "kind": "Secret", "metadata": meta, "data": data });
        api.put("secrets", &object.to_string());
    };
    let bytes = |text: &str| ByteString(text.as_bytes().to_vec());
    secret("s3", json!({ "accessKeyID": bytes("id"), "secretAccessKey": bytes("key") }));
    let from = json!({ "source": { "stored": { "storageRef": { "name": "bucket" }, "location": "_karmada/k0/u/1" } },
        "identityRef": { "name": "age" } });
    let record = json!({ "backup": "nightly", "plane": "k0", "planeUID": "u", "storageRef": { "name": "bucket" },
        "location": "_karmada/k0/u/1", "takenAt": "2026-01-01T00:00:00Z", "revision": 7, "size": 9, "sha256": "a0",
        "etcdVersion": "3.6.16", "dnsDomain": "cluster.local", "step": "Data" });
    api.edit(PLANE, |plane| {
        plane["spec"]["restoreFrom"] = from;
        plane["status"] = json!({ "restoredFrom": record, "operations": [
            { "run": "r", "mode": "Exclusive", "hosts": ["h"], "token": 5, "startedAt": "2026-01-01T00:00:00Z" }] });
    });
    let plane = api.get(PLANE).unwrap();
    turns(&api).await;
    assert!(message(&api).contains("KarmadaDeployment a has not asked for this run"), "{}", message(&api));
    let api = api.copy();
    api.edit(RUN, |run| {
        run.as_object_mut().unwrap().remove("status");
        run["metadata"]["ownerReferences"] = json!([{ "apiVersion": group, "kind": "KarmadaDeployment", "name": "a",
            "uid": plane["metadata"]["uid"], "controller": true }]);
    });
    turns(&api).await;
    assert!(message(&api).contains("Secret age of identityRef is not there"), "{}", message(&api));
    assert!(api.get(JOB).is_none());
    let identity = json!({ "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "age", "namespace": "fleet" },
        "data": { "identity": bytes("AGE-SECRET-KEY-1") } });
    api.put("secrets", &identity.to_string());
    turns(&api).await;
    assert!(api.get(JOB).is_some(), "{}", message(&api));
    let model: Value =
        serde_json::from_str(api.get("configmaps/fleet/r").unwrap()["data"]["inputs.json"].as_str().unwrap()).unwrap();
    let staging = &model["staging"];
    assert_eq!((&staging["karmadaDeployment"]["uid"], &staging["keys"]), (&json!("u"), &json!("a-pki")));
    assert_eq!(staging["location"], json!("_karmada/k0/u/1"));
    let secret: BTreeMap<String, ByteString> =
        serde_json::from_value(api.get("secrets/fleet/r").unwrap()["data"].clone()).unwrap();
    for name in ["restore.identity", "restore.pki.json", "storage.accessKeyID", "etcd.h.server.crt"] {
        assert!(secret.contains_key(name), "{name}: {:?}", secret.keys());
    }
    let keys: Value = serde_json::from_slice(&secret["restore.pki.json"].0).unwrap();
    assert_eq!(keys, api.get("secrets/fleet/a-pki").unwrap()["data"]);
}
