//! Faults of a plane in Pods: its etcd does not work, its certificates have ended, and others change what it consists
//! of.

use serde_json::{Value, json};

use super::super::Place;
use super::upgrade::{former, want};
use super::world::{World, plane, settled};

const WORKLOADS: [&str; 2] = ["Deployment", "StatefulSet"];

/// None of a workload's Pods is ready, and none becomes it.
fn fail(world: &mut World, is_hit: impl Fn(&str) -> bool) {
    for ((kind, _, name), live) in &mut world.host {
        if WORKLOADS.contains(&kind.as_str()) && is_hit(name) {
            live["status"]["readyReplicas"] = json!(0);
            live["status"]["availableReplicas"] = json!(0);
            world.stuck.insert(name.clone());
        }
    }
}

fn workloads(world: &World) -> Vec<String> {
    let starts = ["apply Deployment", "apply StatefulSet"];
    world.log.iter().filter(|line| starts.iter().any(|start| line.starts_with(start))).cloned().collect()
}

/// Without a majority, or without room, its members are not ready, and no API server that asks them is. An edit and an
/// upgrade wait.
#[test]
fn nothing_is_changed_in_a_plane_in_pods_whose_etcd_does_not_work_until_it_does_rows_37_and_38() {
    let edit = |world: &mut World| world.object.spec.scheduler.extra_args = serde_yaml::from_str("{v: '4'}").unwrap();
    let upgrade = |world: &mut World| want(world, "1.18.2");
    for (name, ask) in [("edit", &edit as &dyn Fn(&mut World)), ("upgrade", &upgrade)] {
        for serves in [true, false] {
            let mut world = former("etcd: {local: {replicas: 3}}");
            fail(&mut world, |workload| workload == "k1-etcd" || !serves && workload == "k1-apiserver");
            world.settle();
            world.log.clear();
            ask(&mut world);
            world.settle();
            let place = format!("{name}, the API server serves: {serves}");
            assert!(!world.is_ready(), "{place}");
            assert!(workloads(&world).is_empty(), "{place}: {:?}", world.log);
            let (_, _, message) = world.condition("Ready");
            assert!(message.contains("etcd"), "{place}: {message}");
            world.stuck.clear();
            world.settle();
            assert!(world.is_ready(), "{place}: {:?}", world.condition("Ready"));
            assert!(!workloads(&world).is_empty(), "{place}");
        }
    }
}

/// No Pod works before it has a certificate that is believed, and neither the plane nor its etcd answers.
#[test]
fn certificates_of_a_plane_in_pods_that_ended_a_week_ago_are_renewed_and_it_works_row_48() {
    let mut world = settled("");
    let issued = world.issues;
    fail(&mut world, |_| true);
    world.renewal_due = true;
    let template = |live: &Value| live["spec"]["template"].clone();
    let before = world.host.clone();
    for _ in 0..200 {
        let is_busy = world.turn();
        // Who has another template has another certificate.
        for (key, live) in &world.host {
            if before.get(key).is_some_and(|old| template(old) != template(live)) {
                world.stuck.remove(&key.2);
            }
        }
        if !is_busy && world.is_ready() {
            break;
        }
    }
    assert!(world.is_ready(), "{:?}; these do not work: {:?}", world.condition("Ready"), world.stuck);
    assert_eq!(world.issues, issued + 1);
}

/// The plane as it is wanted last is what comes of it, whenever it is edited.
#[test]
fn a_spec_that_changes_while_a_plane_in_pods_is_made_is_met_in_the_end_row_28() {
    for edited_in in (0..40).step_by(3) {
        let mut world = World::new(plane(""));
        for _ in 0..edited_in {
            world.turn();
        }
        world.object.spec.scheduler.extra_args = serde_yaml::from_str("{v: '4'}").unwrap();
        world.object.metadata.generation = Some(2);
        world.settle();
        assert!(world.is_ready(), "edited in turn {edited_in}: {:?}", world.condition("Ready"));
        let scheduler = world.find(Place::Host, "Deployment", "k1-scheduler").unwrap().to_string();
        assert!(scheduler.contains("--v=4"), "edited in turn {edited_in}: {scheduler}");
    }
}

/// It goes without its finalizer as with it, and keeps what it has where it gets that again.
#[test]
fn a_plane_in_pods_that_loses_its_finalizer_at_any_time_gets_it_again_and_makes_nothing_anew_row_30() {
    for stripped_in in (0..40).step_by(3) {
        let mut world = World::new(plane(""));
        for _ in 0..stripped_in {
            world.turn();
        }
        world.object.metadata.finalizers = None;
        world.settle();
        assert!(world.object.metadata.finalizers.is_some(), "in turn {stripped_in}");
        assert!(world.is_ready() && world.issues == 1, "in turn {stripped_in}: {:?}", world.condition("Ready"));
    }
}
