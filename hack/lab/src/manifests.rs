//! The lab's machines as the objects that an administrator would write: Hosts, and the Secret that opens them.

use std::fs;
use std::net::Ipv4Addr;

use anyhow::{Context, Result};
use serde_json::{Value, json};

use crate::machines::Machine;
use crate::place::Place;

/// The Secret's name, which every Host of the lab refers to.
pub const SECRET: &str = "fleet-ssh";

/// The Host for a machine, its host key pinned.
pub fn host(machine: &Machine, namespace: &str) -> Value {
    host_of(machine.name(), namespace, machine.address(), machine.host_key())
}

fn host_of(name: &str, namespace: &str, address: Ipv4Addr, key: &str) -> Value {
    json!({
        "apiVersion": "clusterwright.dev/v1alpha1",
        "kind": "Host",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "address": address,
            "ssh": {"user": "root", "credentialsRef": {"name": SECRET}, "hostKeys": [key]},
        },
    })
}

/// The Secret with the private key that opens every machine.
pub fn secret(place: &Place, namespace: &str) -> Result<Value> {
    let path = place.ssh_key();
    let key = fs::read_to_string(&path).with_context(|| format!("failed to read {}", path.display()))?;
    Ok(json!({
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": SECRET, "namespace": namespace},
        "type": "kubernetes.io/ssh-auth",
        "stringData": {"ssh-privatekey": key},
    }))
}

/// The text of an object, ready for `kubectl apply -f -`.
pub fn to_yaml(object: &Value) -> String {
    let mut text = String::from("---\n");
    write_fields(object, 0, &mut text);
    text
}

/// Writes an object's fields in YAML's block style; scalars are JSON's, which YAML reads as they are.
fn write_fields(object: &Value, depth: usize, text: &mut String) {
    let pad = "  ".repeat(depth);
    for (key, value) in object.as_object().into_iter().flatten() {
        match value {
            Value::Object(fields) if !fields.is_empty() => {
                text.push_str(&format!("{pad}{key}:\n"));
                write_fields(value, depth + 1, text);
            }
            Value::String(lines) if lines.contains('\n') => {
                text.push_str(&format!("{pad}{key}: |\n"));
                for line in lines.lines() {
                    text.push_str(&format!("{pad}  {line}\n"));
                }
            }
            scalar => text.push_str(&format!("{pad}{key}: {scalar}\n")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_pins_the_machines_key() {
        let host = host_of("cp-1", "fleet", "172.30.0.10".parse().unwrap(), "ssh-ed25519 AAAA");
        assert_eq!(host["spec"]["ssh"]["hostKeys"], json!(["ssh-ed25519 AAAA"]));
        assert_eq!(host["spec"]["address"], "172.30.0.10");
        assert!(host["spec"].get("internalAddress").is_none());
    }

    #[test]
    fn a_key_of_many_lines_stays_one_value() {
        let text = to_yaml(&json!({"kind": "Secret", "stringData": {"k": "a\nb\n"}}));
        assert_eq!(text, "---\nkind: \"Secret\"\nstringData:\n  k: |\n    a\n    b\n");
    }
}
