//! Promises about what a cluster says of its backups.

use crds::names::condition;
use crds::{Conditions, EtcdBackupSchedule};
use jiff::SignedDuration;
use serde_json::{Value, json};

use super::ready;
use crate::testing::World;

fn schedule(name: &str, cluster: &str, entry: &Value) -> EtcdBackupSchedule {
    let mut clusters = vec![json!({ "name": "another" })];
    clusters.extend(Some(entry.clone()).filter(|entry| !entry.is_null()));
    serde_json::from_value(json!({
        "apiVersion": "clusterwright.dev/v1alpha1", "kind": "EtcdBackupSchedule",
        "metadata": { "name": name, "namespace": "fleet", "uid": format!("uid-{name}") },
        "spec": {
            "clusterName": cluster, "schedule": "0 3 * * *",
            "template": { "storageRef": { "name": "s3" }, "encryption": { "recipients": [] } }
        },
        "status": { "clusters": clusters }
    }))
    .unwrap()
}

/// The last good backup of then, which is overdue at that time.
fn good(world: &World, name: &str, overdue_in_hours: i64) -> Value {
    let overdue = world.time().0 + SignedDuration::from_hours(overdue_in_hours);
    let completed = overdue - SignedDuration::from_hours(48);
    json!({
        "name": "a", "lastGood": { "name": name, "completedAt": completed.to_string() },
        "overdueAt": overdue.to_string()
    })
}

fn backed_up(world: &mut World, schedules: Vec<EtcdBackupSchedule>) -> Option<(String, String)> {
    world.schedules = schedules;
    world.settle();
    assert_eq!(ready(world).0, "True", "backups are no part of Ready: {:?}", ready(world));
    let found = world.deployment.condition(condition::BACKED_UP)?;
    Some((format!("{} {}", found.status, found.reason), found.message.clone()))
}

#[test]
fn a_cluster_says_whether_its_last_backup_is_young_enough_where_a_schedule_is_for_it() {
    let mut world = World::new("controlPlane: {replicas: 1}", 1);
    world.settle();
    assert_eq!(backed_up(&mut world, Vec::new()), None);
    let other = schedule("nightly", "b", &good(&world, "nightly-1", 10));
    assert_eq!(backed_up(&mut world, vec![other]), None, "it is for another cluster");
    let unread = schedule("nightly", "a", &Value::Null);
    assert_eq!(backed_up(&mut world, vec![unread]), None, "it has not looked at it yet");

    let never = schedule("nightly", "a", &json!({ "name": "a", "message": "due since noon" }));
    let (state, message) = backed_up(&mut world, vec![never]).unwrap();
    assert_eq!(state, "False NoBackupYet");
    assert_eq!(message, "EtcdBackupSchedule nightly: due since noon");

    let young = schedule("nightly", "a", &good(&world, "nightly-1", 10));
    let (state, message) = backed_up(&mut world, vec![young.clone()]).unwrap();
    assert_eq!(state, "True BackedUp");
    assert!(message.starts_with("EtcdBackup nightly-1 of 202"), "{message}");

    let old = schedule("hourly", "a", &good(&world, "hourly-1", -1));
    let (state, message) = backed_up(&mut world, vec![young, old]).unwrap();
    assert_eq!(state, "False BackupOverdue", "each schedule counts");
    assert!(message.contains("EtcdBackupSchedule hourly: a backup was due twice since"), "{message}");

    assert_eq!(backed_up(&mut world, Vec::new()), None, "the schedule is gone, and what was said of it");
}

#[test]
fn a_backup_becomes_too_old_by_itself() {
    let mut world = World::new("controlPlane: {replicas: 1}", 1);
    world.settle();
    let young = schedule("nightly", "a", &good(&world, "nightly-1", 1));
    assert_eq!(backed_up(&mut world, vec![young.clone()]).unwrap().0, "True BackedUp");
    let later = world.time().0 + SignedDuration::from_hours(1);
    while world.time().0 < later {
        world.run_for(1);
    }
    assert_eq!(backed_up(&mut world, vec![young]).unwrap().0, "False BackupOverdue");
}
