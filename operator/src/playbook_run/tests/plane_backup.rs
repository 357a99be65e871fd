//! A run that backs up the etcd of a plane: it is given a certificate of its own, and the keys of the plane for its
//! bundle, and nothing else has the certificate's key.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use crds::{KarmadaDeployment, PlaybookRun};
use serde_json::{Value, json};

use super::{JOB, RUN, turn, until_rest};
use crate::fake_api::FakeApi;
use crate::karmada_deployment::pki_owner;
use crate::remote::Key;

const SECRET: &str = "secrets/fleet/r";
const PLANE: &str = "karmadadeployments/fleet/k1";
const GROUP: &str = "clusterwright.dev/v1alpha1";

/// A plane without keys yet, and a run that backs it up.
fn world(etcd: &Value) -> FakeApi {
    let api = FakeApi::default();
    let put = |kind: &str, plural: &str, name: &str, spec: Value, status: Value| {
        let meta = json!({ "name": name, "namespace": "fleet", "creationTimestamp": "2026-11-27T09:00:00Z" });
        let object = json!({ "apiVersion": GROUP, "kind": kind, "metadata": meta, "spec": spec, "status": status });
        api.put(plural, &object.to_string());
    };
    let bundle = json!({ "bundle": { "url": "https://b.example" } });
    let plane = json!({ "version": "1.18.2", "crds": bundle, "etcd": etcd });
    put("KarmadaDeployment", "karmadadeployments", "k1", plane, json!({ "version": "1.18.2" }));
    put("BackupStorage", "backupstorages", "nfs", json!({ "volume": { "claimName": "c" } }), Value::Null);
    let backup = json!({ "karmadaDeploymentRef": { "name": "k1" }, "storageRef": { "name": "nfs" },
        "encryption": { "recipients": ["age1x"] } });
    put("EtcdBackup", "etcdbackups", "b", backup, Value::Null);
    let run = json!({ "intent": "Backup", "steps": ["backup-etcd"], "hosts": [], "backupRef": { "name": "b" } });
    put("PlaybookRun", "playbookruns", "r", run, Value::Null);
    api
}

async fn make_keys(api: &FakeApi) {
    let object: KarmadaDeployment = serde_json::from_value(api.get(PLANE).unwrap()).unwrap();
    let now = jiff::Timestamp::now();
    crate::pki::make(&api.context(), &pki_owner(&object), &Default::default(), now).await.unwrap();
}

fn file(files: &Value, name: &str) -> String {
    String::from_utf8(STANDARD.decode(files[name].as_str().unwrap_or_default()).unwrap()).unwrap()
}

#[tokio::test]
async fn a_run_for_a_plane_waits_for_its_keys_and_gets_a_certificate_that_its_etcd_trusts() {
    let api = world(&json!({ "local": { "replicas": 3 } }));
    until_rest(&api, 3).await;
    let status = api.get(RUN).unwrap()["status"].clone();
    assert_eq!(status["conditions"][0]["reason"], "PKIMissing", "{status}");
    assert_eq!(api.get(JOB), None);
    make_keys(&api).await;
    until_rest(&api, 1).await;
    let files = api.get(SECRET).unwrap()["data"].clone();
    let names: Vec<String> = files.as_object().unwrap().keys().cloned().collect();
    let expected = [
        "bundle.karmadadeployment.json",
        "bundle.pki.json",
        "etcd.backup-client.crt",
        "etcd.backup-client.key",
        "pki.etcd-ca.crt",
    ];
    assert_eq!(names, expected);
    let kept = api.get("secrets/fleet/k1-pki").unwrap();
    assert_eq!(files["pki.etcd-ca.crt"], kept["data"]["etcd-ca.crt"]);
    let [authority, client] = ["pki.etcd-ca.crt", "etcd.backup-client.crt"]
        .map(|name| x509_parser::pem::parse_x509_pem(file(&files, name).as_bytes()).unwrap().1);
    let (authority, client) = (authority.parse_x509().unwrap(), client.parse_x509().unwrap());
    assert_eq!(client.issuer(), authority.subject());
    client.verify_signature(Some(authority.public_key())).unwrap();
    let bundled: Value = serde_json::from_str(&file(&files, "bundle.pki.json")).unwrap();
    assert_eq!((&bundled["metadata"], &bundled["data"]), (&json!({ "name": "k1-pki" }), &kept["data"]));
    for key in ["ca.key", "etcd-ca.key", "front-proxy-ca.key", "sa.key", "sa.pub"] {
        assert!(bundled["data"][key].is_string(), "{key}: {:?}", bundled["data"].as_object().unwrap().keys());
    }
    let object: Value = serde_json::from_str(&file(&files, "bundle.karmadadeployment.json")).unwrap();
    assert_eq!((&object["kind"], &object["spec"]["version"]), (&json!("KarmadaDeployment"), &json!("1.18.2")));
    let key = file(&files, "etcd.backup-client.key");
    let lines: Vec<&str> = key.lines().filter(|line| !line.starts_with("-----")).collect();
    for name in api.names().iter().filter(|name| *name != SECRET) {
        let text = api.get(name).unwrap().to_string();
        assert!(lines.iter().all(|line| !text.contains(line)) && !text.contains(&STANDARD.encode(&key)), "{name}");
    }
    let run: PlaybookRun = serde_json::from_value(api.get(RUN).unwrap()).unwrap();
    assert!(run.spec.hosts.is_empty() && run.spec.cluster_name.is_none());
    let map = api.get("configmaps/fleet/r").unwrap();
    let inputs: Value = serde_json::from_str(map["data"]["inputs.json"].as_str().unwrap()).unwrap();
    let backup = &inputs["backup"];
    assert_eq!(backup["etcd"]["endpoints"].as_array().unwrap().len(), 3, "{backup}");
    assert_eq!(
        (&backup["karmadaDeployment"]["name"], &backup["karmadaDeployment"]["version"]),
        (&json!("k1"), &json!("1.18.2"))
    );
    assert!(backup["location"].as_str().unwrap().starts_with("_karmada/k1/"), "{backup}");
}

#[tokio::test]
async fn an_etcd_in_pods_of_another_cluster_is_read_through_its_api_by_whoever_may_do_nothing_else() {
    let api = world(&json!({ "local": { "replicas": 3 } }));
    api.edit(PLANE, |plane| {
        plane["spec"]["hostClusterRef"] = json!({ "name": "a" });
        plane["spec"]["hostNamespace"] = json!("planes");
    });
    make_keys(&api).await;
    until_rest(&api, 1).await;
    let reason = || api.get(RUN).unwrap()["status"]["conditions"][0]["reason"].clone();
    assert_eq!(reason(), "ClusterNotFound");
    let cluster = json!({ "apiVersion": GROUP, "kind": "Cluster", "metadata": { "name": "a", "namespace": "fleet" },
        "spec": { "kubeconfigRef": { "name": "a-kubeconfig" } } });
    api.put("clusters", &cluster.to_string());
    let kubeconfig = json!({ "apiVersion": "v1", "kind": "Config", "current-context": "c",
        "clusters": [{ "name": "c", "cluster": { "server": "https://a.test:6443" } }],
        "users": [{ "name": "c", "user": { "token": "administrator" } }],
        "contexts": [{ "name": "c", "context": { "cluster": "c", "user": "c" } }] });
    let data = json!({ "kubeconfig": STANDARD.encode(kubeconfig.to_string()) });
    let secret = json!({ "apiVersion": "v1", "kind": "Secret",
        "metadata": { "name": "a-kubeconfig", "namespace": "fleet" }, "data": data });
    api.put("secrets", &secret.to_string());
    until_rest(&api, 1).await;
    assert_eq!((reason(), api.get(JOB)), (json!("ClusterUnreachable"), None));

    let host = FakeApi::default();
    let workload = json!({ "apiVersion": "apps/v1", "kind": "StatefulSet",
        "metadata": { "name": "k1-etcd", "namespace": "planes" } });
    host.put("statefulsets", &workload.to_string());
    let ctx = api.context();
    ctx.remote.put(&Key::new("fleet", "a"), host.client());
    ctx.remote.show(&Key::new("fleet", "a"), Vec::new());
    turn(&ctx, &api).await;
    turn(&ctx, &api).await;
    let files = api.get(SECRET).unwrap_or_else(|| panic!("{}", reason()))["data"].clone();
    let given: Value = serde_yaml::from_str(&file(&files, "etcd.host-kubeconfig")).unwrap();
    assert_eq!(given["clusters"][0]["cluster"]["server"], "https://a.test:6443");
    let user = &given["users"][0]["user"];
    assert_eq!(user["token"], "token of serviceaccounts/planes/k1-etcd-backup");
    assert!(!given.to_string().contains("administrator"), "the operator's own credentials stay where they are");
    let role = host.get("roles/planes/k1-etcd-backup").unwrap();
    assert_eq!(role["rules"][0]["resourceNames"], json!(["k1-etcd-0", "k1-etcd-1", "k1-etcd-2"]));
    assert_eq!(role["metadata"]["ownerReferences"][0]["uid"], "statefulsets-planes-k1-etcd-1");
    assert!(host.get("rolebindings/planes/k1-etcd-backup").is_some());
    let map = api.get("configmaps/fleet/r").unwrap();
    let inputs: Value = serde_json::from_str(map["data"]["inputs.json"].as_str().unwrap()).unwrap();
    assert_eq!(inputs["backup"]["etcd"]["forwardedIn"], "planes");
}

#[tokio::test]
async fn a_plane_with_an_external_etcd_is_read_by_the_secret_that_its_administrator_gave() {
    let external = json!({ "endpoints": ["https://10.9.0.1:2379"], "secretRef": { "name": "etcd" }, "prefix": "/k1" });
    let api = world(&json!({ "external": external }));
    make_keys(&api).await;
    until_rest(&api, 3).await;
    let status = api.get(RUN).unwrap()["status"].clone();
    assert_eq!(status["conditions"][0]["reason"], "SecretNotFound", "{status}");
    let given = super::external_etcd::given(&api);
    until_rest(&api, 1).await;
    let files = api.get(SECRET).unwrap()["data"].clone();
    assert_eq!(files["pki.etcd-ca.crt"], given["ca.crt"]);
    assert_eq!(files["etcd.backup-client.key"], given["tls.key"]);
    assert!(files["bundle.pki.json"].is_string());
    let bundle = [file(&files, "bundle.pki.json"), file(&files, "bundle.karmadadeployment.json")].concat();
    assert!(!bundle.contains(given["tls.key"].as_str().unwrap()), "the client's key goes into no backup");
}
