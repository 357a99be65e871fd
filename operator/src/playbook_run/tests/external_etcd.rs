//! Runs on control planes whose etcd is run by others: they get its client's key, and nothing else has it.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use crds::playbook_run::RunPhase;
use serde_json::{Value, json};

use super::{JOB, RUN, phase, until_rest, world};
use crate::fake_api::FakeApi;

const CLUSTER: &str = "clusterdeployments/fleet/a";
const SECRET: &str = "secrets/fleet/r";

/// A cluster with an external etcd, and a run with these steps on its control plane.
fn external(steps: &[&str]) -> FakeApi {
    let api = world();
    api.edit(CLUSTER, |cluster| {
        cluster["spec"]["etcd"] =
            json!({ "topology": "External", "endpoints": ["https://10.9.0.1:2379"], "secretRef": { "name": "etcd" } });
        cluster["status"]["operations"][0]["mode"] = json!("Exclusive");
    });
    api.edit("machines/fleet/m", |machine| machine["spec"]["role"] = json!("control-plane"));
    api.edit(RUN, |run| run["spec"]["steps"] = json!(steps));
    api
}

fn pem(label: &str, content: &str) -> String {
    let der = [&[0x30, u8::try_from(content.len()).unwrap()], content.as_bytes()].concat();
    format!("-----BEGIN {label}-----\n{}\n-----END {label}-----\n", STANDARD.encode(der))
}

/// What etcd's administrator gave.
pub(super) fn given(api: &FakeApi) -> Value {
    let value = |label: &str, content: &str| STANDARD.encode(pem(label, content));
    let data = json!({
        "ca.crt": value("CERTIFICATE", "authority"),
        "tls.crt": value("CERTIFICATE", "client"),
        "tls.key": value("PRIVATE KEY", "canary-of-the-client"),
    });
    api.put(
        "secrets",
        &format!("{{apiVersion: v1, kind: Secret, metadata: {{name: etcd, namespace: fleet}}, data: {data}}}"),
    );
    data
}

#[tokio::test]
async fn a_run_waits_for_the_secret_and_is_given_the_key_in_its_own_alone() {
    let api = external(&["preflight"]);
    until_rest(&api, 3).await;
    let status = &api.get(RUN).unwrap()["status"];
    assert_eq!((&status["phase"], &status["conditions"][0]["reason"]), (&json!("Pending"), &json!("SecretNotFound")));
    assert_eq!(api.get(JOB), None);
    let given = given(&api);
    until_rest(&api, 1).await;
    let files = api.get(SECRET).unwrap()["data"].clone();
    assert_eq!(files["pki.etcd-ca.crt"], given["ca.crt"]);
    assert_eq!(files["pki.apiserver-etcd-client.crt"], given["tls.crt"]);
    assert_eq!(files["pki.apiserver-etcd-client.key"], given["tls.key"]);
    let authority = api.get("secrets/fleet/a-pki").unwrap()["data"]["ca.crt"].clone();
    assert_eq!(files["pki.ca.crt"], authority, "by which the cluster's data is known");
    assert!(files.get("pki.ca.key").is_none() && files.get("pki.sa.key").is_none(), "looking needs no more");
    assert!(api.get("secrets/fleet/a-etcd-certificates").is_none(), "nobody else's certificates are made");
    until_rest(&api, 10).await;
    assert_eq!(phase(&api), Some(RunPhase::Succeeded));
    let key = given["tls.key"].as_str().unwrap().to_owned();
    let pieces = [key, STANDARD.encode("canary-of-the-client"), "canary-of".into()];
    for name in api.names().iter().filter(|name| !name.starts_with("secrets/")) {
        let text = api.get(name).unwrap().to_string();
        assert!(pieces.iter().all(|piece| !text.contains(piece)), "the key is in {name}");
    }
    let settings = &api.get(RUN).unwrap()["status"]["settings"];
    assert!(settings["etcdClient"].is_string() && settings["etcdEndpoints"].is_string(), "{settings}");
}

#[tokio::test]
async fn a_run_that_has_no_use_for_the_key_does_not_get_it() {
    let api = external(&["prepare"]);
    given(&api);
    until_rest(&api, 1).await;
    let files = api.get(SECRET).unwrap()["data"].clone();
    assert!(files.as_object().unwrap().keys().all(|name| !name.starts_with("pki.")), "{files}");
}

#[tokio::test]
async fn a_key_that_cannot_be_used_is_told_and_not_repeated() {
    let api = external(&["preflight"]);
    given(&api);
    api.edit("secrets/fleet/etcd", |secret| {
        secret["data"]["tls.key"] = json!(STANDARD.encode(pem("ENCRYPTED PRIVATE KEY", "canary-of-the-client")));
    });
    until_rest(&api, 3).await;
    let status = &api.get(RUN).unwrap()["status"];
    assert_eq!(status["conditions"][0]["reason"], json!("InvalidEtcdClient"));
    let message = status["message"].as_str().unwrap();
    assert!(message.contains("tls.key protected by a passphrase") && !message.contains("canary"), "{message}");
}

/// A run that backs an etcd up over its endpoints: that of the cluster, or one without.
fn backup(of_cluster: bool) -> FakeApi {
    let api = external(&["backup-etcd"]);
    let storage = "{apiVersion: clusterwright.dev/v1alpha1, kind: BackupStorage, \
                   metadata: {name: nfs, namespace: fleet, uid: u-nfs}, spec: {volume: {claimName: c}}}";
    api.put("backupstorages", storage);
    let of = match of_cluster {
        true => json!({ "clusterName": "a" }),
        false => json!({ "etcd": { "endpoints": ["https://10.9.0.1:2379"], "secretRef": { "name": "etcd" } } }),
    };
    let mut spec = json!({ "storageRef": { "name": "nfs" }, "encryption": { "recipients": ["age1x"] } });
    spec.as_object_mut().unwrap().extend(of.as_object().unwrap().clone());
    let backup = json!({
        "apiVersion": "clusterwright.dev/v1alpha1", "kind": "EtcdBackup",
        "metadata": { "name": "b", "namespace": "fleet", "uid": "u-b" }, "spec": spec
    });
    api.put("etcdbackups", &backup.to_string());
    api.edit(RUN, |run| {
        run["spec"]["intent"] = json!("Backup");
        run["spec"]["hosts"] = json!([]);
        run["spec"]["backupRef"] = json!({ "name": "b" });
        if !of_cluster {
            run["spec"]["clusterName"] = Value::Null;
        }
    });
    api
}

#[tokio::test]
async fn a_backup_over_endpoints_gets_the_key_of_the_secret_in_its_own_alone() {
    let bundles =
        [(true, vec!["clusterdeployment.json", "machinesets.json", "pki.json"]), (false, vec!["etcdbackup.json"])];
    for (of_cluster, bundle) in bundles {
        let api = backup(of_cluster);
        until_rest(&api, 3).await;
        let status = &api.get(RUN).unwrap()["status"];
        let waits = (&status["phase"], &status["conditions"][0]["reason"]);
        assert_eq!(waits, (&json!("Pending"), &json!("SecretNotFound")), "{status}");
        let given = given(&api);
        until_rest(&api, 1).await;
        let files = api.get(SECRET).unwrap()["data"].clone();
        let bundle: Vec<String> = bundle.iter().map(|name| format!("bundle.{name}")).collect();
        let etcd = ["etcd.backup-client.crt", "etcd.backup-client.key", "pki.etcd-ca.crt"].map(str::to_owned);
        let names: Vec<String> = files.as_object().unwrap().keys().cloned().collect();
        assert_eq!(names, [bundle, etcd.to_vec()].concat(), "of a cluster: {of_cluster}");
        assert_eq!(files["pki.etcd-ca.crt"], given["ca.crt"]);
        assert_eq!(files["etcd.backup-client.crt"], given["tls.crt"]);
        assert_eq!(files["etcd.backup-client.key"], given["tls.key"]);
        let key = given["tls.key"].as_str().unwrap().to_owned();
        for name in api.names().iter().filter(|name| !name.starts_with("secrets/")) {
            let text = api.get(name).unwrap().to_string();
            assert!(!text.contains(&key) && !text.contains("canary-of"), "the key is in {name}");
        }
        let bundled = STANDARD.decode(files["bundle.etcdbackup.json"].as_str().unwrap_or_default()).unwrap();
        assert_eq!(String::from_utf8(bundled).unwrap().contains("10.9.0.1"), !of_cluster);
    }
}
