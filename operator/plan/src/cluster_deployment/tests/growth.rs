//! Promises of a control plane and etcd that grow, shrink, and lose members.

use crds::ObjectExt;
use crds::names::{annotation, condition};
use crds::step::{Intent, Role, Step as RunStep};
use crds::{PlaybookRun, conditions};
use proptest::prelude::*;

use super::ready;
use crate::testing::{Fate, World};

const ENDPOINT: &str = "endpoint: {host: 10.0.0.100}";

fn stacked(replicas: i32) -> String {
    format!("controlPlane: {{replicas: {replicas}, {ENDPOINT}}}")
}

fn dedicated(replicas: i32) -> String {
    format!("controlPlane: {{replicas: 1, {ENDPOINT}}}, etcd: {{topology: Dedicated, replicas: {replicas}}}")
}

fn with_step(world: &World, step: RunStep) -> Vec<&PlaybookRun> {
    let runs = world.runs.iter();
    runs.filter(|run| run.spec.steps.contains(&step)).collect()
}

fn joins(world: &World) -> Vec<Vec<String>> {
    let runs = world.runs.iter().filter(|run| run.spec.intent == Intent::Join);
    let mut hosts: Vec<Vec<String>> = runs.map(|run| run.spec.hosts.clone()).collect();
    hosts.sort();
    hosts
}

fn approve(world: &mut World, value: &str) {
    let annotations = world.deployment.metadata.annotations.get_or_insert_default();
    annotations.insert(annotation::APPROVE.into(), value.into());
}

/// The approval that a message asks for.
fn asked(message: &str) -> String {
    let (_, value) = message.rsplit_once("clusterwright.dev/approve=").unwrap();
    value.split_whitespace().next().unwrap().to_owned()
}

/// Gives the approval that the cluster asks for, if it asks for one.
pub(super) fn approve_asked(world: &mut World) {
    let status = world.deployment.status.clone().unwrap_or_default();
    let messages = status.conditions.iter().map(|there| there.message.clone());
    let found = messages.chain(status.message.clone());
    if let Some(message) = found.into_iter().find(|text| text.contains("clusterwright.dev/approve=")) {
        approve(world, &asked(&message));
    }
}

#[test]
fn an_approval_of_a_lost_majority_shrinks_nothing_afterwards() {
    let mut world = World::new(&stacked(3), 5);
    world.settle();
    world.kill("h2");
    world.kill("h3");
    world.run_for(40);
    approve_asked(&mut world);
    world.run_for(80);
    assert_eq!(world.voters.len(), 3);
    let generation = world.deployment.metadata.generation;
    world.respec(&stacked(1));
    // As if both had been asked for in one generation.
    world.deployment.metadata.generation = generation;
    world.run_for(40);
    assert_eq!(world.voters.len(), 3);
}

fn hosts(world: &World) -> Vec<String> {
    world.voters.iter().cloned().collect()
}

fn etcd_says(world: &World) -> (String, String) {
    let status = world.deployment.status.as_ref().unwrap();
    let there = conditions::find(&status.conditions, condition::ETCD_READY).unwrap();
    (there.reason.clone(), there.message.clone())
}

fn delete_on(world: &mut World, host: &str) {
    let index = world.machines.iter().position(|machine| {
        let named = machine.spec.host_ref.as_ref();
        !machine.is_deleting() && named.is_some_and(|named| named.name == host)
    });
    world.delete_machine(index.unwrap());
}

#[test]
fn one_control_plane_becomes_three_and_five_one_after_the_other() {
    let mut world = World::new(&stacked(1), 5);
    world.settle();
    world.respec(&stacked(3));
    world.settle();
    assert_eq!(joins(&world), [["h2"], ["h3"]]);
    world.respec(&stacked(5));
    world.settle();
    assert_eq!(joins(&world), [["h2"], ["h3"], ["h4"], ["h5"]]);
    assert_eq!(ready(&world).0, "True", "{:?}", ready(&world));
    assert_eq!((world.voters.len(), world.inits), (5, 1));
    let third = &with_step(&world, RunStep::Etcd)[2];
    let members = third.spec.vars["etcd_members"].as_array().unwrap();
    let names: Vec<&str> = members.iter().filter_map(|member| member["host"].as_str()).collect();
    assert_eq!(names.len(), 3, "those that are there, and itself");
    assert!(names.contains(&third.spec.hosts[0].as_str()));
    let steps: Vec<&str> = third.spec.steps.iter().map(RunStep::name).collect();
    assert_eq!(
        steps,
        [
            "bootstrap-os",
            "preflight",
            "prepare",
            "container-runtime",
            "etcd",
            "control-plane",
            "network",
            "post-install"
        ]
    );
}

#[test]
fn five_control_planes_become_three_and_one_only_after_a_persons_word() {
    let mut world = World::new(&stacked(5), 5);
    world.settle();
    world.respec(&stacked(3));
    world.settle();
    assert_eq!(world.voters.len(), 3);
    world.respec(&stacked(1));
    world.settle();
    assert_eq!(world.voters.len(), 3);
    let (_, reason, message) = ready(&world);
    assert_eq!(reason, "QuorumRisk");
    let value = asked(&message);
    assert!(value.starts_with("shrink."), "{message}");
    for other in ["3", "3.2", "shrink.000000000000"] {
        approve(&mut world, other);
        world.settle();
        assert_eq!(world.voters.len(), 3, "{other} is no approval of it");
    }
    approve(&mut world, &value);
    world.settle();
    assert_eq!(world.voters.len(), 1);
    assert_eq!((world.machines.len(), ready(&world).0.as_str()), (1, "True"));
    assert_eq!(with_step(&world, RunStep::RemoveEtcdMember).len(), 4);
    assert!(world.dirty.len() == 1, "those that left are clean: {:?}", world.dirty);
}

#[test]
fn a_dead_first_control_plane_is_taken_out_before_another_one_comes_and_another_is_the_first() {
    let mut world = World::new(&stacked(3), 4);
    world.settle();
    world.kill("h1");
    world.settle();
    assert_eq!(world.machines.len(), 3, "nobody deletes it unasked");
    delete_on(&mut world, "h1");
    world.run_for(60);
    assert_eq!(hosts(&world), ["h2", "h3", "h4"]);
    assert_eq!(joins(&world), [["h4"]]);
    let first = world.deployment.status.as_ref().unwrap().first_control_plane.clone();
    let on = world.machines.iter().find(|machine| machine.metadata.name == first).unwrap();
    assert_eq!(on.spec.host_ref.as_ref().unwrap().name, "h2");
    assert_eq!(world.inits, 1);
    assert!(world.deleted_nodes.contains(&"h1".to_owned()));
    let removal = with_step(&world, RunStep::RemoveEtcdMember);
    assert!(removal[0].spec.hosts != ["h1"], "nothing is needed of the dead one");
}

#[test]
fn a_dead_control_plane_that_nobody_deletes_holds_up_the_next_one_and_says_so() {
    let mut world = World::new(&stacked(3), 5);
    world.settle();
    world.kill("h2");
    world.settle();
    world.respec(&stacked(5));
    world.settle();
    assert_eq!((joins(&world).len(), world.voters.len()), (0, 3));
    let (_, reason, message) = ready(&world);
    assert_eq!(reason, "WaitingToJoin", "{message}");
    assert!(message.contains("(h2) to be well"), "{message}");
    world.revive("h2");
    world.settle();
    assert_eq!((world.voters.len(), ready(&world).0.as_str()), (5, "True"));
}

#[test]
fn the_only_control_plane_is_replaced_by_one_that_comes_first() {
    let mut world = World::new(&stacked(1), 2);
    world.settle();
    delete_on(&mut world, "h1");
    world.settle();
    assert_eq!((hosts(&world), ready(&world).0), (vec!["h2".to_owned()], "True".into()));
    assert_eq!(world.inits, 1);
}

#[test]
fn two_that_are_deleted_at_once_leave_one_after_the_other() {
    let mut world = World::new(&stacked(3), 6);
    world.settle();
    delete_on(&mut world, "h1");
    delete_on(&mut world, "h2");
    delete_on(&mut world, "h3");
    world.settle();
    assert_eq!((world.voters.len(), ready(&world).0.as_str()), (3, "True"), "{:?}", ready(&world));
    assert_eq!(world.inits, 1);
}

#[test]
fn dedicated_members_join_and_leave_and_the_api_servers_are_told_each_time() {
    let mut world = World::new(&dedicated(1), 4);
    world.settle();
    assert!(with_step(&world, RunStep::EtcdEndpoints).is_empty());
    world.respec(&dedicated(3));
    world.settle();
    assert_eq!((world.voters.len(), ready(&world).0.as_str()), (3, "True"), "{:?}", ready(&world));
    let told = with_step(&world, RunStep::EtcdEndpoints);
    assert_eq!(told.len(), 2);
    assert_eq!(told[1].spec.hosts, ["h1"]);
    assert_eq!(told[1].spec.vars["etcd_client_endpoints"].as_array().unwrap().len(), 3);
    world.respec(&dedicated(1));
    world.settle();
    approve_asked(&mut world);
    world.settle();
    assert_eq!((world.voters.len(), ready(&world).0.as_str()), (1, "True"));
    let told = with_step(&world, RunStep::EtcdEndpoints);
    assert_eq!(told.len(), 4);
    assert_eq!(told[3].spec.vars["etcd_client_endpoints"].as_array().unwrap().len(), 1);
}

#[test]
fn without_a_majority_nothing_is_done_until_a_person_approves_and_then_it_grows_back() {
    let mut world = World::new(&stacked(3), 5);
    world.settle();
    approve(&mut world, "1");
    world.kill("h2");
    world.kill("h3");
    world.run_for(40);
    let (reason, message) = etcd_says(&world);
    assert_eq!(reason, "QuorumLost", "{message}");
    let value = asked(&message);
    assert!(value.starts_with("quorum-loss."), "{message}");
    assert!(message.contains("(h1) alone"), "{message}");
    assert!(with_step(&world, RunStep::RecoverEtcd).is_empty());
    assert_eq!(world.machines.len(), 3);
    approve(&mut world, &value);
    world.run_for(80);
    assert_eq!(with_step(&world, RunStep::RecoverEtcd).len(), 1);
    assert_eq!(hosts(&world), ["h1", "h4", "h5"]);
    assert_eq!(world.inits, 1);
    assert!(with_step(&world, RunStep::RemoveEtcdMember).is_empty(), "they are members no more");
}

#[test]
fn a_majority_that_comes_back_needs_nobodys_word() {
    let mut world = World::new(&stacked(3), 5);
    world.settle();
    world.kill("h2");
    world.kill("h3");
    world.run_for(20);
    assert_eq!(etcd_says(&world).0, "QuorumLost");
    world.revive("h3");
    world.revive("h2");
    world.settle();
    assert_eq!(ready(&world).0, "True");
    assert!(with_step(&world, RunStep::RecoverEtcd).is_empty());
}

#[test]
fn a_control_plane_that_cannot_join_is_tried_three_times_and_then_deleted_by_hand_for_another() {
    let mut world = World::new(&stacked(1), 4);
    world.settle();
    world.always_fails = vec!["h2".into()];
    world.respec(&stacked(3));
    world.settle();
    let (_, reason, message) = ready(&world);
    let tried = joins(&world).iter().filter(|hosts| *hosts == &["h2"]).count();
    assert_eq!((tried, reason.as_str()), (3, "JoinFailed"), "{message}");
    assert!(message.contains("or delete Machine"), "{message}");
    world.always_fails.clear();
    delete_on(&mut world, "h2");
    world.settle();
    assert_eq!((world.voters.len(), ready(&world).0.as_str()), (3, "True"), "{:?}", ready(&world));
}

#[test]
fn an_operator_that_is_killed_after_every_write_changes_the_same_in_the_same_order() {
    let mut world = World::new(&stacked(1), 4);
    world.settle();
    world.respec(&stacked(3));
    world.run_write_by_write(120);
    assert_eq!(joins(&world), [["h2"], ["h3"]]);
    world.kill("h1");
    world.run_write_by_write(20);
    delete_on(&mut world, "h1");
    world.run_write_by_write(300);
    assert_eq!(hosts(&world), ["h2", "h3", "h4"]);
    assert_eq!(world.inits, 1);
    assert_eq!(with_step(&world, RunStep::RemoveEtcdMember).len(), 1);
}

fn fate() -> impl Strategy<Value = Fate> {
    prop_oneof![
        4 => Just(Fate::Well),
        1 => Just(Fate::Fails),
        1 => (0usize..8).prop_map(Fate::FailsAfter),
        1 => (0usize..8).prop_map(Fate::Lost),
        1 => Just(Fate::NotStarted),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn whatever_comes_of_changes_the_majority_stays_one_changes_at_a_time_and_it_settles(
        from in 0usize..3,
        to in proptest::collection::vec(0usize..3, 1..3),
        own_etcd in any::<bool>(),
        fates in proptest::collection::vec(fate(), 0..8),
        deleted in proptest::collection::vec((0usize..12, 1usize..12), 0..3),
        killed in proptest::option::of((1usize..4, 1usize..30)),
    ) {
        let spec = |index: usize| {
            let replicas = [1, 3, 5][index];
            if own_etcd { dedicated(replicas) } else { stacked(replicas) }
        };
        let mut world = World::new(&spec(from), 12);
        world.settle();
        world.fates = fates;
        for index in to {
            world.respec(&spec(index));
            world.run_for(1);
            approve_asked(&mut world);
            world.run_for(3);
            for (index, turns) in &deleted {
                world.delete_machine(*index);
                world.run_for(*turns);
            }
        }
        let dead = killed.map(|(host, turns)| {
            world.run_for(turns);
            let host = format!("h{host}");
            world.kill(&host);
            if !world.has_quorum() {
                world.revive(&host);
            }
            world.run_for(turns);
            host
        });
        if let Some(host) = dead {
            world.revive(&host);
        }
        world.fates.clear();
        let generation = world.deployment.metadata.generation.unwrap();
        for number in 2..6 {
            let retry = (annotation::RETRY.to_owned(), format!("{generation}.{number}"));
            world.deployment.metadata.annotations.get_or_insert_default().extend([retry]);
            world.settle();
            approve_asked(&mut world);
            world.settle();
        }
        prop_assert_eq!(world.inits, 1);
        let carries = |machine: &&crds::Machine| machine.spec.role != Role::Worker;
        prop_assert!(world.machines.iter().filter(carries).all(|machine| !machine.is_deleting()), "{:?}", ready(&world));
        let (status, _, message) = ready(&world);
        prop_assert_eq!(status, "True", "{}", message);
    }
}
