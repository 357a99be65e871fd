use crds::etcd_backup::{BackupDeletionPolicy, BackupPhase, VerifyMethod};
use crds::{
    ClusterDeployment, Conditions, EtcdBackup, EtcdBackupSchedule, EtcdBackupScheduleStatus, EtcdRestore,
    KarmadaDeployment, ObjectExt,
};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde_json::{Value, json};

use super::{Action, Observed, plan};
use crate::{Next, Plan};

/// When the schedule and the clusters were made.
const MADE: &str = "2026-01-01T00:00:00Z";

fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

fn object<K: serde::de::DeserializeOwned>(kind: &str, name: &str, spec: Value, status: Value) -> K {
    let metadata = json!({
        "name": name, "namespace": "fleet", "uid": format!("uid-{name}"), "generation": 1,
        "creationTimestamp": MADE, "labels": { "stage": "prod" }
    });
    let object = json!({
        "apiVersion": "clusterwright.dev/v1alpha1", "kind": kind, "metadata": metadata, "spec": spec, "status": status
    });
    serde_json::from_value(object).unwrap()
}

fn cluster(name: &str) -> ClusterDeployment {
    let spec = json!({ "kubernetesVersion": "1.35.4", "controlPlane": { "replicas": 3 } });
    object("ClusterDeployment", name, spec, json!({ "installedAt": MADE }))
}

struct World {
    now: Timestamp,
    schedule: EtcdBackupSchedule,
    deployments: Vec<ClusterDeployment>,
    plane: Option<KarmadaDeployment>,
    backups: Vec<EtcdBackup>,
    restores: Vec<EtcdRestore>,
    are_restores_known: bool,
    made: Vec<String>,
    deleted: Vec<String>,
}

impl World {
    /// Paris, at 3:00 there, a week of it; from noon of that day.
    fn new(now: &str) -> Self {
        Self::with(now, json!({ "clusterName": "paris", "timeZone": "Europe/Paris" }), &["paris"])
    }

    fn with(now: &str, fields: Value, clusters: &[&str]) -> Self {
        let template = json!({ "storageRef": { "name": "s3" }, "encryption": { "recipients": ["age1x"] } });
        let mut spec = json!({ "schedule": "0 3 * * *", "template": template });
        spec.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        Self {
            now: at(now),
            schedule: object("EtcdBackupSchedule", "nightly", spec, json!({})),
            deployments: clusters.iter().map(|name| cluster(name)).collect(),
            plane: None,
            backups: Vec::new(),
            restores: Vec::new(),
            are_restores_known: true,
            made: Vec::new(),
            deleted: Vec::new(),
        }
    }

    fn plan(&self) -> Plan<Action, EtcdBackupScheduleStatus> {
        plan(&Observed {
            now: self.now,
            schedule: &self.schedule,
            deployments: &self.deployments.iter().collect::<Vec<_>>(),
            plane: self.plane.as_ref(),
            backups: &self.backups.iter().collect::<Vec<_>>(),
            restores: self.are_restores_known.then_some(&self.restores.iter().collect::<Vec<_>>()),
        })
    }

    /// Carries out the plan; how many backups begin.
    fn step(&mut self) -> usize {
        let plan = self.plan();
        let mut begun = 0;
        for action in plan.actions {
            match action {
                Action::Begin(backup) => {
                    let mut backup = *backup;
                    let name = backup.name().to_owned();
                    assert!(name.len() <= 50, "{name}");
                    assert!(!self.made.contains(&name), "{name} is made twice");
                    backup.metadata.uid = Some(format!("uid-{name}"));
                    backup.metadata.creation_timestamp = Some(Time(self.now));
                    self.made.push(name);
                    self.backups.push(backup);
                    begun += 1;
                }
                Action::Delete(backup) => {
                    self.backups.retain(|there| there.name() != backup.name());
                    self.deleted.push(backup.name().to_owned());
                }
            }
        }
        self.schedule.status = Some(plan.status);
        begun
    }

    /// What goes on ends so, a minute later.
    fn end(&mut self, phase: &str, size: i64) {
        let completed = self.now + SignedDuration::from_secs(60);
        for backup in &mut self.backups {
            if backup.status.is_none() {
                let content = json!({
                    "location": format!("paris/{}", backup.name()), "revision": 7, "keys": 5, "size": size,
                    "sha256": "00", "member": "h", "etcdVersion": "3.6.16", "startedAt": self.now.to_string(),
                    "completedAt": completed.to_string()
                });
                let content = if phase == "Succeeded" { content } else { Value::Null };
                let status = json!({ "phase": phase, "message": "the storage does not answer", "backup": content });
                backup.status = serde_json::from_value(status).unwrap();
            }
        }
        self.now = completed;
    }

    fn take(&mut self) -> usize {
        let begun = self.step();
        self.end("Succeeded", 1000);
        self.settle();
        begun
    }

    /// Until nothing more is deleted.
    fn settle(&mut self) {
        for _ in 0..100 {
            let before = self.deleted.len();
            assert_eq!(self.step(), 0, "nothing is due");
            if self.deleted.len() == before {
                return;
            }
            assert_eq!(self.deleted.len(), before + 1, "one after the other");
        }
        panic!("deletes without end");
    }

    /// Goes to when the next one is due.
    fn sleep(&mut self) {
        self.step();
        let status = self.schedule.status.as_ref().unwrap();
        self.now = status.next_schedule_time.as_ref().unwrap().0;
    }

    fn ready(&self) -> (String, String) {
        let ready = self.schedule.condition("Ready").unwrap();
        (format!("{} {}", ready.status, ready.reason), ready.message.clone())
    }

    fn entry(&self) -> &crds::etcd_backup_schedule::ScheduledCluster {
        &self.schedule.status.as_ref().unwrap().clusters[0]
    }
}

#[test]
fn a_cluster_is_backed_up_when_it_is_due_and_once() {
    let mut world = World::new("2026-06-01T10:00:00Z");
    // The backup of that morning was due before there was anything to compare with, and is made up for.
    assert_eq!((world.step(), world.step()), (1, 0));
    let backup = &world.backups[0];
    assert_eq!(backup.spec.cluster_name.as_deref(), Some("paris"));
    assert_eq!((backup.spec.deletion_policy, backup.spec.ttl_seconds), (BackupDeletionPolicy::Delete, None));
    assert!(backup.name().starts_with("nightly-202606010100-"), "{}", backup.name());
    assert!(backup.metadata.owner_references.is_none(), "it stays when the schedule is deleted");
    assert_eq!(backup.metadata.labels.as_ref().unwrap()["clusterwright.dev/schedule"], "nightly");
    assert_eq!(world.ready().0, "False NoBackupYet");
    assert!(world.entry().message.as_ref().unwrap().contains("it begins"));
    world.end("Succeeded", 1000);
    world.settle();
    let (ready, message) = world.ready();
    assert_eq!(ready, "True Scheduled");
    assert_eq!(message, "1 cluster; next at 2026-06-02 01:00:00 UTC");
    assert!(world.schedule.condition("Reconciling").is_none());
    let before = world.schedule.status.clone();
    world.now = at("2026-06-02T00:59:59Z");
    assert_eq!(world.step(), 0);
    assert_eq!(world.schedule.status, before, "at rest nothing is written");
    assert_eq!(world.plan().next, Next::after_seconds(1));
    world.now = at("2026-06-02T01:00:00Z");
    assert_eq!((world.step(), world.step()), (1, 0));
}

#[test]
fn nothing_is_made_up_for_that_was_due_before_the_schedule_or_the_cluster_was_there() {
    let mut world = World::new("2026-06-01T10:00:00Z");
    world.schedule.metadata.creation_timestamp = Some(Time(at("2026-06-01T09:00:00Z")));
    assert_eq!(world.step(), 0);
    let mut world = World::new("2026-06-01T10:00:00Z");
    world.deployments[0].status.as_mut().unwrap().installed_at = Some(Time(at("2026-06-01T09:00:00Z")));
    assert_eq!(world.step(), 0);
    world.now = at("2026-06-02T01:00:00Z");
    assert_eq!(world.step(), 1);
}

#[test]
fn two_years_of_nights_have_one_backup_each_whatever_the_clocks_do() {
    let mut world = World::with(
        "2026-01-01T12:00:00Z",
        json!({
            "clusterName": "paris", "timeZone": "Europe/Paris", "schedule": "30 2 * * *",
            "retention": { "keepLast": 2, "keepDaily": 7, "keepWeekly": 4, "keepMonthly": 6 }
        }),
        &["paris"],
    );
    let mut nights = world.take();
    while world.now < at("2028-03-02T00:00:00Z") {
        world.sleep();
        assert_eq!(world.take(), 1, "{}", world.now);
        assert_eq!(world.ready().0, "True Scheduled", "{}", world.now);
        nights += 1;
        assert!(world.backups.len() <= 2 + 7 + 4 + 6, "{}: {}", world.now, world.backups.len());
    }
    // To 2 March 2028; 29 February is among them.
    assert_eq!(nights, 365 + 365 + 31 + 29 + 2);
    assert_eq!(world.entry().backups as usize, world.backups.len());
}

#[test]
fn what_was_missed_is_made_up_for_once_and_not_after_the_deadline() {
    let away = |deadline: Option<i32>, until: &str| {
        let mut world = World::new("2026-06-01T01:00:00Z");
        world.take();
        world.schedule.spec.starting_deadline_seconds = deadline;
        // The operator is away for days.
        world.now = at(until);
        (world.step(), world)
    };
    let (begun, mut world) = away(None, "2026-06-05T09:00:00Z");
    assert_eq!((begun, world.made.last().unwrap().starts_with("nightly-202606050100-")), (1, true));
    world.end("Succeeded", 1000);
    world.settle();
    assert_eq!(away(Some(600), "2026-06-05T01:10:00Z").0, 1);
    let (begun, mut world) = away(Some(600), "2026-06-02T01:10:01Z");
    assert_eq!((begun, world.ready().0.as_str()), (0, "False BackupMissed"));
    assert!(world.ready().1.contains("2026-06-02 01:00:00 UTC did not begin in time"), "{}", world.ready().1);
    world.now = at("2026-06-03T01:00:00Z");
    assert_eq!(world.take(), 1);
    assert_eq!(world.ready().0, "True Scheduled");
}

#[test]
fn a_restart_makes_none_twice_also_when_the_status_was_lost() {
    let mut world = World::new("2026-06-01T01:00:00Z");
    world.take();
    world.schedule.status = None;
    assert_eq!(world.step(), 0);
    // Somebody deleted it, and the status remembers.
    world.backups.clear();
    assert_eq!(world.step(), 0);
    assert_eq!(world.ready().0, "False NoBackupYet");
}

#[test]
fn a_clock_that_goes_back_makes_none_again_and_one_that_was_years_ahead_stops_nothing() {
    let mut world = World::new("2026-06-02T01:00:00Z");
    world.take();
    world.now = at("2026-06-02T00:30:00Z");
    assert_eq!(world.step(), 0, "an hour back");
    world.now = at("2026-06-02T01:00:00Z");
    assert_eq!(world.step(), 0, "again");
    world.now = at("2026-06-03T01:00:00Z");
    assert_eq!(world.take(), 1);
    world.now = at("2099-06-03T01:00:00Z");
    assert_eq!(world.take(), 1);
    world.now = at("2026-06-03T01:10:00Z");
    assert_eq!(world.step(), 0, "that one is there");
    world.now = at("2026-06-04T01:00:00Z");
    assert_eq!(world.step(), 1, "nobody waits until 2099");
}

#[test]
fn one_that_is_suspended_begins_and_deletes_nothing_and_makes_up_for_it_later() {
    let mut world = World::new("2026-06-01T01:00:00Z");
    world.take();
    world.schedule.spec.suspend = true;
    world.schedule.spec.retention.keep_last = 1;
    world.now = at("2026-06-04T10:00:00Z");
    assert_eq!((world.step(), world.deleted.len()), (0, 0));
    assert_eq!(world.ready().0, "False Suspended");
    assert_eq!(world.schedule.condition("Stalled").unwrap().status, "True");
    let status = world.schedule.status.as_ref().unwrap();
    assert_eq!((&status.next_schedule_time, &status.clusters[0].next_schedule_time), (&None, &None));
    assert!(world.entry().message.as_ref().unwrap().contains("no good backup since 2026-06-01"));
    world.schedule.spec.suspend = false;
    assert_eq!(world.take(), 1);
    assert_eq!((world.deleted.len(), world.ready().0.as_str()), (1, "True Scheduled"));
    assert!(world.schedule.condition("Stalled").is_none());
}

#[test]
fn many_clusters_are_spread_and_few_are_backed_up_at_once() {
    let names: Vec<String> = (0..20).map(|number| format!("c{number:02}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let selector = json!({ "clusterSelector": { "matchLabels": { "stage": "prod" } }, "maxConcurrent": 3 });
    let mut world = World::with("2026-06-01T03:00:00Z", selector, &names);
    world.schedule.metadata.creation_timestamp = Some(Time(at("2026-06-01T02:00:00Z")));
    world.deployments.push(cluster("other"));
    world.deployments.last_mut().unwrap().metadata.labels = None;
    let (mut begun, mut moments) = (0, std::collections::BTreeSet::new());
    for _ in 0..200 {
        world.now += SignedDuration::from_secs(10);
        let more = world.step();
        begun += more;
        let under_way = world.backups.iter().filter(|backup| backup.status.is_none()).count();
        assert!(under_way <= 3, "{under_way} at once");
        if more > 0 {
            moments.insert(world.now);
        }
        if world.now.as_second() % 60 == 0 {
            let now = world.now;
            world.end("Succeeded", 1000);
            world.now = now;
        }
    }
    assert_eq!((begun, world.backups.len()), (20, 20));
    assert!(moments.len() > 10, "they are spread: {}", moments.len());
    assert!(!world.backups.iter().any(|backup| backup.spec.cluster_name.as_deref() == Some("other")));
    let status = world.schedule.status.as_ref().unwrap();
    assert_eq!((status.cluster_count, status.clusters.len()), (20, 20));
    assert!(status.clusters.is_sorted_by_key(|cluster| cluster.name.clone()));
}

#[test]
fn a_backup_that_goes_on_is_waited_for_and_followed_by_the_newest_that_is_due() {
    let mut world = World::new("2026-06-01T01:00:00Z");
    assert_eq!(world.step(), 1);
    world.now = at("2026-06-03T12:00:00Z");
    assert_eq!(world.step(), 0);
    world.end("Succeeded", 1000);
    assert_eq!(world.step(), 1);
    assert!(world.made[1].starts_with("nightly-202606030100-"), "{:?}", world.made);
}

#[test]
fn failed_backups_are_told_of_three_are_kept_and_none_counts() {
    let mut world = World::new("2026-06-01T01:00:00Z");
    world.schedule.spec.retention.keep_last = 1;
    world.take();
    let good = world.backups[0].name().to_owned();
    for night in 1..=5 {
        world.sleep();
        assert_eq!(world.step(), 1);
        world.end("Failed", 0);
        world.settle();
        let (ready, message) = world.ready();
        let expected = if night < 2 { "False LastBackupFailed" } else { "False BackupOverdue" };
        assert_eq!(ready, expected, "{night}");
        assert!(message.contains("the storage does not answer"), "{message}");
        assert!(message.contains(world.made.last().unwrap()), "{message}");
    }
    let phases: Vec<_> = world.backups.iter().map(|backup| backup.status.as_ref().unwrap().phase.unwrap()).collect();
    assert_eq!(phases, [BackupPhase::Succeeded, BackupPhase::Failed, BackupPhase::Failed, BackupPhase::Failed]);
    assert_eq!(world.entry().last_good.as_ref().unwrap().name, good);
    assert_eq!(world.entry().backups, 1);
    world.sleep();
    world.take();
    assert_eq!(world.ready().0, "True Scheduled");
}

#[test]
fn a_backup_that_a_restore_needs_stays_until_that_has_ended() {
    let mut world = World::new("2026-06-01T01:00:00Z");
    world.schedule.spec.retention.keep_last = 1;
    world.take();
    let first = world.backups[0].name().to_owned();
    let location = world.backups[0].status.as_ref().unwrap().backup.as_ref().unwrap().location.clone();
    let restore = |source: Value| -> EtcdRestore {
        let spec = json!({ "clusterName": "paris", "source": source, "identityRef": { "name": "i" } });
        object("EtcdRestore", "back", spec, json!({ "phase": "AwaitingApproval" }))
    };
    let stored = json!({ "stored": { "storageRef": { "name": "s3" }, "location": location } });
    for source in [json!({ "backupRef": { "name": first } }), stored] {
        world.restores = vec![restore(source)];
        world.sleep();
        world.take();
        assert!(world.backups.iter().any(|backup| backup.name() == first), "it is needed");
    }
    world.restores[0].status.as_mut().unwrap().phase = Some(crds::etcd_restore::RestorePhase::Succeeded);
    world.are_restores_known = false;
    world.settle();
    assert_eq!(world.backups.len(), 2, "one that cannot be read may need it");
    world.are_restores_known = true;
    let settled = json!({
        "backup": first, "cluster": "paris", "clusterUID": "uid-paris", "storageRef": { "name": "s3" }, "location": location,
        "takenAt": MADE, "revision": 7, "size": 5, "sha256": "00", "etcdVersion": "3.6.16"
    });
    let spec = world.deployments[0].spec.clone();
    let moved =
        object("ClusterDeployment", "moved", serde_json::to_value(spec).unwrap(), json!({ "restoredFrom": settled }));
    world.deployments.push(moved);
    world.settle();
    assert_eq!(world.backups.len(), 2, "a cluster is being installed with it");
    world.deployments[1].status.as_mut().unwrap().restored_from.as_mut().unwrap().restored_at = Some(Time(world.now));
    world.settle();
    assert_eq!(world.backups.len(), 1);
}

#[test]
fn nothing_is_deleted_while_the_newest_backup_has_lost_half_of_its_size() {
    let mut world = World::new("2026-06-01T01:00:00Z");
    world.schedule.spec.retention.keep_last = 2;
    world.take();
    world.sleep();
    world.take();
    world.sleep();
    world.step();
    world.end("Succeeded", 499);
    world.settle();
    assert_eq!((world.backups.len(), world.ready().0.as_str()), (3, "False BackupShrank"));
    assert!(world.ready().1.contains("499 B"), "{}", world.ready().1);
    world.sleep();
    world.step();
    world.end("Succeeded", 500);
    world.settle();
    assert_eq!((world.backups.len(), world.ready().0.as_str()), (2, "True Scheduled"));
}

#[test]
fn backups_of_a_cluster_that_had_the_name_before_stay() {
    let mut world = World::new("2026-06-01T01:00:00Z");
    world.schedule.spec.retention.keep_last = 1;
    world.take();
    world.deployments[0].metadata.uid = Some("uid-of-another".into());
    assert_eq!(world.step(), 0, "the status remembers that it was due");
    world.sleep();
    world.take();
    world.sleep();
    world.take();
    assert_eq!((world.backups.len(), world.deleted.len(), world.entry().backups), (2, 1, 1));
}

#[test]
fn one_that_is_being_deleted_is_waited_for() {
    let mut world = World::new("2026-06-01T01:00:00Z");
    world.take();
    world.sleep();
    world.take();
    world.sleep();
    world.take();
    world.schedule.spec.retention.keep_last = 1;
    world.backups[0].metadata.deletion_timestamp = Some(Time(world.now));
    assert!(world.plan().actions.is_empty());
    world.backups.remove(0);
    assert!(matches!(world.plan().actions.as_slice(), [Action::Delete(_)]));
}

#[test]
fn what_cannot_be_backed_up_is_told() {
    let check = |change: fn(&mut World), ready: &str, words: &str| {
        let mut world = World::new("2026-06-01T10:00:00Z");
        change(&mut world);
        assert_eq!((world.step(), world.ready().0.as_str()), (0, ready));
        assert!(world.ready().1.contains(words), "{}", world.ready().1);
        let stalled = world.schedule.condition("Stalled").is_some();
        assert_eq!(stalled, ["ScheduleInvalid", "TimeZoneUnknown"].iter().any(|it| ready.contains(it)));
    };
    check(|world| world.schedule.spec.schedule = "0 25 * * *".into(), "False ScheduleInvalid", "\"25\" is no hour");
    check(|world| world.schedule.spec.time_zone = "Mars".into(), "False TimeZoneUnknown", "spec.timeZone: \"Mars\"");
    check(|world| world.deployments.clear(), "False ClusterNotFound", "ClusterDeployment paris is not there");
    check(|world| world.deployments[0].status = None, "False NotInstalled", "paris is not installed yet");
    let nobody = |world: &mut World| {
        world.schedule.spec.cluster_name = None;
        let selector = json!({ "matchLabels": { "stage": "none" } });
        world.schedule.spec.cluster_selector = serde_json::from_value(selector).unwrap();
    };
    check(nobody, "True NoClusters", "selects no ClusterDeployment");
}

#[test]
fn a_cluster_that_is_not_installed_yet_is_no_fault_where_others_are_backed_up() {
    let mut world =
        World::with("2026-06-01T03:00:00Z", json!({ "clusterSelector": {}, "spreadSeconds": 0 }), &["lyon", "paris"]);
    world.deployments[0].status = None;
    assert_eq!(world.take(), 1);
    assert_eq!(world.ready().0, "True Scheduled");
    let status = world.schedule.status.as_ref().unwrap();
    assert!(status.clusters[0].message.as_ref().unwrap().contains("lyon is not installed yet"));
    assert!(status.last_successful_time.is_some());
}

#[test]
fn a_cluster_whose_etcd_is_external_is_backed_up_as_others_are() {
    let mut world = World::new("2026-06-01T03:00:00Z");
    world.deployments[0].spec.etcd.topology = crds::cluster_deployment::EtcdTopology::External;
    assert_eq!(world.take(), 1);
    assert_eq!(world.ready().0, "True Scheduled");
}

#[test]
fn an_etcd_without_a_cluster_is_backed_up_and_keeps_its_backups_when_its_endpoints_change() {
    let etcd = json!({ "endpoints": ["https://10.0.0.5:2379"], "secretRef": { "name": "etcd" } });
    let mut world = World::with("2026-06-01T03:00:00Z", json!({ "etcd": etcd }), &["paris"]);
    assert_eq!(world.take(), 1);
    let backup = &world.backups[0];
    assert_eq!((&backup.spec.cluster_name, &backup.spec.etcd), (&None, &world.schedule.spec.etcd));
    assert_eq!(backup.metadata.labels.as_ref().map(|labels| labels.len()), Some(1));
    let (ready, message) = world.ready();
    assert!(ready == "True Scheduled" && message.starts_with("1 etcd; next at"), "{ready}: {message}");
    world.schedule.spec.etcd.as_mut().unwrap().endpoints.push("https://10.0.0.6:2379".into());
    world.now += SignedDuration::from_hours(24);
    assert_eq!(world.take(), 1);
    let status = world.schedule.status.as_ref().unwrap();
    assert_eq!((status.clusters.len(), status.clusters[0].name.as_str(), status.clusters[0].backups), (1, "etcd", 2));
}

fn karmada(more: Value) -> KarmadaDeployment {
    let mut spec = json!({ "version": "1.18.2", "crds": { "bundle": { "url": "https://b.example" } } });
    spec.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    object("KarmadaDeployment", "k1", spec, json!({ "version": "1.18.2" }))
}

#[test]
fn a_plane_is_backed_up_as_clusters_are_and_its_backups_are_kept_apart_from_those_of_a_namesake() {
    let fields = json!({ "karmadaDeploymentRef": { "name": "k1" }, "retention": { "keepLast": 2 } });
    let mut world = World::with("2026-06-01T03:00:00Z", fields, &["paris"]);
    assert_eq!((world.step(), world.ready().0.as_str()), (0, "False KarmadaDeploymentNotFound"));
    world.plane = Some(karmada(json!({})));
    world.plane.as_mut().unwrap().status = None;
    assert_eq!((world.step(), world.ready().0.as_str()), (0, "False NotInstalled"));
    assert!(world.ready().1.contains("plane k1 is not installed yet"), "{}", world.ready().1);
    world.plane = Some(karmada(json!({})));
    for _ in 0..4 {
        assert_eq!(world.take(), 1);
        world.now += SignedDuration::from_hours(24);
    }
    let spec = &world.backups[0].spec;
    assert_eq!(
        (&spec.cluster_name, &spec.karmada_deployment_ref),
        (&None, &Some(crds::references::LocalRef::new("k1")))
    );
    let labels = world.backups[0].metadata.labels.clone().unwrap();
    assert_eq!(labels.get("clusterwright.dev/karmada").map(String::as_str), Some("k1"));
    assert!(!labels.contains_key("clusterwright.dev/cluster"));
    assert_eq!((world.backups.len(), world.deleted.len()), (2, 2));
    let (ready, message) = world.ready();
    assert!(ready == "True Scheduled" && message.starts_with("1 plane; next at"), "{ready}: {message}");
    // A plane that is made anew under the name is another one.
    world.plane.as_mut().unwrap().metadata.uid = Some("uid-later".into());
    world.step();
    assert_eq!(world.schedule.status.as_ref().unwrap().clusters[0].backups, 0);
    assert_eq!(world.deleted.len(), 2);
}

impl World {
    /// The newest backup was verified, and is so.
    fn verify(&mut self, is_good: bool) {
        let backup = self.backups.last_mut().unwrap();
        let how = backup.spec.verify.as_ref().unwrap().how;
        let ended = crds::etcd_backup::Verification { at: Time(self.now), how };
        let status = backup.status.as_mut().unwrap();
        match is_good {
            true => status.verified = Some(ended),
            false => status.damaged = Some(ended),
        }
        let condition = json!([{
            "type": "Verified", "status": "False", "reason": "Because", "message": "it is on fire",
            "lastTransitionTime": MADE
        }]);
        status.conditions = serde_json::from_value(condition).unwrap();
    }

    fn is_to_be_verified(&self) -> bool {
        self.backups.last().unwrap().spec.verify.is_some()
    }
}

fn verified(fields: Value) -> World {
    let fields = json!({ "clusterName": "paris", "verify": fields, "retention": { "keepLast": 2 } });
    World::with("2026-06-01T10:00:00Z", fields, &["paris"])
}

#[test]
fn a_backup_is_verified_where_none_was_for_long_enough_also_by_what_the_status_remembers() {
    let mut world = verified(json!({ "how": "Restore", "identityRef": { "name": "i" } }));
    world.take();
    let verify = world.backups[0].spec.verify.clone().unwrap();
    assert_eq!((verify.how, verify.identity_ref.unwrap().name.as_str()), (VerifyMethod::Restore, "i"));
    world.verify(true);
    let first = world.backups[0].name().to_owned();
    for day in 1..=8 {
        world.sleep();
        world.take();
        // It was verified at 10:01 of the first day, and at 3:00 of the eighth it is not a week since.
        assert_eq!(world.is_to_be_verified(), day == 8, "{day}");
        let last = world.entry().last_verified.clone().unwrap();
        assert_eq!((last.name.as_str(), last.how), (first.as_str(), VerifyMethod::Restore), "{day}");
    }
    assert!(world.deleted.contains(&first));
    assert_eq!(world.ready().0, "True Scheduled");
}

#[test]
fn each_one_is_verified_with_zero_and_none_twice_while_one_is_under_way() {
    let mut world = verified(json!({ "how": "Hash", "everySeconds": 0 }));
    for _ in 0..3 {
        world.take();
        assert!(world.is_to_be_verified());
        world.verify(true);
        world.sleep();
    }
    let mut world = verified(json!({ "how": "Hash", "everySeconds": 100_000 }));
    world.take();
    world.sleep();
    world.take();
    assert!(!world.is_to_be_verified(), "the first is about to be");
    world.sleep();
    world.take();
    assert!(world.is_to_be_verified(), "it was not for too long");
}

#[test]
fn one_that_was_found_damaged_counts_no_more_is_told_and_the_next_is_verified() {
    let mut world = verified(json!({ "how": "Hash" }));
    world.take();
    world.verify(true);
    let first = world.backups[0].name().to_owned();
    world.sleep();
    world.schedule.spec.verify.as_mut().unwrap().every_seconds = Some(0);
    world.take();
    world.verify(false);
    let second = world.backups[1].name().to_owned();
    world.schedule.spec.verify.as_mut().unwrap().every_seconds = None;
    world.step();
    let (ready, message) = world.ready();
    assert_eq!(ready, "False LastVerificationFailed");
    assert!(message.contains(&second) && message.contains("it is on fire"), "{message}");
    assert_eq!(world.entry().last_good.as_ref().unwrap().name, first, "it is good, and the newer is not");
    assert_eq!(world.entry().backups, 1);
    for _ in 0..3 {
        world.sleep();
        world.take();
        assert!(!world.deleted.contains(&second), "it is kept, to be looked at");
        assert!(world.is_to_be_verified());
    }
    world.verify(true);
    world.step();
    assert_eq!(world.ready().0, "True Scheduled");
}

#[test]
fn a_verification_that_is_not_made_is_told() {
    let mut world = verified(json!({ "how": "Hash" }));
    world.take();
    world.verify(true);
    let status = world.backups[0].status.as_mut().unwrap();
    (status.verified, status.verification_failures) = (None, Some(2));
    world.step();
    let (ready, message) = world.ready();
    assert_eq!(ready, "False VerificationNotMade");
    assert!(message.contains("it is on fire"), "{message}");
    assert!(world.entry().last_good.is_some());
}

#[test]
fn only_damaged_backups_are_never_all_that_is_kept() {
    let mut world = verified(json!({ "how": "Hash", "everySeconds": 0 }));
    world.take();
    world.verify(true);
    let good = world.backups[0].name().to_owned();
    for _ in 0..8 {
        world.sleep();
        world.take();
        world.verify(false);
        world.settle();
    }
    assert!(!world.deleted.contains(&good));
    assert_eq!(world.backups.len(), 4, "the good one, and three that are damaged");
}

#[test]
fn the_newest_that_is_not_to_be_verified_yet_is_kept_beside_one_that_is() {
    let mut world = verified(json!({ "how": "Hash", "everySeconds": 0 }));
    world.schedule.spec.retention.keep_last = 1;
    world.take();
    world.verify(true);
    let good = world.backups[0].name().to_owned();
    world.sleep();
    world.take();
    assert!(!world.deleted.contains(&good), "the other may be damaged");
    world.verify(true);
    world.settle();
    assert!(world.deleted.contains(&good));
}
