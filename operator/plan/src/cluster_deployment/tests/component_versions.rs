//! `spec.versions`: which steps bring a version to which machines, in which order, and what is refused.

use crds::conditions;
use crds::names::condition;
use crds::step::{Intent, Role, Step};
use jiff::SignedDuration;
use serde_json::{Value, json};

use super::growth::approve_asked;
use crate::testing::World;

const SPEC: &str = "controlPlane: {replicas: 3, endpoint: {host: 10.0.0.100}}, workers: [{name: a, replicas: 2}]";

fn built(spec: &str, hosts: usize) -> World {
    let mut world = World::new(spec, hosts);
    world.settle();
    world
}

fn name_versions(world: &mut World, versions: Value) {
    world.deployment.spec.versions = serde_json::from_value(versions).unwrap();
    world.touch();
    world.settle();
}

/// Role, number of machines and steps of the runs of an intent since the last look.
fn played(world: &World, intent: Intent, seen: &mut usize) -> Vec<(Role, usize, Vec<Step>)> {
    let runs = world.runs.iter().filter(|run| run.spec.intent == intent).skip(*seen);
    let role = |host: &str| {
        let is_on = |machine: &&crds::Machine| machine.spec.host_ref.as_ref().is_some_and(|there| there.name == host);
        world.machines.iter().find(is_on).unwrap().spec.role
    };
    let new: Vec<_> =
        runs.map(|run| (role(&run.spec.hosts[0]), run.spec.hosts.len(), run.spec.steps.clone())).collect();
    *seen += new.len();
    new
}

fn said(world: &World, type_: &str) -> (String, String, String) {
    let status = world.deployment.status.clone().unwrap();
    let found = conditions::find(&status.conditions, type_).unwrap();
    (found.status.clone(), found.reason.clone(), found.message.clone())
}

fn is_up_to_date(world: &World) -> bool {
    said(world, condition::UP_TO_DATE).0 == "True"
}

#[test]
fn programs_of_the_container_runtime_come_to_all_machines_in_turns_and_go_when_they_are_taken_back() {
    let (mut world, mut seen) = (built(SPEC, 5), 0);
    let both = vec![Step::ContainerRuntime];
    for versions in [json!({"containerd": "2.2.1", "runc": "1.4.0"}), json!({"cniPlugins": "1.9.0"}), json!({})] {
        name_versions(&mut world, versions);
        let runs = played(&world, Intent::Configure, &mut seen);
        let (control_plane, worker) = ((Role::ControlPlane, 1, both.clone()), (Role::Worker, 1, both.clone()));
        let expected = [vec![control_plane; 3], vec![worker; 2]].concat();
        assert_eq!(runs, expected);
        assert!(is_up_to_date(&world));
    }
}

#[test]
fn etcd_comes_to_one_member_after_the_other_where_they_are() {
    let dedicated = "controlPlane: {replicas: 1}, etcd: {topology: Dedicated, replicas: 3}";
    for (spec, hosts, role) in [(SPEC, 5, Role::ControlPlane), (dedicated, 4, Role::Etcd)] {
        let (mut world, mut seen) = (built(spec, hosts), 0);
        for versions in [json!({"etcd": "3.6.17"}), json!({})] {
            name_versions(&mut world, versions);
            let runs = played(&world, Intent::Configure, &mut seen);
            assert_eq!(runs, vec![(role, 1, vec![Step::Etcd]); 3]);
            assert!(is_up_to_date(&world));
        }
    }
}

#[test]
fn coredns_is_set_right_once_all_machines_have_its_image() {
    let (mut world, mut seen) = (built(SPEC, 5), 0);
    for versions in [json!({"coredns": "1.14.7"}), json!({"coredns": "1.14.8"}), json!({})] {
        name_versions(&mut world, versions);
        let runs = played(&world, Intent::Configure, &mut seen);
        let image = |role| (role, 1, vec![Step::ContainerRuntime]);
        let images = [vec![image(Role::ControlPlane); 3], vec![image(Role::Worker); 2]].concat();
        let expected = [images, vec![(Role::ControlPlane, 1, vec![Step::Coredns])]].concat();
        assert_eq!(runs, expected);
        assert!(is_up_to_date(&world));
    }
}

#[test]
fn coredns_is_left_as_it_is_while_a_worker_fails_to_get_its_image() {
    let (mut world, mut seen) = (built(SPEC, 5), 0);
    let workers = world.machines.iter().filter(|machine| machine.spec.role == Role::Worker);
    world.always_fails = workers.map(|machine| machine.spec.host_ref.clone().unwrap().name).collect();
    name_versions(&mut world, json!({"coredns": "1.14.7"}));
    let runs = played(&world, Intent::Configure, &mut seen);
    assert!(runs.iter().all(|(_, _, steps)| *steps == [Step::ContainerRuntime]), "{runs:?}");
    let (status, reason, message) = said(&world, condition::UP_TO_DATE);
    assert_eq!((status.as_str(), reason.as_str()), ("False", "ConfigurationFailed"));
    assert!(message.contains("versions.coredns"), "{message}");
}

#[test]
fn what_is_named_before_the_install_is_installed_and_so_it_is_on_machines_that_join() {
    let versions = "versions: {containerd: 2.2.1, etcd: 3.6.17, coredns: 1.14.7}";
    let spec = format!("controlPlane: {{replicas: 1}}, workers: [{{name: a, replicas: 1}}], {versions}");
    let mut world = built(&spec, 3);
    assert!(is_up_to_date(&world), "{:?}", said(&world, condition::UP_TO_DATE));
    world.deployment.spec.workers[0].replicas = Some(2);
    world.touch();
    world.settle();
    assert!(is_up_to_date(&world), "{:?}", said(&world, condition::UP_TO_DATE));
    assert_eq!(played(&world, Intent::Configure, &mut 0), []);
    let named = world.deployment.status.clone().unwrap().components;
    let named: Vec<_> = named.iter().map(|it| (it.name.as_str(), it.version.as_str(), it.pinned)).collect();
    let coredns = "registry.k8s.io/coredns/coredns";
    assert_eq!(named, [("containerd", "2.2.1", true), ("etcd", "3.6.17", true), (coredns, "1.14.7", true)]);
}

#[test]
fn what_is_named_while_an_upgrade_is_under_way_comes_with_it() {
    let mut world = built(SPEC, 5);
    let version = "1.35.5".parse().unwrap();
    world.deployment.spec.kubernetes_version = version;
    world.touch();
    while world.deployment.status.as_ref().unwrap().started_kubernetes_version != Some(version) {
        world.run_for(1);
    }
    name_versions(&mut world, json!({"containerd": "2.2.1", "etcd": "3.6.17"}));
    assert!(is_up_to_date(&world), "{:?}", said(&world, condition::UP_TO_DATE));
    assert_eq!(played(&world, Intent::Upgrade, &mut 0).len(), 5);
    let configured = played(&world, Intent::Configure, &mut 0);
    let of_control_planes = configured.iter().filter(|(role, ..)| *role == Role::ControlPlane).count();
    assert!(of_control_planes <= 1, "the one at most whose upgrade had begun before: {configured:?}");
}

#[test]
fn it_waits_for_an_approval_and_is_in_the_plan() {
    let mut world = built("controlPlane: {replicas: 1}, workers: [{name: a, replicas: 1}], approval: Manual", 2);
    name_versions(&mut world, json!({"etcd": "3.6.17"}));
    assert_eq!(played(&world, Intent::Configure, &mut 0), []);
    let plan = world.deployment.status.clone().unwrap().plan.unwrap();
    assert_eq!(plan.summary, "Configure versions.etcd: 1 control plane (restarts)");
    assert_eq!(said(&world, condition::UP_TO_DATE).1, "WaitingForApproval");
    approve_asked(&mut world);
    world.settle();
    assert_eq!(played(&world, Intent::Configure, &mut 0), [(Role::ControlPlane, 1, vec![Step::Etcd])]);
}

/// Until its members have been asked again which version they run.
fn look_at_etcd(world: &mut World) {
    let before = world.time().0;
    while world.time().0.duration_since(before) < SignedDuration::from_hours(8) {
        world.run_for(1);
    }
}

#[test]
fn etcd_goes_up_one_minor_at_a_time_and_never_back() {
    let mut world = built("controlPlane: {replicas: 1}", 1);
    look_at_etcd(&mut world);
    let running = world.data.version.clone();
    let refused = |world: &mut World, version: &str, why: &str| {
        name_versions(world, json!({ "etcd": version }));
        let (status, reason, message) = said(world, condition::READY);
        assert_eq!((status.as_str(), reason.as_str()), ("False", "EtcdVersionNotAllowed"), "{message}");
        let is_told = message.contains(&format!("spec.versions.etcd: {version}")) && message.contains(&running);
        assert!(is_told && message.contains(why) && message.contains("h1"), "{message}");
        assert_eq!(played(world, Intent::Configure, &mut 0), [], "nothing is touched");
    };
    assert!(running.starts_with("3.6."), "{running}");
    refused(&mut world, "3.5.30", "never goes back: set spec.versions.etcd to 3.6.x");
    refused(&mut world, "3.8.0", "set it to 3.7.x first");
    refused(&mut world, "4.0.0", "set it to 3.7.x first");
    // A patch back is none of a minor.
    name_versions(&mut world, json!({"etcd": "3.6.1"}));
    assert_eq!(played(&world, Intent::Configure, &mut 0).len(), 1);
    name_versions(&mut world, json!({"etcd": "3.7.0"}));
    assert_eq!(played(&world, Intent::Configure, &mut 0).len(), 2);
}

#[test]
fn a_version_of_etcd_is_not_taken_back_to_an_older_minor_of_the_table() {
    let mut world = built("controlPlane: {replicas: 1}", 1);
    world.data.version = "3.7.0".into();
    let components = json!([{"name": "etcd", "version": "3.7.0", "pinned": true, "unpinned": {"version": "3.6.16"}}]);
    world.deployment.status.as_mut().unwrap().components = serde_json::from_value(components).unwrap();
    world.deployment.spec.versions = serde_json::from_value(json!({"etcd": "3.7.0"})).unwrap();
    look_at_etcd(&mut world);
    name_versions(&mut world, json!({}));
    for _again in 0..3 {
        let (_, reason, message) = said(&world, condition::READY);
        let is_told =
            message.contains("spec.versions.etcd is not given, and etcd 3.6.16 of the artifact bundle's table");
        assert!(reason == "EtcdVersionNotAllowed" && is_told, "{message}");
        world.run_for(60);
    }
    assert_eq!(played(&world, Intent::Configure, &mut 0).len(), 1, "the one that brought 3.7.0");
    name_versions(&mut world, json!({"etcd": "3.7.0"}));
    assert_eq!(said(&world, condition::READY).0, "True");
}
