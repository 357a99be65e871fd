//! Custom playbooks around what is done to machines: each writes a line on its machine.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use crds::host::HostPhase;
use crds::names::annotation;
use crds::step::Role;
use serde_json::{Value, json};

use super::Seen;
use crate::lifecycle::guards;
use crate::lifecycle::stage::{POOL, Stage, host_of, newcomer};

const PLAYBOOKS: &str = "playbooks";
/// Where hooks are, in the order in which a machine meets them; each has a playbook of its own.
const PLACES: [&str; 6] = ["before-join", "after-join", "before-drain", "after-drain", "before-remove", "after-remove"];
/// Nothing cleans this file away.
const NOTES: &str = "/var/tmp/hooks";
const NOTE: &str = r#"
- name: Note where in a machine's life this is
  hosts: all
  gather_facts: false
  tasks:
    - name: Write the line
      ansible.builtin.lineinfile:
        path: /var/tmp/hooks
        line: "{{ at }}"
        create: true
        mode: "0644"
"#;
const SCHEMA: &str = r#"{"type": "object", "properties": {"at": {"type": "string"}}, "required": ["at"], "additionalProperties": false}"#;

/// One machine joins and leaves again; its notes say that every hook ran, in the order promised.
pub async fn around_join_and_remove(stage: &mut Stage<'_>) -> Result<Seen> {
    let mut data = BTreeMap::new();
    for place in PLACES {
        data.insert(format!("{place}.yml"), NOTE);
        data.insert(format!("{place}.schema.json"), SCHEMA);
    }
    let map = json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"namespace": stage.scenario.name, "name": PLAYBOOKS},
        "data": data,
    });
    stage.scenario.apply(&map).await?;
    let at = |place: &str| -> Value { json!([{"name": place, "vars": {"at": place}}]) };
    stage.wish["spec"]["executor"] = json!({"customPlaybooksRef": {"name": PLAYBOOKS}});
    stage.wish["spec"]["hooks"] = json!({
        "beforeJoin": at("before-join"), "afterJoin": at("after-join"), "beforeDrain": at("before-drain"),
        "afterDrain": at("after-drain"), "beforeRemove": at("before-remove"), "afterRemove": at("after-remove"),
    });
    let before = stage.members(Role::Worker).await?;
    let began = Instant::now();
    stage.workers(before.len() + 1).await?;
    stage.ready(2 + before.len()).await?;
    let now = stage.members(Role::Worker).await?;
    let new = newcomer(&now, &before)?;
    let machine = stage.machine_of(new)?;
    let host = host_of(new).context("it has no Host")?.to_owned();
    let notes = stage.scenario.ssh(&machine, &format!("cat {NOTES}")).await?;
    let joined: Vec<&str> = notes.lines().collect();
    ensure!(joined == PLACES[..2], "after the join: {joined:?}");
    stage.annotate(new, annotation::DELETE_FIRST, "").await?;
    stage.workers(before.len()).await?;
    stage.gone(new, Duration::from_secs(240)).await?;
    stage.host_is(&host, HostPhase::Available, POOL).await?;
    let notes = stage.scenario.ssh(&machine, &format!("cat {NOTES}; rm {NOTES}")).await?;
    let all: Vec<&str> = notes.lines().collect();
    ensure!(all == PLACES, "in the end: {all:?}");
    guards::hold(&stage.machines)?;
    let seen = Seen::since(began, "six hooks, in order, on the machine that joined and left");
    if let Some(spec) = stage.wish["spec"].as_object_mut() {
        spec.remove("hooks");
        spec.remove("executor");
    }
    stage.apply().await?;
    stage.ready(1 + before.len()).await?;
    Ok(seen)
}
