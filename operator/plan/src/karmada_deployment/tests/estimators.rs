//! Estimators as the plane's own components see them.

use std::collections::BTreeMap;

use crds::karmada_deployment::{ComponentSettings, UpgradeStep as Step};
use crds::names::condition;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde_json::{Value, json};

use super::super::members::EstimatorDue;
use super::super::{Component, Place, estimators_due, running_versions};
use super::upgrade::{former, until, want};
use super::world::{World, settled};

const ON: &str = "estimator: {}, descheduler: {}";

fn command(world: &World, component: Component) -> Vec<String> {
    let live = world.find(Place::Host, "Deployment", &format!("k1-{}", component.suffix())).unwrap();
    let command = live["spec"]["template"]["spec"]["containers"][0]["command"].as_array().unwrap();
    command.iter().map(|flag| flag.as_str().unwrap().to_owned()).collect()
}

/// The estimator of a member as it is on the host.
fn estimator(member: &str, version: &str) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {
            "name": format!("k1-estimator-{member}"), "namespace": "karmada-system", "uid": member,
            "labels": { "clusterwright.dev/karmada-uid": "uid-1", "clusterwright.dev/karmada-member": member },
            "annotations": { "clusterwright.dev/version": version },
        },
        "spec": { "replicas": 2 },
        "status": { "readyReplicas": 1 },
    })
}

fn put(world: &mut World, live: Value) {
    world.host.insert(World::key(&live), live);
}

/// Puts a member into the spec that has not begun to join.
fn name(world: &mut World, member: &str) {
    let member = json!({ "name": member, "syncMode": "push", "kubeConfigSecretName": member });
    world.object.spec.members.push(serde_json::from_value(member).unwrap());
}

#[test]
fn who_asks_estimators_is_told_where_and_has_a_certificate_that_gives_no_rights() {
    let world = settled("estimator: {}, descheduler: {}, hostNamespace: other");
    for component in [Component::Scheduler, Component::Descheduler] {
        let command = command(&world, component);
        for flag in [
            "--scheduler-estimator-service-namespace=other",
            "--scheduler-estimator-service-prefix=k1-estimator",
            "--scheduler-estimator-port=10352",
            "--scheduler-estimator-ca-file=/etc/karmada/pki/ca.crt",
            "--scheduler-estimator-cert-file=/etc/karmada/pki/scheduler-estimator-client.crt",
            "--scheduler-estimator-key-file=/etc/karmada/pki/scheduler-estimator-client.key",
        ] {
            assert!(command.iter().any(|one| one == flag), "{component:?} {flag}: {command:?}");
        }
        let secret = world.find(Place::Host, "Secret", &format!("k1-{}", component.suffix())).unwrap();
        assert!(secret["data"]["pki.scheduler-estimator-client.key"].is_string());
    }
    let switch = "--enable-scheduler-estimator=true".to_owned();
    assert!(command(&world, Component::Scheduler).contains(&switch));
    assert!(!command(&world, Component::Descheduler).contains(&switch), "it has no such flag");
    let leaf = world.issued.iter().find(|leaf| leaf.stem == "scheduler-estimator-client").unwrap();
    assert_eq!((leaf.organization, leaf.serves), (None, false));
}

#[test]
fn switching_estimators_on_changes_those_that_ask_them_once_and_nobody_else() {
    let mut world = settled("descheduler: {}");
    let commands = |world: &World| {
        let is_single =
            |component: &Component| component.replicas(&world.object.spec).is_some() && *component != Component::Etcd;
        let all = Component::ALL.into_iter().filter(is_single);
        all.map(|component| (component, command(world, component))).collect::<BTreeMap<_, _>>()
    };
    let before = commands(&world);
    world.object.spec.estimator = Some(ComponentSettings::default());
    world.settle();
    assert!(world.is_ready());
    let now = commands(&world);
    let changed: Vec<Component> = Component::ALL.into_iter().filter(|one| before.get(one) != now.get(one)).collect();
    assert_eq!(changed, [Component::Scheduler, Component::Descheduler]);
    world.log.clear();
    name(&mut world, "m1");
    world.settle();
    assert!(world.log.is_empty(), "a member that joins rolls nobody: {:?}", world.log);
    world.object.spec.estimator = None;
    world.settle();
    assert_eq!(commands(&world), before);
}

#[test]
fn a_descheduler_without_estimators_is_warned_of_and_the_plane_is_ready() {
    let world = settled("descheduler: {}");
    let (status, reason, message) = world.condition(condition::COMPONENTS_READY);
    assert_eq!((status.as_str(), reason.as_str()), ("True", "EstimatorsNotWanted"));
    assert!(message.contains("set spec.estimator"), "{message}");
    assert!(world.is_ready());
    assert_eq!(settled(ON).condition(condition::COMPONENTS_READY).1, "AllReady");
    assert_eq!(settled("").condition(condition::COMPONENTS_READY).1, "AllReady");
}

#[test]
fn estimators_are_one_row_of_the_components_and_none_of_them_is_taken_for_what_is_wanted_no_more() {
    let mut world = settled(ON);
    world.log.clear();
    name(&mut world, "m1");
    put(&mut world, estimator("m1", "1.18.2"));
    world.settle();
    assert!(world.log.is_empty(), "{:?}", world.log);
    let components = world.object.status.as_ref().unwrap().components.clone();
    let row = components.iter().find(|row| row.name == "karmada-scheduler-estimator").unwrap();
    assert_eq!((row.replicas, row.ready_replicas, row.version.as_deref()), (2, 2, Some("1.18.2")));
}

#[test]
fn what_is_left_on_the_host_of_a_member_that_nobody_knows_is_removed() {
    let mut world = settled(ON);
    world.log.clear();
    put(&mut world, estimator("gone", "1.18.2"));
    world.settle();
    assert_eq!(world.log, ["delete Deployment k1-estimator-gone"]);
}

#[test]
fn an_upgrade_comes_to_estimators_before_it_comes_to_those_that_ask_them() {
    let mut world = former("estimator: {}");
    name(&mut world, "m1");
    put(&mut world, estimator("m1", "1.17.5"));
    let due = |world: &World| estimators_due(&world.object, &world.facts());
    assert_eq!(due(&world), EstimatorDue::Now("1.17.5".to_owned()));
    want(&mut world, "1.18.2");
    assert_eq!(due(&world), EstimatorDue::Kept("1.17.5".to_owned()), "before it is planned");
    until(&mut world, Step::AggregatedAPIServer);
    assert_eq!(due(&world), EstimatorDue::Kept("1.17.5".to_owned()));
    let steps = world.upgrade().unwrap().steps;
    let at = |step| steps.iter().position(|one| *one == step).unwrap();
    assert_eq!(at(Step::Estimators) + 1, at(Step::Scheduler));
    until(&mut world, Step::Estimators);
    assert_eq!(due(&world), EstimatorDue::Now("1.18.2".to_owned()));
    put(&mut world, estimator("m1", "1.18.2"));
    world.settle();
    assert!(world.upgrade().is_none(), "{:?}", world.condition(condition::UP_TO_DATE));
}

#[test]
fn estimators_move_alone_to_another_patch_version_and_one_that_is_late_is_no_other_upgrade() {
    let mut world = settled("estimator: {version: 1.18.1}");
    name(&mut world, "m1");
    put(&mut world, estimator("m1", "1.18.1"));
    world.settle();
    world.object.spec.estimator.as_mut().unwrap().version = None;
    world.turn();
    let upgrade = world.upgrade().unwrap();
    assert!(upgrade.summary.starts_with("Upgrade karmada-scheduler-estimator 1.18.1 -> 1.18.2"), "{}", upgrade.summary);
    assert_eq!(upgrade.steps, [Step::Estimators, Step::Verify]);
    let listed = [estimator("m1", "1.18.9"), estimator("m2", "1.18.10")];
    let versions = running_versions(&world.object, &listed);
    assert_eq!(versions[&Component::Estimator], "1.18.10");
}

#[test]
fn a_plane_that_is_deleted_loses_estimators_first() {
    let mut world = settled(ON);
    put(&mut world, estimator("m1", "1.18.2"));
    world.object.metadata.deletion_timestamp = Some(Time(world.now));
    world.log.clear();
    let planned = world.plan();
    world.object.status = Some(planned.status);
    planned.actions.iter().for_each(|action| world.apply(action));
    assert_eq!(world.log, ["delete Deployment k1-estimator-m1"]);
}
