//! A machine that was given up without being cleaned, and that answers again, is fenced first; nobody else's is.

use crds::ObjectExt;
use crds::cluster_deployment::{DeletionPolicy, FenceReturned};
use crds::inputs::FENCE_CLAIM_EPOCH;
use crds::playbook_run::Fence;
use crds::step::{Intent, Step as RunStep};
use crds::{Host, PlaybookRun};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;

use crate::testing::World;

const SPEC: &str = "controlPlane: {replicas: 1}, workers: [{name: general, replicas: 1}]";

/// A cluster whose worker on h2 was removed by force, and its place taken by h3.
fn given_up() -> World {
    let mut world = World::new(SPEC, 3);
    world.settle();
    world.silent.insert("h2".into());
    let index = world
        .machines
        .iter()
        .position(|machine| machine.spec.host_ref.as_ref().is_some_and(|host| host.name == "h2"))
        .unwrap();
    world.delete_machine(index);
    let name = world.machines[index].name().to_owned();
    world.force_remove(&name);
    world.settle();
    world.silent.clear();
    world
}

fn h2(world: &mut World) -> &mut Host {
    &mut world.hosts[1]
}

/// A probe of the Host as it is reached the machine, and its guard knows this fence.
fn answers(world: &mut World, epoch: i64) {
    let host = h2(world);
    let status = host.status.get_or_insert_default();
    status.fence = Some(Fence { epoch, token: 1 });
    let reachable =
        "{type: Reachable, status: 'True', reason: Answers, message: '', lastTransitionTime: '2026-01-01T00:00:00Z'}";
    let mut reachable: Condition = serde_yaml::from_str(reachable).unwrap();
    reachable.observed_generation = host.metadata.generation;
    status.conditions.push(reachable);
}

fn fences(world: &World) -> Vec<&PlaybookRun> {
    let is_fence = |run: &&PlaybookRun| run.spec.steps.contains(&RunStep::Fence);
    world.runs.iter().filter(is_fence).collect()
}

#[test]
fn a_machine_that_was_removed_by_force_is_fenced_once_when_it_answers_again() {
    let mut world = given_up();
    let epoch = h2(&mut world).spec.claim_epoch;
    let fence = h2(&mut world).spec.quarantine.clone().unwrap().fence.unwrap();
    assert_eq!((fence.claim_epoch, fence.cluster_uid.as_str(), fence.fenced), (epoch, "cd-uid", false));
    world.run_for(5);
    assert!(fences(&world).is_empty(), "it does not answer yet");
    answers(&mut world, epoch);
    world.settle();
    let runs = fences(&world);
    assert_eq!(runs.len(), 1);
    let run = runs[0];
    assert_eq!(
        (run.spec.intent, &run.spec.steps[..], &run.spec.hosts[..]),
        (Intent::Remove, &[RunStep::Fence][..], &["h2".to_owned()][..])
    );
    assert_eq!(run.spec.vars[FENCE_CLAIM_EPOCH], epoch);
    assert!(h2(&mut world).spec.quarantine.clone().unwrap().fence.unwrap().fenced);
    world.runs.clear();
    world.run_for(5);
    assert!(fences(&world).is_empty(), "it is remembered without its run");
}

#[test]
fn a_fence_stands_beside_whatever_holds_the_lock() {
    let mut world = given_up();
    world.custom_run("by-hand", &["h1"]);
    while !world.works() {
        world.run_for(1);
    }
    let epoch = h2(&mut world).spec.claim_epoch;
    answers(&mut world, epoch);
    world.write_statuses();
    world.write_statuses();
    let operations = &world.deployment.status.as_ref().unwrap().operations;
    assert_eq!(operations.len(), 2, "{operations:?}");
    world.settle();
    assert_eq!(fences(&world).len(), 1);
}

#[test]
fn a_fence_that_fails_is_tried_again() {
    let mut world = given_up();
    let epoch = h2(&mut world).spec.claim_epoch;
    world.always_fails = vec!["h2".into()];
    answers(&mut world, epoch);
    world.run_for(30);
    assert!(fences(&world).len() > 3, "{}", fences(&world).len());
    world.always_fails.clear();
    world.settle();
    assert!(h2(&mut world).spec.quarantine.clone().unwrap().fence.unwrap().fenced);
}

#[test]
fn a_machine_that_is_not_known_to_be_what_was_given_up_is_not_touched() {
    let check = |what: &str, change: fn(&mut World, i64)| {
        let mut world = given_up();
        let epoch = h2(&mut world).spec.claim_epoch;
        change(&mut world, epoch);
        world.run_for(9);
        assert!(fences(&world).is_empty(), "{what}");
    };
    check("a higher epoch", |world, epoch| answers(world, epoch + 1));
    check("a lower epoch", |world, epoch| answers(world, epoch - 1));
    check("another cluster's", |world, epoch| {
        let quarantine = h2(world).spec.quarantine.as_mut().unwrap();
        quarantine.fence.as_mut().unwrap().cluster_uid = "of-another".into();
        answers(world, epoch);
    });
    check("claimed since, as an old backup has it", |world, epoch| {
        h2(world).spec.claim_epoch = epoch + 1;
        answers(world, epoch);
    });
    check("the administrator does not want it", |world, epoch| {
        world.deployment.spec.machine_removal.fence_returned = FenceReturned::Never;
        answers(world, epoch);
    });
    check("the cluster is paused", |world, epoch| {
        world.deployment.spec.paused = true;
        answers(world, epoch);
    });
    check("nobody knows the last token", |world, epoch| {
        world.lose_status();
        world.silent.insert("h1".into());
        answers(world, epoch);
    });
    check("probed before it was given up", |world, epoch| {
        answers(world, epoch);
        h2(world).metadata.generation = Some(7);
    });
}

#[test]
fn a_detached_machine_has_nothing_to_be_fenced_for() {
    let mut world = World::new(SPEC, 2);
    world.deployment.spec.deletion_policy = DeletionPolicy::Detach;
    world.settle();
    world.delete();
    world.settle();
    assert!(world.gone);
    let fence = |host: &Host| host.spec.quarantine.as_ref().is_some_and(|there| there.fence.is_some());
    assert!(!world.hosts.iter().any(fence));
}
