//! Labels, annotations and taints that are edited while the cluster runs.

use crds::conditions;
use crds::names::condition;
use crds::placement::plain;
use crds::step::Role;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;

use super::ready;
use crate::testing::World;

const PLAIN: &str = "controlPlane: {replicas: 1}, workers: [{name: general, replicas: 1}]";
const EDITED: &str = "controlPlane: {replicas: 1, labels: {tier: control}}, workers: [{name: general, replicas: 1, labels: {pool: fast}, annotations: {team: x}, taints: [{key: gpu, effect: NoSchedule}]}]";

fn built(spec: &str) -> World {
    let mut world = World::new(spec, 2);
    world.settle();
    world
}

fn up_to_date(conditions: &[Condition]) -> (&str, &str, &str) {
    let found = conditions::find(conditions, condition::UP_TO_DATE).unwrap();
    (&found.status, &found.reason, &found.message)
}

/// What the cluster, the set of workers and the worker say.
fn said(world: &World) -> [(&str, &str, &str); 3] {
    let set = world.sets.iter().find(|set| set.spec.role == Role::Worker).unwrap();
    let worker = world.machines.iter().find(|machine| machine.spec.role == Role::Worker).unwrap();
    [
        up_to_date(&world.deployment.status.as_ref().unwrap().conditions),
        up_to_date(&set.status.as_ref().unwrap().conditions),
        up_to_date(&worker.status.as_ref().unwrap().conditions),
    ]
}

fn all_is_well(world: &World) {
    assert!(said(world).iter().all(|(status, ..)| *status == "True"), "{:?}", said(world));
}

fn taints(world: &mut World, host: &str) -> Vec<String> {
    world.node_metadata(host).taints.iter().map(|taint| taint.key.clone()).collect()
}

#[test]
fn an_edit_reaches_the_nodes_that_there_are_and_nothing_is_made_anew() {
    let mut world = built(PLAIN);
    all_is_well(&world);
    let (machines, runs) = (world.machines.len(), world.runs.len());
    world.label_node("h2", "mine", "1", "kubectl-label", false);
    world.taint_node("h2", "foreign");
    world.respec(EDITED);
    world.settle();
    all_is_well(&world);
    assert_eq!(ready(&world).0, "True");
    assert_eq!(world.node_metadata("h1").labels["tier"], "control");
    let node = world.node_metadata("h2").clone();
    assert_eq!((node.labels["pool"].as_str(), node.labels["mine"].as_str()), ("fast", "1"));
    assert_eq!(node.annotations["team"], "x");
    assert_eq!(taints(&mut world, "h2"), ["foreign", "gpu"]);
    world.respec(PLAIN);
    world.settle();
    all_is_well(&world);
    let keys: Vec<String> = world.node_metadata("h2").labels.keys().cloned().collect();
    assert_eq!(keys, ["mine", "node-role.kubernetes.io/worker"]);
    assert_eq!(taints(&mut world, "h2"), ["foreign"]);
    assert!(world.node_metadata("h2").annotations.is_empty());
    assert_eq!((world.machines.len(), world.runs.len()), (machines, runs), "no machine, no run");
}

#[test]
fn what_is_taken_out_of_the_spec_while_a_machine_joins_does_not_stay_on_its_node() {
    let mut world = World::new(EDITED, 2);
    // Its kubelet is configured by then, and its Node is not there.
    for _ in 0..40 {
        if world.works() && world.runs.iter().any(|run| run.spec.hosts == ["h2"]) {
            break;
        }
        world.run_for(1);
    }
    world.respec(PLAIN);
    world.settle();
    all_is_well(&world);
    let keys: Vec<String> = world.node_metadata("h2").labels.keys().cloned().collect();
    assert_eq!(keys, ["node-role.kubernetes.io/worker"]);
    assert_eq!(taints(&mut world, "h2"), [] as [&str; 0]);
}

#[test]
fn nothing_is_written_while_the_cluster_is_paused_and_that_is_said() {
    let mut world = built(PLAIN);
    world.respec(&format!("{EDITED}, paused: true"));
    world.settle();
    let [cluster, _, machine] = said(&world);
    assert_eq!((cluster.0, cluster.1), ("False", "Paused"));
    for field in ["workers[general].labels", "workers[general].annotations", "workers[general].taints"] {
        assert!(cluster.2.contains(field) && machine.2.contains(field), "{cluster:?} {machine:?}");
    }
    assert!(!world.node_metadata("h2").labels.contains_key("pool"));
    world.respec(EDITED);
    world.settle();
    all_is_well(&world);
}

#[test]
fn a_key_that_another_field_manager_applies_is_left_to_it_and_named() {
    let mut world = built(EDITED);
    world.label_node("h2", "pool", "theirs", "nfd", true);
    world.settle();
    for (status, reason, message) in said(&world) {
        assert_eq!((status, reason), ("False", "NodeFieldConflict"));
        assert!(message.contains("label pool (field manager nfd)"), "{message}");
    }
    assert_eq!(world.node_metadata("h2").labels["pool"], "theirs");
    assert_eq!(ready(&world).0, "True");
    world.respec(PLAIN);
    world.settle();
    all_is_well(&world);
    assert_eq!(world.node_metadata("h2").labels["pool"], "theirs");
}

#[test]
fn while_the_api_does_not_answer_an_edit_is_not_known_to_have_arrived() {
    let mut world = built(PLAIN);
    world.cut = true;
    world.settle();
    assert!(said(&world).iter().all(|(status, ..)| *status == "True"), "nothing else is wanted: {:?}", said(&world));
    world.respec(EDITED);
    world.settle();
    for (status, reason, message) in said(&world) {
        assert_eq!((status, reason), ("Unknown", "ClusterUnreachable"), "{message}");
    }
    world.cut = false;
    world.settle();
    all_is_well(&world);
    let wanted = &world.machines.iter().find(|machine| machine.spec.role == Role::Worker).unwrap().spec.labels;
    let wanted = plain(wanted);
    assert!(wanted.iter().all(|(key, value)| world.node_metadata("h2").labels.get(key) == Some(value)));
}
