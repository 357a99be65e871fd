//! A pause lets the step end, and nothing more begins.

use crds::conditions;
use crds::names::condition;

use super::ready;
use crate::testing::{Fate, World};

fn paused(world: &mut World, paused: bool) {
    world.deployment.spec.paused = paused;
    world.touch();
}

fn said(world: &World) -> (String, String) {
    let status = world.deployment.status.clone().unwrap();
    let paused = conditions::find(&status.conditions, condition::PAUSED).unwrap();
    (paused.reason.clone(), status.message.unwrap())
}

#[test]
fn a_pause_lets_the_step_end_and_its_end_lets_the_install_go_on_from_there() {
    let mut world = World::new("controlPlane: {replicas: 1}", 1);
    while !world.works() {
        world.run_for(1);
    }
    paused(&mut world, true);
    world.write_statuses();
    let name = world.runs[0].metadata.name.clone().unwrap();
    assert!(world.runs[0].spec.paused);
    assert_eq!(said(&world), ("StepFinishing".into(), format!("paused; step bootstrap-os of run {name} ends first")));
    world.settle();
    assert_eq!(
        said(&world),
        ("Held".into(), format!("paused before step preflight of run {name}; goes on when spec.paused is false"))
    );
    assert_eq!(world.runs.len(), 1);
    for _ in 0..5 {
        // Held runs count for nothing, however often.
        paused(&mut world, false);
        world.run_for(2);
        paused(&mut world, true);
        world.settle();
    }
    paused(&mut world, false);
    world.settle();
    assert_eq!(ready(&world).0, "True");
    let resumed: Vec<bool> = world.runs.iter().map(|run| run.spec.resume).collect();
    assert!(!resumed[0] && resumed[1..].iter().all(|resumed| *resumed), "{resumed:?}");
    assert_eq!(world.deployment.status.clone().unwrap().pending_generation, None);
}

#[test]
fn a_pause_is_no_new_wish_and_gives_no_new_attempts() {
    let mut world = World::new("controlPlane: {replicas: 1}", 1);
    world.fates = vec![Fate::Fails; 9];
    world.settle();
    for is_paused in [true, false] {
        paused(&mut world, is_paused);
        world.settle();
    }
    assert_eq!(world.runs.len(), 3);
}

#[test]
fn a_pause_that_ends_before_the_step_does_is_taken_back() {
    let mut world = World::new("controlPlane: {replicas: 1}", 1);
    while !world.works() {
        world.run_for(1);
    }
    paused(&mut world, true);
    world.write_statuses();
    paused(&mut world, false);
    world.write_statuses();
    assert!(!world.runs[0].spec.paused);
    world.settle();
    assert_eq!((world.runs.len(), ready(&world).0.as_str()), (1, "True"));
}

#[test]
fn what_failed_before_a_pause_is_not_tried_during_it() {
    let mut world = World::new("controlPlane: {replicas: 1}", 1);
    world.fates = vec![Fate::Fails];
    while world.fates.len() == 1 {
        world.run_for(1);
    }
    paused(&mut world, true);
    world.settle();
    assert_eq!(world.runs.len(), 1);
    let (reason, message) = said(&world);
    assert_eq!(reason, "SpecPaused");
    assert!(message.starts_with("paused; nothing more starts until spec.paused is false; "), "{message}");
}

#[test]
fn a_paused_cluster_that_is_deleted_waits_and_says_so() {
    let mut world = World::new("controlPlane: {replicas: 1}", 1);
    world.settle();
    paused(&mut world, true);
    world.delete();
    world.settle();
    let message = world.deployment.status.clone().unwrap().message.unwrap();
    assert!(!world.gone && message.contains("set spec.paused to false"), "{message}");
    paused(&mut world, false);
    world.settle();
    assert!(world.gone);
}
