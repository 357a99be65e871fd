//! The backup that precedes an upgrade.

use crds::karmada_deployment::{UpgradeCheck, UpgradeStep as Step};
use crds::names::condition;
use crds::{EtcdBackup, EtcdBackupSchedule, ObjectExt};
use serde_json::{Value, json};

use super::super::super::Component;
use super::super::world::World;
use super::{former, live, until, want};

fn schedule(status: &Value) -> EtcdBackupSchedule {
    serde_json::from_value(json!({
        "apiVersion": "clusterwright.dev/v1alpha1", "kind": "EtcdBackupSchedule",
        "metadata": { "name": "nightly", "namespace": "fleet", "uid": "uid-nightly" },
        "spec": {
            "karmadaDeploymentRef": { "name": "k1" }, "schedule": "0 3 * * *",
            "template": { "storageRef": { "name": "s3" }, "encryption": { "recipients": ["age1x"] } }
        },
        "status": status,
    }))
    .unwrap()
}

/// A plane that works in 1.17.5, and is backed up by a schedule.
fn scheduled() -> World {
    let mut world = former("");
    world.schedules.push(schedule(&Value::Null));
    world
}

/// What became of a backup.
fn ends(backup: &mut EtcdBackup, phase: &str, completed: &str) {
    let content = json!({
        "location": "_karmada/k1/uid-1/x", "revision": 7, "keys": 5, "size": 9, "sha256": "00", "member": "m",
        "etcdVersion": "3.6.6", "startedAt": completed, "completedAt": completed
    });
    let content = if phase == "Succeeded" { content } else { Value::Null };
    let status = json!({ "phase": phase, "message": "the storage is full", "backup": content });
    backup.status = serde_json::from_value(status).unwrap();
}

fn said(world: &World) -> (String, String) {
    let (_, reason, message) = world.condition(condition::UP_TO_DATE);
    (reason, message)
}

#[test]
fn an_upgrade_begins_with_a_backup_of_the_last_hour_which_its_schedule_would_have_made() {
    let mut world = scheduled();
    want(&mut world, "1.18.2");
    world.settle();
    assert_eq!(world.backups.len(), 1, "{:?}", world.log);
    let made = &world.backups[0];
    assert_eq!(world.log, [format!("create EtcdBackup {}", made.name())], "nothing else is touched");
    let (reason, message) = said(&world);
    let waits = format!("Upgrade 1.17.5 -> 1.18.2: waits for EtcdBackup {}", made.name());
    assert_eq!((reason.as_str(), message.as_str()), ("Upgrading", waits.as_str()));
    assert_eq!(made.spec.karmada_deployment_ref.as_ref().map(|plane| plane.name.as_str()), Some("k1"));
    assert!(!world.upgrade().unwrap().summary.contains("no backup"), "{:?}", world.upgrade());
    ends(&mut world.backups[0], "Succeeded", "2026-11-27T08:59:00Z");
    world.settle();
    assert!(world.is_ready(), "{:?}", world.condition("Ready"));
    assert_eq!((live(&world, Component::Webhook).0.as_str(), world.backups.len()), ("1.18.2", 1));
}

#[test]
fn a_backup_that_is_old_or_of_a_namesake_or_not_verified_yet_does_not_do() {
    let check = |edit: &dyn Fn(&mut EtcdBackup)| {
        let mut world = scheduled();
        want(&mut world, "1.18.2");
        world.turn();
        let mut other = world.backups.remove(0);
        other.metadata.name = Some("by-hand".to_owned());
        other.metadata.annotations = None;
        ends(&mut other, "Succeeded", "2026-11-27T08:30:00Z");
        let mut good = world.clone();
        good.backups.push(other.clone());
        good.settle();
        assert_eq!((live(&good, Component::Webhook).0.as_str(), good.backups.len()), ("1.18.2", 1), "one by hand does");
        edit(&mut other);
        world.backups.push(other);
        world.settle();
        assert_eq!(live(&world, Component::Webhook).0, "1.17.5");
        assert!(said(&world).1.contains("waits for EtcdBackup"), "{:?}", said(&world));
    };
    check(&|backup| ends(backup, "Succeeded", "2026-11-27T07:59:00Z"));
    check(&|backup| {
        backup.status.as_mut().unwrap().backup.as_mut().unwrap().location = "_karmada/k1/uid-before/x".to_owned();
    });
    check(&|backup| backup.spec.verify = serde_json::from_value(json!({ "how": "Hash" })).unwrap());
}

#[test]
fn a_backup_that_fails_holds_the_upgrade_and_another_one_is_made_until_nobody_wants_one() {
    let mut world = scheduled();
    want(&mut world, "1.18.2");
    for made in 1..=3 {
        world.settle();
        assert_eq!(world.backups.len(), made);
        ends(world.backups.last_mut().unwrap(), "Failed", "");
        world.settle();
        let (reason, message) = said(&world);
        assert_eq!(reason, "BackupRequired");
        assert!(message.contains("(the storage is full)") && message.contains("name Backup in"), "{message}");
        assert_eq!(world.condition("Ready").1, "BackupRequired");
        world.now += jiff::SignedDuration::from_mins(10);
    }
    assert_eq!(live(&world, Component::ControllerManager), ("1.17.5".to_owned(), 1));
    world.object.spec.upgrade.ignore = vec![UpgradeCheck::Backup];
    world.turn();
    let upgrade = world.upgrade().unwrap();
    assert!(upgrade.summary.ends_with("(no backup of etcd precedes it: spec.upgrade.ignore names it)"), "{upgrade:?}");
    world.settle();
    assert!(world.is_ready() && live(&world, Component::Webhook).0 == "1.18.2");
}

#[test]
fn what_else_holds_an_upgrade_is_said_first_so_that_the_backup_is_young() {
    let mut world = scheduled();
    world.object.spec.upgrade.approval = crds::cluster_deployment::Approval::Manual;
    want(&mut world, "1.18.2");
    world.settle();
    assert_eq!((said(&world).0.as_str(), world.backups.len()), ("WaitingForApproval", 0));
}

#[test]
fn going_back_waits_for_no_backup_of_what_it_leaves() {
    let mut world = scheduled();
    want(&mut world, "1.18.2");
    world.turn();
    ends(&mut world.backups[0], "Succeeded", "2026-11-27T08:59:00Z");
    until(&mut world, Step::Webhook);
    world.now += jiff::SignedDuration::from_hours(2);
    want(&mut world, "1.17.5");
    world.settle();
    assert_eq!((live(&world, Component::Webhook).0.as_str(), world.backups.len()), ("1.17.5", 1));
    assert!(world.is_ready(), "{:?}", world.condition("Ready"));
}

#[test]
fn a_plane_says_whether_it_was_backed_up_of_late_while_a_schedule_is_for_it() {
    let mut world = former("");
    let shown = |world: &mut World| {
        world.turn();
        let status = world.object.status.as_ref().unwrap();
        let found = status.conditions.iter().find(|condition| condition.type_ == condition::BACKED_UP);
        found.map(|found| format!("{} {}: {}", found.status, found.reason, found.message))
    };
    assert_eq!(shown(&mut world), None);
    world.schedules = vec![schedule(&json!({ "clusters": [{ "name": "k1" }] }))];
    assert_eq!(
        shown(&mut world).unwrap(),
        "False NoBackupYet: EtcdBackupSchedule nightly: there is no good backup yet"
    );
    assert!(world.is_ready(), "it is no part of Ready");
    let good = json!({ "name": "b", "completedAt": "2026-11-27T03:00:00Z" });
    let entry = json!({ "name": "k1", "lastGood": good, "overdueAt": "2026-11-29T03:00:00Z" });
    world.schedules = vec![schedule(&json!({ "clusters": [entry] }))];
    assert!(shown(&mut world).unwrap().starts_with("True BackedUp: EtcdBackup b of 2026-11-27"));
    world.now = "2026-11-29T04:00:00Z".parse().unwrap();
    assert!(shown(&mut world).unwrap().starts_with("False BackupOverdue"));
    world.schedules.clear();
    assert_eq!(shown(&mut world), None);
}
