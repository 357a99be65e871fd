//! What the API server itself refuses, and what it admits: the definitions, on a real API server that all tests here
//! share. The other files are tables of bad inputs by the kind of object; this one holds what reads them.

mod addons;
mod backups;
mod claims;
mod cluster_deployments;
mod commands;
mod configuration;
mod control_plane_configuration;
mod encryption;
mod every_kind;
mod hosts;
mod installed;
mod karmada_deployments;
mod machine_requests;
mod machines;
mod playbook_runs;
mod policies;
mod remediation_policies;
mod versions;

use anyhow::{Context, Result, ensure};
use e2e::api_server::{Answer, ApiServer};
use serde_json::{Value, json};

/// The row in the list of bad inputs (0: none of them), what is the matter, a valid object, the field of it that is
/// given other values, those values one after the other (`null` takes the field away), and what becomes of it.
type Case<'a> = (u8, &'a str, Value, &'a str, Value, Expected<'a>);

/// The row, what is the matter, what is merged into the `spec` of an object that is there, and what becomes of it.
type Change<'a> = (u8, &'a str, Value, Expected<'a>);

#[derive(Clone, Copy)]
enum Expected<'a> {
    Admitted,
    /// As a whole; the message names the field (if none is given, the one with the other value) and has the gist.
    Refused(Option<&'a str>, &'a str),
}
use Expected::Admitted;

fn refused(gist: &str) -> Expected<'_> {
    Expected::Refused(None, gist)
}

fn refused_at<'a>(field: &'a str, gist: &'a str) -> Expected<'a> {
    Expected::Refused(Some(field), gist)
}

/// Tries to create each object; none is kept.
async fn check<const N: usize>(server: &ApiServer, cases: [Case<'_>; N]) -> Result<()> {
    for (row, what, object, field, values, expected) in cases {
        let values = values.as_array().context("the values are no list")?;
        ensure!(!values.is_empty(), "row {row}, {what}: no values");
        for value in values {
            let object = with(object.clone(), field, value.clone());
            let answer = server.try_create(&plural(&object), &object).await?;
            judge(&answer, expected, field, &object).with_context(|| format!("row {row}, {what}"))?;
        }
    }
    Ok(())
}

/// Creates the object and tries each change of it; no change is kept.
async fn check_changes<const N: usize>(server: &ApiServer, object: Value, changes: [Change<'_>; N]) -> Result<()> {
    let object = created(server, object).await?;
    let name = object["metadata"]["name"].as_str().unwrap_or_default();
    try_changes(server, &plural(&object), name, changes).await
}

/// Tries each change of an object that is there; no change is kept.
async fn try_changes<const N: usize>(
    server: &ApiServer,
    plural: &str,
    name: &str,
    changes: [Change<'_>; N],
) -> Result<()> {
    for (row, what, spec, expected) in changes {
        let patch = json!({ "spec": spec });
        let answer = server.try_patch(plural, name, &patch).await?;
        judge(&answer, expected, "spec", &patch).with_context(|| format!("row {row}, {what}"))?;
    }
    Ok(())
}

/// Creates the object to stay.
async fn created(server: &ApiServer, object: Value) -> Result<Value> {
    let answer = server.create(&plural(&object), &object).await?;
    judge(&answer, Admitted, "", &object)?;
    Ok(object)
}

/// The object as it would be kept.
async fn admitted(server: &ApiServer, object: Value) -> Result<Value> {
    let answer = server.try_create(&plural(&object), &object).await?;
    judge(&answer, Admitted, "", &object)?;
    Ok(answer.body)
}

fn judge(answer: &Answer, expected: Expected, spoiled: &str, given: &Value) -> Result<()> {
    let message = answer.message();
    let given: String = given.to_string().chars().take(600).collect();
    let Expected::Refused(field, gist) = expected else {
        ensure!(answer.code == 200, "{given} was refused: {message}");
        return Ok(());
    };
    ensure!(matches!(answer.code, 400 | 413 | 422), "was not refused ({}): {given}", answer.code);
    for words in [field.unwrap_or(spoiled), gist] {
        ensure!(message.contains(words), "the message does not say `{words}`: {message}\n{given}");
    }
    Ok(())
}

/// The object with a value in a field: `spec.workers[0].name`. Objects on the way there are made, and lists made or
/// appended to. `null` takes the field away.
fn with(mut object: Value, field: &str, value: Value) -> Value {
    let path = field.replace('[', ".").replace(']', "");
    let mut parts: Vec<&str> = path.split('.').collect();
    let last = parts.pop().unwrap_or_default();
    let mut place = &mut object;
    for part in parts {
        place = entry(place, part);
    }
    match place.as_object_mut() {
        Some(fields) if value.is_null() => {
            fields.remove(last);
        }
        _ => *entry(place, last) = value,
    }
    object
}

fn entry<'a>(place: &'a mut Value, part: &str) -> &'a mut Value {
    let Ok(index) = part.parse::<usize>() else {
        return &mut place[part];
    };
    if place.is_null() {
        *place = json!([]);
    }
    match place.as_array_mut() {
        Some(list) if list.len() == index => list.push(Value::Null),
        _ => {}
    }
    &mut place[index]
}

fn plural(object: &Value) -> String {
    let kind = object["kind"].as_str().unwrap_or_default().to_lowercase();
    match kind.strip_suffix('y') {
        Some(stem) => format!("{stem}ies"),
        None => format!("{kind}s"),
    }
}

fn object(kind: &str, name: &str, spec: Value) -> Value {
    json!({
        "apiVersion": "clusterwright.dev/v1alpha1", "kind": kind,
        "metadata": { "name": name, "namespace": "default" }, "spec": spec,
    })
}

fn deployment(name: &str) -> Value {
    let spec = json!({
        "kubernetesVersion": "1.35.4",
        "controlPlane": { "replicas": 1 },
        "workers": [{ "name": "general", "replicas": 2 }],
        "artifacts": { "url": "http://172.30.0.1:8080" },
    });
    object("ClusterDeployment", name, spec)
}

fn host(name: &str) -> Value {
    let key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl";
    let ssh = json!({ "credentialsRef": { "name": "fleet-ssh" }, "hostKeys": [key] });
    object("Host", name, json!({ "address": "172.30.0.10", "ssh": ssh }))
}

fn karmada_deployment(name: &str) -> Value {
    let crds = json!({ "bundle": { "url": "https://172.30.0.1:8080" } });
    object("KarmadaDeployment", name, json!({ "version": "1.18.2", "crds": crds }))
}

fn machine_set(name: &str) -> Value {
    let spec = json!({ "clusterName": "demo", "role": "worker", "replicas": 2 });
    object("MachineSet", name, spec)
}

fn machine(name: &str) -> Value {
    let spec = json!({ "clusterName": "demo", "role": "worker", "kubernetesVersion": "1.35.4" });
    object("Machine", name, spec)
}

fn backup(name: &str) -> Value {
    let spec = json!({
        "clusterName": "demo", "storageRef": { "name": "bucket" }, "encryption": { "recipients": [RECIPIENT] }
    });
    object("EtcdBackup", name, spec)
}

fn cluster_addon(name: &str) -> Value {
    object("ClusterAddon", name, json!({ "addonRef": { "name": "agent" }, "clusterRef": { "name": "paris" } }))
}

fn restore(name: &str) -> Value {
    let spec = json!({
        "clusterName": "demo", "source": { "backupRef": { "name": "nightly" } }, "identityRef": { "name": "identity" }
    });
    object("EtcdRestore", name, spec)
}

fn run(name: &str) -> Value {
    let spec = json!({ "clusterName": "demo", "intent": "Custom", "steps": ["prepare"], "hosts": ["m1"] });
    object("PlaybookRun", name, spec)
}

/// A public key that backups can be encrypted for.
const RECIPIENT: &str = "age1ql3z7hjy54pw3hyww5ayyfg7zqgvc7w3j2elw8zmrj2kg5sfn9aqmcac8p";

/// So many different names of Hosts.
fn many_hosts(count: usize) -> Value {
    (0..count).map(|n| json!(format!("m{n}"))).collect()
}

/// So many different fields.
fn many_fields(count: usize) -> Value {
    let fields = (0..count).map(|n| (format!("v{n}"), json!("x")));
    Value::Object(fields.collect())
}

/// Rows 11 and 12: neither an address that a machine can have nor a name of one.
#[rustfmt::skip]
const NO_ADDRESSES: &[&str] = &[
    "999.1.1.1", "0.0.0.0", "127.0.0.1", "127.1.2.3", "224.0.0.1", "239.1.1.1", "255.255.255.255",
    "169.254.1.1", "010.0.0.1", "10.0.0", "1", "10.0.0.1.1", "::", "::1", "fe80::1", "ff02::1", "ff05::1",
    "FD00::1", "fd00:0::1", "::ffff:10.0.0.1", "localhost", "*", "!x", "n[1:200000]", "a,b",
    "10.0.0.1:2222", "10.0.0.1/24", "[fd00::1]", "-oProxyCommand=id", "a b", "a\nb", "a\u{0}b", "😀",
    "a\u{202e}b", "Host", "a..b", ".a", "a.", "user@host", "{{ x }}", "$(id)",
];
