//! Promises about a cluster all of whose machines are lost.

use std::collections::BTreeSet;

use crds::ObjectExt;
use crds::cluster_deployment::RecoveryStrategy;
use crds::conditions;
use crds::host::QuarantineReason;
use crds::names::{annotation, condition};
use crds::step::Intent;

use super::ready;
use crate::testing::World;

const SPEC: &str = "controlPlane: {replicas: 1}, workers: [{name: general, replicas: 1}]";

/// A cluster on h1 and h2, with two spare Hosts; its API is silent, and so are the machines given.
fn dead(strategy: RecoveryStrategy, silent: &[&str]) -> World {
    let mut world = World::new(SPEC, 4);
    world.deployment.spec.recovery.strategy = strategy;
    world.settle();
    world.silent = silent.iter().map(|host| (*host).to_owned()).collect();
    world.silent_nodes = world.silent.clone();
    world.api_lost = true;
    let since = world.time();
    if let Some(cluster) = &mut world.cluster {
        cluster.status.get_or_insert_default().unreachable_since = Some(since);
    }
    world
}

fn lost(world: &World) -> Option<String> {
    let status = world.deployment.status.clone().unwrap_or_default();
    conditions::find(&status.conditions, condition::MACHINES_LOST).map(|there| there.status.clone())
}

fn of_cluster(world: &World) -> BTreeSet<String> {
    let machines = world.machines.iter();
    machines.filter_map(|machine| Some(machine.spec.host_ref.clone()?.name)).collect()
}

#[test]
fn more_machines_than_one_run_takes_are_asked_in_batches_and_found_lost_whatever_the_history_keeps() {
    let workers = 101;
    let mut world = World::new(
        &format!(
            "controlPlane: {{replicas: 1}}, workers: [{{name: general, replicas: {workers}}}], executor: {{historyLimit: 1}}"
        ),
        workers + 1,
    );
    world.settle();
    world.silent = world.hosts.iter().filter_map(|host| host.metadata.name.clone()).collect();
    world.silent_nodes = world.silent.clone();
    world.api_lost = true;
    let since = world.time();
    if let Some(cluster) = &mut world.cluster {
        cluster.status.get_or_insert_default().unreachable_since = Some(since);
    }
    for _ in 0..6 {
        world.run_for(1);
        let largest = world.runs.iter().map(|run| run.spec.hosts.len()).max();
        assert!(largest <= Some(100), "a run names {largest:?} Hosts");
    }
    assert_eq!(lost(&world).as_deref(), Some("True"), "{:?}", ready(&world));
}

#[test]
fn that_all_machines_are_lost_is_said_with_what_can_be_done() {
    let mut world = dead(RecoveryStrategy::None, &["h1", "h2"]);
    let machines: Vec<_> = world.machines.iter().map(|machine| machine.metadata.uid.clone()).collect();
    world.run_for(20);
    let (status, reason, message) = ready(&world);
    assert_eq!((status.as_str(), reason.as_str()), ("False", "AllMachinesLost"), "{message}");
    assert!(message.contains("spec.recovery.strategy to Rebuild"), "{message}");
    assert_eq!(lost(&world).as_deref(), Some("True"));
    let now: Vec<_> = world.machines.iter().map(|machine| machine.metadata.uid.clone()).collect();
    assert_eq!(machines, now, "nothing is done");
}

#[test]
fn a_cluster_of_which_one_machine_answers_is_never_rebuilt() {
    for silent in [&["h1"][..], &["h2"], &[]] {
        let mut world = dead(RecoveryStrategy::Rebuild, silent);
        world.run_for(40);
        assert_eq!((lost(&world), of_cluster(&world)), (None, ["h1".to_owned(), "h2".to_owned()].into()));
        assert!(world.machines.iter().all(|machine| !machine.is_deleting()));
    }
}

#[test]
fn a_cluster_whose_api_answers_is_never_rebuilt() {
    let mut world = dead(RecoveryStrategy::Rebuild, &["h1", "h2"]);
    world.run_for(1);
    world.api_lost = false;
    world.silent_nodes.clear();
    if let Some(cluster) = &mut world.cluster {
        cluster.status = None;
    }
    world.run_for(40);
    assert_eq!((lost(&world), of_cluster(&world)), (None, ["h1".to_owned(), "h2".to_owned()].into()));
}

#[test]
fn a_lost_cluster_is_installed_anew_on_other_machines_with_its_keys() {
    let mut world = dead(RecoveryStrategy::Rebuild, &["h1", "h2"]);
    let installed = world.deployment.status.clone().unwrap().installed_at;
    world.run_for(60);
    let (status, _, message) = ready(&world);
    assert_eq!(status, "True", "{message}");
    assert_eq!(of_cluster(&world), ["h3".to_owned(), "h4".to_owned()].into());
    assert!(world.pki, "its keys are kept");
    let status = world.deployment.status.clone().unwrap();
    assert!(status.installed_at > installed);
    assert_eq!(status.endpoint.as_deref(), Some("https://10.0.0.3:6443"));
    let left = [condition::MACHINES_LOST, condition::REBUILDING];
    assert!(left.iter().all(|type_| conditions::find(&status.conditions, type_).is_none()));
    for host in &world.hosts[..2] {
        let quarantine = host.spec.quarantine.as_ref().map(|quarantine| quarantine.reason);
        assert_eq!((quarantine, &host.spec.claim_ref), (Some(QuarantineReason::ForceRemoved), &None));
    }
    let resets = world.runs.iter().filter(|run| run.spec.intent == Intent::Reset);
    assert_eq!(resets.count(), 0, "nobody tries to reach what is dead");
}

#[test]
fn a_word_on_one_machine_begins_no_rebuild() {
    for strategy in [RecoveryStrategy::None, RecoveryStrategy::Rebuild] {
        let mut world = World::new(SPEC, 4);
        world.deployment.spec.recovery.strategy = strategy;
        world.settle();
        let uids = |world: &World| -> Vec<_> {
            let machines = world.machines.iter();
            machines.map(|machine| machine.metadata.uid.clone()).collect()
        };
        let before = uids(&world);
        let now = world.time().0.to_string();
        let annotations = world.machines[1].metadata.annotations.get_or_insert_default();
        annotations.insert(annotation::LOST_SINCE.into(), now);
        annotations.insert(annotation::FORCE_REMOVE.into(), "1".into());
        world.run_for(20);
        assert_eq!(uids(&world), before, "{strategy:?}");
        assert_eq!(ready(&world).0, "True");
        let status = world.deployment.status.clone().unwrap();
        assert!(conditions::find(&status.conditions, condition::REBUILDING).is_none());
    }
}

#[test]
fn machines_that_are_marked_as_lost_are_kept_where_no_rebuild_is_wanted() {
    let mut world = dead(RecoveryStrategy::None, &["h1", "h2"]);
    let now = world.time().0.to_string();
    for machine in &mut world.machines {
        let annotations = machine.metadata.annotations.get_or_insert_default();
        annotations.insert(annotation::LOST_SINCE.into(), now.clone());
        annotations.insert(annotation::FORCE_REMOVE.into(), "1".into());
    }
    world.run_for(20);
    assert_eq!(of_cluster(&world), ["h1".to_owned(), "h2".to_owned()].into());
    assert_eq!(ready(&world).1, "AllMachinesLost");
}
