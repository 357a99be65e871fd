//! Runs on machines that log in to mirrors of registries: the login is in the run's Secret, and nowhere else.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use crds::playbook_run::RunPhase;
use plan::inputs::login_key;
use serde_json::{Value, json};

use super::{JOB, RUN, phase, until_rest, world};
use crate::fake_api::FakeApi;

const CLUSTER: &str = "clusterdeployments/fleet/a";
const SECRET: &str = "secrets/fleet/r";
const REGISTRY: &str = "registry.example:5000";

/// A run with these steps in a cluster whose mirrors need a login.
fn mirrored(steps: &[&str]) -> FakeApi {
    let api = world();
    api.edit(CLUSTER, |cluster| {
        cluster["spec"]["containerRuntime"] = json!({ "registryMirrors": [
            { "prefix": REGISTRY, "endpoints": ["https://mirror.example"], "credentialsRef": { "name": "mirror" } },
        ] });
    });
    api.edit(RUN, |run| run["spec"]["steps"] = json!(steps));
    api
}

fn give(api: &FakeApi, password: &str) {
    let data = json!({ "username": STANDARD.encode("me"), "password": STANDARD.encode(password) });
    let meta = "metadata: {name: mirror, namespace: fleet}";
    api.put("secrets", &format!("{{apiVersion: v1, kind: Secret, {meta}, data: {data}}}"));
}

fn digest(api: &FakeApi) -> Value {
    api.get(RUN).unwrap()["status"]["settings"]["configuration"]["registries"].clone()
}

#[tokio::test]
async fn a_run_waits_for_the_login_and_has_it_in_its_secret_alone() {
    let api = mirrored(&["container-runtime"]);
    until_rest(&api, 3).await;
    let status = &api.get(RUN).unwrap()["status"];
    assert_eq!((&status["phase"], &status["conditions"][0]["reason"]), (&json!("Pending"), &json!("SecretNotFound")));
    assert_eq!(api.get(JOB), None);
    give(&api, "canary-of-the-mirror");
    until_rest(&api, 1).await;
    let files = api.get(SECRET).unwrap()["data"].clone();
    let header = format!("Basic {}", STANDARD.encode("me:canary-of-the-mirror"));
    assert_eq!(files[login_key(REGISTRY)], json!(STANDARD.encode(&header)));
    until_rest(&api, 10).await;
    assert_eq!(phase(&api), Some(RunPhase::Succeeded));
    let pieces = ["canary-of".into(), STANDARD.encode("canary-of-the-mirror"), header];
    for name in api.names().iter().filter(|name| !name.starts_with("secrets/")) {
        let text = api.get(name).unwrap().to_string();
        assert!(pieces.iter().all(|piece| !text.contains(piece)), "the login is in {name}");
    }
    assert!(digest(&api).is_string(), "that it was brought is remembered");
}

#[tokio::test]
async fn a_run_that_has_no_use_for_the_login_does_not_get_it() {
    let api = mirrored(&["prepare"]);
    give(&api, "canary-of-the-mirror");
    until_rest(&api, 1).await;
    let files = api.get(SECRET).unwrap()["data"].clone();
    assert!(files.as_object().unwrap().keys().all(|name| !name.starts_with("registry.")), "{files}");
}
