//! The end of a plane.

use crds::karmada_deployment::{KarmadaDeletionPolicy, KarmadaMemberPhase, KarmadaMemberStatus, SyncMode};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::super::{Action, Place};
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
    assert!(world.log.is_empty() && world.object.metadata.finalizers.is_none());
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

#[test]
fn members_leave_before_anything_goes() {
    let mut world = deleted("");
    let member = KarmadaMemberStatus {
        name: "m1".into(),
        sync_mode: SyncMode::Push,
        cluster_ref: None,
        kube_config_secret_name: None,
        auto_joined: false,
        cluster_uid: None,
        joined_at: None,
        leaving_since: None,
        phase: KarmadaMemberPhase::Joined,
        reason: "X".into(),
        message: "x".into(),
        since: Time("2026-11-27T09:00:00Z".parse().unwrap()),
    };
    world.object.status.as_mut().unwrap().members = vec![member];
    let (reason, message) = end(&mut world);
    assert_eq!(reason, "UnjoiningMembers");
    assert!(message.starts_with("waiting for 1 member to leave: m1"), "{message}");
    assert!(world.log.is_empty());
    world.object.status.as_mut().unwrap().members.clear();
    assert_eq!(end(&mut world).0, "PlaneRemoved");
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
