//! Settings that are edited after they were applied: what rolls them out, and what is said of those that wait.

use std::collections::BTreeMap;

use crds::cluster_deployment::RegistryMirror;
use crds::conditions;
use crds::names::{annotation, condition};
use crds::step::{Intent, Step};

use super::ready;
use crate::testing::{Fate, World};

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
    let mirror = RegistryMirror {
        prefix: "registry.k8s.io".into(),
        endpoints: vec!["http://mirror:5000".into()],
        ..RegistryMirror::default()
    };
    world.deployment.spec.container_runtime.registry_mirrors = vec![mirror];
    world.touch();
}

#[test]
fn a_cluster_that_was_built_as_it_is_wanted_is_up_to_date() {
    let world = built();
    assert_eq!(up_to_date(&world).0, "True", "{:?}", up_to_date(&world));
    assert_eq!(machine_says(&world, "h2").0, "True");
}

fn configured(world: &World) -> Vec<(Vec<String>, Vec<Step>)> {
    let runs = world.runs.iter().filter(|run| run.spec.intent == Intent::Configure);
    runs.map(|run| (run.spec.hosts.clone(), run.spec.steps.clone())).collect()
}

fn wide() -> World {
    let spec = "controlPlane: {replicas: 3, endpoint: {host: 10.9.9.9}}, workers: [{name: general, replicas: 4}]";
    let mut world = World::new(spec, 7);
    world.settle();
    assert_eq!(ready(&world).0, "True", "{:?}", ready(&world));
    world
}

#[test]
fn mirrors_are_rolled_out_control_plane_by_control_plane_then_to_one_worker_and_then_to_the_others() {
    let mut world = wide();
    mirror(&mut world);
    world.settle();
    let runs = configured(&world);
    assert!(runs.iter().all(|(_, steps)| *steps == [Step::ContainerRuntime]), "{runs:?}");
    let hosts: Vec<usize> = runs.iter().map(|(hosts, _)| hosts.len()).collect();
    assert_eq!(hosts, [1, 1, 1, 1, 3], "{runs:?}");
    assert_eq!(up_to_date(&world).0, "True", "{:?}", up_to_date(&world));
    assert_eq!(ready(&world).0, "True");
}

#[test]
fn names_of_the_api_server_go_to_control_planes_alone_and_a_change_that_is_taken_back_is_brought_again() {
    let mut world = built();
    for names in [vec!["api.example".to_owned()], vec![], vec!["api.example".to_owned()]] {
        world.deployment.spec.control_plane.cert_sans = names;
        world.touch();
        world.settle();
        assert_eq!(up_to_date(&world).0, "True", "{:?}", up_to_date(&world));
    }
    let runs = configured(&world);
    assert_eq!(runs, vec![(vec!["h1".to_owned()], vec![Step::ControlPlane]); 3]);
}

#[test]
fn a_paused_cluster_names_what_was_edited_with_the_machines_that_lack_it_and_nothing_is_begun() {
    let mut world = built();
    world.deployment.spec.paused = true;
    world.deployment.spec.control_plane.cert_sans = vec!["api.example".into()];
    mirror(&mut world);
    world.settle();
    let (status, reason, message) = up_to_date(&world);
    assert_eq!((status.as_str(), reason.as_str()), ("False", "SettingsNotRolledOut"));
    let name = |role| {
        let machine = world.machines.iter().find(|machine| machine.spec.role == role);
        machine.unwrap().metadata.name.clone().unwrap()
    };
    let (control_plane, worker) = (name(crds::Role::ControlPlane), name(crds::Role::Worker));
    assert!(message.contains(&format!("controlPlane.certSANs ({control_plane})")), "{message}");
    let both = format!("containerRuntime.registryMirrors ({control_plane}, {worker})");
    assert!(message.contains(&both), "{message}");
    assert!(configured(&world).is_empty());
    world.deployment.spec.paused = false;
    world.touch();
    world.settle();
    assert_eq!(up_to_date(&world).0, "True", "{:?}", up_to_date(&world));
}

#[test]
fn manifests_that_are_edited_are_applied_by_the_first_control_plane() {
    let mut world = built();
    world.manifests.network = Some("edited".into());
    world.settle();
    assert_eq!(up_to_date(&world).0, "True", "{:?}", up_to_date(&world));
    assert_eq!(configured(&world), [(vec!["h1".to_owned()], vec![Step::Network])]);
}

#[test]
fn what_is_changed_together_is_brought_to_a_machine_by_one_run_and_manifests_by_another() {
    let mut world = built();
    world.deployment.spec.control_plane.cert_sans = vec!["api.example".into()];
    world.manifests.network = Some("edited".into());
    mirror(&mut world);
    world.settle();
    assert_eq!(up_to_date(&world).0, "True", "{:?}", up_to_date(&world));
    let (first, second) = (vec!["h1".to_owned()], vec!["h2".to_owned()]);
    let wanted = [
        (first.clone(), vec![Step::ContainerRuntime, Step::ControlPlane]),
        (first, vec![Step::Network]),
        (second, vec![Step::ContainerRuntime]),
    ];
    assert_eq!(configured(&world), wanted);
}

#[test]
fn a_worker_that_fails_is_tried_again_alone_and_the_others_wait_for_it() {
    let mut world = wide();
    mirror(&mut world);
    let workers: Vec<String> = world
        .machines
        .iter()
        .filter(|machine| machine.spec.role == crds::Role::Worker)
        .map(|machine| machine.spec.host_ref.clone().unwrap().name)
        .collect();
    world.always_fails = workers;
    world.settle();
    let runs = configured(&world);
    let of_workers: Vec<_> = runs.iter().skip(3).collect();
    assert!(of_workers.len() == 3 && of_workers.iter().all(|(hosts, _)| *hosts == of_workers[0].0), "{runs:?}");
    assert!(up_to_date(&world).2.contains("after 3 attempts"), "{:?}", up_to_date(&world));
    world.always_fails.clear();
    world.deployment.metadata.annotations = Some([(annotation::RETRY.to_owned(), "2".to_owned())].into());
    world.settle();
    assert_eq!(up_to_date(&world).0, "True", "{:?}", up_to_date(&world));
}

#[test]
fn a_machine_that_cannot_be_configured_keeps_all_others_as_they_are_until_somebody_acts() {
    let mut world = wide();
    world.always_fails = (1..=7).map(|number| format!("h{number}")).collect();
    mirror(&mut world);
    world.settle();
    let runs = configured(&world);
    let first = &runs[0].0;
    assert!(runs.len() == 3 && runs.iter().all(|(hosts, _)| hosts == first), "{runs:?}");
    let (_, reason, message) = up_to_date(&world);
    assert_eq!(reason, "ConfigurationFailed");
    assert!(message.contains("after 3 attempts") && message.contains("all other machines stay"), "{message}");
    assert_eq!(ready(&world).0, "True", "the cluster works as it is");
    world.deployment.spec.container_runtime.registry_mirrors.clear();
    world.touch();
    world.settle();
    assert_eq!(up_to_date(&world).0, "True", "it was taken back: {:?}", up_to_date(&world));
}

#[test]
fn another_login_or_authority_of_mirrors_is_rolled_out_as_an_edit_is() {
    let mut world = built();
    mirror(&mut world);
    world.settle();
    let mut count = configured(&world).len();
    let mut brought = |world: &mut World, registries: Option<&str>| {
        let registries = registries.map(|digest| match digest {
            "" => BTreeMap::new(),
            digest => BTreeMap::from([("registry.k8s.io".to_owned(), digest.to_owned())]),
        });
        world.manifests.registries = registries;
        world.settle();
        let runs = configured(world).split_off(count);
        count += runs.len();
        assert!(runs.iter().all(|(_, steps)| *steps == [Step::ContainerRuntime]), "{runs:?}");
        assert_eq!(up_to_date(world).0, "True", "{:?}", up_to_date(world));
        let mut hosts: Vec<String> = runs.into_iter().flat_map(|(hosts, _)| hosts).collect();
        hosts.sort();
        hosts
    };
    let hosts = world.machines.iter().filter_map(|machine| Some(machine.spec.host_ref.as_ref()?.name.clone()));
    let all: Vec<String> = hosts.collect::<std::collections::BTreeSet<_>>().into_iter().collect();
    assert_eq!(brought(&mut world, Some("one")), all);
    assert_eq!(brought(&mut world, Some("one")), Vec::<String>::new());
    assert_eq!(brought(&mut world, Some("two")), all, "the Secret was rotated");
    assert_eq!(brought(&mut world, None), Vec::<String>::new(), "what cannot be read is not known to be another");
    assert_eq!(brought(&mut world, Some("")), all, "what is taken back goes from all machines");
}

#[test]
fn what_a_machine_refuses_is_not_tried_again_before_somebody_acts() {
    let mut world = wide();
    world.fates = vec![Fate::Refuses];
    mirror(&mut world);
    world.settle();
    assert_eq!(configured(&world).len(), 1, "{:?}", configured(&world));
    let (_, reason, message) = up_to_date(&world);
    assert_eq!(reason, "ConfigurationFailed");
    assert!(message.contains("ConfigurationRefused") && message.contains("all other machines stay"), "{message}");
    assert_eq!(ready(&world).0, "True", "the cluster works as it is");
    world.deployment.metadata.annotations = Some([(annotation::RETRY.to_owned(), "2".to_owned())].into());
    world.settle();
    assert_eq!(up_to_date(&world).0, "True", "{:?}", up_to_date(&world));
}

#[test]
fn what_a_run_has_rolled_out_by_hand_or_not_stays_so_when_the_run_is_pruned() {
    let mut world = built();
    mirror(&mut world);
    world.custom_run("by-hand", &["h1"]);
    world.runs.last_mut().unwrap().spec.steps = vec![Step::ContainerRuntime];
    world.settle();
    assert_eq!(configured(&world), [(vec!["h2".to_owned()], vec![Step::ContainerRuntime])]);
    assert_eq!(up_to_date(&world).0, "True", "{:?}", up_to_date(&world));
    world.runs.retain(|run| ![Intent::Custom, Intent::Configure].contains(&run.spec.intent));
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
    assert_eq!(up_to_date(&world).0, "True", "the runs are there");
    without.runs.clear();
    without.settle();
    let (status, reason, message) = up_to_date(&without);
    assert_eq!((status.as_str(), reason.as_str()), ("Unknown", "SettingsNotKnown"));
    assert!(message.contains("containerRuntime.registryMirrors"), "{message}");
}
