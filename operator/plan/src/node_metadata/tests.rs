use crds::Machine;
use serde_json::json;

use super::{compare, registered, wait};
use crate::cluster::NodeSeen;
use crate::testing::node_metadata::{apply, merge, owner, seen_taint};

fn worker(spec: &str) -> Machine {
    let text = format!(
        "{{apiVersion: clusterwright.dev/v1alpha1, kind: Machine, metadata: {{name: w1, namespace: fleet}},
          spec: {{clusterName: a, role: worker, kubernetesVersion: 1.35.4, hostRef: {{name: h1}}{spec}}}}}"
    );
    serde_yaml::from_str(&text).unwrap()
}

/// As its kubelet registered it, with a taint of a controller.
fn node(labels: &[(&str, &str)], taints: &[&str]) -> NodeSeen {
    let mut node =
        NodeSeen { name: "h1".into(), uid: "u1".into(), resource_version: "7".into(), ..NodeSeen::default() };
    for (key, value) in labels {
        node.labels.insert((*key).into(), (*value).into());
        node.owners.labels.insert((*key).into(), [owner("kubelet", false)].into());
    }
    node.taints = taints.iter().map(|key| seen_taint(key, "NoSchedule")).collect();
    node
}

/// What the API server makes of what has to be written; then there is nothing more.
fn write(machine: &Machine, node: &mut NodeSeen) {
    let write = compare(machine, node).write.expect("something is to be written");
    if let Some(patch) = &write.merge {
        merge(node, patch);
    }
    if let Some(object) = &write.apply {
        apply(&mut node.labels, &mut node.owners.labels, &object["metadata"]["labels"]);
        apply(&mut node.annotations, &mut node.owners.annotations, &object["metadata"]["annotations"]);
    }
    let again = compare(machine, node);
    assert_eq!((again.write, again.differs), (None, Vec::new()));
}

fn taints(node: &NodeSeen) -> Vec<&str> {
    node.taints.iter().map(|taint| taint.key.as_str()).collect()
}

const GPU: &str =
    ", labels: {pool: general}, annotations: {team: x}, taints: [{key: gpu, value: big, effect: NoSchedule}]";

#[test]
fn a_node_gets_what_its_machine_wants_once_and_keeps_the_taints_of_others() {
    let mut seen = node(&[], &["node.kubernetes.io/disk-pressure"]);
    let comparison = compare(&worker(GPU), &seen);
    let differ = ["label node-role.kubernetes.io/worker", "label pool", "annotation team", "taint gpu:NoSchedule"];
    assert_eq!(comparison.differs, differ);
    let write_ = comparison.write.unwrap();
    let taints = json!([
        { "key": "node.kubernetes.io/disk-pressure", "effect": "NoSchedule" },
        { "key": "gpu", "value": "big", "effect": "NoSchedule" },
    ]);
    let memory = json!({ "clusterwright.dev/taints-from-machine": "gpu:NoSchedule" });
    let merge = json!({
        "metadata": { "uid": "u1", "resourceVersion": "7", "annotations": memory }, "spec": { "taints": taints },
    });
    assert_eq!(write_.merge, Some(merge));
    let metadata = json!({
        "name": "h1", "uid": "u1", "annotations": { "team": "x" },
        "labels": { "node-role.kubernetes.io/worker": "", "pool": "general" },
    });
    assert_eq!(write_.apply, Some(json!({ "apiVersion": "v1", "kind": "Node", "metadata": metadata })));
    write(&worker(GPU), &mut seen);
}

#[test]
fn what_is_wanted_no_more_goes_and_what_others_put_there_stays() {
    let mut seen = node(&[], &[]);
    write(&worker(GPU), &mut seen);
    seen.labels.insert("mine".into(), "1".into());
    seen.owners.labels.insert("mine".into(), [owner("kubectl-label", false)].into());
    seen.taints.push(seen_taint("cordoned-by-hand", "NoExecute"));
    write(&worker(", labels: {tier: fast}, annotations: {owner: y}"), &mut seen);
    let keys: Vec<&String> = seen.labels.keys().collect();
    assert_eq!(keys, ["mine", "node-role.kubernetes.io/worker", "tier"]);
    assert_eq!(seen.annotations.keys().collect::<Vec<_>>(), ["owner"]);
    assert_eq!(taints(&seen), ["cordoned-by-hand"]);
}

#[test]
fn what_the_kubelet_registered_is_the_machines_and_its_own_labels_are_not() {
    let mut seen = node(&[("pool", "general"), ("kubernetes.io/hostname", "h1")], &["gpu", "foreign"]);
    let mut machine = worker(", labels: {tier: fast}");
    machine.status.get_or_insert_default().registered_taints = vec!["gpu:NoSchedule".into()];
    write(&machine, &mut seen);
    let keys: Vec<&String> = seen.labels.keys().collect();
    assert_eq!(keys, ["kubernetes.io/hostname", "node-role.kubernetes.io/worker", "tier"]);
    assert_eq!(taints(&seen), ["foreign"]);
    // Somebody puts on this Node alone what the machine no longer wants.
    seen.taints.push(seen_taint("gpu", "NoSchedule"));
    assert_eq!(compare(&machine, &seen).write, None);
}

#[test]
fn a_key_that_others_own_too_stays_when_it_is_wanted_no_more() {
    let mut seen = node(&[], &[]);
    write(&worker(GPU), &mut seen);
    seen.owners.labels.get_mut("pool").unwrap().insert(owner("kubectl-label", false));
    write(&worker(", annotations: {team: x}"), &mut seen);
    assert_eq!(seen.labels["pool"], "general");
}

#[test]
fn a_key_that_somebody_changed_is_put_back_and_one_that_another_applies_is_a_conflict() {
    let mut seen = node(&[], &[]);
    let machine = worker(", labels: {pool: general, zone: a}");
    write(&machine, &mut seen);
    let change = |seen: &mut NodeSeen, by| {
        seen.labels.insert("pool".into(), "other".into());
        seen.owners.labels.insert("pool".into(), [by].into());
    };
    change(&mut seen, owner("kubectl-label", false));
    write(&machine, &mut seen);
    assert_eq!(seen.labels["pool"], "general");

    change(&mut seen, owner("nfd", true));
    let comparison = compare(&machine, &seen);
    assert_eq!(comparison.conflicts, ["label pool (field manager nfd)"]);
    assert_eq!((comparison.differs, comparison.write), (vec![], None), "the rest is there");
    let other = worker(", labels: {pool: general, zone: b}");
    let metadata = compare(&other, &seen).write.unwrap().apply.unwrap()["metadata"].clone();
    assert_eq!(metadata["labels"], json!({ "node-role.kubernetes.io/worker": "", "zone": "b" }));
}

#[test]
fn a_taint_with_another_value_is_replaced_and_an_edit_of_its_effect_moves_it() {
    let mut seen = node(&[], &["gpu"]);
    write(&worker(GPU), &mut seen);
    assert_eq!(seen.taints[0].value.as_deref(), Some("big"));
    write(&worker(", taints: [{key: gpu, value: big, effect: NoExecute}]"), &mut seen);
    let effects: Vec<&str> = seen.taints.iter().map(|taint| taint.effect.as_str()).collect();
    assert_eq!(effects, ["NoExecute"]);
}

#[test]
fn a_list_of_taints_that_is_not_known_as_a_whole_is_not_written() {
    let mut seen = node(&[], &[]);
    seen.taints = (0..256).map(|number| seen_taint(&format!("t{number}"), "NoSchedule")).collect();
    let comparison = compare(&worker(GPU), &seen);
    assert_eq!(comparison.write.unwrap().merge, None);
    assert!(comparison.differs.contains(&"taint gpu:NoSchedule".to_owned()));
}

#[test]
fn a_node_is_written_at_most_every_ten_seconds() {
    let mut seen = node(&[], &[]);
    let at = |text: &str| text.parse::<jiff::Timestamp>().unwrap();
    assert_eq!(wait(&seen, at("2026-01-01T00:00:00Z")), None);
    seen.owners.written_at = Some(at("2026-01-01T00:00:00Z"));
    let wait_at = |text: &str| wait(&seen, at(text)).map(|wait| wait.as_secs());
    assert_eq!(wait_at("2026-01-01T00:00:04Z"), Some(6));
    assert_eq!(wait_at("2026-01-01T00:00:10Z"), None);
    assert_eq!(wait_at("2025-12-31T23:00:00Z"), None, "their clock is ahead");
}

#[test]
fn taints_that_the_kubelet_registers_are_remembered_until_the_machine_is_provisioned() {
    let mut machine = worker(GPU);
    assert_eq!(registered(&machine), ["gpu:NoSchedule"]);
    let status = machine.status.get_or_insert_default();
    status.registered_taints = vec!["gpu:NoSchedule".into()];
    machine.spec.taints[0].key = "edited".into();
    assert_eq!(registered(&machine), ["edited:NoSchedule", "gpu:NoSchedule"]);
    let status = machine.status.get_or_insert_default();
    status.provisioned_at = Some(serde_json::from_value(json!("2026-01-01T00:00:00Z")).unwrap());
    assert_eq!(registered(&machine), ["gpu:NoSchedule"]);
}
