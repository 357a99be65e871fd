//! A lock whose status was lost stays closed until all that may know its last token have told.

use crds::conditions;
use crds::names::{annotation, condition};
use crds::step::Intent;

use super::ready;
use crate::testing::World;

const SPEC: &str = "controlPlane: {replicas: 1}, workers: [{name: general, replicas: 2}]";
const ONE_MORE: &str = "controlPlane: {replicas: 1}, workers: [{name: general, replicas: 3}]";

fn last_token(world: &World) -> Option<i64> {
    world.deployment.status.as_ref()?.last_token
}

fn probes(world: &World) -> usize {
    let probes = world.runs.iter().filter(|run| run.spec.intent == Intent::Probe);
    probes.count()
}

#[test]
fn a_new_cluster_opens_its_lock_at_once_and_before_anything_is_made() {
    let mut world = World::new(SPEC, 3);
    world.write_statuses();
    assert_eq!(last_token(&world), Some(0));
    assert!(world.sets.is_empty());
    world.settle();
    assert_eq!(probes(&world), 0);
}

#[test]
fn a_lost_lock_is_read_back_from_guards_when_the_runs_are_gone_too() {
    let mut world = World::new(SPEC, 4);
    world.settle();
    let highest = last_token(&world).unwrap();
    world.runs.clear();
    world.lose_status();
    world.respec(ONE_MORE);
    world.settle();
    assert_eq!((probes(&world), ready(&world).0.as_str()), (1, "True"));
    assert_eq!(last_token(&world), Some(highest + 1));
    let probe = &world.runs[0];
    assert_eq!(probe.spec.hosts, ["h1", "h2", "h3"]);
    assert!(crate::attempts::targets(probe).is_empty(), "it touches no machine");
    let status = world.deployment.status.clone().unwrap();
    assert_eq!(conditions::find(&status.conditions, condition::LOCK_AVAILABLE), None);
}

#[test]
fn a_status_that_is_wiped_while_a_run_works_leaves_it_its_place_and_gives_nothing_out_beside_it() {
    let mut world = World::new(SPEC, 4);
    world.settle();
    world.respec(ONE_MORE);
    while !world.works() {
        world.run_for(1);
    }
    let token = last_token(&world).unwrap();
    world.custom_run("by-hand", &["h1"]);
    world.lose_status();
    world.write_statuses();
    let status = world.deployment.status.clone().unwrap();
    assert_eq!(status.last_token, None);
    assert_eq!(status.operations.iter().map(|held| held.token).collect::<Vec<_>>(), [token]);
    assert!(status.message.unwrap().contains("the lock is closed: its last token is lost"));
    world.settle();
    assert_eq!(ready(&world).0, "True");
    assert!(last_token(&world).unwrap() > token);
}

#[test]
fn a_machine_that_does_not_answer_keeps_the_lock_closed_until_it_does() {
    let mut world = World::new(SPEC, 4);
    world.settle();
    world.silent.insert("h3".into());
    world.lose_status();
    world.respec(ONE_MORE);
    world.run_for(20);
    let status = world.deployment.status.clone().unwrap();
    assert_eq!(status.last_token, None);
    let open = conditions::find(&status.conditions, condition::LOCK_AVAILABLE).unwrap();
    assert!(open.message.contains("no answer from h3 (SSH does not answer)"), "{}", open.message);
    assert!(open.message.contains("clusterwright.dev/unlock=2"), "{}", open.message);
    let asked: Vec<usize> =
        world.runs.iter().filter(|run| run.spec.intent == Intent::Probe).map(|run| run.spec.hosts.len()).collect();
    assert_eq!(asked[..2], [3, 1], "who answered is not asked again");
    assert_eq!(world.machines.len(), 3, "nothing is made meanwhile");
    world.silent.clear();
    world.settle();
    assert_eq!(ready(&world).0, "True");
}

#[test]
fn a_person_opens_a_lock_without_the_machine_that_does_not_answer() {
    let mut world = World::new(SPEC, 4);
    world.settle();
    world.silent.insert("h3".into());
    world.runs.clear();
    world.lose_status();
    world.respec(ONE_MORE);
    world.deployment.metadata.annotations = Some([(annotation::UNLOCK.to_owned(), "1".to_owned())].into());
    world.run_for(9);
    assert_eq!(last_token(&world), None, "that word was meant for another generation");
    world.deployment.metadata.annotations = Some([(annotation::UNLOCK.to_owned(), "2".to_owned())].into());
    world.settle();
    assert_eq!(ready(&world).0, "True");
    assert!(last_token(&world).unwrap() > 1000, "the silent machine may know a higher one");
}

#[test]
fn a_token_of_an_earlier_claim_says_nothing_and_one_of_a_later_claim_is_a_mistake_to_mend() {
    let mut world = World::new("controlPlane: {replicas: 1}", 1);
    world.settle();
    let ((epoch, _), run) = world.guards["h1"].clone();
    world.guards.insert("h1".into(), ((epoch - 1, 99), run.clone()));
    world.runs.clear();
    world.lose_status();
    world.settle();
    assert_eq!(last_token(&world), Some(0));

    world.guards.insert("h1".into(), ((epoch + 3, 1), run));
    world.lose_status();
    world.run_for(6);
    let message = world.deployment.status.clone().unwrap().message.unwrap();
    let command = format!("set spec.claimEpoch of the Host to {}", epoch + 3);
    assert!(last_token(&world).is_none() && message.contains(&command), "{message}");
}

#[test]
fn a_cluster_that_is_deleted_with_its_lock_lost_asks_first_and_then_cleans() {
    let mut world = World::new(SPEC, 3);
    world.settle();
    world.runs.clear();
    world.lose_status();
    world.delete();
    world.settle();
    assert!(world.gone && world.dirty.is_empty());
    assert_eq!(probes(&world), 1);
}

#[test]
fn a_token_that_nobody_gives_out_is_not_believed() {
    let mut world = World::new("controlPlane: {replicas: 1}", 1);
    world.settle();
    let ((epoch, _), run) = world.guards["h1"].clone();
    world.guards.insert("h1".into(), ((epoch, i64::MAX), run));
    world.lose_status();
    world.runs[0].status.as_mut().unwrap().token = i64::MAX;
    world.run_for(6);
    let message = world.deployment.status.clone().unwrap().message.unwrap();
    assert!(message.contains("a token that nobody gives out"), "{message}");
}

#[test]
fn a_machine_that_never_answers_is_asked_on_and_its_probes_do_not_pile_up() {
    let mut world = World::new("controlPlane: {replicas: 1}, executor: {historyLimit: 5}", 1);
    world.settle();
    world.silent.insert("h1".into());
    world.lose_status();
    world.run_for(60);
    // As many of each end as the history keeps, and those by which it is decided when to ask again.
    assert!(probes(&world) <= 14, "{}", probes(&world));
    let newest = world.runs.last().unwrap();
    assert!(crate::attempts::attempt_of(newest) > 20);
}
