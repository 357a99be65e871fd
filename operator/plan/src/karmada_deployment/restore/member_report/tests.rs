use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::{MemberReport, Report, compare, kinds, report};

fn manifest(kind: &str, name: &str, content: &Value) -> Value {
    let (api_version, field) = if kind == "Deployment" { ("apps/v1", "spec") } else { ("v1", "data") };
    let labels = json!({ "app": name, "karmada.io/managed": "true" });
    let metadata = json!({ "name": name, "namespace": "default", "labels": labels });
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
    let mut same = manifest("Deployment", "same", &json!({ "replicas": 1, "template": {} }));
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
fn what_karmada_does_not_touch_is_not_said_to_be() {
    let content = json!({ "a": "1" });
    let wanted = manifest("ConfigMap", "a", &content);
    let mut others = manifest("ConfigMap", "a", &json!({ "a": "2" }));
    others["metadata"]["labels"] = json!({});
    let check = |work: &Value, live: &Value, expected: &str| {
        let found = compare(std::slice::from_ref(work), "m1", std::slice::from_ref(live));
        assert_eq!(found.message(), expected, "{work} {live}");
    };
    let changed = manifest("ConfigMap", "a", &json!({ "a": "2" }));
    let (applied, going) =
        (work("m1", false, std::slice::from_ref(&wanted)), work("m1", true, std::slice::from_ref(&wanted)));
    // What is not marked as Karmada's.
    check(&applied, &others, "nothing changes");
    check(&going, &others, "nothing changes");
    let mut forced = wanted.clone();
    forced["metadata"]["annotations"] = json!({ "work.karmada.io/conflict-resolution": "overwrite" });
    check(&work("m1", false, &[forced]), &others, "1 object overwritten: ConfigMap default/a");
    // What its Work leaves alone.
    let mut suspended = applied.clone();
    suspended["spec"]["suspendDispatching"] = json!(true);
    check(&suspended, &changed, "nothing changes");
    let mut kept = going.clone();
    kept["spec"]["preserveResourcesOnDeletion"] = json!(true);
    check(&kept, &changed, "1 object left without a Work: ConfigMap default/a");
    check(&going, &changed, "1 object deleted: ConfigMap default/a");
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
