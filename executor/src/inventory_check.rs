//! Compares the inventory as Ansible reads it with the model: the same hosts, groups and variables, each text
//! still marked as data, or nothing starts. It guards against what we do not know of Ansible's readers.

use std::collections::BTreeSet;

use serde_json::{Map, Value};
use thiserror::Error;

use crate::inventory::{Inventory, K8S_CLUSTER};
use crate::sanitize::clean;

/// Groups that Ansible adds, or that stand for others.
const STRUCTURE: [&str; 4] = ["_meta", "all", K8S_CLUSTER, "ungrouped"];

/// Ansible reads something else than what was meant. Values are not named: they may be secret.
#[derive(Debug, Error)]
#[error("Ansible reads the inventory otherwise than it was meant: {0}")]
pub struct Difference(String);

/// Compares the output of `ansible-inventory --list --export` with what was meant.
pub fn compare(inventory: &Inventory, listed: &[u8]) -> Result<(), Difference> {
    let listed: Map<String, Value> =
        serde_json::from_slice(listed).map_err(|error| Difference(format!("its list is no JSON ({error})")))?;
    compare_hosts(inventory, &listed)?;
    let none = Value::Object(Map::new());
    for (name, group) in listed.iter().filter(|(name, _)| *name != "_meta") {
        let expected = if name == "all" { inventory.expected_vars() } else { none.clone() };
        if let Some(key) = different_key(&expected, group.get("vars").unwrap_or(&none)) {
            return Err(Difference(format!("variable {key} of group {}", clean(name, 64))));
        }
    }
    compare_groups(inventory, &listed)
}

fn compare_hosts(inventory: &Inventory, listed: &Map<String, Value>) -> Result<(), Difference> {
    let none = Value::Object(Map::new());
    let read = listed.get("_meta").and_then(|meta| meta.get("hostvars")).unwrap_or(&none);
    let expected = inventory.expected_host_vars();
    for name in read.as_object().into_iter().flat_map(Map::keys) {
        if !expected.contains_key(name.as_str()) {
            return Err(Difference(format!("there is a host {}", clean(name, 64))));
        }
    }
    for (host, vars) in expected {
        if let Some(key) = different_key(&vars, read.get(host).unwrap_or(&none)) {
            return Err(Difference(format!("variable {key} of host {host}")));
        }
    }
    Ok(())
}

/// The first variable that is not the same; a value that holds no variables is one without a name.
fn different_key(expected: &Value, found: &Value) -> Option<String> {
    let (Some(expected), Some(found)) = (expected.as_object(), found.as_object()) else {
        return Some(String::new());
    };
    let keys: BTreeSet<_> = expected.keys().chain(found.keys()).collect();
    let different = keys.into_iter().find(|key| match (expected.get(*key), found.get(*key)) {
        (Some(expected), Some(found)) => !same(expected, found),
        _ => true,
    })?;
    Some(clean(different, 128))
}

/// The same value; of numbers with a fraction the last digits may differ, since our reader of JSON rounds them.
fn same(expected: &Value, found: &Value) -> bool {
    match (expected, found) {
        (Value::Array(expected), Value::Array(found)) => {
            expected.len() == found.len() && expected.iter().zip(found).all(|(one, other)| same(one, other))
        }
        (Value::Object(expected), Value::Object(found)) => {
            expected.len() == found.len()
                && expected.iter().all(|(key, one)| found.get(key).is_some_and(|other| same(one, other)))
        }
        (Value::Number(one), Value::Number(other)) if one.is_f64() && other.is_f64() => {
            let bits = |number: &serde_json::Number| number.as_f64().unwrap_or_default().to_bits();
            bits(one).abs_diff(bits(other)) <= 4
        }
        _ => expected == found,
    }
}

fn compare_groups(inventory: &Inventory, listed: &Map<String, Value>) -> Result<(), Difference> {
    let expected = inventory.expected_groups();
    let names = listed.keys().map(String::as_str).filter(|name| !STRUCTURE.contains(name));
    let names: BTreeSet<&str> = names.chain(expected.keys().copied()).collect();
    for name in names {
        let meant: BTreeSet<&str> = expected.get(name).into_iter().flatten().copied().collect();
        let group = listed.get(name);
        if texts(group, "hosts") != meant || !texts(group, "children").is_empty() {
            return Err(Difference(format!("the members of group {}", clean(name, 64))));
        }
    }
    let nodes = listed.get(K8S_CLUSTER);
    let children = BTreeSet::from(["kube_control_plane", "kube_node"]);
    if texts(nodes, "children") != children || !texts(nodes, "hosts").is_empty() {
        return Err(Difference(format!("the members of group {K8S_CLUSTER}")));
    }
    Ok(())
}

fn texts<'a>(group: Option<&'a Value>, key: &str) -> BTreeSet<&'a str> {
    let items = group.and_then(|group| group.get(key)).and_then(Value::as_array);
    items.into_iter().flatten().filter_map(Value::as_str).collect()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use serde_json::{Value, json};

    use super::compare;
    use crate::inventory::Inventory;
    use crate::ssh::Ssh;

    fn listed() -> Value {
        json!({"_meta": {"hostvars": {"m1": {"ip": {"__ansible_unsafe": "10.0.0.1"}}}},
            "all": {"children": ["ungrouped", "k8s_cluster"], "vars": {"n": 1, "secrets_dir": {"__ansible_unsafe": "/p"}}},
            "k8s_cluster": {"children": ["kube_node", "kube_control_plane"]},
            "kube_node": {"hosts": ["m1"]}})
    }

    fn difference(pointer: &str, value: Value) -> String {
        let host = json!({"address": "10.0.0.1", "port": 22, "user": "root", "useSudo": false, "credential": "k",
            "credentialKind": "SshKey", "hostKeyPolicy": "Strict", "groups": ["kube_node"], "vars": {"ip": "10.0.0.1"}});
        let model = json!({"namespace": "n", "run": "r", "intent": "Join", "steps": ["node"], "vars": {"n": 1},
            "hosts": {"m1": host}});
        let model = serde_json::from_value(model).unwrap();
        let inventory = Inventory::new(&model, &Ssh::default(), Path::new("/p"));
        let mut listed = listed();
        let (parent, key) = pointer.rsplit_once('/').unwrap();
        listed.pointer_mut(parent).unwrap().as_object_mut().unwrap().insert(key.to_owned(), value);
        let text = compare(&inventory, listed.to_string().as_bytes()).err().map(|error| error.to_string());
        text.map(|text| text.rsplit(": ").next().unwrap().to_owned()).unwrap_or_default()
    }

    #[test]
    fn numbers_are_the_same_when_only_their_last_digits_differ() {
        let check = |one: Value, other: Value, expected: bool| {
            assert_eq!(super::same(&json!({"x": [one]}), &json!({"x": [other]})), expected, "{one} {other}");
        };
        let next = |number: f64| f64::from_bits(number.to_bits() + 1);
        check(json!(1e300), json!(next(1e300)), true);
        check(json!(0.1), json!(0.100_000_000_001), false);
        check(json!(0.1), json!(-0.1), false);
        check(json!(1), json!(1.0), false);
        check(json!(u64::MAX), json!(u64::MAX - 1), false);
        check(json!([1]), json!([1, 1]), false);
        check(json!({"a": 1}), json!({"b": 1}), false);
    }

    #[test]
    fn what_ansible_reads_otherwise_is_found() {
        let check = |pointer: &str, value: Value, expected: &str| assert_eq!(difference(pointer, value), expected);
        check("/all/vars/n", json!(1), "");
        check("/all/vars/n", json!("1"), "variable n of group all");
        check("/all/vars/n", json!(1.0), "variable n of group all");
        check("/all/vars/more", json!(1), "variable more of group all");
        check("/all/vars", json!({}), "variable n of group all");
        check("/all/vars/secrets_dir", json!("/p"), "variable secrets_dir of group all");
        check("/kube_node/vars", json!({"x": 1}), "variable x of group kube_node");
        check("/_meta/hostvars/m2", json!({}), "there is a host m2");
        check("/_meta/hostvars", json!({}), "variable ip of host m1");
        check("/_meta/hostvars/m1/ip", json!("10.0.0.1"), "variable ip of host m1");
        check("/_meta/hostvars/m1/more", json!(1), "variable more of host m1");
        check("/kube_node/hosts", json!(["m1", "m2"]), "the members of group kube_node");
        check("/kube_node", json!({"hosts": []}), "the members of group kube_node");
        check("/kube_node", json!({"hosts": ["m1"], "children": ["etcd"]}), "the members of group kube_node");
        check("/etcd", json!({"hosts": ["m1"]}), "the members of group etcd");
        check("/k8s_cluster/children", json!(["kube_node"]), "the members of group k8s_cluster");
    }
}
