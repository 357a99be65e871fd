//! What a custom playbook may not say, as far as its text shows it. An administrator wrote it on purpose, and it may do
//! anything on the hosts; these are the things that work on the executor instead, or past the guard on the machine.

use super::refusal::{Refusal, refuse};
use crds::Reason;
use serde_yaml::Value;

/// Keys whose values are lists of tasks.
const TASKS: [&str; 7] = ["tasks", "pre_tasks", "post_tasks", "handlers", "block", "rescue", "always"];
/// Modules that take no shell but the one they are given.
const UNSHELLED: [&str; 4] = ["raw", "ansible.builtin.raw", "script", "ansible.builtin.script"];
const HERE: [&str; 3] = ["localhost", "127.0.0.1", "::1"];

pub(super) fn check(at: &str, text: &str) -> Result<(), Refusal> {
    let document: Value = match serde_yaml::from_str(text) {
        Ok(document) => document,
        Err(error) => return invalid(at, &format!("no YAML: {error}")),
    };
    let Some(plays) = document.as_sequence().filter(|plays| !plays.is_empty()) else {
        return invalid(at, "a playbook is a list of plays");
    };
    if let Some(key) = foreign_key(&document) {
        return invalid(
            at,
            &format!(
                "{key}: variables ansible_* and clusterwright_* say how the hosts are reached, which is not the playbook's to say: take it out"
            ),
        );
    }
    for (index, play) in plays.iter().enumerate() {
        let at = format!("{at}, play {}", index + 1);
        if let Some(import) = key_of(play, &["import_playbook", "ansible.builtin.import_playbook"]) {
            return invalid(&at, &format!("{import}: there is no other file: write the plays here"));
        }
        match play.get("hosts") {
            Some(hosts) if !names_here(hosts) => {}
            Some(_) => {
                return invalid(
                    &at,
                    "hosts: a playbook works on the hosts of its run: write all, kube_control_plane, kube_node or etcd",
                );
            }
            None => {
                return invalid(&at, "hosts is missing: write all, kube_control_plane, kube_node or etcd");
            }
        }
        check_part(&at, play)?;
    }
    Ok(())
}

/// A play, a block or a task.
fn check_part(at: &str, part: &Value) -> Result<(), Refusal> {
    let name = part.get("name").and_then(Value::as_str);
    let at = name.map_or_else(|| at.to_owned(), |name| format!("{at}, {name:?}"));
    if part.get("connection").is_some_and(|connection| connection.as_str() != Some("ssh")) {
        return invalid(&at, "connection: the hosts are reached by SSH: take it out");
    }
    if part.get("delegate_to").is_some_and(names_here) {
        return invalid(&at, "delegate_to: nothing is done on the executor: let a host of the run do it");
    }
    if let Some(key) = key_of(part, &["local_action", "vars_files", "vars_prompt"]) {
        return invalid(
            &at,
            &format!("{key}: nothing is done on the executor, and nobody is asked: use the playbook's variables"),
        );
    }
    if let Some(key) = key_of(part, &UNSHELLED)
        && !shows(part, "ansible_shell_executable")
    {
        return invalid(
            &at,
            &format!(
                "{key} passes the guard by: use ansible.builtin.shell, or add args: {{executable: \"{{{{ ansible_shell_executable }}}}\"}}"
            ),
        );
    }
    for key in TASKS {
        for task in part.get(key).and_then(Value::as_sequence).into_iter().flatten() {
            check_part(&at, task)?;
        }
    }
    Ok(())
}

fn key_of<'a>(part: &Value, keys: &[&'a str]) -> Option<&'a str> {
    keys.iter().copied().find(|key| part.get(*key).is_some())
}

fn names_here(value: &Value) -> bool {
    match value {
        Value::String(text) => text.split([',', ':', ' ']).chain([text.as_str()]).any(|word| HERE.contains(&word)),
        Value::Sequence(items) => items.iter().any(names_here),
        _ => false,
    }
}

/// A key anywhere that begins as a variable of the connection does.
fn foreign_key(value: &Value) -> Option<&str> {
    match value {
        Value::Mapping(fields) => fields.iter().find_map(|(key, value)| {
            let key = key.as_str().filter(|key| key.starts_with("ansible_") || key.starts_with("clusterwright_"));
            key.or_else(|| foreign_key(value))
        }),
        Value::Sequence(items) => items.iter().find_map(foreign_key),
        Value::Tagged(tagged) => foreign_key(&tagged.value),
        _ => None,
    }
}

/// Whether a text anywhere in it has these words.
fn shows(value: &Value, words: &str) -> bool {
    match value {
        Value::String(text) => text.contains(words),
        Value::Mapping(fields) => fields.iter().any(|(_, value)| shows(value, words)),
        Value::Sequence(items) => items.iter().any(|item| shows(item, words)),
        Value::Tagged(tagged) => shows(&tagged.value, words),
        _ => false,
    }
}

fn invalid(at: &str, why: &str) -> Result<(), Refusal> {
    refuse(Reason::PlaybookInvalid, format!("{at}: {why}"))
}
