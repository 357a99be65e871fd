//! A plane is asked whether it propagates, on API servers in memory.

use crds::{Conditions, Reason};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::world::{BINDING, KEY, MANY, TEMPLATE, World};
use crate::fake_api::Cut;

const NAMESPACE: &str = "namespaces//clusterwright-probe";

fn components(world: &World) -> (String, String) {
    let object = world.object();
    let said = object.condition("ComponentsReady").unwrap();
    (said.reason.clone(), said.message.clone())
}

/// The template was given its value so long ago, and nobody has seen it since.
fn asked(world: &World, seconds: i64) {
    let at = Timestamp::now() - SignedDuration::from_secs(seconds);
    world.plane.edit(TEMPLATE, |template| template["data"]["askedAt"] = json!(at.to_string()));
}

#[tokio::test]
async fn a_plane_is_ready_once_a_binding_was_made_of_its_template() {
    let mut world = World::new().await;
    world.makes_bindings = false;
    world.passes(MANY).await;
    assert!(!world.object().is_true("Ready"));
    assert_eq!(components(&world).0, Reason::WaitingForPropagation.as_str());
    assert!(world.plane.get("propagationpolicies/clusterwright-probe/clusterwright-probe").is_some());
    let writes = world.writes();
    world.passes(2).await;
    assert_eq!(world.writes(), writes, "it is asked once");
    world.makes_bindings = true;
    world.passes(MANY).await;
    assert!(world.object().is_true("Ready"), "{}", world.message());
    assert!(world.plane.get(BINDING).is_some());
}

#[tokio::test]
async fn a_plane_that_makes_no_binding_any_more_is_not_ready_until_it_does() {
    let mut world = World::new().await;
    world.passes(MANY).await;
    world.makes_bindings = false;
    asked(&world, 20);
    world.passes(2).await;
    assert!(world.object().is_true("Ready"), "{}", world.message());
    asked(&world, 40);
    world.passes(2).await;
    assert!(!world.object().is_true("Ready"));
    let (reason, message) = components(&world);
    assert_eq!(reason, Reason::PropagationStalled.as_str());
    assert!(message.contains("clusterwright-probe-configmap"), "{message}");
    world.makes_bindings = true;
    world.passes(MANY).await;
    assert!(world.object().is_true("Ready"), "{}", world.message());
}

#[tokio::test]
async fn a_plane_whose_answer_is_old_is_asked_again() {
    let world = World::new().await;
    world.passes(MANY).await;
    asked(&world, 290);
    world.time();
    let before = world.plane.get(TEMPLATE);
    world.passes(2).await;
    assert_eq!(world.plane.get(TEMPLATE), before);
    asked(&world, 310);
    world.time();
    world.passes(MANY).await;
    assert_ne!(world.plane.get(TEMPLATE).unwrap()["data"], before.unwrap()["data"]);
    assert!(world.object().is_true("Ready"), "{}", world.message());
}

#[tokio::test]
async fn a_template_that_the_plane_refuses_is_said() {
    let world = World::new().await;
    world.plane.refuse("PATCH configmaps/clusterwright-probe", usize::MAX, 422, Value::Null);
    world.passes(4 * MANY).await;
    assert!(!world.object().is_true("Ready"));
    let (reason, message) = components(&world);
    assert_eq!(reason, Reason::ComponentUnhealthy.as_str(), "{message}");
    assert!(message.contains("ConfigMap clusterwright-probe/clusterwright-probe"), "{message}");
    world.plane.heal();
    world.passes(MANY).await;
    assert!(world.object().is_true("Ready"), "{}", world.message());
}

#[tokio::test]
async fn a_detached_plane_loses_what_it_was_probed_by_and_goes_where_it_does_not_answer() {
    let made = World::new().await;
    made.passes(MANY).await;
    made.api.edit(KEY, |object| {
        object["spec"]["deletionPolicy"] = json!("Detach");
        object["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    });
    let (answers, silent) = (made.copy(), made);
    let before = answers.plane.names();
    answers.passes(MANY).await;
    assert!(answers.api.values("karmadadeployments").is_empty(), "{}", answers.message());
    let gone: Vec<_> = before.into_iter().filter(|name| answers.plane.get(name).is_none()).collect();
    assert_eq!(gone, [NAMESPACE], "all else stays");

    silent.plane.cut(Some((0, Cut::Before)));
    silent.plane.refuse("GET ", usize::MAX, 503, Value::Null);
    silent.passes(MANY).await;
    assert!(silent.api.values("karmadadeployments").is_empty(), "{}", silent.message());
    assert!(silent.plane.get(NAMESPACE).is_some());
}
