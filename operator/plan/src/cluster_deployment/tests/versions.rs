//! Which version is wanted, and which one's rollout has begun.

use crds::ObjectExt;
use crds::conditions;
use crds::names::condition;
use crds::step::Intent;

use crate::attempts;
use crate::testing::{Fate, World};

fn started(world: &World) -> Option<String> {
    let status = world.deployment.status.as_ref()?;
    status.started_kubernetes_version.map(|version| version.to_string())
}

fn want(world: &mut World, version: &str) {
    world.deployment.spec.kubernetes_version = version.parse().unwrap();
    world.touch();
}

#[test]
fn a_version_has_begun_once_the_install_has_the_lock_and_not_before() {
    let mut world = World::new("controlPlane: {replicas: 1}", 0);
    world.settle();
    assert_eq!(started(&world), None, "nothing has begun");
    let mut world = World::new("controlPlane: {replicas: 1}", 1);
    while world.deployment.status.as_ref().is_none_or(|status| status.operations.is_empty()) {
        assert_eq!(started(&world), None, "nothing has begun");
        world.run_for(1);
    }
    assert_eq!(started(&world).as_deref(), Some("1.35.4"));
}

#[test]
fn a_version_that_is_edited_while_the_install_works_has_not_begun() {
    let mut world = World::new("controlPlane: {replicas: 1}", 1);
    while !world.works() {
        world.run_for(1);
    }
    want(&mut world, "1.35.5");
    while world.works() {
        assert_eq!(started(&world).as_deref(), Some("1.35.4"));
        world.run_for(1);
    }
    world.settle();
    assert_eq!(started(&world).as_deref(), Some("1.35.5"), "it was rolled out after that");
}

#[test]
fn an_attempt_at_an_install_begins_with_the_version_that_is_wanted_then() {
    let mut world = World::new("controlPlane: {replicas: 1}", 1);
    world.fates = vec![Fate::Fails; 3];
    world.settle();
    want(&mut world, "1.35.5");
    world.settle();
    assert_eq!(started(&world).as_deref(), Some("1.35.5"));
}

#[test]
fn a_version_that_has_begun_is_known_again_after_the_status_was_lost() {
    let mut world = World::new("controlPlane: {replicas: 1}", 1);
    world.settle();
    world.lose_status();
    world.settle();
    assert_eq!(started(&world).as_deref(), Some("1.35.4"));
}

#[test]
fn a_version_that_is_reported_in_another_form_is_shown_and_has_not_begun() {
    let mut world = World::new("controlPlane: {replicas: 1}", 1);
    world.settle();
    world.api_lost = true;
    world.machines[0].status.as_mut().unwrap().kubernetes_version = Some("1.35.4-eks".into());
    world.lose_status();
    world.settle();
    assert_eq!(started(&world), None, "the field could not hold it");
    let status = world.deployment.status.clone().unwrap();
    assert_eq!(status.kubernetes_version.as_deref(), Some("1.35.4-eks"));
    let up_to_date = conditions::find(&status.conditions, condition::UP_TO_DATE).unwrap();
    assert_eq!(up_to_date.reason, "OtherVersion");
}

#[test]
fn no_machine_is_brought_to_an_older_version_than_it_has() {
    let mut world = World::new("controlPlane: {replicas: 1}, workers: [{name: general, replicas: 1}]", 2);
    world.settle();
    want(&mut world, "1.36.0");
    world.settle();
    // As a store has it that was set back to before the upgrade.
    want(&mut world, "1.35.4");
    world.deployment.status.as_mut().unwrap().started_kubernetes_version = Some("1.35.4".parse().unwrap());
    let runs = world.runs.len();
    world.run_for(20);
    assert!(world.runs[runs..].iter().all(|run| run.spec.intent == Intent::Probe), "{}", world.report());
    let status = world.deployment.status.clone().unwrap();
    let ready = conditions::find(&status.conditions, condition::READY).unwrap();
    assert!(ready.reason == "VersionSkewNotAllowed" && ready.message.contains("set it to 1.36.0"), "{ready:?}");
    want(&mut world, "1.36.0");
    world.settle();
    assert_eq!(started(&world).as_deref(), Some("1.36.0"));
    let status = world.deployment.status.clone().unwrap();
    assert!(conditions::is_true(&status.conditions, condition::UP_TO_DATE), "{}", world.report());
}

#[test]
fn a_single_step_of_an_administrator_begins_no_version() {
    let mut world = World::new("controlPlane: {replicas: 1}", 1);
    world.settle();
    want(&mut world, "1.35.5");
    world.custom_run("by-hand", &["h1"]);
    if let Some(run) = world.runs.last_mut() {
        run.spec.intent = Intent::Upgrade;
    }
    while world.runs.iter().any(|run| run.name() == "by-hand" && !attempts::is_over(run)) {
        world.run_for(1);
        let begun = world.runs.iter().any(|run| run.spec.intent == Intent::Upgrade && run.name() != "by-hand");
        assert!(begun || started(&world).as_deref() == Some("1.35.4"));
    }
}
