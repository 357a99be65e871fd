//! A bundle over HTTP: what is asked for, and what is made of what it answers.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::http::{HeaderMap, StatusCode, Uri};
use crds::Addon;
use crds::names::addon_revision_secret;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::addon::source::read;
use crate::fake_api::FakeApi;

const MANIFEST: &str = "{apiVersion: v1, kind: ConfigMap, metadata: {name: x}}";

/// A bundle's server: what it has by path, and the requests that it got, with their login.
#[derive(Clone, Default)]
struct Server {
    files: Arc<Mutex<BTreeMap<String, Vec<u8>>>>,
    requests: Arc<Mutex<Vec<String>>>,
}

impl Server {
    async fn start() -> (Self, String) {
        let server = Self::default();
        let (files, requests) = (server.files.clone(), server.requests.clone());
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/bundle", listener.local_addr().unwrap());
        let router = Router::new().fallback(move |uri: Uri, headers: HeaderMap| async move {
            let login = headers.get("authorization").map_or("", |value| value.to_str().unwrap_or("?")).to_owned();
            requests.lock().unwrap().push(format!("{} {login}", uri.path()).trim_end().to_owned());
            let files = files.lock().unwrap();
            match files.get(uri.path()) {
                Some(bytes) => (StatusCode::OK, bytes.clone()),
                None => (StatusCode::NOT_FOUND, Vec::new()),
            }
        });
        tokio::spawn(async move { axum::serve(listener, router).await });
        (server, url)
    }

    fn put(&self, path: &str, bytes: &[u8]) {
        self.files.lock().unwrap().insert(path.to_owned(), bytes.to_vec());
    }

    /// Puts an index of one entry; returns its digest.
    fn index(&self, kind: &str, path: &str, content: &[u8]) -> String {
        let entry = json!({
            "name": "agent", "kind": kind, "version": "1.0.0", "os": "any", "path": path, "size": content.len(),
            "sha256": sha256(content),
        });
        let index = json!({"formatVersion": 1, "artifacts": [entry]}).to_string();
        self.put("/bundle/index.json", index.as_bytes());
        sha256(index.as_bytes())
    }

    fn asked(&self) -> Vec<String> {
        std::mem::take(&mut *self.requests.lock().unwrap())
    }
}

fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

fn addon(source: Value) -> Addon {
    serde_json::from_value(json!({
        "apiVersion": "clusterwright.dev/v1alpha1", "kind": "Addon",
        "metadata": {"name": "agent", "namespace": "fleet", "uid": "u"},
        "spec": {"clusterSelector": {}, "source": source},
    }))
    .unwrap()
}

fn of_bundle(url: &str, more: Value) -> Addon {
    let mut bundle = json!({"url": url, "name": "agent", "version": "1.0.0"});
    bundle.as_object_mut().unwrap().extend(more.as_object().cloned().unwrap());
    addon(json!({"manifests": {"from": [{ "bundle": bundle }]}}))
}

#[tokio::test]
async fn manifests_of_a_bundle_are_read_once_and_stay_when_its_server_is_away() {
    let (server, url) = Server::start().await;
    let index = server.index("manifests", "files/m.yaml", MANIFEST.as_bytes());
    server.put("/bundle/files/m.yaml", MANIFEST.as_bytes());
    let api = FakeApi::default();
    let ctx = api.context();
    let wanted = of_bundle(&url, json!({"indexSHA256": index}));
    let (content, packed) = read(&ctx, &wanted).await.unwrap();
    let revision = content.unwrap().revision;
    assert_eq!(server.asked(), ["/bundle/index.json", "/bundle/files/m.yaml"]);
    // The same text in a ConfigMap is the same revision.
    api.put("configmaps", &format!("{{apiVersion: v1, kind: ConfigMap, metadata: {{name: agent, namespace: fleet}}, data: {{a: '{MANIFEST}'}}}}"));
    let from = addon(json!({"manifests": {"from": [{"configMapRef": {"name": "agent"}}]}}));
    assert_eq!(read(&ctx, &from).await.unwrap().0.unwrap().revision, revision);
    assert!(!packed.is_empty() && addon_revision_secret("agent", &revision).starts_with("agent-"));
    server.files.lock().unwrap().clear();
    assert_eq!(read(&ctx, &wanted).await.unwrap().0.unwrap().revision, revision);
    assert_eq!(server.asked(), Vec::<String>::new());
    // Another operator has nothing to go by.
    let problem = read(&api.context(), &wanted).await.unwrap().0.unwrap_err();
    assert_eq!(problem.reason.as_str(), "BundleNotFetched");
    assert!(problem.message.contains("404"), "{}", problem.message);
}

#[tokio::test]
async fn what_is_not_what_was_meant_is_refused() {
    let (server, url) = Server::start().await;
    server.index("manifests", "files/m.yaml", MANIFEST.as_bytes());
    server.put("/bundle/files/m.yaml", b"another text");
    let api = FakeApi::default();
    let check = async |more: Value, reason: &str, part: &str| {
        let problem = read(&api.context(), &of_bundle(&url, more)).await.unwrap().0.unwrap_err();
        assert_eq!(problem.reason.as_str(), reason, "{}", problem.message);
        assert!(problem.message.contains(part), "{}", problem.message);
    };
    check(json!({}), "BundleDigestMismatch", "files/m.yaml has the SHA-256").await;
    check(json!({"indexSHA256": "0".repeat(64)}), "BundleDigestMismatch", "index.json has the SHA-256").await;
    check(json!({"version": "2.0.0"}), "BundleEntryNotFound", "it has 1.0.0").await;
    check(json!({"url": "http://127.0.0.1:9/x"}), "BundleNotFetched", "does not answer the operator").await;
    check(json!({"credentialsRef": {"name": "none"}}), "SecretNotFound", "bundle.credentialsRef is not there").await;
    let large = vec![b'#'; 9 << 20];
    server.index("manifests", "files/m.yaml", b"");
    server.put("/bundle/files/m.yaml", &large);
    check(json!({}), "BundleInvalid", "more than 8388608 bytes").await;
}

#[tokio::test]
async fn a_chart_of_a_bundle_is_found_with_the_login_and_fetched_by_nobody_yet() {
    let (server, url) = Server::start().await;
    server.index("chart", "files/agent-1.0.0.tgz", b"chart");
    let api = FakeApi::default();
    api.put(
        "secrets",
        "{apiVersion: v1, kind: Secret, metadata: {name: login, namespace: fleet}, data: {token: dG9rZW4K}}",
    );
    let chart = json!({
        "bundle": {"url": url}, "name": "agent", "version": "1.0.0", "credentialsRef": {"name": "login"},
    });
    let ctx = api.context();
    let first = read(&ctx, &addon(json!({ "chart": chart }))).await.unwrap().0.unwrap();
    assert_eq!(server.asked(), ["/bundle/index.json Bearer token"]);
    // Another archive of that version is another revision, once the index is read anew.
    server.index("chart", "files/agent-1.0.0.tgz", b"another");
    let other = read(&api.context(), &addon(json!({ "chart": chart }))).await.unwrap().0.unwrap();
    assert_ne!(first.revision, other.revision);
    // With another login it is asked again.
    server.asked();
    let mut nobody = chart.clone();
    nobody.as_object_mut().unwrap().remove("credentialsRef");
    read(&ctx, &addon(json!({ "chart": nobody }))).await.unwrap().0.unwrap();
    assert_eq!(server.asked(), ["/bundle/index.json"]);
}
