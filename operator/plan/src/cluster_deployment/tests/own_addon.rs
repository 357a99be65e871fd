//! The Addon that `spec.addons` becomes.

use crds::conditions;
use crds::names::condition;
use crds::references::LocalRef;
use crds::step::Intent;
use serde_json::json;

use super::ready;
use crate::testing::World;

const SPEC: &str =
    "controlPlane: {replicas: 1}, workers: [{name: general, replicas: 1}], addons: {manifestsRef: {name: tools}}";

fn built() -> World {
    let mut world = World::new(SPEC, 2);
    world.settle();
    world
}

/// `AddonsReady`: its status, its reason and its message.
fn told(world: &World) -> (String, String, String) {
    let status = world.deployment.status.clone().unwrap();
    let found = conditions::find(&status.conditions, condition::ADDONS_READY).unwrap();
    (found.status.clone(), found.reason.clone(), found.message.clone())
}

fn says(world: &mut World, status: &str, message: &str) {
    let ready = json!([{"type": "Ready", "status": status, "reason": "X", "message": message, "lastTransitionTime": "2026-01-01T00:00:00Z"}]);
    let status = json!({"message": message, "conditions": ready});
    world.addon.as_mut().unwrap().status = serde_json::from_value(status).unwrap();
    world.touch();
    world.settle();
}

#[test]
fn manifests_of_the_spec_become_an_addon_that_follows_the_spec_and_goes_with_it() {
    let mut world = built();
    let addon = world.addon.clone().unwrap();
    assert_eq!(addon.metadata.name.as_deref(), Some("a-addons"));
    assert_eq!(addon.metadata.owner_references.as_ref().unwrap()[0].kind, "ClusterDeployment");
    let spec = serde_json::to_value(&addon.spec).unwrap();
    assert_eq!(spec["clusterRef"]["name"], "a");
    assert_eq!(spec["source"]["manifests"]["from"], json!([{"configMapRef": {"name": "tools"}}]));
    assert_eq!((&spec["source"]["manifests"]["template"], &spec["conflicts"]), (&json!(true), &json!("Force")));
    assert_eq!(told(&world).2, "Addon a-addons: its controller has not looked at it yet");
    says(&mut world, "False", "rolling out: 0 of 1 cluster Ready");
    let wanted = "Addon a-addons: rolling out: 0 of 1 cluster Ready";
    assert_eq!(told(&world), ("False".into(), "AddonsUnhealthy".into(), wanted.into()));
    assert_eq!(ready(&world).0, "True", "the cluster itself is as it is wanted");
    says(&mut world, "True", "1 cluster Ready");
    let all = "coredns and kube-proxy are rolled out; Addon a-addons: 1 cluster Ready";
    assert_eq!(told(&world), ("True".into(), "RolledOut".into(), all.into()));

    // An edit of it is undone, and one of the spec is followed, without a run.
    world.addon.as_mut().unwrap().spec.paused = true;
    world.addon.as_mut().unwrap().spec.version = Some("of a person".into());
    world.deployment.spec.addons.as_mut().unwrap().manifests_ref = Some(LocalRef::new("others"));
    world.touch();
    world.settle();
    let spec = world.addon.as_ref().unwrap().spec.clone();
    let from = &spec.source.manifests.unwrap().from[0];
    assert_eq!((spec.paused, from.config_map_ref.as_ref().unwrap().name.as_str()), (false, "others"));
    assert!(world.runs.iter().all(|run| run.spec.intent != Intent::Configure));
    world.deployment.spec.addons = None;
    world.touch();
    world.settle();
    assert_eq!((world.addon.clone(), told(&world).2.as_str()), (None, "coredns and kube-proxy are rolled out"));
}

#[test]
fn an_addon_of_its_name_that_is_somebody_elses_is_reported_and_left_alone() {
    let mut world = built();
    let mut other = world.addon.clone().unwrap();
    other.metadata.owner_references = None;
    other.spec.paused = true;
    world.addon = Some(other.clone());
    world.touch();
    world.settle();
    assert_eq!((&world.addon, told(&world).1.as_str()), (&Some(other.clone()), "AddonTaken"));
    assert!(told(&world).2.starts_with("Addon a-addons is not that of spec.addons: delete it"), "{:?}", told(&world));
    world.deployment.spec.addons = None;
    world.touch();
    world.settle();
    assert_eq!(world.addon, Some(other));
}
