//! Promises of a cluster's deletion: protection, the order, and machines that are dead.

use crds::ObjectExt;
use crds::conditions;
use crds::names::{annotation, condition};
use crds::step::{Intent, Role};

use crate::testing::{Fate, World};

fn deleting(world: &World) -> (String, String) {
    let status = world.deployment.status.clone().unwrap_or_default();
    let deleting = conditions::find(&status.conditions, condition::DELETING).cloned();
    deleting.map_or_else(Default::default, |deleting| (deleting.reason, deleting.message))
}

fn confirm(world: &mut World, value: &str) {
    let annotations = world.deployment.metadata.annotations.get_or_insert_default();
    annotations.insert(annotation::DELETE_CONFIRMED.into(), value.into());
}

fn generation(world: &World) -> i64 {
    world.deployment.generation()
}

const THREE_ROLES: &str =
    "controlPlane: {replicas: 1}, etcd: {topology: Dedicated, replicas: 1}, workers: [{name: general, replicas: 2}]";

/// Roles of the machines of each reset, in the order of the runs.
fn resets(world: &World, roles: &[(String, Role)]) -> Vec<Vec<Role>> {
    let role = |host: &String| roles.iter().find(|(name, _)| name == host).map(|(_, role)| *role);
    let resets = world.runs.iter().filter(|run| run.spec.intent == Intent::Reset);
    resets.map(|run| run.spec.hosts.iter().filter_map(role).collect()).collect()
}

fn roles(world: &World) -> Vec<(String, Role)> {
    let role = |machine: &crds::Machine| Some((machine.spec.host_ref.clone()?.name, machine.spec.role));
    world.machines.iter().filter_map(role).collect()
}

#[test]
fn a_protected_cluster_is_not_touched_until_its_deletion_is_confirmed() {
    let mut world =
        World::new("controlPlane: {replicas: 1}, deletionProtection: true, workers: [{name: general, replicas: 1}]", 2);
    world.settle();
    let runs = world.runs.len();
    // The policy that refuses this at the API was not there.
    world.delete();
    world.settle();
    let (reason, message) = deleting(&world);
    assert_eq!(reason, "DeletionProtected");
    let command = format!(
        "kubectl -n fleet annotate --overwrite clusterdeployments.clusterwright.dev a clusterwright.dev/delete-confirmed={}",
        generation(&world)
    );
    assert!(message.contains("spec.deletionProtection") && message.contains(&command), "{message}");
    assert!(world.machines.iter().all(|machine| !machine.is_deleting()));
    assert_eq!((world.runs.len(), world.gone), (runs, false));

    confirm(&mut world, "1");
    world.touch();
    world.settle();
    assert_eq!(deleting(&world).0, "DeletionProtected", "confirmed was another generation");

    let value = generation(&world).to_string();
    confirm(&mut world, &value);
    world.settle();
    assert!(world.gone && world.dirty.is_empty());
}

/// A plane with the cluster as a member, or with one that has not begun to join.
fn plane(namespace: &str, uid: &str) -> crds::KarmadaDeployment {
    let member = format!(
        "{{name: m1, syncMode: push, clusterRef: {{name: a}}, {uid} phase: Leaving, reason: X, message: it leaves, since: '2026-11-27T09:00:00Z'}}"
    );
    serde_yaml::from_str(&format!(
        "{{apiVersion: clusterwright.dev/v1alpha1, kind: KarmadaDeployment, metadata: {{name: k1, namespace: {namespace}}}, spec: {{version: 1.18.2, crds: {{bundle: {{url: 'https://x'}}}}}}, status: {{members: [{member}]}}}}"
    ))
    .unwrap()
}

#[test]
fn a_member_of_a_karmada_control_plane_leaves_it_before_its_machines_go() {
    let mut world = World::new("controlPlane: {replicas: 1}", 1);
    world.settle();
    world.planes = vec![plane("other", "clusterUID: u,"), plane("fleet", ""), plane("fleet", "clusterUID: u,")];
    world.delete();
    world.settle();
    let (reason, message) = deleting(&world);
    assert_eq!(reason, "WaitingForUnjoin");
    let command = "kubectl -n fleet annotate --overwrite karmadadeployments.clusterwright.dev k1 clusterwright.dev/force-remove=member.m1";
    assert!(message.starts_with("waiting for member m1 of KarmadaDeployment k1 to leave: it leaves"), "{message}");
    assert!(message.contains(command), "{message}");
    assert!(world.machines.iter().all(|machine| !machine.is_deleting()));
    let mut forced = world.clone();
    let value = format!("{}.force", generation(&forced));
    confirm(&mut forced, &value);
    forced.settle();
    assert!(forced.gone, "{:?}", deleting(&forced));
    world.planes.pop();
    world.settle();
    assert!(world.gone, "{:?}", deleting(&world));
}

#[test]
fn a_deletion_that_was_confirmed_before_it_goes_on_at_once() {
    let mut world = World::new("controlPlane: {replicas: 1}, deletionProtection: true", 1);
    world.settle();
    let value = generation(&world).to_string();
    confirm(&mut world, &value);
    world.delete();
    world.settle();
    assert!(world.gone && world.dirty.is_empty());
}

#[test]
fn a_deletion_that_has_begun_is_not_asked_for_again() {
    let mut world = World::new("controlPlane: {replicas: 1}, deletionProtection: true", 1);
    world.settle();
    let value = generation(&world).to_string();
    confirm(&mut world, &value);
    world.delete();
    world.run_for(1);
    // Somebody edits the spec of what goes.
    world.touch();
    world.touch();
    world.settle();
    assert!(world.gone);
}

#[test]
fn workers_are_cleaned_first_then_control_planes_then_etcd() {
    let mut world = World::new(THREE_ROLES, 4);
    world.settle();
    let roles = roles(&world);
    world.delete();
    world.settle();
    let expected = [vec![Role::Worker, Role::Worker], vec![Role::ControlPlane], vec![Role::Etcd]];
    assert_eq!(resets(&world, &roles), expected);
    assert!(world.gone && world.dirty.is_empty());
}

#[test]
fn the_order_holds_also_when_all_objects_are_deleted_at_once() {
    let mut world = World::new(THREE_ROLES, 4);
    world.settle();
    let roles = roles(&world);
    world.delete();
    for index in 0..world.machines.len() {
        world.delete_machine(index);
    }
    world.sets.clear();
    world.settle();
    let expected = [vec![Role::Worker, Role::Worker], vec![Role::ControlPlane], vec![Role::Etcd]];
    assert_eq!(resets(&world, &roles), expected);
    assert!(world.gone);
}

#[test]
fn control_planes_wait_for_a_worker_that_cannot_be_cleaned_and_a_person_is_told_what_to_do() {
    let mut world = World::new("controlPlane: {replicas: 1}, workers: [{name: general, replicas: 1}]", 2);
    world.settle();
    let roles = roles(&world);
    world.fates = vec![Fate::Unreachable; 40];
    world.delete();
    let told = (0..60).find_map(|_| {
        world.run_for(1);
        Some(deleting(&world)).filter(|(reason, _)| reason == "ResetFailed")
    });
    let (_, message) = told.unwrap();
    let command = format!("clusterwright.dev/delete-confirmed={}.force", generation(&world));
    assert!(message.contains(&command), "{message}");
    assert!(resets(&world, &roles).iter().all(|roles| roles == &[Role::Worker]));
}

#[test]
fn a_cluster_whose_machines_are_all_dead_can_be_deleted() {
    let mut world = World::new("controlPlane: {replicas: 1}, workers: [{name: general, replicas: 2}]", 3);
    world.settle();
    world.fates = vec![Fate::Unreachable; 400];
    world.delete();
    world.run_for(20);
    assert!(!world.gone);
    let value = format!("{}.force", generation(&world));
    confirm(&mut world, &value);
    world.settle();
    assert!(world.gone && world.machines.is_empty());
    let quarantined = world.hosts.iter().filter(|host| host.spec.quarantine.is_some());
    assert_eq!(quarantined.count(), 3, "nobody has seen them clean");
}
