//! Machines that join before others of their set are drained, and leave when all is brought.

use crds::cluster_deployment::Approval;
use crds::names::{annotation, condition};
use crds::step::{Intent, Role};
use crds::{ObjectExt, conditions};
use serde_json::json;

use super::growth::approve_asked;
use super::ready;
use crate::departure::is_healthy;
use crate::testing::World;

/// Four machines, and the Hosts that are spare.
fn built(surge: &str, spare: usize) -> World {
    let spec = format!("controlPlane: {{replicas: 1}}, workers: [{{name: general, replicas: 3, maxSurge: {surge}}}]");
    let mut world = World::new(&spec, 4 + spare);
    world.settle();
    assert_eq!(ready(&world).0, "True", "{:?}", ready(&world));
    world
}

fn want(world: &mut World, version: &str) {
    let version = version.parse().unwrap();
    world.change_spec("a", |spec| spec.kubernetes_version = version);
}

/// Workers that run Pods, and take more.
fn serving(world: &World) -> usize {
    let workers = world.machines.iter().filter(|machine| machine.spec.role == Role::Worker);
    workers.filter(|machine| is_healthy(machine) && machine.spec.drain_for.is_empty()).count()
}

fn workers(world: &World) -> usize {
    world.machines.iter().filter(|machine| machine.spec.role == Role::Worker).count()
}

fn up_to_date(world: &World) -> (bool, String) {
    let status = world.deployment.status.as_ref().unwrap();
    let found = conditions::find(&status.conditions, condition::UP_TO_DATE).unwrap();
    (found.status == "True", found.message.clone())
}

/// Until the cluster rests: how many workers there were at most, and how many served at least while none was sick by
/// itself.
fn watched(world: &mut World) -> (usize, usize) {
    let (mut most, mut least) = (0, usize::MAX);
    for _ in 0..600 {
        world.run_for(1);
        most = most.max(workers(world));
        // What is worked on is not well for a moment; what counts is how many are drained.
        let drained = world.machines.iter().filter(|machine| !machine.spec.drain_for.is_empty());
        least = least.min(workers(world) - drained.filter(|machine| machine.spec.role == Role::Worker).count());
    }
    world.settle();
    (most, least)
}

fn is_as_before(world: &World) {
    let (done, message) = up_to_date(world);
    assert!(done, "{message}\n{}", world.report());
    assert_eq!((workers(world), serving(world)), (3, 3), "{}", world.report());
    let set = world.sets.iter().find(|set| set.name() == "a-general").unwrap();
    assert_eq!((set.spec.replicas, set.spec.surge), (3, 0));
    assert!(world.machines.iter().all(|machine| machine.spec.drain_for.is_empty()));
}

#[test]
fn a_spare_machine_joins_before_a_worker_is_drained_for_an_upgrade_and_one_leaves_after_it() {
    let mut world = built("1", 1);
    want(&mut world, "1.36.0");
    assert_eq!(watched(&mut world), (4, 3));
    is_as_before(&world);
    for machine in &world.machines {
        let status = machine.status.as_ref().unwrap();
        assert_eq!(status.kubernetes_version.as_deref(), Some("1.36.0"), "{}", machine.name());
    }
}

#[test]
fn as_many_join_as_the_surge_comes_to_and_as_many_are_drained_at_once() {
    let mut world = built("50%", 2);
    want(&mut world, "1.36.0");
    assert_eq!(watched(&mut world), (5, 3));
    is_as_before(&world);
}

#[test]
fn settings_that_need_a_drain_surge_as_well_and_others_do_not() {
    let mut world = built("1", 1);
    world.change_spec("a", |spec| {
        spec.configuration = serde_json::from_value(json!({"kubelet": {"maxPods": 50}})).unwrap();
    });
    assert_eq!(watched(&mut world), (4, 3));
    is_as_before(&world);
    world.change_spec("a", |spec| {
        spec.configuration = serde_json::from_value(json!({"kubelet": {"maxPods": 60}})).unwrap();
    });
    assert_eq!(watched(&mut world), (3, 3));
    is_as_before(&world);
    want(&mut world, "1.35.9");
    assert_eq!(watched(&mut world), (3, 3), "a patch needs no drain");
    is_as_before(&world);
}

#[test]
fn without_a_spare_host_no_worker_is_drained_until_there_is_one() {
    let mut world = built("1", 1);
    let spare = world.hosts.iter().position(|host| host.spec.claim_ref.is_none()).unwrap();
    world.hosts[spare].spec.unschedulable = true;
    want(&mut world, "1.36.0");
    assert_eq!(watched(&mut world), (4, 3));
    let (done, message) = up_to_date(&world);
    assert!(!done);
    let why =
        "waits for more than the 3 replicas of MachineSet a-general to be Ready (maxSurge): needs 1, 0 free match";
    assert!(message.contains(why), "{message}");
    assert_eq!(ready(&world).0, "True", "{:?}", ready(&world));
    world.hosts[spare].spec.unschedulable = false;
    assert_eq!(watched(&mut world), (4, 3));
    is_as_before(&world);
}

#[test]
fn who_gives_the_surge_up_gets_the_rollout_without_it() {
    let mut world = built("1", 0);
    want(&mut world, "1.36.0");
    watched(&mut world);
    assert!(!up_to_date(&world).0);
    world.change_spec("a", |spec| spec.workers[0].max_surge = serde_json::from_value(json!(0)).unwrap());
    let (_, least) = watched(&mut world);
    assert_eq!(least, 2);
    is_as_before(&world);
}

#[test]
fn nothing_joins_before_the_plan_is_approved() {
    let mut world = built("1", 1);
    world.change_spec("a", |spec| spec.approval = Approval::Manual);
    world.settle();
    world.change_spec("a", |spec| {
        spec.configuration = serde_json::from_value(json!({"kubelet": {"maxPods": 50}})).unwrap();
    });
    assert_eq!(watched(&mut world), (3, 3));
    approve_asked(&mut world);
    assert_eq!(watched(&mut world), (4, 3));
    is_as_before(&world);
}

/// It lacks the next authority at first, and for as long nobody's Pods are started anew.
#[test]
fn a_machine_that_joins_within_a_rotation_stays_until_the_pods_of_all_others_are_started_anew() {
    let mut world = built("1", 1);
    world.deployment.spec.executor = serde_json::from_value(json!({"historyLimit": 100})).unwrap();
    let joined = |world: &World| world.runs.iter().filter(|run| run.spec.intent == Intent::Join).count();
    let before = joined(&world);
    let annotations = world.deployment.metadata.annotations.get_or_insert_default();
    annotations.insert(annotation::ROTATE.into(), "ca.1".into());
    world.touch();
    assert_eq!(watched(&mut world), (4, 3));
    assert_eq!(joined(&world), before + 1, "{}", world.report());
    let said = conditions::find(&world.deployment.status.as_ref().unwrap().conditions, condition::AUTHORITIES_ROTATED);
    assert_eq!(said.unwrap().reason, "WaitingForApproval", "{:?}\n{}", said, world.report());
    is_as_before(&world);
}
