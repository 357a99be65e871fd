//! What is taken of a bundle, and what is not.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use crds::Reason;
use crds::addon::BundlePlace;
use ring::signature::{Ed25519KeyPair, KeyPair};
use serde_json::{Value, json};

use super::{Entry, EntryKind, EntryWanted};
use crate::addon::Problem;

fn wanted(version: &str, signed_by: Option<String>) -> EntryWanted {
    EntryWanted {
        field: "spec.source.manifests.from[].bundle",
        place: BundlePlace { url: "https://b.example/x/".into(), index_sha256: None, signed_by },
        kind: EntryKind::Manifests,
        name: "metrics-server".into(),
        version: version.into(),
    }
}

fn index(more: Value) -> Vec<u8> {
    let mut entry = json!({
        "name": "metrics-server", "kind": "manifests", "version": "0.8.1", "os": "linux", "path": "files/m.yaml",
        "size": 7, "sha256": "0A".repeat(32),
    });
    entry.as_object_mut().unwrap().extend(more.as_object().cloned().unwrap());
    json!({"formatVersion": 1, "components": {}, "artifacts": [entry]}).to_string().into_bytes()
}

fn refused(found: Result<Entry, Problem>, reason: Reason, part: &str) {
    let problem = found.unwrap_err();
    assert_eq!(problem.reason, reason, "{}", problem.message);
    assert!(problem.message.contains(part), "{}", problem.message);
}

#[test]
fn an_entry_is_found_by_its_kind_its_name_and_its_version() {
    let found = wanted("v0.8.1", None).find(&index(json!({}))).unwrap();
    assert_eq!(found, Entry { url: "https://b.example/x/files/m.yaml".into(), sha256: "0a".repeat(32) });
    let missing = wanted("0.8.2", None).find(&index(json!({})));
    refused(missing, Reason::BundleEntryNotFound, "has no manifests metrics-server 0.8.2");
    refused(wanted("0.8.2", None).find(&index(json!({}))), Reason::BundleEntryNotFound, "; it has 0.8.1");
    let chart = wanted("0.8.1", None).find(&index(json!({"kind": "chart"})));
    refused(chart, Reason::BundleEntryNotFound, "https://b.example/x/index.json has no manifests");
}

#[test]
fn an_index_or_entry_that_cannot_be_used_is_refused() {
    let find = |index: &[u8]| wanted("0.8.1", None).find(index);
    refused(find(b"<html>"), Reason::BundleInvalid, "is it the index of a bundle?");
    refused(find(br#"{"formatVersion": 2}"#), Reason::BundleInvalid, "formatVersion 2");
    for more in
        [json!({"path": "../m.yaml"}), json!({"path": "/m.yaml"}), json!({"path": "m.yaml?x"}), json!({"sha256": "0a"})]
    {
        refused(find(&index(more)), Reason::BundleInvalid, "cannot be used");
    }
    refused(find(&index(json!({"size": 9 << 20}))), Reason::BundleInvalid, "split it");
}

#[test]
fn another_index_and_another_file_are_refused_by_their_digests() {
    let mut wanted = wanted("0.8.1", None);
    assert_eq!(wanted.check_index("ab"), Ok(()));
    wanted.place.index_sha256 = Some("ab".into());
    assert_eq!(wanted.check_index("ab"), Ok(()));
    let problem = wanted.check_index("cd").unwrap_err();
    assert_eq!(problem.reason, Reason::BundleDigestMismatch);
    assert!(problem.message.contains("bundle.indexSHA256 is ab"), "{}", problem.message);
    let entry = Entry { url: "u".into(), sha256: "ab".into() };
    assert_eq!(wanted.check_file(&entry, "ab"), Ok(()));
    assert_eq!(wanted.check_file(&entry, "cd").unwrap_err().reason, Reason::BundleDigestMismatch);
}

#[test]
fn a_signature_is_of_this_entry_and_of_this_file() {
    let pair = Ed25519KeyPair::from_seed_unchecked(&[7; 32]).unwrap();
    let der = [&super::signature::DER[..], pair.public_key().as_ref()].concat();
    let key = format!("-----BEGIN PUBLIC KEY-----\n{}\n-----END PUBLIC KEY-----\n", STANDARD.encode(der));
    let sign = |name: &str, sha256: &str| {
        let message = format!("clusterwright bundle entry v1\nmanifests\n{name}\n0.8.1\n{sha256}\n");
        json!({"signature": STANDARD.encode(pair.sign(message.as_bytes()))})
    };
    let find = |more: Value| wanted("v0.8.1", Some(key.clone())).find(&index(more));
    assert!(find(sign("metrics-server", &"0a".repeat(32))).is_ok());
    refused(find(json!({})), Reason::BundleNotSigned, "it has no signature of the key, which spec.source");
    refused(find(json!({"signature": "?"})), Reason::BundleNotSigned, "no base64");
    for other in [sign("other", &"0a".repeat(32)), sign("metrics-server", &"0b".repeat(32))] {
        refused(find(other), Reason::BundleNotSigned, "is not that of the key");
    }
    let no_key = wanted("0.8.1", Some("-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----".into()));
    refused(no_key.find(&index(json!({}))), Reason::BundleNotSigned, "Ed25519 key in PEM");
}
