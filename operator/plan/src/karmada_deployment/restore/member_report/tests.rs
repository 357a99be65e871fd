use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::{MemberReport, Report, compare, kinds, report};

fn manifest(kind: &str, name: &str, content: &Value) -> Value {
    let (api_version, field) = if kind == "Deployment" { ("apps/v1", "spec") } else { ("v1", "data") };
    let metadata = json!({ "name": name, "namespace": "default", "labels": { "app": name } });
    json!({ "apiVersion": api_version, "kind": kind, "metadata": metadata, (field): content })
}

fn work(member: &str, is_terminating: bool, manifests: &[Value]) -> Value {
    let deleted = is_terminating.then_some("2026-11-27T03:00:00Z");
    json!({ "metadata": { "name": "w", "namespace": format!("karmada-es-{member}"), "deletionTimestamp": deleted },
        "spec": { "workload": { "manifests": manifests } } })
}

fn names(names: &BTreeSet<String>) -> String {
    names.iter().cloned().collect::<Vec<_>>().join(",")
}

#[test]
fn a_report_says_what_is_created_overwritten_deleted_and_left() {
    let (one, two) = (json!({ "replicas": 1 }), json!({ "replicas": 2 }));
    let works = [
        work(
            "m1",
            false,
            &[manifest("Deployment", "same", &one), manifest("ConfigMap", "changed", &json!({ "a": "1" }))],
        ),
        work("m1", false, &[manifest("Deployment", "missing", &one)]),
        work("m1", true, &[manifest("Deployment", "going", &one), manifest("Secret", "gone", &json!({}))]),
        work("m2", false, &[manifest("Deployment", "elsewhere", &one)]),
    ];
    let mut same = manifest("Deployment", "same", &json!({ "replicas": 1, "paused": false }));
    same["metadata"]["resourceVersion"] = json!("7");
    same["status"] = json!({ "replicas": 1 });
    let live = [
        same,
        manifest("ConfigMap", "changed", &json!({ "a": "2" })),
        manifest("Deployment", "going", &two),
        manifest("Deployment", "later", &two),
    ];
    let found = compare(&works, "m1", &live);
    assert_eq!(names(&found.created), "Deployment.apps default/missing");
    assert_eq!(names(&found.overwritten), "ConfigMap default/changed");
    assert_eq!(names(&found.deleted), "Deployment.apps default/going");
    assert_eq!(names(&found.orphaned), "Deployment.apps default/later");
    let message = found.message();
    assert!(message.starts_with("1 object deleted: Deployment.apps default/going; 1 object overwritten"), "{message}");
    assert_eq!(compare(&[], "m1", &[]).message(), "nothing changes");
    // Whatever another Work wants of it.
    let both = [works[2].clone(), work("m1", false, &[manifest("Deployment", "going", &one)])];
    let found = compare(&both, "m1", &live[2..3]);
    assert_eq!((names(&found.deleted).as_str(), found.overwritten.len()), ("Deployment.apps default/going", 0));
    assert_eq!(kinds(&works).len(), 3);
}

#[test]
fn what_a_cluster_adds_is_no_difference_and_what_is_missing_is_one() {
    let wanted =
        manifest("Deployment", "a", &json!({ "list": [{ "name": "x" }], "empty": {}, "none": null, "gone": [] }));
    let check = |live: Value, is_same: bool| {
        let found =
            compare(&[work("m1", false, std::slice::from_ref(&wanted))], "m1", &[manifest("Deployment", "a", &live)]);
        assert_eq!(found.overwritten.is_empty(), is_same, "{live}");
    };
    check(json!({ "list": [{ "name": "x", "image": "y" }] }), true);
    check(json!({ "list": [{ "name": "x" }, { "name": "y" }] }), false);
    check(json!({ "list": [{ "name": "z" }] }), false);
    check(json!({}), false);
    let mut relabeled = manifest("Deployment", "a", &json!({ "list": [{ "name": "x" }] }));
    relabeled["metadata"]["labels"]["app"] = json!("b");
    let found = compare(&[work("m1", false, &[wanted])], "m1", &[relabeled]);
    assert_eq!(found.overwritten.len(), 1);
}

#[test]
fn a_member_that_was_not_seen_is_said_to_be_and_changes_what_is_approved() {
    let works = [work("m1", false, &[]), work("m2", false, &[])];
    let members = BTreeMap::from([("m1".to_owned(), Err("no route".to_owned())), ("m3".to_owned(), Ok(Vec::new()))]);
    let found = report(&works, &members);
    let told: Vec<String> = found.members().iter().map(|one| format!("{}: {}", one.name, one.message)).collect();
    assert_eq!(
        told,
        [
            "m1: it does not answer: no route",
            "m2: it is not named in spec.members, and so not looked at",
            "m3: nothing changes",
        ]
    );
    let mut seen = members.clone();
    seen.insert("m1".to_owned(), Ok(Vec::new()));
    assert_ne!(report(&works, &seen).digest(), found.digest());
    let mut again = members;
    again.insert("m1".to_owned(), Err("timeout".to_owned()));
    assert_eq!(report(&works, &again).digest(), found.digest(), "how it does not answer is no other outcome");
}

#[test]
fn every_other_outcome_has_another_digest() {
    let member = |deleted: &[&str], created: &[&str]| MemberReport {
        deleted: deleted.iter().map(|name| (*name).to_owned()).collect(),
        created: created.iter().map(|name| (*name).to_owned()).collect(),
        ..MemberReport::default()
    };
    let digest = |members: &[(&str, MemberReport)]| {
        Report(members.iter().map(|(name, report)| ((*name).to_owned(), report.clone())).collect()).digest()
    };
    let all = [
        digest(&[]),
        digest(&[("m1", member(&[], &[]))]),
        digest(&[("m2", member(&[], &[]))]),
        digest(&[("m1", member(&["a"], &[]))]),
        digest(&[("m1", member(&[], &["a"]))]),
        digest(&[("m1", member(&["a"], &[])), ("m2", member(&[], &[]))]),
        digest(&[("m1", member(&[], &[])), ("m2", member(&["a"], &[]))]),
    ];
    assert_eq!(all.iter().collect::<BTreeSet<_>>().len(), all.len(), "{all:?}");
    assert_eq!(digest(&[("m1", member(&["a", "b"], &[]))]), digest(&[("m1", member(&["b", "a"], &[]))]));
}
