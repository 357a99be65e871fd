//! A cluster whose owner brings authorities in a Secret, as the controllers see it.

use std::collections::BTreeMap;

use crds::names::condition;
use crds::{ClusterDeployment, Conditions};
use jiff::Timestamp;
use plan::cluster_deployment::pki::TABLE;
use plan::rotation::Subject;
use serde_json::json;

use super::{DEPLOYMENT, TURNS, stands, turn, until_rest, world};
use crate::fake_api::FakeApi;
use crate::pki::{Authority, Pki};

fn authority(name: &str) -> Authority {
    Authority::generate(name, Timestamp::now()).unwrap()
}

fn put(api: &FakeApi, pairs: &[(&str, &Authority)]) {
    let entries = pairs.iter().flat_map(|(stem, authority)| {
        [(format!("{stem}.crt"), authority.certificate()), (format!("{stem}.key"), authority.key())]
    });
    let data: BTreeMap<String, k8s_openapi::ByteString> =
        entries.map(|(name, value)| (name, k8s_openapi::ByteString(value.into()))).collect();
    let secret = json!({ "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "corp", "namespace": "fleet" }, "data": data });
    api.put("secrets", &secret.to_string());
}

fn keys(api: &FakeApi) -> Option<Pki> {
    let secret: k8s_openapi::api::core::v1::Secret = serde_json::from_value(api.get("secrets/fleet/a-pki")?).unwrap();
    Some(Pki::from_data(TABLE, "a-pki", &secret.data.unwrap()).unwrap())
}

fn says(api: &FakeApi, type_: &str) -> (String, String) {
    let deployment: ClusterDeployment = serde_json::from_value(api.get(DEPLOYMENT).unwrap()).unwrap();
    let found = deployment.condition(type_).cloned();
    found.map(|found| (found.reason, found.message)).unwrap_or_default()
}

async fn turns(api: &FakeApi) {
    let ctx = api.context();
    for _ in 0..5 {
        turn(&ctx, api).await;
    }
}

#[tokio::test]
async fn nothing_begins_without_them_and_the_cluster_has_them_then_and_follows_the_secret() {
    let api = world();
    api.edit(DEPLOYMENT, |deployment| deployment["spec"]["certificates"] = json!({ "caRef": { "name": "corp" } }));
    let (one, other, front) = (authority("corp"), authority("other"), authority("front"));
    turns(&api).await;
    assert_eq!(says(&api, condition::READY).0, "SecretNotFound");
    let mixed = json!({ "ca.crt": one.certificate(), "ca.key": other.key() });
    let secret = json!({ "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "corp", "namespace": "fleet" }, "data": mixed
        .as_object().unwrap().iter().map(|(name, value)| (name.clone(), json!(k8s_openapi::ByteString(value.as_str().unwrap().into())))).collect::<serde_json::Map<_, _>>() });
    api.put("secrets", &secret.to_string());
    turns(&api).await;
    let (reason, message) = says(&api, condition::READY);
    assert_eq!(reason, "InvalidAuthority");
    assert!(message.contains("cannot be used: ca.key: it is damaged, or does not belong"), "{message}");
    assert!(keys(&api).is_none() && api.values("playbookruns").is_empty());

    put(&api, &[("ca", &one)]);
    until_rest(&api, TURNS).await;
    assert!(stands(&api), "{:#?}", api.requests());
    let made = keys(&api).unwrap();
    assert_eq!(made.authority(Subject::Ca).unwrap().signer().certificate(), one.certificate());
    assert_eq!(says(&api, condition::AUTHORITIES_ROTATED).0, "Rotated");
    let before = api.writes();
    turns(&api).await;
    assert_eq!(api.writes(), before, "{:#?}", &api.requests()[before..]);

    put(&api, &[("ca", &one), ("front-proxy-ca", &front)]);
    turns(&api).await;
    let (reason, message) = says(&api, condition::AUTHORITIES_ROTATED);
    assert_eq!(reason, "RotatingAuthorities");
    // Nobody plays the cluster's own API here, and what is not well is not rotated.
    let expected =
        "rotation of front-proxy-ca to that of Secret corp of spec.certificates.caRef is to begin: waits for ";
    assert!(message.starts_with(expected), "{message}");
    assert!(keys(&api).unwrap() == made, "and nothing is taken before");
    let told = api.get(DEPLOYMENT).unwrap().to_string();
    assert!(!told.contains("PRIVATE") && !told.contains("BEGIN"), "{told}");
}
