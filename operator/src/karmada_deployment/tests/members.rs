//! Members of a plane on API servers in memory.

use std::sync::Arc;

use crds::karmada_deployment::KarmadaMemberPhase as Phase;
use crds::{Conditions, Reason};
use serde_json::{Value, json};

use super::world::{KEY, MANY, World};
use crate::context::Context;
use crate::fake_api::FakeApi;

/// Takes a member out of the spec.
fn forget(world: &World, name: &str) {
    world.api.edit(KEY, |object| {
        object["spec"]["members"].as_array_mut().unwrap().retain(|member| member["name"] != name);
    });
}

#[tokio::test]
async fn a_member_that_is_dead_or_refuses_what_is_written_holds_up_nobody() {
    let mut world = World::new().await;
    for (name, mode) in [("dead", "push"), ("lean", "push"), ("pull", "pull"), ("push", "push"), ("rude", "push")] {
        world = world.with_member(name, mode);
    }
    world.members["dead"].refuse("GET ", usize::MAX, 503, Value::Null);
    world.members["rude"].refuse("PATCH serviceaccounts", usize::MAX, 403, Value::Null);
    world.members["lean"].refuse("GET /readyz", usize::MAX, 401, Value::Null);
    world.passes(MANY).await;
    for (name, phase, reason) in [
        ("dead", Phase::Waiting, Reason::MemberUnreachable),
        ("lean", Phase::Joining, Reason::MemberRefusesToken),
        ("pull", Phase::Joined, Reason::AllReady),
        ("push", Phase::Joined, Reason::AllReady),
        ("rude", Phase::Joining, Reason::ApplyFailed),
    ] {
        let member = world.member(name);
        assert_eq!((member.phase, member.reason.as_str()), (phase, reason.as_str()), "{name}: {}", member.message);
    }
    let given = world.plane.get("secrets/karmada-cluster/lean");
    assert!(given.is_none(), "a token that is refused is not passed on");
    assert!(world.plane.get("clusters//push").is_some() && world.plane.get("clusters//rude").is_none());

    // What one refuses to lose keeps it from leaving, and the others leave.
    world.members["push"].refuse("DELETE clusterroles", usize::MAX, 403, Value::Null);
    forget(&world, "push");
    forget(&world, "pull");
    world.passes(MANY).await;
    let left = world.member("push");
    assert_eq!((left.phase, left.reason.as_str()), (Phase::Leaving, "ApplyFailed"), "{}", left.message);
    assert!(left.message.contains("failed to delete ClusterRole"), "{}", left.message);
    assert!(world.object().status.unwrap().members.iter().all(|member| member.name != "pull"));
    let names = world.members["pull"].names();
    assert!(!names.iter().any(|name| name.contains("karmada-agent")), "{names:?}");
    assert!(world.api.get("secrets/fleet/k1-agent-pull").is_none());
}

#[tokio::test]
async fn somebody_elses_secret_in_the_place_of_an_agents_certificate_is_named_and_kept() {
    let world = World::new().await.with_member("pull", "pull").with_member("push", "push");
    world.api.put("secrets", "{apiVersion: v1, kind: Secret, metadata: {name: k1-agent-pull, namespace: fleet, ownerReferences: [{apiVersion: v1, kind: ConfigMap, name: x, uid: other, controller: true}]}, data: {}}");
    world.passes(MANY).await;
    let member = world.member("pull");
    assert_eq!(member.reason, "ApplyFailed");
    assert!(member.message.contains("belongs to another object"), "{}", member.message);
    assert_eq!(world.member("push").phase, Phase::Joined);
    let kept = world.api.get("secrets/fleet/k1-agent-pull").unwrap();
    assert_eq!(kept["metadata"]["ownerReferences"][0]["uid"], "other");
}

/// A plane at rest that is watched, and the operator that has looked at it.
async fn at_rest(members: &[(&str, &str)]) -> (World, Arc<Context>) {
    rest(World::new().await, members).await
}

/// The same of this plane, with these members.
pub(super) async fn rest(mut world: World, members: &[(&str, &str)]) -> (World, Arc<Context>) {
    for (name, mode) in members {
        world = world.with_member(name, mode);
    }
    let world = world.watched();
    world.passes(MANY).await;
    let ctx = world.operator();
    // It asks which kinds there are, watches them, lists what there is, and hears that nothing has changed.
    for _ in 0..4 {
        world.pass(&ctx).await;
        world.settle().await;
    }
    (world, ctx)
}

#[tokio::test]
async fn at_rest_a_plane_costs_few_requests_and_a_member_three() {
    let members = [("a", "pull"), ("b", "push"), ("c", "pull"), ("d", "push")];
    let mut costs = Vec::new();
    for members in [0, 2, 4].map(|count| &members[..count]) {
        let (world, ctx) = at_rest(members).await;
        assert!(world.object().is_true("Ready"), "{}", world.message());
        let (asked, writes) = (world.asked(), world.writes());
        world.pass(&ctx).await;
        world.settle().await;
        assert_eq!(world.writes(), writes);
        costs.push(world.asked() - asked);
    }
    assert!(costs[0] <= 20, "requests of planes with 0, 2 and 4 members: {costs:?}");
    assert!(costs[2] <= 25 + 4 * 3 && costs[2] - costs[1] <= 2 * 3, "{costs:?}");
}

#[tokio::test]
async fn what_is_changed_at_rest_is_put_back_at_the_next_look() {
    let (world, ctx) = at_rest(&[("pull", "pull"), ("push", "push")]).await;
    let check = async |api: &FakeApi, key: &str, change: fn(&mut Value)| {
        let before = api.get(key).unwrap_or_else(|| panic!("{key}: {:?}", api.names()));
        api.edit(key, change);
        assert!(api.get(key).is_none_or(|now| now != before));
        world.settle().await;
        world.pass(&ctx).await;
        world.settle().await;
        let own = |object: Option<Value>| object.map(|object| (object["rules"].clone(), object["spec"].clone()));
        assert_eq!(own(api.get(key)), own(Some(before)), "{key}");
    };
    let lose = |object: &mut Value| object["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    let weaken = |object: &mut Value| object["rules"] = json!([]);
    check(&world.members["push"], "clusterrolebindings//karmada-controller-manager:karmada-push", lose).await;
    check(&world.members["push"], "clusterroles//karmada-controller-manager:karmada-push", weaken).await;
    check(&world.members["pull"], "deployments/karmada-system/karmada-agent", lose).await;
    check(&world.plane, "clusterroles//system:karmada:pull:agent", weaken).await;
    check(&world.plane, "secrets/karmada-cluster/push", lose).await;
    check(&world.api, "services/karmada-system/k1-webhook", |object| object["spec"]["ports"] = json!([])).await;
}

#[tokio::test]
async fn a_token_that_is_made_anew_in_the_member_is_carried_over() {
    let world = World::new().await.with_member("push", "push");
    world.passes(MANY).await;
    world.members["push"]
        .edit("secrets/karmada-cluster/karmada-push", |secret| secret["data"]["token"] = json!("bmV3"));
    world.passes(MANY).await;
    assert_eq!(world.plane.get("secrets/karmada-cluster/push").unwrap()["data"]["token"], "bmV3");
    assert_eq!(world.member("push").phase, Phase::Joined);
}
