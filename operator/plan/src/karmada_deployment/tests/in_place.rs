//! Promises about a plane that an EtcdRestore sets back in its place: it stops in an order, its former volumes stay,
//! and nothing acts before a person has approved what becomes of members.

use crds::etcd_restore::RestorePhase;
use crds::karmada_deployment::{KarmadaRestoreStep as Step, KarmadaRestoredFrom};
use crds::names::label;
use crds::references::LocalRef;
use crds::{EtcdRestore, EtcdRestoreStatus};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde_json::json;

use super::super::restore::settled_in_place;
use super::super::{Component, Place};
use super::restore::{acting, approve, authorization, record, runs, show_members};
use super::world::{Key, World, settled};
use crate::key_transfer::{KeysSeen, SnapshotKey};
use crate::testing::backup_keys::{LOCATION, fetched, seen};

const ALL: &str = "descheduler: {}, search: {}, metricsAdapter: {}, etcd: {local: {replicas: 3}}";

/// One that was handed over to the plane: of a backup of the plane itself.
pub fn handed(world: &World, name: &str) -> EtcdRestore {
    let mut restore: EtcdRestore = serde_json::from_value(json!({
        "apiVersion": "clusterwright.dev/v1alpha1", "kind": "EtcdRestore",
        "metadata": {
            "name": name, "namespace": "fleet", "uid": format!("uid-of-{name}"),
            "creationTimestamp": "2026-11-27T08:30:00Z"
        },
        "spec": {
            "karmadaDeploymentRef": { "name": "k1" }, "identityRef": { "name": "age" },
            "source": { "stored": { "storageRef": { "name": "bucket" }, "location": LOCATION } }
        }
    }))
    .unwrap();
    let mut backup = fetched();
    if let Some(plane) = &mut backup.plane {
        (plane.name, plane.uid) = ("k1".into(), "uid-1".into());
    }
    let record = settled_in_place(&world.object, &backup, LocalRef::new("bucket"), &restore);
    let began_at = Some(Time(world.now));
    restore.status = Some(EtcdRestoreStatus { plane_backup: record, began_at, ..EtcdRestoreStatus::default() });
    restore
}

/// The keys of the backup were fetched for it, and the plane has them.
pub fn give_keys(world: &mut World) {
    world.restore.keys = seen();
    (world.restore.keys.keys, world.restore.keys.snapshot_key) = (KeysSeen::InPlace, Some(SnapshotKey(vec![7; 16])));
}

/// A plane that works, which an EtcdRestore was handed over to.
fn set_back(more: &str) -> World {
    let mut world = settled(more);
    assert!(world.is_ready(), "{:?}", world.condition("Ready"));
    give_keys(&mut world);
    world.restores = vec![handed(&world, "back")];
    world.log.clear();
    world
}

/// The same, once what would become of members waits for approval.
fn asking(more: &str) -> World {
    let mut world = set_back(more);
    show_members(&mut world);
    world.settle();
    assert_eq!(record(&world).step, Some(Step::Compare), "{:?}", world.condition("Ready"));
    world
}

fn claims(world: &World) -> String {
    record(world).claims.expect("it has volumes of its own")
}

/// Where in the log something was done first that begins so.
fn first(world: &World, what: &str) -> usize {
    let mut lines = world.log.iter();
    lines.position(|line| line.starts_with(what)).unwrap_or_else(|| panic!("{what}: {:?}", world.log))
}

/// The same, of what was not done again.
fn once(world: &World, what: &str) -> usize {
    assert_eq!(world.log.iter().filter(|line| line.starts_with(what)).count(), 1, "{what}: {:?}", world.log);
    first(world, what)
}

#[test]
fn what_acts_stops_first_and_etcd_last_and_then_the_plane_serves_the_backup_to_administrators() {
    // It is written again once it is whole: that it has begun.
    const ETCD: &str = "apply StatefulSet k1-etcd";
    let world = asking(ALL);
    let claims = claims(&world);
    let order = [
        "delete Deployment k1-controller-manager",
        "delete Deployment k1-apiserver",
        "delete StatefulSet k1-etcd",
        &format!("apply PersistentVolumeClaim {claims}-k1-etcd-0"),
        &format!("apply Job k1-etcd-restore-{claims}-0"),
        ETCD,
        "apply Deployment k1-webhook",
    ]
    .map(|what| if what == ETCD { first(&world, what) } else { once(&world, what) });
    assert!(order.is_sorted(), "{order:?}: {:?}", world.log);
    let stopped = |component: Component| once(&world, &format!("delete Deployment k1-{}", component.suffix()));
    for acts in acting() {
        assert!(stopped(acts) < stopped(Component::ApiServer), "{acts:?}: {:?}", world.log);
        assert!(!runs(&world, acts), "{acts:?}");
    }
    assert_eq!(authorization(&world), "ABAC");
    let template = &world.find(Place::Host, "StatefulSet", "k1-etcd").unwrap()["spec"]["volumeClaimTemplates"][0];
    assert_eq!(template["metadata"]["name"], *claims);
    let (_, reason, message) = world.condition("Ready");
    assert_eq!(reason, "WaitingForApproval", "{message}");
    assert!(message.contains("backup nightly of plane k1") && !message.contains("former plane"), "{message}");
    let policy = |log: &[String]| log.iter().any(|line| line.contains("delete PersistentVolumeClaim"));
    assert!(!policy(&world.log), "{:?}", world.log);
    let former = ["data-k1-etcd-0", "data-k1-etcd-1", "data-k1-etcd-2"];
    assert_eq!(record(&world).former_claims, former);
    assert!(former.iter().all(|name| world.etcd.claims.contains_key(*name)), "what was there stays");
}

#[test]
fn what_makes_the_data_has_the_volumes_of_this_restore_and_a_token_of_its_own() {
    let mut world = set_back(ALL);
    let claims = handed(&world, "back").status.unwrap().plane_backup.unwrap().claims.unwrap();
    let job = format!("k1-etcd-restore-{claims}-1");
    world.stuck.insert(job.clone());
    world.settle();
    assert_eq!(record(&world).step, Some(Step::Data), "{:?}", world.condition("Ready"));
    assert!(Component::ALL.into_iter().all(|component| !runs(&world, component)), "{:?}", world.log);
    let text = world.find(Place::Host, "Job", &job).unwrap()["spec"]["template"]["spec"].to_string();
    let token = format!("--initial-cluster-token=uid-1-{claims}");
    for words in [&format!("\"{claims}-k1-etcd-1\""), &token, "--bump-revision=1000000000", LOCATION] {
        assert!(text.contains(words), "{words}: {text}");
    }
}

#[test]
fn once_it_is_approved_the_plane_is_as_it_was_and_nothing_is_left_over() {
    let mut world = asking(ALL);
    approve(&mut world);
    world.settle();
    assert!(world.is_ready(), "{:?}", world.condition("Ready"));
    let done = record(&world);
    assert!(done.step.is_none() && done.approved_at.is_some() && done.restored_at.is_some());
    assert_eq!(authorization(&world), "Node,RBAC");
    let shape = |world: &World| {
        let volumes = |key: &Key| key.0 != "PersistentVolumeClaim";
        let shape = world.shape().into_iter().filter(|(_, key, _)| volumes(key));
        shape.map(|(place, key, _)| (place, key)).collect::<Vec<_>>()
    };
    assert_eq!(shape(&world), shape(&settled(ALL)));
    assert_eq!(world.restore.keys.keys, KeysSeen::Absent, "nobody may read the backup any more");
    assert!(world.plan().actions.is_empty(), "{:?}", world.plan().actions);
    // The object stays for a while, and is not taken over again.
    world.log.clear();
    world.settle();
    assert_eq!(world.log, [""; 0]);
}

#[test]
fn nothing_of_a_plane_stops_before_the_pods_that_act_are_gone() {
    let mut world = set_back("");
    let pod = json!({ "apiVersion": "v1", "kind": "Pod", "metadata": { "name": "k1-controller-manager-7f", "labels": {
        "app.kubernetes.io/name": "karmada-controller-manager", (label::KARMADA_UID): "uid-1" } } });
    world.pods = vec![pod];
    world.settle();
    let (_, reason, message) = world.condition("Ready");
    let expected = "stopping what acts: k1-controller-manager-7f, 1 Pod left to end";
    assert!(reason == "Restoring" && message.contains(expected), "{message}");
    assert!(runs(&world, Component::ApiServer) && runs(&world, Component::Etcd), "{:?}", world.log);
    assert!(!runs(&world, Component::ControllerManager));
    world.pods.clear();
    world.settle();
    assert_eq!(record(&world).step, Some(Step::Compare), "{:?}", world.condition("Ready"));
}

#[test]
fn a_paused_plane_is_not_stopped_and_one_that_is_paused_on_the_way_goes_on_afterwards() {
    let mut world = set_back("");
    world.object.spec.paused = true;
    world.settle();
    assert_eq!(world.log, [""; 0]);
    assert!(world.object.status.as_ref().unwrap().restored_from.is_none());
    world.object.spec.paused = false;
    world.turn();
    world.object.spec.paused = true;
    world.settle();
    assert_eq!((record(&world).step, world.log.len()), (Some(Step::Stop), 0), "{:?}", world.log);
    world.object.spec.paused = false;
    world.settle();
    assert_eq!(record(&world).step, Some(Step::Compare), "{:?}", world.condition("Ready"));
}

#[test]
fn a_lost_status_never_makes_data_beneath_etcd_and_starts_nothing_that_was_not_approved() {
    let mut world = asking(ALL);
    world.log.clear();
    world.object.status.as_mut().unwrap().restored_from = None;
    world.settle();
    assert_eq!(record(&world).step, Some(Step::Compare), "{:?}", world.condition("Ready"));
    assert!(acting().all(|component| !runs(&world, component)), "{:?}", world.log);
    let touches =
        |line: &String| ["Job", "StatefulSet", "PersistentVolumeClaim"].iter().any(|kind| line.contains(kind));
    assert!(!world.log.iter().any(touches), "{:?}", world.log);
}

#[test]
fn one_whose_data_is_lost_on_the_way_fetches_the_key_again_and_says_who_is_to_name_the_identity() {
    let mut world = set_back("");
    world.restore.keys = seen();
    let mut gone = world.clone();
    world.settle();
    assert!(world.log.contains(&"fetch keys".to_owned()), "{:?}", world.log);
    assert_eq!((record(&world).step, world.condition("Ready").1.as_str()), (Some(Step::Data), "FetchingKeys"));
    gone.turn();
    gone.restores.clear();
    gone.settle();
    let (_, reason, message) = gone.condition("Ready");
    assert!(reason == "WaitingForBackup" && message.contains("make a new EtcdRestore of this plane"), "{message}");
    // A new one is taken over.
    give_keys(&mut gone);
    gone.restores = vec![handed(&gone, "anew")];
    gone.settle();
    assert_eq!(record(&gone).restore_ref, Some(LocalRef::new("anew")));
    assert_eq!(record(&gone).former_claims, ["data-k1-etcd-0"], "what was there before the first of them");
    assert_eq!(record(&gone).step, Some(Step::Compare), "{:?}", gone.condition("Ready"));
}

#[test]
fn a_second_restore_of_the_same_backup_takes_nothing_of_the_first_for_its_own() {
    let mut world = asking(ALL);
    approve(&mut world);
    world.settle();
    let first = record(&world);
    give_keys(&mut world);
    world.restores = vec![handed(&world, "again")];
    world.log.clear();
    world.settle();
    let second: KarmadaRestoredFrom = record(&world);
    assert_eq!(second.step, Some(Step::Compare), "{:?}", world.condition("Ready"));
    let claims = second.claims.clone().unwrap();
    assert_ne!(Some(&claims), first.claims.as_ref());
    once(&world, &format!("apply Job k1-etcd-restore-{claims}-0"));
    assert!(second.revision + second.bump.unwrap() > first.revision + first.bump.unwrap());
    let former: Vec<String> = (0..3).map(|at| format!("{}-k1-etcd-{at}", first.claims.as_ref().unwrap())).collect();
    assert_eq!(second.former_claims, former);
    // What was approved was the first one's.
    assert_eq!(world.condition("Ready").1, "WaitingForApproval");
    let is_volume = |name: &String| world.find(Place::Host, "PersistentVolumeClaim", name).is_some();
    assert!(former.iter().all(is_volume), "{:?}", world.host.keys());
}

#[test]
fn an_edit_by_which_the_backup_does_not_fit_any_more_holds_it_before_there_is_data() {
    let mut world = set_back("");
    world.turn();
    world.object.spec.host_dns_domain = "other.local".into();
    world.settle();
    let (_, reason, message) = world.condition("Ready");
    assert!(reason == "BackupDoesNotFit" && message.contains("set it so"), "{message}");
    assert!(!world.log.iter().any(|line| line.starts_with("apply Job")), "{:?}", world.log);
}

#[test]
fn what_is_not_approved_or_over_is_not_taken_over() {
    let check = |change: &dyn Fn(&mut EtcdRestore)| {
        let mut world = set_back("");
        change(&mut world.restores[0]);
        world.settle();
        assert!(world.is_ready() && world.log.is_empty(), "{:?}", world.log);
    };
    check(&|restore| restore.status.as_mut().unwrap().began_at = None);
    check(&|restore| {
        restore.status.as_mut().unwrap().finished_at = Some(Time("2026-11-27T09:00:00Z".parse().unwrap()))
    });
    check(&|restore| restore.spec.karmada_deployment_ref = Some(LocalRef::new("k2")));
}

#[test]
fn the_report_of_a_backup_of_another_plane_still_asks_for_that_one_to_be_stopped() {
    let mut world = set_back("");
    let status = world.restores[0].status.as_mut().unwrap();
    let record = status.plane_backup.as_mut().unwrap();
    (record.plane, record.plane_uid) = ("k0".into(), "uid-0".into());
    show_members(&mut world);
    world.settle();
    let message = world.condition("Ready").2;
    assert!(message.contains("programs and agents of the former plane (UID uid-0) must be stopped"), "{message}");
}

#[test]
fn one_that_goes_back_has_the_volumes_of_before_again_wherever_it_was() {
    for turns in [1, 2, 3, 4, 5, 6, 8, 12, 20, 40, 80] {
        let mut world = set_back(ALL);
        show_members(&mut world);
        for _ in 0..turns {
            world.turn();
        }
        world.restores[0].status.as_mut().unwrap().phase = Some(RestorePhase::Undoing);
        world.settle();
        assert!(world.is_ready(), "{turns}: {:?}", world.condition("Ready"));
        let done = record(&world);
        assert!(done.step.is_none() && done.undone_at.is_some() && done.restored_at.is_none(), "{turns}: {done:?}");
        let template = &world.find(Place::Host, "StatefulSet", "k1-etcd").unwrap()["spec"]["volumeClaimTemplates"][0];
        assert_eq!(template["metadata"]["name"], "data", "{turns}");
        let is_left = |key: &Key| key.0 == "Job" || key.2.contains("etcd-restore");
        assert!(!world.host.keys().any(is_left), "{turns}: {:?}", world.host.keys());
        assert_eq!(world.restore.keys.keys, KeysSeen::Absent, "{turns}");
    }
}

#[test]
fn there_is_no_way_back_once_what_becomes_of_members_was_approved() {
    let mut world = asking(ALL);
    approve(&mut world);
    while record(&world).step.is_some_and(|step| step < Step::Release) {
        world.turn();
    }
    world.restores[0].status.as_mut().unwrap().phase = Some(RestorePhase::Undoing);
    world.settle();
    assert!(record(&world).undone_at.is_none() && record(&world).restored_at.is_some());
    assert!(world.is_ready(), "{:?}", world.condition("Ready"));
}
