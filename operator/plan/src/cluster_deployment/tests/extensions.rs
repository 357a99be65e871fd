//! Promises of what others bring: playbooks of an administrator's, conditions of other controllers, and an endpoint
//! that the control planes hold.

use crds::conditions;
use crds::names::{annotation, condition};
use crds::step::{Intent, Role};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use serde_json::json;

use super::ready;
use crate::attempts::next_retry;
use crate::hooks::Library;
use crate::testing::{Fate, World};

fn playbooks(names: &[&str]) -> Option<Library> {
    let play = "- {hosts: all, tasks: []}".to_owned();
    Some(Library {
        config_map: "mine".into(),
        data: Some(names.iter().map(|name| (format!("{name}.yml"), play.clone())).collect()),
        binary: Vec::new(),
    })
}

fn steps(world: &World, intent: Intent) -> Vec<String> {
    let runs = world.runs.iter().filter(|run| run.spec.intent == intent);
    runs.map(|run| {
        let names: Vec<&str> = run.spec.steps.iter().map(|step| step.name()).collect();
        names.join(" ")
    })
    .collect()
}

const HOOKED: &str = "executor: {customPlaybooksRef: {name: mine}}, hooks: {beforeInstall: [{name: i}], afterJoin: [{name: j}], beforeDrain: [{name: d}], beforeRemove: [{name: r}]}, controlPlane: {replicas: 1}";

fn hooked(workers: usize) -> String {
    format!("{HOOKED}, workers: [{{name: general, replicas: {workers}}}]")
}

#[test]
fn hooks_are_steps_of_the_runs_and_those_before_a_drain_have_their_own() {
    let mut world = World::new(&hooked(2), 3);
    world.library = playbooks(&["i", "j", "d", "r"]);
    world.settle();
    assert_eq!(ready(&world).0, "True");
    assert!(steps(&world, Intent::Install)[0].starts_with("custom-i bootstrap-os"));
    assert!(steps(&world, Intent::Join)[0].ends_with("post-install custom-j"));

    world.respec(&hooked(1));
    world.settle();
    assert_eq!(ready(&world).0, "True");
    assert_eq!(steps(&world, Intent::Remove), ["custom-d"]);
    assert_eq!(steps(&world, Intent::Reset), ["custom-r reset"]);
    assert!(world.dirty.len() == 2 && world.machines.len() == 2);
}

#[test]
fn a_hook_or_a_reset_that_a_person_canceled_is_not_played_again_until_asked_for() {
    for (intent, fates) in [(Intent::Remove, vec![Fate::Canceled]), (Intent::Reset, vec![Fate::Well, Fate::Canceled])] {
        let mut world = World::new(&hooked(1), 2);
        world.library = playbooks(&["i", "j", "d", "r"]);
        world.settle();
        world.respec(&hooked(0));
        world.fates = fates;
        world.run_for(20);
        assert_eq!(steps(&world, intent).len(), 1, "{intent:?}");
        let leaves = world.machines.last().unwrap().status.clone().unwrap();
        let message = leaves.message.unwrap();
        assert!(message.contains("was canceled; "), "{message}");
        assert!(message.contains("clusterwright.dev/retry="), "{message}");
        let meta = &mut world.deployment.metadata;
        let value = next_retry(meta.annotations.as_ref(), meta.generation.unwrap_or_default());
        let annotations = meta.annotations.get_or_insert_default();
        annotations.insert(annotation::RETRY.into(), value);
        world.settle();
        assert_eq!((ready(&world).0.as_str(), world.machines.len()), ("True", 1));
    }
}

#[test]
fn hooks_that_cannot_be_played_are_told_before_any_machine_is_touched() {
    let mut world = World::new(&hooked(1), 2);
    world.settle();
    assert_eq!(ready(&world).1, "ConfigMapNotFound");
    world.library = playbooks(&["i", "j", "d"]);
    world.settle();
    let (_, reason, message) = ready(&world);
    assert_eq!(reason, "PlaybookNotFound");
    assert!(message.contains("spec.hooks.beforeRemove[0].name") && message.contains("r.yml"), "{message}");
    assert!(world.runs.is_empty() && world.machines.is_empty());
    world.library = playbooks(&["i", "j", "d", "r"]);
    world.settle();
    assert_eq!(ready(&world).0, "True");
}

fn set(world: &mut World, status: &str) {
    let condition = Condition {
        type_: "example.com/DNSRecordReady".into(),
        status: status.into(),
        reason: "Told".into(),
        message: "the record is being made".into(),
        observed_generation: None,
        last_transition_time: world.time(),
    };
    let conditions = &mut world.deployment.status.as_mut().unwrap().conditions;
    conditions.retain(|there| there.type_ != condition.type_);
    conditions.push(condition);
}

#[test]
fn ready_waits_for_the_conditions_of_other_controllers_and_leaves_them_as_they_are() {
    let mut world =
        World::new("controlPlane: {replicas: 1}, readinessGates: [{conditionType: example.com/DNSRecordReady}]", 1);
    world.settle();
    let (status, reason, message) = ready(&world);
    assert_eq!((status.as_str(), reason.as_str()), ("False", "WaitingForReadinessGate"));
    assert!(message.contains("example.com/DNSRecordReady") && message.contains("has not set yet"), "{message}");
    assert!(world.cluster.is_some(), "the cluster stands all the same");

    set(&mut world, "False");
    world.settle();
    assert!(ready(&world).2.contains("is False (Told): the record is being made"));
    set(&mut world, "True");
    world.settle();
    assert_eq!(ready(&world).0, "True");
    let conditions = world.deployment.status.clone().unwrap().conditions;
    let theirs = conditions::find(&conditions, "example.com/DNSRecordReady").unwrap();
    assert_eq!((theirs.status.as_str(), theirs.reason.as_str()), ("True", "Told"));
    assert!(conditions::find(&conditions, condition::READY).is_some());
}

#[test]
fn where_the_api_servers_answer_is_told_to_load_balancers() {
    let mut world = World::new("controlPlane: {replicas: 3, endpoint: {host: lb.example}}", 3);
    world.settle();
    let endpoints = world.deployment.status.as_ref().unwrap().control_plane_endpoints.clone();
    let mut told: Vec<_> = endpoints.iter().map(|told| (told.host.as_str(), told.port, told.ready)).collect();
    told.sort_unstable();
    assert_eq!(told, [("10.0.0.1", 6443, true), ("10.0.0.2", 6443, true), ("10.0.0.3", 6443, true)]);
    let named = |name: &String| world.machines.iter().any(|machine| machine.metadata.name.as_ref() == Some(name));
    assert!(endpoints.iter().all(|told| named(&told.machine)));
}

const HELD: &str = "endpoint: {host: 10.0.0.200, provider: Keepalived}";

#[test]
fn control_planes_hold_the_endpoint_and_know_each_other() {
    let mut world = World::new(&format!("controlPlane: {{replicas: 1, {HELD}}}"), 4);
    world.settle();
    assert_eq!(ready(&world).0, "True", "{:?}", ready(&world));
    assert!(steps(&world, Intent::Install)[0].contains(" control-plane load-balancer "));
    assert_eq!(world.runs[0].spec.vars["kube_apiserver_backends"], json!(["10.0.0.1:6443"]));

    world.respec(&format!("controlPlane: {{replicas: 3, {HELD}}}"));
    world.settle();
    assert_eq!(ready(&world).0, "True", "{:?}", ready(&world));
    // Whoever is to hold the address with another one has heard of it first.
    let with = |step: &str| {
        let runs = world.runs.iter().filter(|run| run.spec.steps.iter().any(|there| there.name() == step));
        runs.map(|run| (run.spec.hosts.clone(), run.spec.vars["kube_apiserver_backends"].clone())).collect::<Vec<_>>()
    };
    let told = with("load-balancer");
    let all = json!(["10.0.0.1:6443", "10.0.0.2:6443", "10.0.0.3:6443"]);
    assert!(told.iter().any(|(hosts, behind)| hosts == &["h1"] && behind == &all), "{told:?}");
    let last =
        |host: &str| told.iter().rfind(|(hosts, _)| hosts.iter().any(|there| there == host)).map(|(_, behind)| behind);
    for host in ["h1", "h2", "h3"] {
        assert_eq!(last(host), Some(&all), "{told:?}");
    }
    assert_eq!(world.machines.iter().filter(|machine| machine.spec.role == Role::ControlPlane).count(), 3);
}
