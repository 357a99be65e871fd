//! Another Kubernetes version: what is brought first, in which order machines are upgraded, and what halts it.

use crds::conditions;
use crds::machine::DrainReason;
use crds::names::condition;
use crds::step::{Intent, Role};
use crds::{ObjectExt, PlaybookRun};

use super::ready;
use crate::testing::World;

const SPEC: &str =
    "controlPlane: {replicas: 3, endpoint: {host: 10.0.1.1, port: 6443}}, workers: [{name: general, replicas: 3}]";

fn built(spec: &str, hosts: usize) -> World {
    let mut world = World::new(spec, hosts);
    world.settle();
    assert_eq!(ready(&world).0, "True");
    world
}

fn want(world: &mut World, version: &str) {
    world.deployment.spec.kubernetes_version = version.parse().unwrap();
    world.touch();
}

/// Runs of an intent, in order, with their machines' roles.
fn runs(world: &World, intent: Intent) -> Vec<(&PlaybookRun, Role)> {
    let of_intent = world.runs.iter().filter(|run| run.spec.intent == intent);
    of_intent.map(|run| (run, world.role_of(&run.spec.hosts[0]).unwrap())).collect()
}

fn up_to_date(world: &World) -> (String, String, String) {
    let status = world.deployment.status.clone().unwrap();
    let found = conditions::find(&status.conditions, condition::UP_TO_DATE).unwrap().clone();
    (found.status, found.reason, found.message)
}

fn is_upgraded(world: &World, version: &str) {
    assert_eq!(ready(world).0, "True", "{}", world.report());
    let (status, _, message) = up_to_date(world);
    assert_eq!(status, "True", "{message}\n{}", world.report());
    let status = world.deployment.status.clone().unwrap();
    assert_eq!(status.kubernetes_version.as_deref(), Some(version));
    assert_eq!(status.started_kubernetes_version.unwrap().to_string(), version);
    for machine in &world.machines {
        let told = machine.status.clone().unwrap();
        assert_eq!(told.kubernetes_version.as_deref(), Some(version), "{}", machine.name());
        assert_eq!(machine.spec.kubernetes_version.unwrap().to_string(), version, "{}", machine.name());
        assert!(machine.spec.drain_for.is_empty(), "{} is drained still", machine.name());
    }
}

#[test]
fn the_next_minor_is_brought_ahead_then_to_control_planes_one_by_one_then_to_drained_workers() {
    let mut world = built(SPEC, 6);
    world.pods = (1..=6).map(|number| (format!("h{number}"), 2)).collect();
    want(&mut world, "1.36.0");
    world.settle();
    is_upgraded(&world, "1.36.0");
    let prefetched = runs(&world, Intent::Prefetch);
    assert_eq!(prefetched.len(), 1, "all machines at once");
    assert_eq!(prefetched[0].0.spec.hosts.len(), 6);
    let upgraded = runs(&world, Intent::Upgrade);
    let roles: Vec<Role> = upgraded.iter().map(|(_, role)| *role).collect();
    assert_eq!(roles, [[Role::ControlPlane; 3], [Role::Worker; 3]].concat());
    assert!(upgraded.iter().all(|(run, _)| run.spec.hosts.len() == 1));
    assert!(upgraded[0].0.metadata.creation_timestamp >= prefetched[0].0.status.as_ref().unwrap().finished_at);
    let steps: Vec<&str> = upgraded[0].0.spec.steps.iter().map(|step| step.name()).collect();
    assert_eq!(steps, ["etcd", "kubeadm-upgrade", "container-runtime", "control-plane"]);
    let steps: Vec<&str> = upgraded[3].0.spec.steps.iter().map(|step| step.name()).collect();
    assert_eq!(steps, ["kubeadm-upgrade", "container-runtime", "node"]);
    assert!(world.pods.values().all(|left| *left == 0), "every Node was drained: {:?}", world.pods);
}

#[test]
fn a_patch_is_rolled_out_without_a_drain() {
    let mut world = built(SPEC, 6);
    world.pods = (1..=6).map(|number| (format!("h{number}"), 2)).collect();
    want(&mut world, "1.35.9");
    world.settle();
    is_upgraded(&world, "1.35.9");
    assert!(world.evictions.is_empty(), "{:?}", world.evictions);
}

#[test]
fn until_the_first_machine_is_touched_the_wish_may_be_taken_back() {
    let mut world = built(SPEC, 6);
    world.always_fails = vec!["h1".into()];
    want(&mut world, "1.36.0");
    world.settle();
    let started =
        |world: &World| world.deployment.status.as_ref().unwrap().started_kubernetes_version.unwrap().to_string();
    assert_eq!(started(&world), "1.35.4");
    assert_eq!(up_to_date(&world).1, "UpgradeFailed", "{:?}", up_to_date(&world));
    assert_eq!(ready(&world).0, "True", "nothing that it needs is missing");
    want(&mut world, "1.35.4");
    world.settle();
    is_upgraded(&world, "1.35.4");
    assert!(runs(&world, Intent::Upgrade).is_empty());
}

#[test]
fn a_control_plane_that_fails_keeps_all_others_as_they_are_until_it_is_retried() {
    let mut world = built(SPEC, 6);
    want(&mut world, "1.36.0");
    while runs(&world, Intent::Upgrade).len() < 2 {
        world.run_for(1);
    }
    let second = runs(&world, Intent::Upgrade)[1].0.spec.hosts[0].clone();
    world.always_fails = vec![second.clone()];
    world.settle();
    let (status, reason, message) = up_to_date(&world);
    assert_eq!((status.as_str(), reason.as_str()), ("False", "UpgradeFailed"), "{message}");
    assert!(message.contains("upgrading 1.35.4 -> 1.36.0: control plane 2 of 3"), "{message}");
    assert!(message.contains("all other machines stay as they are"), "{message}");
    let touched: std::collections::BTreeSet<String> =
        runs(&world, Intent::Upgrade).iter().map(|(run, _)| run.spec.hosts[0].clone()).collect();
    assert_eq!(touched.len(), 2, "the first, and the one that fails");
    world.always_fails.clear();
    world.request("a", crds::names::annotation::RETRY);
    world.settle();
    is_upgraded(&world, "1.36.0");
}

#[test]
fn a_worker_that_fails_halts_the_others_and_one_that_is_replaced_comes_with_the_version() {
    let mut world = built(SPEC, 7);
    want(&mut world, "1.36.0");
    while runs(&world, Intent::Upgrade).len() < 4 {
        world.run_for(1);
    }
    let first = runs(&world, Intent::Upgrade)[3].0.spec.hosts[0].clone();
    world.always_fails = vec![first.clone()];
    world.settle();
    assert_eq!(up_to_date(&world).1, "UpgradeFailed", "{:?}", up_to_date(&world));
    let workers = runs(&world, Intent::Upgrade).into_iter().filter(|(_, role)| *role == Role::Worker);
    assert!(workers.into_iter().all(|(run, _)| run.spec.hosts == [first.clone()]));
    let machine = world.machines.iter().find(|it| it.spec.host_ref.as_ref().unwrap().name == first).unwrap().clone();
    assert_eq!(machine.spec.drain_for, [DrainReason::Upgrade], "it stays drained");
    world.mark_deleted(&machine);
    world.settle();
    is_upgraded(&world, "1.36.0");
}

#[test]
fn a_worker_that_a_patch_leaves_unwell_is_tried_again() {
    let mut world = built(SPEC, 6);
    want(&mut world, "1.35.9");
    while runs(&world, Intent::Upgrade).len() < 4 {
        world.run_for(1);
    }
    let first = runs(&world, Intent::Upgrade)[3].0.spec.hosts[0].clone();
    world.always_fails = vec![first.clone()];
    world.sick_nodes.insert(first.clone());
    for _ in 0..200 {
        world.run_for(1);
    }
    let tried = runs(&world, Intent::Upgrade).iter().filter(|(run, _)| run.spec.hosts[0] == first).count();
    assert!(tried > 1, "nobody else would make it well again");
    world.always_fails.clear();
    world.sick_nodes.clear();
    world.request("a", crds::names::annotation::RETRY);
    world.settle();
    is_upgraded(&world, "1.35.9");
}

#[test]
fn what_joins_while_control_planes_are_upgraded_waits_and_has_the_new_version() {
    let mut world = built(SPEC, 8);
    want(&mut world, "1.36.0");
    while runs(&world, Intent::Upgrade).is_empty() {
        world.run_for(1);
    }
    let before = runs(&world, Intent::Join).len();
    world.scale_workers("a", 4);
    while runs(&world, Intent::Upgrade).len() < 3 {
        assert_eq!(runs(&world, Intent::Join).len(), before, "nothing joins meanwhile");
        world.run_for(1);
    }
    world.settle();
    is_upgraded(&world, "1.36.0");
    assert_eq!(world.machines.len(), 7);
}

#[test]
fn a_control_plane_that_is_lost_in_the_middle_is_replaced_at_the_new_version() {
    let mut world = built(SPEC, 8);
    want(&mut world, "1.36.0");
    while runs(&world, Intent::Upgrade).len() < 2 || world.works() {
        world.run_for(1);
    }
    let upgraded: Vec<String> =
        runs(&world, Intent::Upgrade).iter().map(|(run, _)| run.spec.hosts[0].clone()).collect();
    let is_other = |machine: &&crds::Machine| {
        let host = machine.spec.host_ref.as_ref().unwrap();
        machine.spec.role == Role::ControlPlane && !upgraded.contains(&host.name)
    };
    let lost = world.machines.iter().find(is_other).unwrap().clone();
    world.kill(&lost.spec.host_ref.as_ref().unwrap().name);
    world.mark_deleted(&lost);
    world.force_remove(lost.name());
    world.settle();
    is_upgraded(&world, "1.36.0");
    assert_eq!(world.voters.len(), 3);
}

#[test]
fn settings_that_are_edited_meanwhile_are_rolled_out_after_the_control_planes_have_the_version() {
    let mut world = built(SPEC, 6);
    want(&mut world, "1.36.0");
    while runs(&world, Intent::Upgrade).is_empty() {
        world.run_for(1);
    }
    world.deployment.spec.control_plane.cert_sans = vec!["api.example".into()];
    world.touch();
    while runs(&world, Intent::Upgrade).len() < 3 {
        assert!(runs(&world, Intent::Configure).is_empty(), "it would bring a kubelet that is too new");
        world.run_for(1);
    }
    world.settle();
    is_upgraded(&world, "1.36.0");
}

#[test]
fn a_dedicated_etcd_is_upgraded_before_its_control_plane() {
    let spec = "etcd: {topology: Dedicated, replicas: 3}, controlPlane: {replicas: 1, endpoint: {host: 10.0.1.1, port: 6443}}, workers: [{name: general, replicas: 1}]";
    let mut world = built(spec, 5);
    want(&mut world, "1.36.0");
    world.settle();
    assert_eq!(up_to_date(&world).0, "True", "{:?}\n{}", up_to_date(&world), world.report());
    let roles: Vec<Role> = runs(&world, Intent::Upgrade).iter().map(|(_, role)| *role).collect();
    assert_eq!(roles, [Role::Etcd, Role::Etcd, Role::Etcd, Role::ControlPlane, Role::Worker]);
}

#[test]
fn two_minors_at_once_are_refused_with_what_to_do() {
    let mut world = built("controlPlane: {replicas: 1}", 1);
    want(&mut world, "1.37.0");
    world.settle();
    let (_, reason, message) = ready(&world);
    assert_eq!(reason, "VersionSkewNotAllowed");
    assert!(message.contains("more than one minor above 1.35.4"), "{message}");
    want(&mut world, "1.36.0");
    world.settle();
    is_upgraded(&world, "1.36.0");
}
