//! What is known of a ClusterDeployment's fields: the functions that compare what machines have with what is wanted are
//! asked about specs that differ in one field.

use std::error::Error;

use crds::cluster_deployment::AppliedManifests;
use crds::names::{self, annotation, label};
use crds::step::{Intent, Role, Step};
use crds::{ClusterDeployment, Machine, PlaybookRun};
use plan::configuration::files::FILES;
use plan::rotation::Authorities;
use plan::settings::{self, CONTENTS, Contents, Wanted};
use plan::{machine_set, naming};
use serde_json::{Value, json};

use super::effect::Effect;
use super::known::{AT, CLUSTER, Known, deployment, is_below, refused};
use super::leaves::Leaf;

const HOST: &str = "h1";

/// What an edit does to a machine, and what brings it.
type Change = (Effect, Option<Step>);

/// What is known of a field of a ClusterDeployment.
pub fn known(schema: &Value, leaf: &Leaf) -> Result<Known, Box<dyn Error>> {
    let content = CONTENTS.iter().find(|content| is_below(leaf, content.reference));
    if let Some(why) = refused(schema, leaf) {
        let steps = content.iter().map(|content| content.step).collect();
        let held = content.map_or("", |_| "; what the object holds may be edited, and is brought by the step");
        return Ok(Known { steps, remark: format!("{why}{held}"), effect: Some(Effect::Refused) });
    }
    let mut known = Known::default();
    if content.is_some() || FILES.iter().any(|file| is_below(leaf, file.field)) {
        known.remark = "another content of the object does the same".to_owned();
    }
    let of_content = content.map(|content| (of_change(content.is_disruptive, false), Some(content.step)));
    let mut changes: Vec<Change> = of_content.into_iter().collect();
    for topology in ["Stacked", "Dedicated", "External"] {
        changes.extend(changes_of(schema, leaf, topology)?);
    }
    known.effect = changes.iter().map(|(effect, _)| *effect).max();
    known.steps = changes.into_iter().filter_map(|(_, step)| step).collect();
    Ok(known)
}

fn of_change(is_disruptive: bool, drains: bool) -> Effect {
    match (drains, is_disruptive) {
        (true, _) => Effect::Drain,
        (false, true) => Effect::Restart,
        (false, false) => Effect::Immediate,
    }
}

/// What the edits of a field come to on machines, where etcd is in this place: it is given, changed, and taken back.
fn changes_of(schema: &Value, leaf: &Leaf, topology: &str) -> Result<Vec<Change>, Box<dyn Error>> {
    let base = json!({
        "kubernetesVersion": "1.35.4",
        "controlPlane": {"replicas": 1},
        "workers": [{"name": "general", "replicas": 1}],
        "etcd": {"topology": topology},
    });
    let [one, other] = leaf.values().map(|value| leaf.set(schema, &base, &value));
    let mut changes = Vec::new();
    for (before, after) in [(&base, &one), (&one, &other), (&other, &one), (&one, &base)] {
        let (before, after) = (deployment(before)?, deployment(after)?);
        let run = provisioned(&before)?;
        for machine in machines(&before)? {
            let of_machine = settings::applied(&machine, HOST, &[&run]);
            let differences = settings::differences(&Wanted::new(&after), &machine, of_machine.as_ref());
            let of_machines = differences.iter().map(|it| (of_change(it.is_disruptive, it.drains), it.step));
            changes.extend(of_machines);
            let of_dns = settings::of_dns(&Wanted::new(&after), applied(&before, &run).as_ref());
            changes.extend(of_dns.map(|it| (of_change(it.is_disruptive, it.drains), it.step)));
            let of_nodes = machine_set::template_difference(&after, &machine);
            changes.extend(of_nodes.map(|_| (Effect::Immediate, None)));
        }
    }
    Ok(changes)
}

/// What a cluster remembers of what was applied to it as a whole.
fn applied(deployment: &ClusterDeployment, run: &PlaybookRun) -> Option<AppliedManifests> {
    settings::applied_manifests(deployment, &[HOST], &[run])
}

/// A machine of each role, as its set makes it.
fn machines(deployment: &ClusterDeployment) -> serde_json::Result<Vec<Machine>> {
    let (control_plane, workers) = (&deployment.spec.control_plane, deployment.spec.workers.first());
    let of_workers = workers.map(|set| {
        let name = names::worker_set(CLUSTER, &set.name);
        (name, Role::Worker, json!({"labels": set.labels, "annotations": set.annotations, "taints": set.taints}))
    });
    let of_control_plane = json!({
        "labels": control_plane.labels, "annotations": control_plane.annotations, "taints": control_plane.taints,
    });
    let sets = [
        (names::control_plane_set(CLUSTER), Role::ControlPlane, of_control_plane),
        (names::etcd_set(CLUSTER), Role::Etcd, json!({})),
    ];
    let machine = |(set, role, mut spec): (String, Role, Value)| {
        spec["clusterName"] = json!(CLUSTER);
        spec["role"] = json!(role);
        spec["kubernetesVersion"] = json!(deployment.spec.kubernetes_version);
        spec["hostRef"] = json!({ "name": HOST });
        serde_json::from_value(json!({
            "apiVersion": "clusterwright.dev/v1alpha1", "kind": "Machine", "spec": spec,
            "metadata": {
                "name": naming::machine(&set, "set", 0), "namespace": "fleet", "uid": "machine",
                "creationTimestamp": AT,
                "labels": {label::MACHINE_SET: set}, "annotations": {annotation::ORDINAL: "0"},
                "ownerReferences": [
                    {"apiVersion": "clusterwright.dev/v1alpha1", "kind": "MachineSet", "name": set, "uid": "set"},
                ],
            },
        }))
    };
    sets.into_iter().chain(of_workers).map(machine).collect()
}

/// A run that has brought machines all that was wanted.
fn provisioned(deployment: &ClusterDeployment) -> serde_json::Result<PlaybookRun> {
    let settings = settings::frozen(deployment, Intent::Install, &Contents::default(), &Authorities::default());
    let steps = Step::ALL.map(|step| json!({"name": step, "phase": "Succeeded", "startedAt": AT}));
    serde_json::from_value(json!({
        "apiVersion": "clusterwright.dev/v1alpha1", "kind": "PlaybookRun", "metadata": {"name": "install"},
        "spec": {"clusterName": CLUSTER, "intent": "Install", "steps": Step::ALL.to_vec(), "hosts": [HOST]},
        "status": {"phase": "Succeeded", "token": 1, "startedAt": AT, "settings": settings, "steps": steps.to_vec()},
    }))
}
