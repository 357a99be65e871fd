//! Compares the inventory as Ansible reads it with the model: the same hosts, groups and variables, each text
//! still marked as data, or nothing starts. It guards against what we do not know of Ansible's readers.

use std::collections::BTreeSet;

use serde_json::{Map, Value};
use thiserror::Error;

use crate::inventory::Inventory;

/// Groups that Ansible adds, or that stand for others.
const STRUCTURE: [&str; 4] = ["_meta", "all", "k8s_cluster", "ungrouped"];

/// Ansible reads something else than what was meant. Values are not named: they may be secret.
#[derive(Debug, Error)]
#[error("Ansible reads the inventory otherwise than it was meant: {0}")]
pub struct Difference(String);

/// Compares the output of `ansible-inventory --list` with what was meant.
pub fn compare(inventory: &Inventory, listed: &[u8]) -> Result<(), Difference> {
    let listed: Value = serde_json::from_slice(listed)
        .map_err(|error| Difference(format!("its list is no JSON ({error})")))?;
    let empty = Map::new();
    let read = listed
        .pointer("/_meta/hostvars")
        .and_then(Value::as_object)
        .unwrap_or(&empty);
    let expected = inventory.expected_vars();
    if let Some(host) = read.keys().find(|host| !expected.contains_key(*host)) {
        return Err(Difference(format!(
            "there is a host {}",
            crate::foreign_text::clean(host, 64)
        )));
    }
    for (host, vars) in &expected {
        let Some(found) = read.get(host) else {
            return Err(Difference(format!("host {host} is missing")));
        };
        if let Some(key) = different_key(vars, found) {
            return Err(Difference(format!("variable {key} of host {host}")));
        }
    }
    compare_groups(inventory, &listed)
}

fn different_key(expected: &Value, found: &Value) -> Option<String> {
    let (expected, found) = (expected.as_object()?, found.as_object()?);
    let keys: BTreeSet<_> = expected.keys().chain(found.keys()).collect();
    // Facts of the machine's own, always listed and always empty before anything ran.
    let no_facts = |key: &str| key == "ansible_local" && found.get(key) == Some(&Value::Object(Map::new()));
    let different = keys
        .into_iter()
        .find(|key| expected.get(*key) != found.get(*key) && !no_facts(key))?;
    Some(crate::foreign_text::clean(different, 128))
}

fn compare_groups(inventory: &Inventory, listed: &Value) -> Result<(), Difference> {
    let expected = inventory.expected_groups();
    let groups = listed.as_object().into_iter().flatten();
    let mut found = BTreeSet::new();
    for (name, group) in groups.filter(|(name, _)| !STRUCTURE.contains(&name.as_str())) {
        let members: BTreeSet<_> = group
            .get("hosts")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect();
        let meant = expected
            .get(name.as_str())
            .into_iter()
            .flatten()
            .copied()
            .collect();
        if members != meant {
            return Err(Difference(format!(
                "the members of group {}",
                crate::foreign_text::clean(name, 64)
            )));
        }
        found.insert(name.as_str());
    }
    match expected.keys().find(|name| !found.contains(*name)) {
        Some(missing) => Err(Difference(format!("group {missing} is missing"))),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use serde_json::{Value, json};

    use super::compare;
    use crate::inventory::Inventory;
    use crate::ssh::Ssh;

    fn listed() -> Value {
        json!({"_meta": {"hostvars": {"m1": {"ip": {"__ansible_unsafe": "10.0.0.1"}, "n": 1,
                "secrets_dir": {"__ansible_unsafe": "/p"}}}},
            "all": {"children": ["ungrouped", "k8s_cluster"]}, "k8s_cluster": {"children": ["kube_node"]},
            "kube_node": {"hosts": ["m1"]}})
    }

    fn difference(pointer: &str, value: Value) -> String {
        let model = json!({"namespace": "n", "run": "r", "intent": "Join", "steps": ["node"], "vars": {"n": 1},
            "hosts": {"m1": {"address": "10.0.0.1", "port": 22, "user": "root", "useSudo": false, "credential": "k",
                "credentialKind": "SshKey", "hostKeyPolicy": "Strict", "groups": ["kube_node"], "vars": {"ip": "10.0.0.1"}}}});
        let inventory = Inventory::new(
            &serde_json::from_value(model).unwrap(),
            &Ssh::default(),
            Path::new("/p"),
        );
        let mut listed = listed();
        let (parent, key) = pointer.rsplit_once('/').unwrap();
        listed
            .pointer_mut(parent)
            .unwrap()
            .as_object_mut()
            .unwrap()
            .insert(key.to_owned(), value);
        let text = compare(&inventory, listed.to_string().as_bytes())
            .err()
            .map(|error| error.to_string());
        text.map(|text| text.rsplit(": ").next().unwrap().to_owned())
            .unwrap_or_default()
    }

    #[test]
    fn what_ansible_reads_otherwise_is_found() {
        let check =
            |pointer: &str, value: Value, expected: &str| assert_eq!(difference(pointer, value), expected);
        check("/_meta/hostvars/m1/n", json!(1), "");
        check("/_meta/hostvars/m1/ansible_local", json!({}), "");
        check(
            "/_meta/hostvars/m1/ansible_local",
            json!({"a": 1}),
            "variable ansible_local of host m1",
        );
        check("/_meta/hostvars/m2", json!({}), "there is a host m2");
        check("/_meta/hostvars", json!({}), "host m1 is missing");
        check("/_meta/hostvars/m1/n", json!("1"), "variable n of host m1");
        check(
            "/_meta/hostvars/m1/ip",
            json!("10.0.0.1"),
            "variable ip of host m1",
        );
        check("/_meta/hostvars/m1/more", json!(1), "variable more of host m1");
        check(
            "/kube_node/hosts",
            json!(["m1", "m2"]),
            "the members of group kube_node",
        );
        check("/etcd", json!({"hosts": ["m1"]}), "the members of group etcd");
        check(
            "/kube_node",
            json!({"hosts": []}),
            "the members of group kube_node",
        );
    }
}
