//! An etcd in Pods that grows and shrinks: one member at a time, never without a majority, never with the data of a
//! former member, and wherever the operator is cut off.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use crds::names::{annotation, condition};
use serde_json::{Value, json};

use super::super::Place;
use super::world::{World, settled};

fn of(members: i32) -> World {
    let mut world = settled(&format!("etcd: {{local: {{replicas: {members}}}}}"));
    assert!(world.is_ready(), "{:?}", world.condition("Ready"));
    assert_eq!(world.etcd.voters(), (members as usize, members as usize));
    world.log.clear();
    world
}

fn want(world: &mut World, members: i32) {
    world.object.spec.etcd.local = Some(Default::default());
    world.object.spec.etcd.local.as_mut().unwrap().replicas = members;
}

fn workload(world: &World) -> &Value {
    world.find(Place::Host, "StatefulSet", "k1-etcd").unwrap()
}

/// It is at rest with so many members, each of which works, and nothing of another one is left.
fn has(world: &World, members: usize) {
    assert!(world.is_ready(), "{:?} {:?}", world.condition("Ready"), world.log);
    assert_eq!(world.condition(condition::UP_TO_DATE).0, "True", "{:?}", world.condition(condition::UP_TO_DATE));
    assert_eq!(world.etcd.voters(), (members, members), "{:?}", world.log);
    assert_eq!(world.etcd.claims.len(), members, "{:?}", world.etcd.claims.keys());
    let live = workload(world);
    assert_eq!(live["spec"]["replicas"], json!(members));
    assert_eq!(live["metadata"]["annotations"][annotation::ETCD_MEMBERS], json!(members.to_string()));
    assert_eq!(world.find(Place::Host, "PodDisruptionBudget", "k1-etcd").is_some(), members > 1);
}

/// A turn of which only the first act is done, and whose status is lost.
fn cut_turn(world: &mut World) -> bool {
    let planned = world.plan();
    let first: Vec<_> = planned.actions.into_iter().take(1).collect();
    world.play(&first);
    if first.is_empty() {
        let before = world.host.clone();
        world.tick();
        return before != world.host;
    }
    true
}

#[test]
fn it_grows_and_shrinks_while_it_works_and_no_pod_is_rolled() {
    let mut world = of(1);
    let template = workload(&world)["spec"]["template"].clone();
    for members in [3, 5, 3, 1, 5, 1] {
        want(&mut world, members);
        for _ in 0..300 {
            let has_moved = world.turn();
            assert!(world.is_ready(), "{:?} {:?}", world.condition("Ready"), world.log);
            assert_eq!(world.condition(condition::ETCD_READY).0, "True");
            if !has_moved {
                break;
            }
        }
        world.settle();
        has(&world, members as usize);
        assert_eq!(workload(&world)["spec"]["template"], template);
    }
    let others = world.log.iter().filter(|line| line.starts_with("apply") && !line.ends_with(" k1-etcd"));
    assert_eq!(others.collect::<Vec<_>>(), Vec::<&String>::new());
}

#[test]
fn one_member_after_the_other_is_added_and_gets_its_vote_once_it_has_caught_up() {
    let mut world = of(1);
    world.etcd.behind = 2;
    want(&mut world, 3);
    world.settle();
    let url = |at: i32| format!("add https://k1-etcd-{at}.k1-etcd-peers.karmada-system.svc.cluster.local:2380");
    let acts: Vec<&str> = world.log.iter().map(String::as_str).filter(|line| !line.starts_with("apply")).collect();
    let behind = "promote: it has not caught up";
    assert_eq!(acts, [&url(1), behind, behind, "promote k1-etcd-1", &url(2), "promote k1-etcd-2"]);
    world.log.clear();
    world.etcd.membership.leader = world.etcd.membership.members.last().map(|member| member.id.clone());
    want(&mut world, 1);
    world.settle();
    let acts: Vec<&str> = world.log.iter().map(String::as_str).filter(|line| !line.starts_with("apply")).collect();
    let expected = [
        "k1-etcd-0 leads",
        "remove k1-etcd-2",
        "delete PersistentVolumeClaim data-k1-etcd-2",
        "remove k1-etcd-1",
        "delete PodDisruptionBudget k1-etcd",
        "delete PersistentVolumeClaim data-k1-etcd-1",
    ];
    assert_eq!(acts, expected);
}

#[test]
fn it_arrives_wherever_the_operator_is_cut_off_and_whatever_is_wanted_meanwhile() {
    for (from, to) in [(1, 3), (3, 1), (5, 3)] {
        let mut world = of(from);
        want(&mut world, to);
        // The spec changes back after so many acts, and then again.
        for turns in 0..60 {
            if turns % 3 == from % 3 {
                let mut other = world.clone();
                want(&mut other, from);
                (0..300).any(|_| !cut_turn(&mut other));
                other.settle();
                has(&other, from as usize);
            }
            if !cut_turn(&mut world) {
                assert!(turns > 8, "{turns}");
                break;
            }
        }
        world.settle();
        has(&world, to as usize);
    }
}

#[test]
fn no_member_is_added_or_removed_while_another_one_does_not_work() {
    for to in [1, 5] {
        let mut world = of(3);
        world.etcd.broken.insert(1);
        world.tick();
        want(&mut world, to);
        world.settle();
        assert!(world.log.iter().all(|line| line.starts_with("apply")), "{:?}", world.log);
        assert_eq!(world.etcd.voters(), (3, 2));
        let (_, reason, message) = world.condition(condition::UP_TO_DATE);
        assert_eq!(reason, "ScalingEtcd");
        assert!(message.ends_with("members: waiting for Pod k1-etcd-1 to be ready"), "{message}");
        assert_eq!(world.condition(condition::ETCD_READY).0, "False", "it is not hidden");
        world.etcd.broken.clear();
        world.settle();
        has(&world, to as usize);
    }
}

#[test]
fn a_last_member_that_does_not_work_may_be_removed() {
    let mut world = of(3);
    world.etcd.broken.insert(2);
    world.tick();
    want(&mut world, 1);
    world.settle();
    has(&world, 1);
}

#[test]
fn one_that_never_starts_is_said_and_given_up_when_it_is_wanted_no_more() {
    let mut world = of(1);
    want(&mut world, 3);
    for _ in 0..20 {
        world.turn();
        world.etcd.broken.insert(1);
        world.etcd.membership.members.iter_mut().filter(|member| member.is_learner).for_each(|one| one.name.clear());
    }
    let (status, _, message) = world.condition("Ready");
    assert_eq!(status, "True");
    let expected = "etcd grows from 1 to 3 members: waiting for member k1-etcd-1 to start";
    assert!(message.contains(expected), "{message}");
    want(&mut world, 1);
    world.etcd.broken.clear();
    world.settle();
    has(&world, 1);
    assert!(world.log.iter().any(|line| line.starts_with("remove")), "{:?}", world.log);
}

#[test]
fn a_volume_from_before_is_deleted_and_that_of_another_plane_is_not() {
    let mut world = of(1);
    let claim = |uid: &str| {
        json!({ "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": { "name": "data-k1-etcd-1",
            "namespace": "karmada-system", "uid": "old", "labels": { "clusterwright.dev/karmada-uid": uid } } })
    };
    let mut other = world.clone();
    other.etcd.claims.insert("data-k1-etcd-1".into(), claim("another"));
    want(&mut other, 3);
    other.settle();
    assert_eq!(other.condition(condition::UP_TO_DATE).1, "EtcdScalingBlocked");
    let message = other.condition("Ready").2;
    assert!(
        message.contains("PersistentVolumeClaim karmada-system/data-k1-etcd-1 is there and was not made"),
        "{message}"
    );
    world.etcd.claims.insert("data-k1-etcd-1".into(), claim("uid-1"));
    want(&mut world, 3);
    world.settle();
    has(&world, 3);
    assert_eq!(world.log.iter().filter(|line| line.starts_with("delete PersistentVolumeClaim")).count(), 1);
}

#[test]
fn members_that_cannot_be_read_are_said_and_nothing_is_done() {
    let mut world = of(3);
    world.etcd.unreadable = Some("connection refused".into());
    want(&mut world, 5);
    world.settle();
    assert!(world.log.is_empty(), "{:?}", world.log);
    let (_, reason, message) = world.condition(condition::UP_TO_DATE);
    let expected = "etcd grows from 3 to 5 members: its members cannot be read: connection refused";
    assert_eq!((reason.as_str(), message.as_str()), ("EtcdScalingBlocked", expected));
    world.etcd.unreadable = None;
    world.settle();
    has(&world, 5);
}

#[test]
fn no_member_that_has_a_vote_loses_its_pod_while_members_cannot_be_read() {
    let mut world = of(1);
    want(&mut world, 3);
    // Until the second one has a vote, and does not count yet.
    while world.etcd.membership.members.iter().filter(|member| !member.is_learner).count() < 2 {
        cut_turn(&mut world);
    }
    assert_eq!(workload(&world)["metadata"]["annotations"][annotation::ETCD_MEMBERS], json!("1"));
    world.etcd.unreadable = Some("connection refused".into());
    world.settle();
    assert_eq!(workload(&world)["spec"]["replicas"], json!(2));
    // Somebody takes its Pod away: there is no majority, and what the other one knows brings it back.
    world.etcd.unreadable = None;
    let key = ("StatefulSet".to_owned(), "karmada-system".to_owned(), "k1-etcd".to_owned());
    world.host.get_mut(&key).unwrap()["spec"]["replicas"] = json!(1);
    world.applied.remove(&(Place::Host, key));
    world.tick();
    world.settle();
    has(&world, 3);
}

#[test]
fn a_member_that_is_not_the_planes_is_named() {
    let mut world = of(1);
    let url = "https://10.0.0.7:2380".to_owned();
    let foreign =
        super::super::EtcdMember { id: "f".into(), peer_urls: vec![url], is_learner: true, ..Default::default() };
    world.etcd.membership.members.push(foreign);
    want(&mut world, 3);
    world.settle();
    let message = world.condition("Ready").2;
    assert!(message.contains("member f at https://10.0.0.7:2380 is none of the plane's"), "{message}");
    assert!(world.log.is_empty(), "{:?}", world.log);
}

#[test]
fn what_somebody_does_to_the_stateful_set_is_put_back() {
    for (of_spec, replicas) in [(3, 1), (3, 5), (1, 0), (1, 3)] {
        let mut world = of(of_spec);
        let key = ("StatefulSet".to_owned(), "karmada-system".to_owned(), "k1-etcd".to_owned());
        world.host.get_mut(&key).unwrap()["spec"]["replicas"] = json!(replicas);
        world.applied.remove(&(Place::Host, key));
        world.tick();
        world.settle();
        assert!(world.is_ready(), "{:?}", world.condition("Ready"));
        assert_eq!(world.etcd.voters(), (of_spec as usize, of_spec as usize), "{of_spec} {replicas}");
        assert!(world.log.iter().all(|line| line.starts_with("apply")), "{:?}", world.log);
    }
}

#[test]
fn an_etcd_that_was_whole_once_never_begins_anew_with_an_empty_volume() {
    let told = |world: &World| {
        let secret = world.find(Place::Host, "Secret", "k1-etcd").unwrap();
        let state = secret["data"]["initial-cluster-state"].as_str().unwrap();
        String::from_utf8(STANDARD.decode(state).unwrap()).unwrap()
    };
    let mut world = of(1);
    assert_eq!(told(&world), "existing");
    world.etcd.claims.clear();
    world.tick();
    world.settle();
    assert_eq!(told(&world), "existing");
    assert_eq!(world.condition(condition::ETCD_READY).0, "False");
    let mut fresh = World::new(super::world::plane(""));
    fresh.stuck.insert("k1-etcd".to_owned());
    fresh.settle();
    assert_eq!(told(&fresh), "new");
}

#[test]
fn while_an_upgrade_is_under_way_no_member_comes_or_goes() {
    let mut world = settled("version: 1.17.5");
    world.object.spec.version = "1.18.2".parse().unwrap();
    for _ in 0..200 {
        if world.upgrade().is_some_and(|upgrade| upgrade.step.is_some()) {
            break;
        }
        world.turn();
    }
    assert!(world.upgrade().is_some_and(|upgrade| upgrade.step.is_some()));
    want(&mut world, 3);
    for _ in 0..200 {
        world.turn();
        let is_under_way = world.upgrade().is_some_and(|upgrade| upgrade.step.is_some());
        assert!(!is_under_way || world.etcd.membership.members.len() == 1);
    }
    world.settle();
    has(&world, 3);
}
