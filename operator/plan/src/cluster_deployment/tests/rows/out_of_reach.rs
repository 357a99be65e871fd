//! Machines that let nobody in, an API that does not answer, an etcd without a majority: what waits for them says so,
//! touches nothing, and goes on by itself.

use crds::ObjectExt;
use crds::cluster::ComponentHealth;
use crds::host::QuarantineReason;
use crds::step::Intent;

use super::super::ready;
use super::{Deed, heal, holder, leaving, reachable, runs, spec, standing, worker_hosts, workers, works};
use crate::testing::World;

/// Both leave in one run; the one that answers does not wait for the other.
#[test]
fn of_workers_that_leave_those_that_let_nobody_in_stay_until_they_do_rows_20_and_22() {
    let mut world = standing(2, 3);
    world.kill("h2");
    world.respec(&spec(0));
    let mut told = String::new();
    for _ in 0..12 {
        world.run_for(1);
        let (reason, message) = leaving(&world);
        if reason == "WaitingForReset" && message.contains("could not be cleaned") {
            told = message;
        }
    }
    assert_eq!(
        holder(&world, "h3"),
        None,
        "the other is clean and free: {:?}",
        world
            .machines
            .iter()
            .map(|m| (super::host_of(m).to_owned(), m.status.clone().unwrap_or_default().message))
            .collect::<Vec<_>>()
    );
    assert!(holder(&world, "h2").is_some());
    for said in [
        "h2 could not be cleaned (Unreachable)",
        "it is tried again",
        "if it stays dead it is removed without cleaning at",
    ] {
        assert!(told.contains(said), "{told}");
    }
    world.revive("h2");
    world.settle();
    assert_eq!(holder(&world, "h2"), None);
    assert!(!world.dirty.contains("h2") && workers(&world).is_empty());
}

#[test]
fn a_worker_that_never_answers_again_is_forgotten_and_its_host_is_nobodys_until_it_proves_clean_row_20() {
    let mut world = standing(2, 3);
    world.kill("h2");
    world.respec(&spec(0));
    world.settle();
    assert!(workers(&world).is_empty() && world.machines.len() == 1, "{:?}", ready(&world));
    let host = world.hosts.iter().find(|host| host.metadata.name.as_deref() == Some("h2"));
    let quarantine = host.unwrap().spec.quarantine.clone().unwrap();
    assert_eq!(quarantine.reason, QuarantineReason::ForceRemoved);
    assert!(world.dirty.contains("h2") && !world.nodes.contains("h2"));
}

/// One is dead, the other's kubelet hangs: each gets what helps it.
#[test]
fn a_sick_machine_is_repaired_while_another_cannot_be_reached_row_22() {
    let mut world = standing(2, 4);
    world.kill("h2");
    world.silent_nodes.insert("h3".into());
    for _ in 0..40 {
        world.run_for(1);
        let repaired = |run: &&crds::PlaybookRun| run.spec.hosts == ["h3"] && run.spec.intent == Intent::Repair;
        if world.runs.iter().any(|run| repaired(&run)) {
            world.silent_nodes.remove("h3");
        }
    }
    world.settle();
    assert_eq!(worker_hosts(&world), ["h3", "h4"], "{:?}", ready(&world));
    assert_eq!(ready(&world).0, "True");
}

/// No Host is left to take its place: nothing is done to it, and it is said.
#[test]
fn a_sick_machine_that_lets_nobody_in_stays_while_no_other_can_take_its_place_row_20() {
    let mut world = standing(2, 3);
    world.kill("h2");
    world.run_for(20);
    assert_eq!(worker_hosts(&world), ["h2", "h3"]);
    let repairs = world.deployment.status.as_ref().unwrap().repairs.clone();
    assert!(repairs.iter().any(|repair| repair.action.is_none() && repair.message.contains("Host")), "{repairs:?}");
    let before = works(&world);
    world.run_for(20);
    assert_eq!(works(&world), before, "it is left alone");
    world.revive("h2");
    world.settle();
    assert_eq!((worker_hosts(&world), ready(&world).0), (vec!["h2".into(), "h3".into()], "True".into()));
}

#[test]
fn workers_wait_for_an_api_that_does_not_answer_and_join_once_it_does_row_35() {
    let mut world = standing(2, 5);
    reachable(&mut world, false);
    let before = works(&world);
    world.respec(&spec(4));
    world.run_for(20);
    assert_eq!(works(&world), before, "no machine is touched");
    let status = world.deployment.status.clone().unwrap();
    let workers = crds::conditions::find(&status.conditions, "WorkersReady").unwrap();
    assert_eq!((workers.status.as_str(), workers.reason.as_str()), ("False", "WaitingToJoin"));
    let waits = "2 workers to join; waits for the API of the cluster: ";
    assert!(workers.message.starts_with(waits), "{}", workers.message);
    reachable(&mut world, true);
    world.settle();
    assert_eq!((worker_hosts(&world).len(), ready(&world).0.as_str()), (4, "True"));
    assert_eq!(runs(&world, Deed::Join).len(), 1, "in one run");
}

/// One that was never reached is in the making: its first workers wait for nobody.
#[test]
fn workers_join_a_cluster_whose_api_was_never_reached_yet() {
    let mut world = standing(0, 3);
    reachable(&mut world, false);
    world.api_lost = false;
    let status = world.cluster.as_mut().unwrap().status.as_mut().unwrap();
    status.cluster_uid = None;
    world.respec(&spec(2));
    world.run_for(12);
    let joins = runs(&world, Deed::Join).len() + 1;
    assert_eq!((joins, worker_hosts(&world)), (1, vec!["h2".into(), "h3".into()]));
    let joined = world.nodes.contains("h2") && world.nodes.contains("h3");
    assert!(joined, "{:?}", ready(&world));
}

#[test]
fn no_worker_leaves_a_cluster_whose_api_does_not_answer_row_35() {
    let mut world = standing(2, 3);
    reachable(&mut world, false);
    let before = works(&world);
    world.respec(&spec(1));
    world.run_for(20);
    assert_eq!(works(&world), before);
    let (reason, message) = leaving(&world);
    assert_eq!(reason, "ClusterUnreachable");
    assert!(message.contains("clusterwright.dev/force-remove="), "{message}");
    reachable(&mut world, true);
    world.settle();
    assert_eq!((worker_hosts(&world).len(), ready(&world).0.as_str()), (1, "True"));
}

/// What fell sick is not judged, and what is judged sick is not touched; afterwards it is.
#[test]
fn nothing_is_repaired_while_the_api_does_not_answer_and_all_of_it_afterwards_row_35() {
    let mut world = Deed::Repair.begun();
    reachable(&mut world, false);
    let before = works(&world);
    world.run_for(20);
    assert_eq!(works(&world), before);
    reachable(&mut world, true);
    assert_eq!(Deed::Repair.settle(&mut world).len(), 1);
    assert_eq!(worker_hosts(&world), ["h2", "h3"]);
}

const THREE: &str = "controlPlane: {replicas: 3, endpoint: {host: 10.0.0.100}}, remediation: {unhealthyAfterSeconds: 60, cooldownSeconds: 0, maxUnhealthy: '100%', actions: [Replace]}";

fn etcd_is_well(world: &mut World, well: bool) {
    let status = world.cluster.as_mut().unwrap().status.get_or_insert_default();
    status.components = vec![ComponentHealth { name: "etcd".into(), healthy: well, message: None }];
}

/// Three control planes, two of them dead, and workers of which `wanted` are wished.
fn without_majority(workers: usize, wanted: usize) -> World {
    let with = |workers: usize| format!("{THREE}, workers: [{{name: general, replicas: {workers}}}]");
    let mut world = World::new(&with(workers), 9);
    world.settle();
    reachable(&mut world, true);
    world.settle();
    world.kill("h2");
    world.kill("h3");
    etcd_is_well(&mut world, false);
    world.run_for(2);
    world.respec(&with(wanted));
    let (runs, machines) = (works(&world), world.machines.len());
    world.run_for(30);
    let works = |run: &&crds::PlaybookRun| run.spec.intent != Intent::Probe;
    let begun: Vec<_> = world.runs[runs..].iter().filter(works).map(|run| run.spec.intent).collect();
    assert_eq!(begun, [], "nothing begins");
    assert!(world.machines.len() >= machines, "none is gone");
    let says = crds::conditions::find(&world.deployment.status.as_ref().unwrap().conditions, "EtcdReady").cloned();
    assert_eq!(says.unwrap().reason, "QuorumLost");
    world.revive("h2");
    world.revive("h3");
    etcd_is_well(&mut world, true);
    world.settle();
    assert_eq!(ready(&world).0, "True", "{:?}", ready(&world));
    assert_eq!((world.voters.len(), world.inits), (3, 1));
    world
}

#[test]
fn nothing_joins_an_etcd_without_a_majority_row_37() {
    let world = without_majority(1, 3);
    assert_eq!(workers(&world).len(), 3);
}

#[test]
fn nothing_leaves_an_etcd_without_a_majority_row_37() {
    let world = without_majority(3, 1);
    assert_eq!(workers(&world).len(), 1);
}

/// Two of three are sick, a spare is there for each, and the policy would replace them.
#[test]
fn nothing_is_replaced_in_an_etcd_without_a_majority_row_37() {
    let world = without_majority(1, 1);
    let hosts: Vec<&String> = world.voters.iter().collect();
    assert_eq!(hosts, ["h1", "h2", "h3"]);
}

/// Between the decision and the claim, somebody else takes it.
#[test]
fn the_spare_that_another_cluster_takes_first_is_left_to_it_row_43() {
    for deed in [Deed::Join, Deed::Repair] {
        let mut world = standing(2, 4);
        match deed {
            Deed::Join => world.respec(&spec(3)),
            _ => world.kill("h2"),
        }
        // Its own machine is decided on by then, and its successor not made yet.
        let is_leaving = |machine: &crds::Machine| machine.is_deleting();
        world.run_for(1);
        while deed == Deed::Repair && !world.machines.iter().any(is_leaving) {
            world.run_for(1);
        }
        let host = world.hosts.iter_mut().find(|host| host.metadata.name.as_deref() == Some("h4")).unwrap();
        host.spec.claim_ref =
            Some(serde_json::from_str(r#"{"kind": "Machine", "name": "theirs", "uid": "their-uid"}"#).unwrap());
        host.metadata.finalizers = Some(vec![crds::names::finalizer::HOST.into()]);
        world.run_for(40);
        heal(&mut world);
        assert_eq!(holder(&world, "h4").as_deref(), Some("theirs"), "{deed:?}");
        let on_theirs = world.runs.iter().any(|run| run.spec.hosts.iter().any(|host| host == "h4"));
        assert!(!on_theirs, "{deed:?}: no run works on it");
        let (status, _, message) = ready(&world);
        assert_eq!(status, "False", "{deed:?}");
        assert!(message.contains("0 free match"), "{deed:?}: {message}");
    }
}
