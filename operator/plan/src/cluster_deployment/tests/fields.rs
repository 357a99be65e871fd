//! The page docs/fields.md says what an edit of each field of a running cluster does: here each of them is edited, and
//! what the planners make of it is compared with the page.

#[path = "../../../examples/field_docs/leaves.rs"]
mod leaves;

use std::collections::BTreeSet;

use crds::cluster_deployment::{Approval, EncryptionProvider, PlannedOperation};
use crds::step::Step;
use jiff::SignedDuration;
use serde_json::{Value, json};

use self::leaves::Leaf;
use crate::rotation::Subject;
use crate::rotation::own::OwnAuthority;
use crate::testing::World;

/// What the page says of a field.
struct Row {
    field: String,
    effect: String,
    steps: BTreeSet<String>,
}

fn page() -> Vec<Row> {
    let page = std::fs::read_to_string("../../docs/fields.md").unwrap();
    let (_, rows) = page.split_once("## ClusterDeployment").unwrap();
    let (rows, _) = rows.split_once("## MachineSet").unwrap();
    let row = |line: &str| {
        let cells: Vec<&str> = line.strip_prefix("| `")?.split('|').map(str::trim).collect();
        let [field, effect, steps, ..] = cells.as_slice() else { return None };
        let steps = steps.split('`').skip(1).step_by(2).map(str::to_owned).collect();
        Some(Row { field: field.trim_matches('`').to_owned(), effect: (*effect).to_owned(), steps })
    };
    rows.lines().filter_map(row).collect()
}

/// A running cluster whose etcd is in this place, with spare Hosts. What disrupts machines waits for an approval.
fn built(etcd: &str) -> World {
    let spec = "approval: Manual, controlPlane: {replicas: 1, endpoint: {host: 10.9.9.9}}, workers: [{name: general, replicas: 1}]";
    let mut world = World::new(&format!("{spec}, etcd: {{{etcd}}}"), 9);
    world.etcd_client = etcd.contains("External").then(|| Ok("one".into()));
    world.settle();
    world
}

fn edited(world: &World, schema: &Value, leaf: &Leaf, value: &Value) -> World {
    let mut world = world.clone();
    let spec = leaf.set(schema, &json!(world.deployment.spec), value);
    world.deployment.spec = serde_json::from_value(spec).unwrap_or_else(|error| panic!("{leaf}: {value}: {error}"));
    // The object that is named holds something else.
    match leaf.to_string().as_str() {
        "etcd.secretRef.name" => world.etcd_client = Some(Ok("another".into())),
        // The schema takes neither without the other.
        "encryption.provider" => {
            let kms = json!({"name": "a", "endpoint": "unix:///run/kms/a.sock"});
            world.deployment.spec.encryption.as_mut().unwrap().kms = Some(serde_json::from_value(kms).unwrap());
        }
        leaf if leaf.starts_with("encryption.kms.") => {
            world.deployment.spec.encryption.as_mut().unwrap().provider = EncryptionProvider::KmsV2;
        }
        "certificates.caRef.name" => {
            let ends = world.now + SignedDuration::from_hours(3000 * 24);
            let (begins, fingerprint) = (world.now, "another".to_owned());
            let own = OwnAuthority { fingerprint, begins, ends, is_self_signed: true, is_retired: false };
            world.own_authorities = Some(Ok([(Subject::Ca, own)].into()));
        }
        _ => {}
    }
    world.touch();
    if leaf.to_string().starts_with("certificates.") {
        // Each cluster begins at a moment of its own, and what was made just now is not renewed.
        world.run_for(300);
    }
    world
}

/// What an edit is seen to do, and by which steps.
fn seen(before: &World, mut world: World) -> (&'static str, BTreeSet<String>) {
    world.settle();
    let status = world.deployment.status.clone().unwrap();
    let waiting = status.plan.map(|plan| plan.changes).unwrap_or_default();
    let waiting: Vec<_> = waiting.iter().filter(|change| change.operation != PlannedOperation::Renew).collect();
    let effect = match () {
        () if waiting.iter().any(|change| change.drained) => "drain",
        () if waiting.iter().any(|change| change.disruptive) => "restart",
        () => "",
    };
    let is_paused = world.deployment.spec.paused;
    world.deployment.spec.approval = Approval::Automatic;
    world.touch();
    world.settle();
    let names = |world: &World| -> BTreeSet<String> {
        world.machines.iter().filter_map(|machine| machine.metadata.name.clone()).collect()
    };
    let of_nodes = |world: &World| {
        let nodes = world.machines.iter().map(|machine| {
            let spec = &machine.spec;
            json!([machine.metadata.name, spec.labels, spec.annotations, spec.taints])
        });
        nodes.collect::<Vec<_>>()
    };
    let made = world.runs.iter().filter(|run| {
        let is_new = before.runs.iter().all(|other| other.metadata.name != run.metadata.name);
        is_new && !run.spec.intent.changes_nothing()
    });
    let steps: BTreeSet<Step> = made.flat_map(|run| run.spec.steps.iter().copied()).collect();
    let effect = match effect {
        _ if is_paused => "none on machines",
        _ if names(before) != names(&world) => "machines join or leave",
        "" if !steps.is_empty() || of_nodes(before) != of_nodes(&world) => "immediate",
        "" => "none on machines",
        effect => effect,
    };
    (effect, steps.into_iter().map(|step| step.name().to_owned()).collect())
}

#[test]
fn an_edit_of_each_field_does_what_the_page_says() {
    let schema = leaves::schema("ClusterDeployment").unwrap();
    let worlds = [
        "topology: Stacked",
        "topology: Dedicated, replicas: 1",
        "topology: External, endpoints: ['https://10.0.0.99:2379'], secretRef: {name: etcd}",
    ];
    let worlds = worlds.map(|etcd| (etcd, built(etcd)));
    let rows = page();
    assert!(rows.len() > 200, "{}", rows.len());
    let mut wrong = Vec::new();
    for leaf in leaves::leaves(&schema) {
        let field = leaf.to_string();
        let row = rows.iter().find(|row| row.field == field).unwrap_or_else(|| panic!("{field} has no row"));
        // What the schema refuses comes to no planner.
        if row.effect == "refused" {
            continue;
        }
        let place = match field.split('.').take(2).collect::<Vec<_>>().join(".").as_str() {
            "etcd.endpoints" | "etcd.secretRef" => 2,
            "etcd.replicas" | "etcd.hosts" | "etcd.hostSelector" => 1,
            _ => 0,
        };
        let (_, before) = &worlds[place];
        let spec = json!(before.deployment.spec);
        let differs = |value: &&Value| leaf.set(&schema, &spec, value) != spec;
        let values = leaf.values();
        // The one that the cluster has by itself says nothing.
        let value = values.iter().rev().find(differs).unwrap();
        let (effect, steps) = seen(before, edited(before, &schema, &leaf, value));
        let is_as_said = match row.effect.as_str() {
            "later machines only" => effect == "none on machines",
            said => effect == said,
        };
        let of_machines = effect == "machines join or leave";
        if !is_as_said || !(of_machines || steps == row.steps) {
            wrong.push(format!("{field} = {value}: {}, {:?} on the page; {effect}, {steps:?}", row.effect, row.steps));
        }
    }
    assert!(wrong.is_empty(), "docs/fields.md, or what was declared for it, is wrong:\n{}", wrong.join("\n"));
}
