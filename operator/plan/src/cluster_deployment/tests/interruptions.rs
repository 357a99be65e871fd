//! What was interrupted goes on, what fails again and again waits for a person, and a person is heard.

use crds::ObjectExt;
use crds::conditions;
use crds::names::annotation;
use crds::playbook_run::RunPhase;
use crds::step::{Intent, Role};

use super::ready;
use crate::testing::{Fate, World};

fn resumed(world: &World) -> Vec<bool> {
    world.runs.iter().map(|run| run.spec.resume).collect()
}

#[test]
fn an_interrupted_install_goes_on_where_it_stopped_as_often_as_it_comes_further() {
    let mut world = World::new("controlPlane: {replicas: 1}", 1);
    world.fates = (0..8).map(Fate::Lost).collect();
    world.settle();
    assert_eq!(ready(&world).0, "True");
    let expected: Vec<bool> = (0..9).map(|attempt| attempt > 0).collect();
    assert_eq!(resumed(&world), expected, "nine attempts, since each came further");
}

#[test]
fn an_interrupted_install_that_comes_no_further_waits_for_a_person() {
    let mut world = World::new("controlPlane: {replicas: 1}, executor: {maxAttempts: 2}", 1);
    world.fates = vec![Fate::Lost(4), Fate::Deadline(4), Fate::Well];
    world.settle();
    assert_eq!(resumed(&world), [false, true]);
    let (_, reason, message) = ready(&world);
    assert_eq!(reason, "InstallFailed");
    assert!(message.contains("after 2 attempts (DeadlineExceeded)"), "{message}");
    let command =
        "kubectl -n fleet annotate --overwrite clusterdeployments.clusterwright.dev a clusterwright.dev/retry=1";
    assert!(message.ends_with(command), "{message}");
}

#[test]
fn after_a_failure_or_with_another_spec_every_step_is_played_again() {
    let mut world = World::new("controlPlane: {replicas: 1}", 1);
    world.fates = vec![Fate::Lost(3), Fate::FailsAfter(5), Fate::Well];
    world.settle();
    assert_eq!(resumed(&world), [false, true, false]);

    let mut world = World::new("controlPlane: {replicas: 1}", 1);
    world.fates = vec![Fate::Canceled];
    world.settle();
    world.respec("controlPlane: {replicas: 1, certSANs: [x.example]}");
    world.settle();
    assert_eq!(resumed(&world), [false, false]);
    assert_eq!(ready(&world).0, "True");
}

#[test]
fn a_retry_on_the_run_that_failed_is_one_on_its_machines() {
    let mut world = World::new("controlPlane: {replicas: 1}", 1);
    world.fates = vec![Fate::Fails; 3];
    world.settle();
    let last = world.runs.last_mut().unwrap();
    let annotations = last.metadata.annotations.as_mut().unwrap();
    annotations.insert(annotation::RETRY.into(), "1".into());
    world.settle();
    assert_eq!((world.runs.len(), ready(&world).0.as_str()), (4, "True"));
}

#[test]
fn a_canceled_install_goes_on_from_there_once_a_person_asks() {
    let mut world = World::new("controlPlane: {replicas: 1}", 1);
    world.fates = vec![Fate::Canceled];
    world.settle();
    world.deployment.metadata.annotations = Some([(annotation::RETRY.to_owned(), "1".to_owned())].into());
    world.settle();
    assert_eq!(resumed(&world), [false, true]);
    assert_eq!(ready(&world).0, "True");
}

#[test]
fn a_control_plane_that_lets_nobody_in_is_tried_until_it_does() {
    let mut world = World::new("controlPlane: {replicas: 1}", 1);
    world.fates = vec![Fate::Unreachable; 12];
    world.run_for(8);
    let (_, reason, message) = ready(&world);
    assert_eq!(reason, "InstallFailed");
    assert!(message.contains("Unreachable"), "{message}");
    world.settle();
    assert_eq!((world.runs.len(), ready(&world).0.as_str()), (13, "True"));
}

#[test]
fn of_a_batch_those_that_failed_are_tried_alone_and_those_that_were_cut_short_go_on() {
    let mut world = World::new("controlPlane: {replicas: 1}, workers: [{name: general, replicas: 3}]", 4);
    world.fates = vec![Fate::Well, Fate::Well, Fate::Fails, Fate::Lost(3)];
    world.settle();
    assert_eq!(ready(&world).0, "True");
    assert_eq!(world.runs[3].spec.hosts, ["h2", "h3", "h4"], "the whole batch was cut short");
    assert_eq!(resumed(&world), [false, false, false, true]);

    world.fates = vec![Fate::Well, Fate::Fails];
    world.respec("controlPlane: {replicas: 1}, workers: [{name: general, replicas: 3}]");
    world.settle();
    assert_eq!(world.runs.len(), 4, "what stands is left alone");
}

#[test]
fn the_message_says_how_many_workers_of_how_many_could_not_join() {
    let mut world = World::new("controlPlane: {replicas: 1}, workers: [{name: general, replicas: 4}]", 5);
    world.always_fails = vec!["h3".into(), "h4".into()];
    world.settle();
    let message = ready(&world).2;
    assert!(message.starts_with("2 of 4 workers could not join; "), "{message}");
    let failed =
        world.machines.iter().find(|machine| machine.spec.host_ref.as_ref().is_some_and(|host| host.name == "h3"));
    let said = failed.unwrap().status.clone().unwrap().message.unwrap();
    assert!(said.contains("gave up after 3 attempts"), "{said}");
    assert!(said.contains("kubectl -n fleet annotate --overwrite machines.clusterwright.dev"), "{said}");
    assert_eq!(world.deployment.status.clone().unwrap().workers.unwrap().summary, "2/4");
}

#[test]
fn a_removal_whose_time_was_over_waits_for_a_person_and_a_deletion_does_not() {
    let two = "controlPlane: {replicas: 1}, workers: [{name: general, replicas: 2}]";
    let one = "controlPlane: {replicas: 1}, workers: [{name: general, replicas: 1}]";
    let mut world = World::new(two, 3);
    world.settle();
    world.fates = vec![Fate::Deadline(0)];
    world.respec(one);
    world.settle();
    let resets = |world: &World| {
        let resets = world.runs.iter().filter(|run| run.spec.intent == Intent::Reset);
        resets.count()
    };
    assert_eq!((resets(&world), world.machines.len()), (1, 3));
    let leaving = world.machines.iter_mut().find(|machine| machine.is_deleting()).unwrap();
    let said = leaving.status.clone().unwrap().message.unwrap();
    assert!(said.contains("clusterwright.dev/retry=2"), "{said}");
    leaving.metadata.annotations.get_or_insert_default().insert(annotation::RETRY.into(), "2".into());
    world.settle();
    assert_eq!((resets(&world), world.machines.len()), (2, 2));

    world.fates = vec![Fate::Deadline(0)];
    world.delete();
    world.settle();
    assert!(world.gone);
}

#[test]
fn deleting_a_cluster_cancels_what_works_an_administrators_run_too_and_then_cleans() {
    for custom in [false, true] {
        let mut world = World::new("controlPlane: {replicas: 1}", 1);
        if custom {
            world.settle();
            world.custom_run("by-hand", &["h1"]);
        }
        while !world.works() {
            world.run_for(1);
        }
        world.delete();
        world.write_statuses();
        world.settle();
        assert!(world.gone && world.dirty.is_empty());
        let phase = |index: usize| world.runs[index].status.clone().unwrap().phase;
        let (canceled, reset) = (world.runs.len() - 2, world.runs.len() - 1);
        assert_eq!(phase(canceled), Some(RunPhase::Canceled));
        assert_eq!(world.runs[reset].spec.intent, Intent::Reset);
        let token = |index: usize| world.runs[index].status.clone().unwrap().token;
        assert!(token(reset) > token(canceled), "what is left of it is ended by the higher token");
    }
}

#[test]
fn a_spec_edited_during_a_run_waits_for_it_and_the_next_runs_take_the_newer() {
    let spec = |workers: &str| format!("controlPlane: {{replicas: 1}}, workers: [{{name: general, {workers}}}]");
    let mut world = World::new(&spec("replicas: 1"), 3);
    while !world.works() {
        world.run_for(1);
    }
    world.respec(&spec("replicas: 2, labels: {pool: new}"));
    world.write_statuses();
    let status = world.deployment.status.clone().unwrap();
    assert_eq!(status.pending_generation, Some(2));
    world.settle();
    let generations: Vec<&str> = world
        .runs
        .iter()
        .filter(|run| run.spec.intent != Intent::Prepare)
        .map(|run| run.metadata.annotations.as_ref().unwrap()[annotation::GENERATION].as_str())
        .collect();
    assert_eq!(generations[0], "1");
    assert!(generations[1..].iter().all(|generation| *generation == "2"), "{generations:?}");
    let status = world.deployment.status.clone().unwrap();
    assert_eq!((status.pending_generation, ready(&world).0.as_str()), (None, "True"));
    let workers = world.machines.iter().filter(|machine| machine.spec.role == Role::Worker);
    assert_eq!(workers.count(), 2);
}

#[test]
fn who_waits_for_whom_stands_in_the_status() {
    let mut world = World::new("controlPlane: {replicas: 1}", 1);
    world.settle();
    world.custom_run("first", &["h1"]);
    world.custom_run("second", &["h1"]);
    while !world.works() {
        world.run_for(1);
    }
    world.write_statuses();
    let message = world.deployment.status.clone().unwrap().message.unwrap();
    assert!(message.ends_with("; run second waits for first"), "{message}");
    world.settle();
    assert_eq!(ready(&world).2, "running");
}

#[test]
fn a_second_cluster_on_the_same_pod_network_is_refused_and_named() {
    let mut world = World::new("controlPlane: {replicas: 1}", 1);
    let mut first = world.deployment.clone();
    first.metadata.name = Some("first".into());
    first.metadata.uid = Some("first-uid".into());
    first.metadata.creation_timestamp = Some(serde_json::from_str("\"2020-01-01T00:00:00Z\"").unwrap());
    world.deployment.metadata.creation_timestamp = Some(world.time());
    first.spec.networking.pod_cidr = "10.244.128.0/17".into();
    world.others = vec![first];
    world.settle();
    let (_, reason, message) = ready(&world);
    assert_eq!(reason, "CIDROverlap");
    assert!(message.contains("of ClusterDeployment first"), "{message}");
    assert!(world.sets.is_empty());
    world.others[0].spec.networking.pod_cidr = "10.245.0.0/16".into();
    world.settle();
    assert_eq!(ready(&world).0, "True");
    let conditions = world.deployment.status.clone().unwrap().conditions;
    assert!(conditions::is_true(&conditions, "Ready"));
}
