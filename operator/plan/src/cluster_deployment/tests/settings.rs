//! Settings that are edited after they were applied, and that nothing rolls out.

use crds::cluster_deployment::RegistryMirror;
use crds::conditions;
use crds::names::condition;
use crds::step::{Intent, Step};

use super::ready;
use crate::testing::World;

const SPEC: &str = "controlPlane: {replicas: 1}, workers: [{name: general, replicas: 1}], executor: {historyLimit: 1}";

fn built() -> World {
    let mut world = World::new(SPEC, 2);
    world.settle();
    world
}

fn up_to_date(world: &World) -> (String, String, String) {
    let status = world.deployment.status.clone().unwrap();
    let found = conditions::find(&status.conditions, condition::UP_TO_DATE).unwrap();
    (found.status.clone(), found.reason.clone(), found.message.clone())
}

fn machine_says(world: &World, host: &str) -> (String, String) {
    let machine = world.machines.iter().find(|machine| {
        let named = machine.spec.host_ref.as_ref();
        named.is_some_and(|named| named.name == host)
    });
    let status = machine.unwrap().status.clone().unwrap();
    let found = conditions::find(&status.conditions, condition::UP_TO_DATE).unwrap();
    (found.status.clone(), found.message.clone())
}

fn mirror(world: &mut World) {
    let mirror = RegistryMirror { prefix: "registry.k8s.io".into(), endpoints: vec!["http://mirror:5000".into()] };
    world.deployment.spec.container_runtime.registry_mirrors = vec![mirror];
    world.touch();
}

#[test]
fn a_cluster_that_was_built_as_it_is_wanted_is_up_to_date() {
    let world = built();
    assert_eq!(up_to_date(&world).0, "True", "{:?}", up_to_date(&world));
    assert_eq!(machine_says(&world, "h2").0, "True");
}

#[test]
fn labels_and_taints_that_are_edited_are_named_with_the_machines_that_lack_them() {
    let mut world = built();
    world.respec(
        "controlPlane: {replicas: 1}, workers: [{name: general, replicas: 1, labels: {pool: fast}, taints: [{key: gpu, effect: NoSchedule}]}]",
    );
    world.settle();
    let (status, reason, message) = up_to_date(&world);
    assert_eq!((status.as_str(), reason.as_str()), ("False", "SettingsNotRolledOut"));
    let worker = world.machines.iter().find(|machine| machine.spec.role == crds::Role::Worker).unwrap();
    let name = worker.metadata.name.clone().unwrap();
    for field in ["workers[general].labels", "workers[general].taints"] {
        assert!(message.contains(&format!("{field} ({name})")), "{message}");
        assert!(machine_says(&world, "h2").1.contains(field));
    }
    assert_eq!(ready(&world).0, "True", "the cluster works as it is");
    world.respec(SPEC);
    world.settle();
    assert_eq!(up_to_date(&world).0, "True", "it was taken back");
}

#[test]
fn names_of_the_api_server_and_mirrors_that_are_edited_are_named() {
    let mut world = built();
    world.deployment.spec.control_plane.cert_sans = vec!["api.example".into()];
    mirror(&mut world);
    world.settle();
    let (status, _, message) = up_to_date(&world);
    assert_eq!(status, "False");
    let name = |role| {
        let machine = world.machines.iter().find(|machine| machine.spec.role == role);
        machine.unwrap().metadata.name.clone().unwrap()
    };
    let (control_plane, worker) = (name(crds::Role::ControlPlane), name(crds::Role::Worker));
    assert!(message.contains(&format!("controlPlane.certSANs ({control_plane})")), "{message}");
    let both = format!("containerRuntime.registryMirrors ({control_plane}, {worker})");
    assert!(message.contains(&both), "{message}");
}

#[test]
fn manifests_that_are_edited_are_named_until_somebody_applies_them() {
    let mut world = built();
    world.manifests.addons = Some("edited".into());
    world.settle();
    let (status, _, message) = up_to_date(&world);
    assert_eq!(status, "False");
    assert!(message.contains("addons.manifestsRef"), "{message}");
    world.custom_run("by-hand", &["h1"]);
    world.runs.last_mut().unwrap().spec.steps = vec![Step::Addons];
    world.settle();
    assert_eq!(up_to_date(&world).0, "True", "{:?}", up_to_date(&world));
}

#[test]
fn what_a_run_by_hand_has_rolled_out_is_up_to_date_there_and_stays_so_when_the_run_is_pruned() {
    let mut world = built();
    mirror(&mut world);
    world.settle();
    for (name, host) in [("first", "h1"), ("second", "h2")] {
        assert_eq!(up_to_date(&world).0, "False");
        world.custom_run(name, &[host]);
        world.runs.last_mut().unwrap().spec.steps = vec![Step::ContainerRuntime];
        world.settle();
        assert_eq!(machine_says(&world, host).0, "True", "{host}");
    }
    assert_eq!(up_to_date(&world).0, "True", "{:?}", up_to_date(&world));
    world.runs.retain(|run| run.spec.intent != Intent::Custom);
    world.settle();
    assert_eq!(up_to_date(&world).0, "True", "{:?}", up_to_date(&world));
}

#[test]
fn what_was_applied_is_known_again_from_the_runs_after_statuses_were_lost_or_is_said_to_be_unknown() {
    let mut world = built();
    mirror(&mut world);
    world.settle();
    for machine in &mut world.machines {
        if let Some(status) = &mut machine.status {
            status.applied = None;
        }
    }
    let mut without = world.clone();
    world.settle();
    assert_eq!(up_to_date(&world).0, "False", "the runs are there");
    without.runs.clear();
    without.settle();
    let (status, reason, message) = up_to_date(&without);
    assert_eq!((status.as_str(), reason.as_str()), ("Unknown", "SettingsNotKnown"));
    assert!(message.contains("containerRuntime.registryMirrors"), "{message}");
}
