//! `spec.configuration`: what rolls an edit out, to which machines, and what is rolled out to nobody.

use crds::conditions;
use crds::machine::DrainReason;
use crds::names::condition;
use crds::step::{Intent, Step};
use serde_json::{Value, json};

use crate::testing::World;

const SPEC: &str = "controlPlane: {replicas: 1}, workers: [{name: a, replicas: 1}, {name: b, replicas: 1}]";

fn built() -> World {
    let mut world = World::new(SPEC, 3);
    world.settle();
    world
}

fn configure(world: &mut World, configuration: Value) {
    world.deployment.spec.configuration = serde_json::from_value(configuration).unwrap();
    world.touch();
    world.settle();
}

/// The runs that configured machines since the last look.
fn configured(world: &World, seen: &mut usize) -> Vec<(Vec<String>, Vec<Step>)> {
    let runs = world.runs.iter().filter(|run| run.spec.intent == Intent::Configure);
    let new: Vec<_> = runs.map(|run| (run.spec.hosts.clone(), run.spec.steps.clone())).skip(*seen).collect();
    *seen += new.len();
    assert_eq!(up_to_date(world).0, "True", "{:?}", up_to_date(world));
    new
}

fn up_to_date(world: &World) -> (String, String) {
    let status = world.deployment.status.clone().unwrap();
    let found = conditions::find(&status.conditions, condition::UP_TO_DATE).unwrap();
    (found.status.clone(), found.message.clone())
}

fn hosts(world: &World, set: &str) -> Vec<String> {
    let set = format!("{}-{set}", world.deployment.metadata.name.clone().unwrap());
    let machines = world.machines.iter().filter(|machine| crate::claims::set_of(machine) == Some(&set));
    machines.map(|machine| machine.spec.host_ref.clone().unwrap().name).collect()
}

#[test]
fn an_edit_is_rolled_out_to_all_machines_that_have_the_part_and_so_is_that_it_is_taken_back() {
    let (mut world, mut seen) = (built(), 0);
    for configuration in [json!({"kubelet": {"maxPods": 50}}), json!({"kubelet": {"maxPods": 60}}), json!({})] {
        configure(&mut world, configuration);
        let runs = configured(&world, &mut seen);
        assert_eq!(runs.len(), 3, "{runs:?}");
        assert_eq!(runs[0], (hosts(&world, "control-plane"), vec![Step::KubeletConfiguration]));
        assert!(runs.iter().all(|(hosts, steps)| hosts.len() == 1 && *steps == [Step::KubeletConfiguration]));
    }
}

#[test]
fn parts_that_are_edited_together_are_brought_to_a_machine_by_one_run() {
    let (mut world, mut seen) = (built(), 0);
    let proxy = json!({"proxy": {"httpProxy": "http://proxy.example:3128"}});
    let machine = json!({"sysctls": {"net.core.somaxconn": "4096"}});
    configure(&mut world, json!({"kubelet": {"maxPods": 50}, "containerd": proxy, "machine": machine}));
    let steps = vec![Step::Prepare, Step::ContainerRuntime, Step::KubeletConfiguration];
    let runs = configured(&world, &mut seen);
    assert!(runs.len() == 3 && runs.iter().all(|(_, there)| *there == steps), "{runs:?}");
}

#[test]
fn what_a_set_says_otherwise_is_rolled_out_to_its_machines_alone() {
    let (mut world, mut seen) = (built(), 0);
    configure(&mut world, json!({"kubelet": {"maxPods": 50}}));
    assert_eq!(configured(&world, &mut seen).len(), 3);
    for kubelet in [json!({"maxPods": 60}), Value::Null] {
        world.deployment.spec.workers[1].kubelet = serde_json::from_value(kubelet).unwrap();
        world.touch();
        world.settle();
        assert_eq!(configured(&world, &mut seen), [(hosts(&world, "b"), vec![Step::KubeletConfiguration])]);
    }
    world.deployment.spec.workers[0].kubelet = serde_json::from_value(json!({"maxPods": 50})).unwrap();
    world.touch();
    world.settle();
    assert_eq!(configured(&world, &mut seen), [], "it says what the cluster says");
}

#[test]
fn machines_that_join_come_with_what_is_configured() {
    let mut world = World::new("controlPlane: {replicas: 1}, workers: [{name: a, replicas: 1}]", 3);
    configure(&mut world, json!({"kubelet": {"maxPods": 50}, "machine": {"kernelModules": ["ip_vs"]}}));
    assert_eq!(configured(&world, &mut 0), []);
    world.deployment.spec.workers[0].replicas = Some(2);
    world.touch();
    world.settle();
    assert_eq!(configured(&world, &mut 0), []);
}

/// As an operator leaves it that knows no `spec.configuration`.
fn of_before(world: &mut World) {
    for machine in &mut world.machines {
        let applied = machine.status.as_mut().and_then(|status| status.applied.as_mut());
        applied.unwrap().configuration.clear();
    }
    for run in &mut world.runs {
        if let Some(settings) = run.status.as_mut().and_then(|status| status.settings.as_mut()) {
            settings.configuration.clear();
        }
    }
}

#[test]
fn an_operator_that_is_upgraded_rolls_nothing_out_until_something_is_configured() {
    let (mut world, mut seen) = (built(), 0);
    of_before(&mut world);
    world.settle();
    assert_eq!(configured(&world, &mut seen), []);
    configure(&mut world, json!({"kubelet": {"podPidsLimit": 4096}}));
    assert_eq!(configured(&world, &mut seen).len(), 3);
}

#[test]
fn after_statuses_were_lost_it_is_known_from_the_runs_or_said_to_be_unknown_and_nothing_is_rolled_out() {
    let (mut world, mut seen) = (built(), 0);
    configure(&mut world, json!({"kubelet": {"maxPods": 50}}));
    configured(&world, &mut seen);
    let lose = |world: &mut World| {
        for machine in &mut world.machines {
            machine.status.as_mut().unwrap().applied = None;
        }
    };
    lose(&mut world);
    world.settle();
    assert_eq!(configured(&world, &mut seen), [], "the runs are there");
    lose(&mut world);
    world.runs.clear();
    world.settle();
    let (status, message) = up_to_date(&world);
    assert!(status == "Unknown" && message.contains("configuration.kubelet"), "{status}: {message}");
    assert!(world.runs.iter().all(|run| run.spec.intent != Intent::Configure));
}

/// Hosts that were drained for a configuration until the cluster came to rest.
fn drained(world: &mut World) -> std::collections::BTreeSet<String> {
    let mut drained = std::collections::BTreeSet::new();
    for _ in 0..400 {
        world.run_for(1);
        let machines = world.machines.iter().filter(|it| it.spec.drain_for.contains(&DrainReason::Configuration));
        let hosts: Vec<String> = machines.map(|it| it.spec.host_ref.clone().unwrap().name).collect();
        assert!(hosts.len() <= 1, "{hosts:?} are drained at once");
        drained.extend(hosts);
    }
    world.settle();
    assert!(world.machines.iter().all(|machine| machine.spec.drain_for.is_empty()), "all take Pods again");
    drained
}

#[test]
fn what_pods_would_not_outlive_is_brought_to_drained_nodes_one_after_the_other_and_they_take_pods_again() {
    let (mut world, mut seen) = (built(), 0);
    let edits = [
        (json!({"kubelet": {"maxPods": 200}}), 0),
        (json!({"kubelet": {"maxPods": 150}}), 3),
        (json!({"kubelet": {"maxPods": 150, "podPidsLimit": 4096}}), 0),
        (json!({"kubelet": {"maxPods": 150, "cpuManagerPolicy": "static"}}), 3),
        (json!({"kubelet": {"cpuManagerPolicy": "static"}}), 3),
    ];
    for (configuration, nodes) in edits {
        world.deployment.spec.configuration = serde_json::from_value(configuration.clone()).unwrap();
        world.touch();
        assert_eq!(drained(&mut world).len(), nodes, "{configuration}");
        assert_eq!(configured(&world, &mut seen).len(), 3, "{configuration}");
    }
}

#[test]
fn a_worker_that_does_not_take_its_configuration_stays_drained_until_that_is_taken_back() {
    let (mut world, mut seen) = (built(), 0);
    world.always_fails = [hosts(&world, "a"), hosts(&world, "b")].concat();
    world.deployment.spec.configuration = serde_json::from_value(json!({"kubelet": {"maxPods": 50}})).unwrap();
    world.touch();
    world.settle();
    assert!(up_to_date(&world).1.contains("after 3 attempts"), "{:?}", up_to_date(&world));
    let drained = |world: &World| world.machines.iter().filter(|it| !it.spec.drain_for.is_empty()).count();
    assert_eq!(drained(&world), 1);
    world.deployment.spec.configuration = None;
    world.touch();
    world.always_fails.clear();
    world.settle();
    assert_eq!(drained(&world), 0);
    assert!(!configured(&world, &mut seen).is_empty(), "the control plane has it set back");
}
