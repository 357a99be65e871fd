//! So many ended runs are kept and no more, and none goes that a decision still needs.

use crds::step::Intent;

use super::ready;
use crate::testing::{Fate, World};

#[test]
fn the_oldest_ended_runs_go_and_never_the_install() {
    let spec = "controlPlane: {replicas: 1}, executor: {historyLimit: 3}";
    let mut world = World::new(spec, 1);
    world.settle();
    for number in 0..6 {
        world.custom_run(&format!("by-hand-{number}"), &["h1"]);
        world.settle();
    }
    // Looks at etcd are counted apart.
    let works = world.runs.iter().filter(|run| run.spec.intent != Intent::Probe);
    let names: Vec<_> = works.filter_map(|run| run.metadata.name.clone()).collect();
    assert_eq!(world.runs[0].spec.intent, Intent::Install);
    assert_eq!(names[1..], ["by-hand-3", "by-hand-4", "by-hand-5"]);
    let token = world.deployment.status.clone().unwrap().last_token;
    assert_eq!(token, Some(7), "tokens are not forgotten with runs");
}

#[test]
fn attempts_that_count_stay_and_a_machine_that_gave_up_has_given_up() {
    let spec = "controlPlane: {replicas: 1}, workers: [{name: general, replicas: 1}], executor: {historyLimit: 1}";
    let mut world = World::new(spec, 2);
    world.always_fails = vec!["h2".into()];
    world.settle();
    assert_eq!(ready(&world).1, "JoinFailed");
    world.custom_run("by-hand", &["h1"]);
    world.settle();
    let joins = world.runs.iter().filter(|run| run.spec.intent == Intent::Join);
    assert_eq!(joins.count(), 3);
}

#[test]
fn a_reset_that_fails_for_ever_leaves_only_its_newest_attempts() {
    let spec = |workers: i32| {
        format!(
            "controlPlane: {{replicas: 1}}, workers: [{{name: general, replicas: {workers}}}], executor: {{historyLimit: 5}}"
        )
    };
    let mut world = World::new(&spec(1), 2);
    world.settle();
    world.respec(&spec(0));
    world.fates = vec![Fate::Unreachable; 120];
    world.run_for(90);
    let resets = world.runs.iter().filter(|run| run.spec.intent == Intent::Reset);
    assert!(resets.count() <= 13, "eight attempts that give the delay, and five of the history: {}", world.runs.len());
    world.fates.clear();
    world.settle();
    assert!(world.dirty.len() == 1 && world.machines.len() == 1);
}

#[test]
fn probes_push_no_other_run_out() {
    let spec = "controlPlane: {replicas: 1}, executor: {historyLimit: 5}";
    let mut world = World::new(spec, 1);
    world.settle();
    for number in 0..4 {
        world.custom_run(&format!("by-hand-{number}"), &["h1"]);
        world.settle();
    }
    world.silent.insert("h1".into());
    world.lose_status();
    world.run_for(60);
    let probes = |run: &&crds::PlaybookRun| run.spec.intent == Intent::Probe;
    let (probes, others): (Vec<_>, Vec<_>) = world.runs.iter().partition(probes);
    assert!(probes.len() > 5, "{}", probes.len());
    assert_eq!(others.len(), 5);
}

#[test]
fn runs_that_a_decision_needs_push_no_administrators_run_out() {
    let spec = "controlPlane: {replicas: 1}, workers: [{name: general, replicas: 1}], executor: {historyLimit: 2}";
    let mut world = World::new(spec, 2);
    world.always_fails = vec!["h2".into()];
    world.settle();
    for number in 0..3 {
        world.custom_run(&format!("by-hand-{number}"), &["h1"]);
        world.settle();
    }
    let by_hand = world.runs.iter().filter(|run| run.spec.intent == Intent::Custom);
    let by_hand: Vec<_> = by_hand.filter_map(|run| run.metadata.name.as_deref()).collect();
    assert_eq!(by_hand, ["by-hand-1", "by-hand-2"], "three joins are kept beside them");
}

#[test]
fn control_planes_that_were_told_who_is_behind_the_endpoint_are_not_told_again_when_the_run_is_pruned() {
    let spec = |replicas| {
        format!(
            "controlPlane: {{replicas: {replicas}, endpoint: {{host: 10.0.0.200, provider: Keepalived}}}}, executor: {{historyLimit: 1}}"
        )
    };
    let mut world = World::new(&spec(1), 3);
    world.settle();
    world.respec(&spec(3));
    world.settle();
    assert_eq!(ready(&world).0, "True");
    world.runs.retain(|run| run.spec.intent == Intent::Install);
    world.settle();
    let intents: Vec<Intent> = world.runs.iter().map(|run| run.spec.intent).collect();
    assert_eq!(intents, [Intent::Install], "nobody is told again");
}
