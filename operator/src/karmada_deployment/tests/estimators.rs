//! Estimators of members on API servers in memory.

use crds::Conditions;
use crds::karmada_deployment::KarmadaMemberPhase as Phase;
use serde_json::{Value, json};

use super::members::rest;
use super::world::{KEY, MANY, World};

const DEPLOYMENT: &str = "deployments/karmada-system/k1-estimator-";
const ACCOUNT: &str = "serviceaccounts/karmada-cluster/karmada-scheduler-estimator";

fn scheduler_flags(world: &World) -> String {
    let live = world.api.get("deployments/karmada-system/k1-scheduler").unwrap();
    live["spec"]["template"]["spec"]["containers"][0]["command"].to_string()
}

#[tokio::test]
async fn switched_on_estimators_are_made_once_wherever_the_operator_is_cut_off_and_go_when_switched_off() {
    let world = World::new().await.with_member("pull", "pull").with_member("push", "push");
    world.passes(MANY).await;
    let bare = world.names();
    let switch = |world: &World, to: Value| world.api.edit(KEY, |object| object["spec"]["estimator"] = to.clone());
    let whole = world.copy();
    switch(&whole, json!({}));
    whole.passes(MANY).await;
    let names = whole.names();
    whole.is_made_once(&names);
    for name in ["pull", "push"] {
        assert!(whole.api.get(&format!("{DEPLOYMENT}{name}")).is_some(), "{names:?}");
        assert!(whole.api.get(&format!("secrets/fleet/k1-certificate-estimator-{name}")).is_some());
        assert_eq!(whole.member(name).reason, "AllReady", "{}", whole.member(name).message);
    }
    assert!(scheduler_flags(&whole).contains("--scheduler-estimator-service-prefix=k1-estimator"));

    switch(&world, json!({}));
    cut_at_each_write(&world).await;
    world.is_made_once(&names);
    switch(&world, Value::Null);
    cut_at_each_write(&world).await;
    assert_eq!(world.names(), bare);
    assert!(!scheduler_flags(&world).contains("estimator"));
    assert!(world.object().is_true("Ready"), "{}", world.message());
}

/// Passes of operators each of which is cut off after its first write.
async fn cut_at_each_write(world: &World) {
    for _ in 0..2 * MANY {
        let before = world.writes();
        world.cut_after_the_next_write();
        world.pass(&world.operator()).await;
        world.mend();
        if world.writes() == before {
            return;
        }
    }
    panic!("it has not come to rest: {}", world.message());
}

#[tokio::test]
async fn at_rest_an_estimator_costs_one_request_and_what_is_changed_is_put_back() {
    let members = [("a", "pull"), ("b", "push"), ("c", "pull"), ("d", "push")];
    let mut costs = Vec::new();
    for members in [2, 4].map(|count| &members[..count]) {
        let (world, ctx) = rest(World::new().await.with_estimators(), members).await;
        assert!(world.object().is_true("Ready"), "{}", world.message());
        let (asked, writes) = (world.asked(), world.writes());
        world.pass(&ctx).await;
        world.settle().await;
        assert_eq!(world.writes(), writes);
        costs.push(world.asked() - asked);

        let key = format!("{DEPLOYMENT}b");
        let before = world.api.get(&key).unwrap()["spec"].clone();
        world.api.edit(&key, |live| live["spec"]["replicas"] = json!(0));
        world.settle().await;
        world.pass(&ctx).await;
        assert_eq!(world.api.get(&key).unwrap()["spec"], before);
    }
    assert!(costs[1] - costs[0] <= 2 * 4, "requests of planes with 2 and 4 members: {costs:?}");
}

#[tokio::test]
async fn a_dead_member_that_leaves_loses_its_estimator_and_the_rest_once_it_is_back() {
    let world = World::new().await.with_estimators().with_member("push", "push").with_member("stays", "push");
    world.passes(MANY).await;
    assert!(world.members["push"].get(ACCOUNT).is_some(), "{:?}", world.members["push"].names());
    world.members["push"].refuse("GET ", usize::MAX, 503, Value::Null);
    world.api.edit(KEY, |object| object["spec"]["members"].as_array_mut().unwrap().retain(|one| one["name"] != "push"));
    world.passes(MANY).await;
    assert_eq!(world.member("push").phase, Phase::Leaving);
    for key in [format!("{DEPLOYMENT}push"), "secrets/fleet/k1-certificate-estimator-push".to_owned()] {
        assert!(world.api.get(&key).is_none(), "{key}");
    }
    assert!(world.api.get(&format!("{DEPLOYMENT}stays")).is_some());
    world.members["push"].heal();
    world.passes(MANY).await;
    assert!(world.members["push"].get(ACCOUNT).is_none(), "{:?}", world.members["push"].names());
    assert!(world.object().status.unwrap().members.iter().all(|member| member.name != "push"));
}

#[tokio::test]
async fn a_host_that_refuses_an_estimator_is_said_of_its_member_which_has_joined() {
    let world = World::new().await.with_estimators().with_member("push", "push").with_member("other", "push");
    world.api.refuse("PATCH services/karmada-system/k1-estimator-push", usize::MAX, 403, Value::Null);
    world.passes(MANY).await;
    let member = world.member("push");
    assert_eq!((member.phase, member.reason.as_str()), (Phase::Joined, "ApplyFailed"), "{}", member.message);
    assert_eq!(world.member("other").reason, "AllReady");
    assert!(world.object().is_true("MembersReady"), "{}", world.message());
}
