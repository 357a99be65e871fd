//! What is known of a MachineSet's fields: its planner is asked about specs that differ in one field.

use std::error::Error;

use crds::machine_set::{MachineSetMode, MachineSetSpec};
use crds::{Machine, MachineSet, names};
use plan::machine_set::{self, Action, Observed};
use serde_json::{Value, json};

use super::effect::Effect;
use super::known::{AT, CLUSTER, Known, deployment, refused};
use super::leaves::Leaf;

/// What is known of a field of a MachineSet: by what its planner does with the Machines that there are.
pub fn known(schema: &Value, leaf: &Leaf) -> Result<Known, Box<dyn Error>> {
    if let Some(why) = refused(schema, leaf) {
        return Ok(Known { remark: why, effect: Some(Effect::Refused), ..Known::default() });
    }
    let base =
        json!({"clusterName": CLUSTER, "role": "worker", "replicas": 2, "template": {"kubernetesVersion": "1.35.4"}});
    let [one, other] = leaf.values().map(|value| leaf.set(schema, &base, &value));
    let mut known = Known::default();
    for (before, after) in [(&base, &one), (&one, &other), (&other, &one), (&one, &base)] {
        let made = made(before)?;
        let made: Vec<&Machine> = made.iter().collect();
        known.effect = known.effect.max(actions(&set(after)?, &made)?.iter().map(of_action).max());
    }
    Ok(known)
}

fn of_action(action: &Action) -> Effect {
    match action {
        Action::CreateMachine(_) | Action::DeleteMachine(_) => Effect::Machines,
        Action::SetNodeMetadata { .. } | Action::SetVersion { .. } => Effect::Immediate,
        Action::Adopt(_) | Action::CreateHostPool(_) | Action::QuarantineHost { .. } => Effect::None,
    }
}

/// The Machines that a set makes, once they are part of their cluster.
fn made(spec: &Value) -> Result<Vec<Machine>, Box<dyn Error>> {
    let mut made = Vec::new();
    let set = set(spec)?;
    // It makes none in mode Manual: there a platform has made the same.
    let by_itself = MachineSet { spec: MachineSetSpec { mode: MachineSetMode::Automatic, ..set.spec }, ..set };
    for action in actions(&by_itself, &[])? {
        if let Action::CreateMachine(machine) = action {
            let mut machine = serde_json::to_value(*machine)?;
            let version = machine["spec"]["kubernetesVersion"].clone();
            machine["metadata"]["uid"] = json!(format!("machine-{}", made.len()));
            machine["metadata"]["creationTimestamp"] = json!(AT);
            machine["status"] = json!({"provisionedAt": AT, "kubernetesVersion": version});
            made.push(serde_json::from_value(machine)?);
        }
    }
    Ok(made)
}

fn set(spec: &Value) -> serde_json::Result<MachineSet> {
    serde_json::from_value(json!({
        "apiVersion": "clusterwright.dev/v1alpha1", "kind": "MachineSet", "spec": spec,
        "metadata": {"name": names::worker_set(CLUSTER, "general"), "namespace": "fleet", "uid": "set"},
    }))
}

/// What the set's planner does with these Machines.
fn actions(set: &MachineSet, machines: &[&Machine]) -> Result<Vec<Action>, Box<dyn Error>> {
    let spec = json!({"kubernetesVersion": "1.35.4", "controlPlane": {"replicas": 1}});
    let deployment = deployment(&spec)?;
    let observed = Observed {
        now: AT.parse()?,
        set,
        formed: Some((&deployment).into()),
        machines,
        hosts: &[],
        has_pool: true,
        runs: &[],
    };
    Ok(machine_set::plan(&observed).actions)
}
