//! The inventory that Ansible reads, from typed values. Ansible runs templates that it finds in inventories,
//! so every text in it, ours and the user's, is marked `!unsafe`: data, whatever it looks like. The mark
//! stands on the whole document, not on each text: a text that is marked by itself is typed anew, and
//! `"1.30"` becomes a number.

use std::collections::BTreeMap;
use std::path::Path;

use crds::inputs::{Group, RunInputs};
use serde_json::{Map, Value, json};

use crate::ssh::Ssh;

/// The group of both kinds of node.
pub const K8S_CLUSTER: &str = "k8s_cluster";

/// Hosts, groups and variables.
#[derive(Debug, PartialEq)]
pub struct Inventory {
    vars: BTreeMap<String, Value>,
    hosts: BTreeMap<String, BTreeMap<String, Value>>,
    groups: BTreeMap<&'static str, Vec<String>>,
}

impl Inventory {
    /// The inventory of a run.
    pub fn new(model: &RunInputs, ssh: &Ssh, secrets_dir: &Path) -> Self {
        let mut vars = model.vars.clone();
        vars.insert("secrets_dir".to_owned(), json!(secrets_dir.display().to_string()));
        let mut groups: BTreeMap<_, Vec<String>> = Group::ALL.iter().map(|group| (group.name(), Vec::new())).collect();
        let mut hosts = BTreeMap::new();
        for (name, host) in &model.hosts {
            let mut host_vars = host.vars.clone();
            host_vars.extend(ssh.variables.get(name).cloned().unwrap_or_default());
            hosts.insert(name.clone(), host_vars);
            for group in Group::ALL.iter().filter(|group| host.groups.contains(group)) {
                groups.entry(group.name()).or_default().push(name.clone());
            }
        }
        Self { vars, hosts, groups }
    }

    /// Its text: YAML in flow style.
    pub fn text(&self) -> String {
        let mut groups = Map::new();
        let mut nodes = Map::new();
        for (name, members) in &self.groups {
            let members: Map<_, _> = members.iter().map(|member| (member.clone(), json!({}))).collect();
            let has_nodes = Group::ALL.iter().any(|group| group.name() == *name && group.has_nodes());
            let target = if has_nodes { &mut nodes } else { &mut groups };
            target.insert((*name).to_owned(), json!({"hosts": members}));
        }
        groups.insert(K8S_CLUSTER.to_owned(), json!({"children": nodes}));
        let all = json!({"all": {"vars": self.vars, "hosts": self.hosts, "children": groups}});
        let mut text = String::from("!unsafe ");
        write_value(&mut text, &all);
        text.push('\n');
        text
    }

    /// The variables of all hosts as Ansible must print them: each text marked.
    pub fn expected_vars(&self) -> Value {
        marked_all(&self.vars)
    }

    /// The own variables of each host, likewise.
    pub fn expected_host_vars(&self) -> BTreeMap<&str, Value> {
        self.hosts.iter().map(|(name, vars)| (name.as_str(), marked_all(vars))).collect()
    }

    /// The members of each group that has any.
    pub fn expected_groups(&self) -> BTreeMap<&str, Vec<&str>> {
        self.groups
            .iter()
            .filter(|(_, names)| !names.is_empty())
            .map(|(group, names)| (*group, names.iter().map(String::as_str).collect()))
            .collect()
    }
}

fn marked_all(vars: &BTreeMap<String, Value>) -> Value {
    vars.iter().map(|(key, value)| (key.clone(), marked(value))).collect::<Map<_, _>>().into()
}

/// The value as Ansible prints data that is no template.
fn marked(value: &Value) -> Value {
    match value {
        Value::String(_) => json!({"__ansible_unsafe": value}),
        Value::Array(items) => items.iter().map(marked).collect(),
        Value::Object(fields) => fields.iter().map(|(key, value)| (key.clone(), marked(value))).collect(),
        _ => value.clone(),
    }
}

/// Writes a value so that Ansible's YAML reader gives it back unchanged. Keys are explicit (`?`): an implicit
/// one may have 1024 characters at most.
pub fn write_value(text: &mut String, value: &Value) {
    match value {
        Value::String(string) => write_string(text, string),
        // 1e300 without a point is a text to YAML 1.1.
        Value::Number(number) if number.is_f64() => text.push_str(&format!("!!float \"{number}\"")),
        Value::Null | Value::Bool(_) | Value::Number(_) => text.push_str(&value.to_string()),
        Value::Array(items) => {
            text.push('[');
            for item in items {
                write_value(text, item);
                text.push_str(", ");
            }
            text.push(']');
        }
        Value::Object(fields) => {
            text.push('{');
            for (key, value) in fields {
                text.push_str("? ");
                write_string(text, key);
                text.push_str(" : ");
                write_value(text, value);
                text.push_str(", ");
            }
            text.push('}');
        }
    }
}

/// A double-quoted YAML scalar in ASCII.
fn write_string(text: &mut String, string: &str) {
    text.push('"');
    for character in string.chars() {
        match character {
            '"' => text.push_str("\\\""),
            '\\' => text.push_str("\\\\"),
            ' '..='~' => text.push(character),
            '\u{10000}'.. => text.push_str(&format!("\\U{:08x}", u32::from(character))),
            _ => text.push_str(&format!("\\u{:04x}", u32::from(character))),
        }
    }
    text.push('"');
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use serde_json::{Value, json};

    use super::{Inventory, write_value};
    use crate::ssh::Ssh;

    #[test]
    fn values_keep_their_type_in_yaml() {
        let check = |value: Value, expected: &str| {
            let mut text = String::new();
            write_value(&mut text, &value);
            assert_eq!(text, expected);
        };
        check(json!("{{ evil }}"), r#""{{ evil }}""#);
        check(json!("a\"b\\c\n\u{85}é😀"), r#""a\"b\\c\u000a\u0085\u00e9\U0001f600""#);
        check(json!([1, -2, true, null]), "[1, -2, true, null, ]");
        check(json!(1e300), r#"!!float "1e+300""#);
        check(json!({"no": "0755"}), r#"{? "no" : "0755", }"#);
        check(json!({}), "{}");
    }

    #[test]
    fn hosts_stand_in_their_groups_with_their_variables() {
        let model = json!({"namespace": "n", "run": "r", "intent": "Install", "steps": ["etcd"], "vars": {"kube_version": "1.35.4"},
            "hosts": {"m1": {"address": "10.0.0.1", "port": 22, "user": "root", "useSudo": false, "credential": "k",
                "credentialKind": "SshKey", "hostKeyPolicy": "Strict", "groups": ["kube_control_plane", "etcd"],
                "vars": {"ip": "10.0.0.1"}}}});
        let inventory =
            Inventory::new(&serde_json::from_value(model).unwrap(), &Ssh::default(), Path::new("/p/secrets"));
        let text = inventory.text();
        let read: Value = serde_yaml::from_str(text.strip_prefix("!unsafe ").unwrap()).unwrap();
        assert_eq!(
            read["all"],
            json!({"vars": {"kube_version": "1.35.4", "secrets_dir": "/p/secrets"},
                "hosts": {"m1": {"ip": "10.0.0.1"}},
                "children": {"etcd": {"hosts": {"m1": {}}}, "karmada_control_plane": {"hosts": {}}, "k8s_cluster": {"children": {
                    "kube_control_plane": {"hosts": {"m1": {}}}, "kube_node": {"hosts": {}}}}}})
        );
        let data = |text: &str| json!({"__ansible_unsafe": text});
        let vars = json!({"kube_version": data("1.35.4"), "secrets_dir": data("/p/secrets")});
        assert_eq!(inventory.expected_vars(), vars);
        assert_eq!(inventory.expected_host_vars()["m1"], json!({"ip": data("10.0.0.1")}));
    }
}
