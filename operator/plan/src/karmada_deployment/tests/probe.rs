//! The probe of a plane: what is asked and when, and what is said of the answer.

use crds::names::condition;
use jiff::SignedDuration;
use serde_json::{Value, json};

use super::super::names::PROBE;
use super::super::{Action, Place};
use super::upgrade::{former, want};
use super::world::{World, plane, settled};
use crate::Next;

fn probed(world: &World) -> Option<Value> {
    world.find(Place::Plane, "ConfigMap", PROBE).cloned()
}

fn asks(world: &World) -> bool {
    world.plan().actions.iter().any(|action| matches!(action, Action::Probe(_)))
}

fn pass(world: &mut World, seconds: i64) {
    world.now += SignedDuration::from_secs(seconds);
}

/// A look that changes nothing but what is said; what that is of the components.
fn said(world: &mut World) -> (String, String) {
    let planned = world.plan();
    world.object.status = Some(planned.status);
    let (status, reason, _) = world.condition(condition::COMPONENTS_READY);
    (status, reason)
}

fn silenced() -> World {
    let mut world = settled("");
    world.makes_bindings = false;
    pass(&mut world, 300);
    world.turn();
    world
}

#[test]
fn what_is_probed_by_reaches_no_member() {
    let world = settled("");
    let namespace = world.find(Place::Plane, "Namespace", PROBE).unwrap();
    assert_eq!(namespace["metadata"]["labels"]["namespace.karmada.io/skip-auto-propagation"], "true");
    let policy = world.find(Place::Plane, "PropagationPolicy", PROBE).unwrap();
    let selected = json!([{ "apiVersion": "v1", "kind": "ConfigMap", "namespace": PROBE, "name": PROBE }]);
    assert_eq!((&policy["metadata"]["namespace"], &policy["spec"]["resourceSelectors"]), (&json!(PROBE), &selected));
    assert_ne!(policy["spec"]["schedulerName"], "default-scheduler");
    assert_eq!(policy["spec"]["placement"]["clusterAffinity"]["clusterNames"], json!([PROBE]));
}

#[test]
fn a_plane_is_ready_once_it_has_answered_and_not_before() {
    let mut world = World::new(plane(""));
    world.makes_bindings = false;
    world.settle();
    let (status, reason, message) = world.condition(condition::COMPONENTS_READY);
    assert_eq!((status.as_str(), reason.as_str()), ("False", "WaitingForPropagation"));
    assert!(message.contains("ResourceBinding clusterwright-probe/clusterwright-probe-configmap"), "{message}");
    assert!(!world.is_ready() && world.object.status.as_ref().unwrap().version.is_none());
    world.makes_bindings = true;
    world.settle();
    assert!(world.is_ready(), "{:?}", world.condition("Ready"));
}

#[test]
fn one_that_answers_is_asked_every_five_minutes_and_stays_ready_meanwhile() {
    let mut world = settled("");
    assert_eq!(world.plan().next, Next::after_seconds(300));
    pass(&mut world, 299);
    assert!(!asks(&world));
    pass(&mut world, 1);
    let before = probed(&world);
    assert!(asks(&world));
    world.turn();
    assert_ne!(probed(&world), before);
    let planned = world.plan();
    assert!(planned.actions.is_empty(), "it is asked once: {:?}", planned.actions);
    assert_eq!(planned.next, Next::after_seconds(5), "the answer is looked for soon");
    assert_eq!(said(&mut world).0, "True");
    world.settle();
    assert!(world.is_ready() && world.plan().next == Next::after_seconds(300));
}

#[test]
fn one_that_does_not_answer_within_half_a_minute_is_not_ready_until_it_does() {
    let mut world = silenced();
    pass(&mut world, 30);
    assert_eq!(said(&mut world).0, "True");
    pass(&mut world, 1);
    assert_eq!(said(&mut world), ("False".to_owned(), "PropagationStalled".to_owned()));
    let (_, _, message) = world.condition("Ready");
    let expected = "nothing is propagated: ResourceBinding clusterwright-probe/clusterwright-probe-configmap is as it was 30 s after ConfigMap \
                    clusterwright-probe/clusterwright-probe has changed: look at the log of karmada-controller-manager, and at the Events in \
                    namespace clusterwright-probe of the plane";
    assert_eq!(message, expected);
    assert_eq!(world.plan().next, Next::after_seconds(5));
    let before = probed(&world);
    pass(&mut world, 28);
    assert!(!asks(&world), "it is asked again after a minute");
    pass(&mut world, 1);
    world.turn();
    assert_ne!(probed(&world), before);
    assert_eq!(said(&mut world).1, "PropagationStalled", "having asked again is no answer");
    world.makes_bindings = true;
    world.settle();
    assert!(world.is_ready(), "{:?}", world.condition("Ready"));
}

#[test]
fn a_binding_that_is_gone_is_no_answer() {
    let mut world = silenced();
    world.plane.retain(|key, _| key.0 != "ResourceBinding");
    pass(&mut world, 31);
    assert_eq!(said(&mut world).1, "PropagationStalled");
    let (_, _, message) = world.condition("Ready");
    assert!(message.contains("there is no ResourceBinding"), "{message}");
}

#[test]
fn an_answer_from_before_something_failed_proves_nothing_afterwards() {
    let mut world = settled("");
    world.policy_refused = Some("failed calling webhook".into());
    world.settle();
    pass(&mut world, 200);
    assert!(!asks(&world), "what else does not work is said, and nothing is asked");
    world.policy_refused = None;
    world.makes_bindings = false;
    world.settle();
    assert_eq!(world.condition(condition::COMPONENTS_READY).1, "WaitingForPropagation");
    pass(&mut world, 31);
    assert_eq!(said(&mut world).1, "PropagationStalled");
}

#[test]
fn a_value_that_is_no_time_or_of_later_is_replaced() {
    for value in [json!("soon"), json!("2026-11-28T09:00:00Z"), Value::Null] {
        let mut world = settled("");
        for live in world.plane.values_mut().filter(|live| live["kind"] == "ConfigMap") {
            live["data"]["askedAt"] = value.clone();
        }
        assert!(asks(&world), "{value}");
        world.settle();
        assert!(world.is_ready());
    }
}

#[test]
fn a_template_that_is_refused_is_said() {
    let mut world = settled("");
    world.refused.insert(("ConfigMap".into(), PROBE.into(), PROBE.into()), "denied by a policy".into());
    assert_eq!(said(&mut world).1, "ComponentUnhealthy");
    let (_, _, message) = world.condition("Ready");
    assert!(
        message.contains("ConfigMap clusterwright-probe/clusterwright-probe") && message.contains("denied by a policy")
    );
}

#[test]
fn a_paused_plane_is_not_asked_and_is_as_ready_as_it_was() {
    let mut world = settled("");
    world.object.spec.paused = true;
    pass(&mut world, 3600);
    assert!(!asks(&world));
    assert_eq!(said(&mut world).0, "True");
    // One that the operator has found in use, and never probed.
    world.plane.retain(|key, _| key.1 != PROBE && key.2 != PROBE);
    assert!(!asks(&world) && world.plan().actions.is_empty());
    assert_eq!(said(&mut world).0, "True");
    world.object.spec.paused = false;
    world.settle();
    assert!(world.is_ready() && probed(&world).is_some());
}

#[test]
fn one_whose_controllers_leave_it_out_is_not_probed_and_that_is_said() {
    let world = settled("controllerManager: {extraArgs: {skipped-propagating-apis: v1/ConfigMap}}");
    assert!(world.is_ready() && probed(&world).is_none());
    let (_, _, message) = world.condition(condition::COMPONENTS_READY);
    assert!(message.contains("skipped-propagating-apis"), "{message}");
    assert!(world.find(Place::Plane, "Namespace", PROBE).is_none());
}

#[test]
fn nothing_is_asked_while_an_upgrade_has_stopped_the_controllers_and_it_ends_with_an_answer() {
    let mut world = former("");
    want(&mut world, "1.18.2");
    let (mut was_stopped, before) = (false, probed(&world));
    for _ in 0..200 {
        let replicas = |world: &World| {
            world.find(Place::Host, "Deployment", "k1-controller-manager").unwrap()["spec"]["replicas"] == 0
        };
        pass(&mut world, 10);
        if replicas(&world) {
            was_stopped = true;
            assert!(!asks(&world));
            assert_ne!(said(&mut world).1, "PropagationStalled");
        }
        if !world.turn() && world.upgrade().is_none() {
            break;
        }
    }
    assert!(was_stopped && world.upgrade().is_none());
    assert!(world.is_ready(), "{:?}", world.condition("Ready"));
    assert_ne!(probed(&world), before);
}
