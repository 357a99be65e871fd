//! Members of a plane on API servers in memory.

use crds::Reason;
use crds::karmada_deployment::KarmadaMemberPhase as Phase;
use serde_json::{Value, json};

use super::world::{KEY, MANY, World};

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

#[tokio::test]
async fn at_rest_each_object_costs_two_requests_and_a_member_few_more() {
    let alone = World::new().await;
    let joined = World::new().await.with_member("pull", "pull").with_member("push", "push");
    let mut costs = Vec::new();
    for world in [&alone, &joined] {
        world.passes(MANY).await;
        let ctx = world.operator();
        // The first one asks which kinds there are.
        world.pass(&ctx).await;
        let (asked, writes) = (world.asked(), world.writes());
        world.pass(&ctx).await;
        assert_eq!(world.writes(), writes);
        costs.push(world.asked() - asked);
    }
    let made = |world: &World| world.api.names().len() + world.plane.names().len();
    println!("{costs:?} requests, {} objects without members", made(&alone));
    assert!(costs[0] <= 2 * made(&alone) + 30, "{costs:?}, {}", made(&alone));
    assert!(costs[1] - costs[0] <= 100, "two members cost {}", costs[1] - costs[0]);
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
