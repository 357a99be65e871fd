//! A plane and its members on API servers in memory: made, each object once, wherever the operator is cut off; kept
//! where one of them does not answer; and deleted again.

mod estimators;
mod etcd;
mod faults;
mod hosts;
mod in_place;
mod machines;
mod members;
mod probe;
mod restore;
mod rotation;
mod upgrade;
mod world;

use crds::{Conditions, Reason};
use serde_json::{Value, json};

use crate::fake_api::Cut;
use world::{KEY, MANY, World};

#[tokio::test]
async fn a_plane_is_made_once_though_the_operator_is_cut_off_at_each_write() {
    let world = World::new().await.with_member("push", "push").with_member("pull", "pull");
    let (whole, cut) = (world.copy(), world);
    whole.passes(MANY).await;
    let names = whole.names();
    whole.is_made_once(&names);
    let counts: Vec<usize> = names.iter().map(Vec::len).collect();
    assert!(counts[0] > 25 && counts[1] > 40 && counts[2] > 6 && counts[3] > 6, "{counts:?}");
    for _ in 0..whole.writes() * 2 {
        let before = cut.writes();
        cut.cut_after_the_next_write();
        cut.pass(&cut.operator()).await;
        cut.mend();
        if cut.writes() == before {
            break;
        }
    }
    cut.is_made_once(&names);
    let writes = cut.writes();
    cut.passes(2).await;
    assert_eq!(cut.writes(), writes, "at rest nothing is written");
}

#[tokio::test]
async fn a_plane_that_does_not_answer_is_said_and_its_host_is_left_as_it_is() {
    let world = World::new().await;
    world.passes(MANY).await;
    let made = world.copy();
    world.plane.cut(Some((0, Cut::Before)));
    world.plane.refuse("GET ", usize::MAX, 503, Value::Null);
    let writes = world.plane.writes();
    world.api.edit(KEY, |object| object["spec"]["search"] = json!({}));
    world.passes(4).await;
    assert!(!world.object().is_true("Ready"), "{}", world.message());
    assert_eq!(world.plane.writes(), writes);
    let (before, now) = (made.api.names(), world.api.names());
    assert!(before.iter().all(|name| now.contains(name)), "{now:?}");
}

#[tokio::test]
async fn a_host_that_is_dead_is_said_while_nothing_is_lost_and_it_goes_on_when_it_is_back() {
    let world = World::new().await.with_host().with_member("push", "push");
    world.passes(MANY).await;
    let names = world.names();
    world.is_made_once(&names);
    let host = world.host.as_ref().unwrap();
    host.refuse("GET ", 1_000_000, 503, Value::Null);
    host.cut(Some((host.writes(), Cut::Before)));
    let (on_host, in_plane) = (host.writes(), world.plane.writes());
    world.api.edit(KEY, |object| object["spec"]["search"] = json!({}));
    world.passes(4).await;
    let ready = world.object().condition("Ready").cloned().unwrap();
    assert_eq!((ready.status.as_str(), ready.reason.as_str()), ("Unknown", Reason::ClusterUnreachable.as_str()));
    assert!(world.message().contains("host-a"), "{}", world.message());
    assert_eq!(world.member("push").phase, crds::karmada_deployment::KarmadaMemberPhase::Joined);
    assert_eq!((host.writes(), world.plane.writes()), (on_host, in_plane), "nothing is written");
    assert_eq!(world.names(), names);

    let revived = world.copy();
    revived.api.edit(KEY, |object| drop(object["spec"].as_object_mut().unwrap().remove("search")));
    revived.host.as_ref().unwrap().heal();
    revived.passes(MANY).await;
    revived.is_made_once(&names);
}

#[tokio::test]
async fn a_host_that_forbids_to_look_is_said_to_and_nothing_is_written_until_it_allows_it() {
    let world = World::new().await;
    world.api.refuse("GET services/karmada-system", usize::MAX, 403, Value::Null);
    world.api.refuse("POST selfsubjectreviews", usize::MAX, 500, Value::Null);
    let names = world.api.names();
    world.passes(4).await;
    let ready = world.object().condition("Ready").cloned().unwrap();
    assert_eq!((ready.status.as_str(), ready.reason.as_str()), ("Unknown", Reason::HostForbidden.as_str()));
    assert_eq!(world.api.names(), names);
    world.api.heal();
    world.passes(MANY).await;
    assert!(world.object().is_true("Ready"), "{}", world.message());
}

#[tokio::test]
async fn deleting_a_plane_takes_all_of_it_from_the_host_wherever_the_operator_is_cut_off() {
    let whole = World::new().await;
    whole.passes(MANY).await;
    whole.api.edit(KEY, |object| {
        object["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    });
    let made = whole.api.writes();
    let check = async |cut: Option<(usize, Cut)>| {
        let world = whole.copy();
        world.api.cut(cut);
        world.passes(MANY).await;
        world.api.cut(None);
        world.passes(MANY).await;
        assert!(world.api.values("karmadadeployments").is_empty(), "{cut:?}: {}", world.message());
        let names = world.api.names();
        let left: Vec<_> = names.iter().filter(|name| name.contains("/karmada-system/")).collect();
        assert!(left.is_empty(), "{cut:?}: {left:?}");
        assert!(names.contains(&"namespaces//karmada-system".to_owned()), "{names:?}");
        world.api.writes()
    };
    let all = check(None).await - made;
    for number in (0..all).step_by(7) {
        check(Some((made + number, Cut::Before))).await;
        check(Some((made + number, Cut::After))).await;
    }
}
