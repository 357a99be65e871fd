//! The way to a version that is more than one minor away.

use crds::conditions;
use crds::names::condition;
use crds::step::Intent;
use jiff::SignedDuration;

use super::ready;
use crate::testing::World;

const SPEC: &str =
    "controlPlane: {replicas: 3, endpoint: {host: 10.0.1.1, port: 6443}}, workers: [{name: general, replicas: 2}]";

fn built() -> World {
    let mut world = World::new(SPEC, 5);
    world.settle();
    assert_eq!(ready(&world).0, "True");
    world
}

fn want(world: &mut World, version: &str, via: &[&str]) {
    world.deployment.spec.kubernetes_version = version.parse().unwrap();
    world.deployment.spec.upgrade_path.via = via.iter().map(|version| version.parse().unwrap()).collect();
    world.touch();
}

fn started(world: &World) -> String {
    world.deployment.status.as_ref().unwrap().started_kubernetes_version.unwrap().to_string()
}

fn up_to_date(world: &World) -> (String, String) {
    let status = world.deployment.status.clone().unwrap();
    let found = conditions::find(&status.conditions, condition::UP_TO_DATE).unwrap();
    (found.reason.clone(), found.message.clone())
}

/// The versions that were brought, in their order, each once in a row.
fn brought(world: &World, intent: Intent) -> Vec<String> {
    let runs = world.runs.iter().filter(|run| run.spec.intent == intent);
    let settings = runs.filter_map(|run| run.status.as_ref()?.settings.as_ref()?.kubernetes_version);
    let mut versions: Vec<String> = settings.map(|version| version.to_string()).collect();
    versions.dedup();
    versions
}

#[test]
fn each_minor_on_the_way_is_an_upgrade_of_its_own_of_all_machines() {
    let mut world = built();
    want(&mut world, "1.38.1", &["1.37.5", "1.36.2"]);
    let (mut titles, mut begun) = (Vec::new(), vec![started(&world)]);
    for _ in 0..5000 {
        world.run_for(1);
        let (reason, message) = up_to_date(&world);
        if reason == "Upgrading" {
            titles.push(message.split(": ").next().unwrap_or_default().to_owned());
        }
        begun.push(started(&world));
        if reason == "UpToDate" {
            break;
        }
    }
    begun.dedup();
    assert_eq!(begun, ["1.35.4", "1.36.2", "1.37.5", "1.38.1"], "{:?}\n{}", up_to_date(&world), world.report());
    titles.dedup();
    let ways = ["1.35.4 -> 1.36.2 (then 1.38.1)", "1.36.2 -> 1.37.5 (then 1.38.1)", "1.37.5 -> 1.38.1"];
    for way in ways {
        assert!(titles.contains(&format!("upgrading {way}")), "{way}: {titles:?}");
    }
    for intent in [Intent::Prefetch, Intent::Upgrade] {
        // The history may have lost the first ones.
        let versions = brought(&world, intent);
        let mut sorted = versions.clone();
        sorted.sort_unstable();
        assert_eq!(versions, sorted, "{intent:?}: none is left out and none goes back");
    }
    world.settle();
    assert_eq!(ready(&world).0, "True");
    assert_eq!(up_to_date(&world).0, "UpToDate");
}

#[test]
fn a_way_that_lacks_a_minor_is_refused_with_the_way() {
    let mut world = built();
    want(&mut world, "1.38.0", &["1.37.5"]);
    world.settle();
    let (_, reason, message) = ready(&world);
    assert_eq!(reason, "VersionSkewNotAllowed");
    assert!(message.contains("1.35.4 -> 1.36.x -> 1.38.0") && message.contains("spec.upgradePath.via"), "{message}");
    assert!(brought(&world, Intent::Prefetch).is_empty());
}

#[test]
fn until_a_leg_has_begun_the_way_may_be_changed_and_one_that_has_begun_is_finished() {
    let mut world = built();
    want(&mut world, "1.37.0", &["1.36.0"]);
    while started(&world) == "1.35.4" {
        world.run_for(1);
    }
    // Another patch of a minor that has begun is no part of the way any more.
    want(&mut world, "1.37.1", &["1.36.9"]);
    world.settle();
    assert_eq!(started(&world), "1.37.1");
    assert!(!brought(&world, Intent::Upgrade).contains(&"1.36.9".to_owned()));
    assert!(brought(&world, Intent::Upgrade).contains(&"1.36.0".to_owned()));
}

#[test]
fn a_machine_that_fails_on_the_way_keeps_the_next_leg_from_beginning() {
    let mut world = built();
    want(&mut world, "1.37.0", &["1.36.0"]);
    while started(&world) == "1.35.4" {
        world.run_for(1);
    }
    let worker = world.machines.iter().rev().find_map(|it| it.spec.host_ref.clone()).unwrap().name;
    world.always_fails = vec![worker];
    for _ in 0..300 {
        world.run_for(1);
    }
    world.jump(SignedDuration::from_hours(1));
    world.settle();
    assert_eq!(up_to_date(&world).0, "UpgradeFailed", "{:?}", up_to_date(&world));
    assert_eq!(started(&world), "1.36.0");
    world.always_fails.clear();
    world.request("a", crds::names::annotation::RETRY);
    world.settle();
    assert_eq!(up_to_date(&world).0, "UpToDate", "{:?}", up_to_date(&world));
    assert_eq!(started(&world), "1.37.0");
}
