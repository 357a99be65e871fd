//! Workers of a cluster that is being installed: prepared beside the install, and joined as soon as the API is there.

use crds::conditions::{self, Statement};
use crds::lock::LockMode;
use crds::names::condition;
use crds::playbook_run::{RunPhase, StepPhase, StepStatus};
use crds::step::Intent;
use crds::{ClusterStatus, Conditions, PlaybookRun, Reason};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::ready;
use crate::testing::World;

const SPEC: &str = "controlPlane: {replicas: 1}, workers: [{name: general, replicas: 2}]";

fn with_intent(world: &mut World, intent: Intent) -> impl Iterator<Item = &mut PlaybookRun> {
    world.runs.iter_mut().filter(move |run| run.spec.intent == intent)
}

/// A cluster whose install works, and whose workers are being prepared.
fn installing() -> World {
    let mut world = World::new(SPEC, 3);
    while with_intent(&mut world, Intent::Prepare).count() == 0 {
        assert!(world.deployment.status.as_ref().is_none_or(|status| status.installed_at.is_none()));
        match world.works() {
            true => world.write_statuses(),
            false => world.run_for(1),
        }
    }
    world
}

#[test]
fn workers_are_prepared_beside_the_install() {
    let mut world = installing();
    world.write_statuses();
    let operations = world.deployment.status.clone().unwrap().operations;
    let modes: Vec<LockMode> = operations.iter().map(|operation| operation.mode).collect();
    assert_eq!(modes, [LockMode::Exclusive, LockMode::Separate]);
    assert_eq!(operations[1].hosts, ["h2", "h3"]);
}

#[test]
fn one_that_cannot_be_prepared_is_reported_by_its_join() {
    let mut world = World::new(SPEC, 3);
    world.always_fails = vec!["h3".into()];
    world.settle();
    assert_eq!(with_intent(&mut world, Intent::Prepare).count(), 1, "once, whatever came of it");
    let (_, reason, message) = ready(&world);
    assert_eq!(reason, "JoinFailed", "{message}");
}

/// A cluster with so many steps of its install still to be done, whose API is reachable or not.
fn proving(left: usize, is_reachable: bool) -> World {
    let mut world = installing();
    let over = Some(crds::PlaybookRunStatus { phase: Some(RunPhase::Succeeded), ..Default::default() });
    with_intent(&mut world, Intent::Prepare).for_each(|run| run.status.clone_from(&over));
    let install = with_intent(&mut world, Intent::Install).next().unwrap();
    let done = install.spec.steps.len() - left;
    let succeeded =
        |name| StepStatus { name, phase: StepPhase::Succeeded, started_at: None, finished_at: None, changed: 0 };
    let steps = install.spec.steps.iter().take(done).copied().map(succeeded).collect();
    install.status.get_or_insert_default().steps = steps;
    let reachable = Statement::new(condition::REACHABLE, is_reachable, Reason::ApiAnswers, "as it says");
    let conditions = conditions::state(&[], &[reachable], None, &world.time());
    world.cluster.as_mut().unwrap().status = Some(ClusterStatus { conditions, ..ClusterStatus::default() });
    world.write_statuses();
    world
}

/// Whether workers join then.
fn joins(left: usize, is_reachable: bool) -> bool {
    let mut world = proving(left, is_reachable);
    let joins = with_intent(&mut world, Intent::Join).count() > 0;
    world.settle();
    assert_eq!(ready(&world).0, "True");
    joins
}

#[test]
fn a_join_that_fails_beside_the_install_is_reported_though_the_install_goes_on() {
    let mut world = proving(1, true);
    let at = world.time();
    with_intent(&mut world, Intent::Join).for_each(|join| lose(join, &at));
    world.write_statuses();
    let (_, reason, _) = ready(&world);
    assert_eq!(reason, "Installing");
    tells_of_the_lost_join(&world);
}

#[test]
fn a_join_whose_end_is_seen_late_beside_the_install_is_told_with_it_all_the_same() {
    let mut world = proving(1, true);
    let at = world.time();
    with_intent(&mut world, Intent::Join).for_each(|join| lose(join, &at));
    // The next attempt is due already when this one is looked at.
    world.jump(jiff::SignedDuration::from_secs(60));
    world.write_statuses();
    let message = world.deployment.status.as_ref().unwrap().message.clone().unwrap();
    for words in ["installing ", "h2", "was interrupted while it joined", "the Pod is gone", "goes on where it stopped"]
    {
        assert!(message.contains(words), "{words}: {message}");
    }
}

/// The run was lost in this moment.
fn lose(run: &mut PlaybookRun, at: &Time) {
    let status = run.status.get_or_insert_default();
    (status.phase, status.finished_at) = (Some(RunPhase::Unknown), Some(at.clone()));
    status.message = Some("the Pod is gone".to_owned());
}

fn tells_of_the_lost_join(world: &World) {
    let workers = world.deployment.condition(condition::WORKERS_READY).unwrap();
    assert_eq!(workers.reason, "JoinFailed", "{}", workers.message);
    for words in ["h2", "the Pod is gone", "attempt 2"] {
        assert!(workers.message.contains(words), "{}", workers.message);
    }
}

#[test]
fn a_join_that_failed_is_reported_also_between_two_attempts_of_the_install() {
    let mut world = proving(1, true);
    let at = world.time();
    for intent in [Intent::Join, Intent::Install] {
        with_intent(&mut world, intent).for_each(|run| lose(run, &at));
    }
    world.write_statuses();
    tells_of_the_lost_join(&world);
}

#[test]
fn workers_join_while_the_install_proves_itself_if_the_api_answers() {
    assert!(joins(1, true));
    assert!(!joins(1, false));
    assert!(!joins(2, true));
}
