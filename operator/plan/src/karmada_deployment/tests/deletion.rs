//! The end of a plane.

use crds::karmada_deployment::KarmadaDeletionPolicy;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::super::{Action, Place, members_are_seen};
use super::world::{World, settled};

fn deleted(more: &str) -> World {
    let mut world = settled(more);
    world.object.metadata.deletion_timestamp = Some(Time("2026-11-27T09:00:00Z".parse().unwrap()));
    world.object.metadata.generation = Some(2);
    world.log.clear();
    world
}

/// Plays until nothing is to be done; what is said at the end.
fn end(world: &mut World) -> (String, String) {
    for _ in 0..60 {
        let planned = world.plan();
        world.object.status = Some(planned.status);
        for action in &planned.actions {
            world.apply(action);
        }
        if planned.actions.is_empty() {
            let (_, reason, message) = world.condition("Deleting");
            return (reason, message);
        }
    }
    panic!("it does not end: {:?}", world.log);
}

fn annotate(world: &mut World, key: &str, value: &str) {
    let annotation = (format!("clusterwright.dev/{key}"), value.to_owned());
    world.object.metadata.annotations = Some([annotation].into());
}

#[test]
fn what_started_last_goes_first_and_the_namespace_stays() {
    let mut world = deleted("search: {}, webhook: {replicas: 2}");
    let (reason, message) = end(&mut world);
    assert_eq!(reason, "PlaneRemoved");
    assert!(message.contains("namespace karmada-system"), "{message}");
    let workloads = world.log.iter().filter(|line| line.contains("Deployment k1") || line.contains("StatefulSet"));
    let names: Vec<&str> = workloads.filter_map(|line| line.rsplit_once("k1-").map(|(_, name)| name)).collect();
    let expected = [
        "search",
        "controller-manager",
        "scheduler",
        "webhook",
        "aggregated-apiserver",
        "kube-controller-manager",
        "apiserver",
        "etcd",
    ];
    assert_eq!(names, expected);
    assert!(world.object.metadata.finalizers.is_none());
    assert_eq!(world.host.keys().map(|key| key.0.as_str()).collect::<Vec<_>>(), ["Namespace"]);
}

#[test]
fn one_whose_pods_still_end_is_waited_for() {
    let mut world = deleted("");
    let labels = serde_json::json!({ "app.kubernetes.io/name": "karmada-controller-manager", "clusterwright.dev/karmada-uid": "uid-1" });
    world.pods.push(serde_json::json!({ "metadata": { "name": "p", "labels": labels } }));
    let (reason, message) = end(&mut world);
    assert_eq!(
        (reason.as_str(), message.as_str()),
        ("RemovingPlane", "removing karmada-controller-manager and its Pods")
    );
    assert_eq!(world.log, ["delete Deployment k1-controller-manager"]);
    world.pods.clear();
    assert_eq!(end(&mut world).0, "PlaneRemoved");
}

#[test]
fn a_detached_plane_stays_as_it_is() {
    let mut world = deleted("");
    world.object.spec.deletion_policy = KarmadaDeletionPolicy::Detach;
    assert_eq!(end(&mut world).0, "PlaneDetached");
    assert_eq!(world.log, ["delete Namespace clusterwright-probe"], "nobody looks at it any more");
    assert!(world.object.metadata.finalizers.is_none());
}

#[test]
fn a_detached_plane_that_does_not_answer_or_is_given_up_keeps_what_it_was_probed_by() {
    for is_given_up in [true, false] {
        let mut world = deleted("");
        world.object.spec.deletion_policy = KarmadaDeletionPolicy::Detach;
        match is_given_up {
            true => annotate(&mut world, "force-remove", "2"),
            false => world.kubeconfig = None,
        }
        assert_eq!(end(&mut world).0, "PlaneDetached");
        assert!(world.log.is_empty() && world.object.metadata.finalizers.is_none(), "{:?}", world.log);
    }
}

#[test]
fn a_protected_plane_is_not_touched_until_a_person_confirms_it() {
    let mut world = deleted("deletionProtection: true");
    let (reason, message) = end(&mut world);
    assert_eq!(reason, "DeletionProtected");
    let command = "kubectl -n fleet annotate --overwrite karmadadeployments.clusterwright.dev k1 clusterwright.dev/delete-confirmed=2";
    assert!(message.contains(command), "{message}");
    assert!(world.log.is_empty());
    annotate(&mut world, "delete-confirmed", "2");
    assert_eq!(end(&mut world).0, "PlaneRemoved");
}

fn with_member(world: &mut World) {
    let member = serde_json::json!({
        "name": "m1", "syncMode": "push", "clusterUID": "u1", "phase": "Joined", "reason": "AllReady", "message": "x",
        "since": "2026-11-27T09:00:00Z",
    });
    world.object.status.as_mut().unwrap().members = vec![serde_json::from_value(member).unwrap()];
}

#[test]
fn members_leave_before_anything_goes() {
    let mut world = deleted("");
    with_member(&mut world);
    assert!(members_are_seen(&world.object));
    let (reason, message) = end(&mut world);
    assert_eq!(reason, "UnjoiningMembers");
    assert!(
        message.starts_with("waiting for 1 member to leave: m1; m1: its API does not answer the operator"),
        "{message}"
    );
    assert!(message.ends_with("clusterwright.dev/force-remove=2"), "{message}");
    assert!(world.log.is_empty());
    annotate(&mut world, "force-remove", "member.m1");
    assert_eq!(end(&mut world).1, "all members have left");
    assert_eq!(end(&mut world).0, "PlaneRemoved");
    assert!(world.object.status.as_ref().unwrap().members.is_empty());
}

#[test]
fn the_host_is_cleaned_only_once_the_status_says_that_no_member_is_left() {
    let mut world = deleted("");
    with_member(&mut world);
    annotate(&mut world, "force-remove", "member.m1");
    let planned = world.plan();
    assert!(planned.actions.is_empty() && planned.status.members.is_empty());
    world.object.status = Some(planned.status);
    assert!(!world.plan().actions.is_empty());
    world.object.status = Some(world.plan().status);
    assert!(!members_are_seen(&world.object), "what they left through is going");
}

#[test]
fn members_of_a_plane_that_is_held_or_left_as_it_is_are_not_looked_at() {
    let check = |more: &str| {
        let mut world = deleted(more);
        with_member(&mut world);
        assert!(!members_are_seen(&world.object), "{more}");
        let planned = world.plan();
        assert_eq!(planned.status.members.len(), 1, "{more}");
    };
    check("deletionProtection: true");
    check("deletionPolicy: Detach");
    check("paused: true");
    let mut world = settled("");
    with_member(&mut world);
    assert!(members_are_seen(&world.object));
}

#[test]
fn a_dead_host_is_said_and_given_up_by_a_person_alone() {
    let mut world = deleted("");
    world.host_lost = true;
    let (reason, message) = end(&mut world);
    assert_eq!(reason, "ClusterUnreachable");
    let command = "clusterwright.dev/force-remove=2";
    assert!(message.contains("connection refused") && message.contains(command), "{message}");
    assert!(world.object.metadata.finalizers.is_some());
    annotate(&mut world, "force-remove", "2");
    assert_eq!(end(&mut world).0, "PlaneDetached");
    assert!(world.log.is_empty() && world.object.metadata.finalizers.is_none());
}

#[test]
fn a_paused_plane_is_not_removed_and_what_is_not_ours_never() {
    let mut world = deleted("");
    world.object.spec.paused = true;
    assert_eq!(end(&mut world).0, "Paused");
    world.object.spec.paused = false;
    let key = ("Secret".to_owned(), "karmada-system".to_owned(), "k1-scheduler".to_owned());
    world.host.get_mut(&key).unwrap()["metadata"]["labels"]["clusterwright.dev/karmada-uid"] = "another".into();
    assert_eq!(end(&mut world).0, "PlaneRemoved");
    assert!(world.host.contains_key(&key));
    assert!(!world.plan().actions.iter().any(|action| matches!(action, Action::Delete { place: Place::Plane, .. })));
}
