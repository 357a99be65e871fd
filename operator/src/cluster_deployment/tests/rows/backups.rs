//! Backups of the cluster and a restore of it: what executors and people do, and what must have come of it.

use std::collections::BTreeMap;

use crds::etcd_restore::RestorePhase;
use crds::names::label;
use crds::step::Intent;
use crds::{EtcdBackup, EtcdBackupSchedule, EtcdRestore, ObjectExt, PlaybookRun};
use k8s_openapi::api::batch::v1::Job;
use serde_json::{Value, json};

use super::faults::{self, Fault};
use super::{Controller, DEPLOYMENT, Deed, TURNS, Told, World, live, look, same_end};

const OF_BACKUPS: [Deed; 4] = [Deed::BackUp, Deed::Schedule, Deed::RemoveBackup, Deed::Restore];
const BACKUP: &str = "etcdbackups/fleet/nightly";
const RESTORE: &str = "etcdrestores/fleet/back";

fn put(world: &World, plural: &str, kind: &str, name: &str, spec: Value) {
    let object = json!({
        "apiVersion": "clusterwright.dev/v1alpha1", "kind": kind,
        "metadata": { "name": name, "namespace": "fleet" }, "spec": spec,
    });
    world.ours.put(plural, &object.to_string());
}

/// Where backups go, and whom they are for.
fn template() -> Value {
    let recipient = format!("age1{}", "q".repeat(58));
    json!({ "storageRef": { "name": "s3" }, "encryption": { "recipients": [recipient] }, "deletionPolicy": "Delete" })
}

impl World {
    fn put_storage(&self) {
        put(self, "backupstorages", "BackupStorage", "s3", json!({ "volume": { "claimName": "nfs" } }));
        self.ours.edit("backupstorages/fleet/s3", |storage| {
            storage["status"] = json!({ "conditions": [{
                "type": "Reachable", "status": "True", "reason": "Reachable", "message": "",
                "lastTransitionTime": "2026-01-01T00:00:00Z",
            }]});
        });
    }

    pub(super) fn back_up(&self) {
        self.put_storage();
        let mut spec = template();
        (spec["clusterName"], spec["verify"]) = (json!("a"), json!({ "how": "Hash" }));
        put(self, "etcdbackups", "EtcdBackup", "nightly", spec);
    }

    pub(super) fn schedule(&self) {
        self.put_storage();
        // What was due before the cluster was installed is not made up for.
        self.ours.edit(DEPLOYMENT, |deployment| deployment["status"]["installedAt"] = json!("2026-01-01T00:00:00Z"));
        let spec = json!({ "clusterName": "a", "schedule": "0 0 1 2 *", "template": template() });
        put(self, "etcdbackupschedules", "EtcdBackupSchedule", "yearly", spec);
    }

    pub(super) fn remove_backup(&self) {
        self.ours.edit(BACKUP, |backup| backup["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z"));
    }

    pub(super) fn restore(&self) {
        let source = json!({ "backupRef": { "name": "nightly" } });
        let spec = json!({ "clusterName": "a", "source": source, "identityRef": { "name": "i" } });
        put(self, "etcdrestores", "EtcdRestore", "back", spec);
    }

    /// What executors report of runs that succeeded, Jobs end, and a person approves of what is asked for first.
    pub(super) fn time_of_backups(&self) {
        for run in self.ours.list::<PlaybookRun>("playbookruns") {
            let status = run.status.clone().unwrap_or_default();
            let is_of_etcd = [Intent::Backup, Intent::Stage, Intent::Restore].contains(&run.spec.intent);
            if is_of_etcd && status.steps.is_empty() && status.finished_at.is_some() {
                self.ours.edit(&format!("playbookruns/fleet/{}", run.name()), |object| report(&run, object));
            }
        }
        for job in self.ours.list::<Job>("jobs") {
            self.end_job(&job);
        }
        let asked = self.ours.get(RESTORE).filter(|restore| restore["status"]["phase"] == "AwaitingApproval");
        let message = asked.and_then(|restore| restore["status"]["message"].as_str().map(str::to_owned));
        let value = message.and_then(|message| Some(message.rsplit_once("approve=")?.1.to_owned()));
        let mut approved = self.approved.lock().unwrap();
        if let (Some(value), None) = (value, approved.as_ref()) {
            self.ours.edit(RESTORE, |restore| {
                restore["metadata"]["annotations"] = json!({ "clusterwright.dev/approve": value });
            });
            *approved = Some(value);
        }
    }

    fn end_job(&self, job: &Job) {
        let pod = format!("{}-pod", job.name());
        if self.ours.get(&format!("pods/fleet/{pod}")).is_some() {
            return;
        }
        let of_template = job.spec.as_ref().unwrap().template.spec.as_ref().unwrap();
        let said = match of_template.containers[0].args.as_ref().unwrap()[0].as_str() {
            "remove-backup" => json!({ "removed": true }),
            _ => json!({ "isGood": true, "message": "all objects are what was written" }),
        };
        let owner = json!({ "apiVersion": "batch/v1", "kind": "Job", "name": job.name(), "uid": job.uid() });
        let object = json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {
                "name": pod, "namespace": "fleet", "labels": { label::BACKUP: "nightly" }, "ownerReferences": [owner],
            },
            "status": { "containerStatuses": [{
                "name": "executor", "image": "x", "imageID": "", "ready": false, "restartCount": 0,
                "state": { "terminated": { "exitCode": 0, "message": said.to_string() } },
            }]},
        });
        self.ours.put("pods", &object.to_string());
    }

    pub(super) fn told_of_backups(&self) -> Vec<String> {
        let backups = self.ours.list::<EtcdBackup>("etcdbackups").into_iter().map(|backup| {
            let status = backup.status.clone().unwrap_or_default();
            let place = status.backup.map(|content| content.location);
            format!("{} {:?} in {place:?}, verified {}", backup.name(), status.phase, status.verified.is_some())
        });
        let restores = self.ours.list::<EtcdRestore>("etcdrestores").into_iter().map(|restore| {
            let status = restore.status.clone().unwrap_or_default();
            format!("{} {:?} after {:?}", restore.name(), status.phase, status.safety_backup)
        });
        let schedules = self.ours.list::<EtcdBackupSchedule>("etcdbackupschedules").into_iter().map(|schedule| {
            let clusters = schedule.status.clone().unwrap_or_default().clusters;
            format!("{} {:?}", schedule.name(), clusters.first().and_then(|cluster| cluster.last_good.as_ref()))
        });
        backups.chain(restores).chain(schedules).collect()
    }
}

/// What the executor of a run that succeeded has put into its status.
fn report(run: &PlaybookRun, object: &mut Value) {
    let steps = run.spec.steps.iter();
    let steps: Vec<Value> = steps.map(|step| json!({ "name": step, "phase": "Succeeded", "changed": 0 })).collect();
    object["status"]["steps"] = json!(steps);
    // No later than what comes after it.
    let at = "2026-01-01T00:00:00Z";
    if run.spec.intent == Intent::Backup {
        object["status"]["backup"] = json!({
            "location": format!("a/uid/{}", run.name()), "revision": 77, "keys": 5, "size": 1, "sha256": "00",
            "member": "h1", "etcdVersion": "3.6.16", "startedAt": at, "completedAt": at,
        });
    } else if run.spec.intent == Intent::Stage {
        object["status"]["staged"] = json!({
            "backup": "nightly", "location": "a/uid/x", "takenAt": at, "revision": 77, "keys": 5, "size": 1,
            "sha256": "00", "etcdVersion": "3.6.16", "bump": 1, "clusterID": "beef",
        });
    }
}

/// What must have come of it: every run but those of the cluster's own was made once for its purpose.
pub(super) fn assert_done(deed: Deed, told: &Told) {
    let of_etcd = ["Backup", "Stage", "Restore"];
    let runs = told.runs.iter().filter(|(title, _)| of_etcd.iter().any(|intent| title.starts_with(intent)));
    let runs: BTreeMap<&str, usize> = runs.map(|(title, made)| (title.as_str(), *made)).collect();
    let (expected, phases): (&[(&str, usize)], &[&str]) = match deed {
        Deed::BackUp => (&[("Backup on h1", 1)], &["nightly Some(Succeeded)"]),
        Deed::Schedule => (&[("Backup on h1", 1)], &["yearly-", "yearly Some("]),
        Deed::RemoveBackup => (&[], &[]),
        Deed::Restore => (
            &[("Backup on h1", 2), ("Restore on h1", 1), ("Restore on h1 h2", 1), ("Stage on h1", 1)],
            &["back-before Some(Succeeded)", "nightly Some(Succeeded)", "back Some(Succeeded) after Some("],
        ),
        _ => unreachable!("{deed:?} is no deed of backups"),
    };
    assert_eq!(runs.into_iter().collect::<Vec<_>>(), expected, "{deed:?}: {told:#?}");
    assert_eq!(told.backups.len(), phases.len(), "{deed:?}: {told:#?}");
    for (told, phase) in told.backups.iter().zip(phases) {
        assert!(told.starts_with(phase), "{deed:?}: {told}");
    }
}

#[tokio::test]
async fn a_backup_or_a_restore_whose_operator_dies_at_any_write_is_ended_by_another_the_same_rows_1_2_and_10() {
    for deed in OF_BACKUPS {
        same_end(deed, faults::deaths).await;
    }
}

#[tokio::test]
async fn caches_that_are_behind_take_no_backup_twice_and_restore_nothing_twice_rows_3_and_4() {
    for deed in OF_BACKUPS {
        same_end(deed, faults::behind).await;
        same_end(deed, faults::misses).await;
    }
}

#[tokio::test]
async fn conflicts_at_any_write_of_a_backup_or_a_restore_are_tried_again_row_5() {
    for deed in OF_BACKUPS {
        same_end(deed, faults::conflicts).await;
    }
}

/// How far a restore is that nothing comes in the way of.
fn progress(world: &World) -> Option<usize> {
    const PHASES: [RestorePhase; 7] = [
        RestorePhase::Pending,
        RestorePhase::Staging,
        RestorePhase::AwaitingApproval,
        RestorePhase::BackingUp,
        RestorePhase::Restoring,
        RestorePhase::Restarting,
        RestorePhase::Succeeded,
    ];
    let restore = world.ours.list::<EtcdRestore>("etcdrestores").remove(0);
    let phase = restore.status.and_then(|status| status.phase)?;
    Some(PHASES.iter().position(|there| *there == phase).unwrap())
}

/// Of an earlier operator, or of a cache that is behind: what it says of the phase is not written.
#[tokio::test]
async fn what_a_cache_shows_too_late_takes_no_phase_back_row_3() {
    let standing = live(&World::standing().await, Deed::BackUp, Fault::None).await.0;
    standing.ask(Deed::Restore);
    let (ctx, mut shown, mut reached) = (standing.operator(), Vec::new(), None);
    for _ in 0..24 {
        shown.push(standing.ours.copy());
        standing.turn(&ctx).await;
        for then in &shown {
            reached = reached.max(progress(&standing));
            let late = standing.operator();
            look(&late, then);
            Controller::Etcd.pass(&late, then).await;
            assert!(progress(&standing) >= reached, "{:?} after {reached:?}", progress(&standing));
        }
    }
    let told = standing.told_of_backups();
    assert!(told.iter().any(|told| told.starts_with("back Some(Succeeded)")), "{told:?}");
}

#[tokio::test]
async fn an_api_server_that_is_busy_away_or_refuses_holds_a_backup_or_a_restore_and_changes_nothing_rows_6_7_and_8() {
    for deed in OF_BACKUPS {
        same_end(deed, faults::refusals).await;
    }
}

#[tokio::test]
async fn whoever_reconciles_a_backup_or_a_restore_however_often_it_is_done_once_row_12() {
    for deed in OF_BACKUPS {
        same_end(deed, |_| vec![Fault::Rival, Fault::Repeats(100)]).await;
    }
}

#[tokio::test]
async fn a_webhook_that_is_down_or_slow_holds_a_backup_or_a_restore_and_changes_nothing_row_41() {
    for deed in OF_BACKUPS {
        same_end(deed, faults::unanswered_webhooks).await;
    }
}

#[tokio::test]
async fn an_operator_of_another_version_goes_on_with_a_backup_or_a_restore_wherever_it_is_row_33() {
    for deed in OF_BACKUPS {
        same_end(deed, faults::other_versions).await;
    }
}

#[tokio::test]
async fn what_cannot_be_decoded_is_waited_for_by_a_backup_or_a_restore_and_is_not_taken_for_gone_row_47() {
    const KINDS: [&str; 6] =
        ["clusterdeployments", "playbookruns", "backupstorages", "etcdbackups", "etcdrestores", "hosts"];
    for deed in OF_BACKUPS {
        let at = |turn| KINDS.map(|plural| Fault::Undecodable(turn, plural));
        same_end(deed, |_| (0..20).step_by(2).flat_map(at).collect()).await;
    }
}

/// What `kubectl delete namespace` does: all in it is deleted, and nothing can be made in it any more.
pub(super) fn delete_namespace(world: &World) {
    let terminating = json!({ "causes": [{ "reason": "NamespaceTerminating", "message": "it is being terminated" }] });
    world.ours.refuse("POST", usize::MAX, 403, terminating);
    for name in world.ours.names() {
        world.ours.edit(&name, |object| object["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z"));
    }
}

#[tokio::test]
async fn a_namespace_that_is_deleted_takes_its_backups_and_restores_and_cleans_nothing_row_31() {
    let standing = World::standing().await;
    let backed_up = live(&standing, Deed::BackUp, Fault::None).await.0;
    for (deed, before) in [(Deed::BackUp, &standing), (Deed::Restore, &backed_up)] {
        for goes_in in 0..16 {
            let world = before.copy();
            world.ask(deed);
            let ctx = world.operator();
            for _ in 0..goes_in {
                world.turn(&ctx).await;
            }
            let claimed = |world: &World| -> Vec<(String, bool)> {
                let hosts = world.ours.list::<crds::Host>("hosts").into_iter();
                hosts.map(|host| (host.name().to_owned(), host.spec.claim_ref.is_some())).collect()
            };
            let (held, was_stored) = (claimed(&world), stored(&world));
            delete_namespace(&world);
            let before = world.ours.names();
            for _ in 0..TURNS {
                world.turn(&ctx).await;
            }
            let place = format!("{deed:?} in turn {goes_in}: {:#?}", world.ours.requests());
            let made: Vec<String> = world
                .ours
                .names()
                .into_iter()
                .filter(|name| !before.contains(name) && !name.contains("-pod"))
                .collect();
            assert_eq!(made, [""; 0], "{place}");
            // The Hosts that serve the cluster stay, and stay its own.
            let held: Vec<(String, bool)> = held.into_iter().filter(|(_, claimed)| *claimed).collect();
            assert_eq!(claimed(&world), held, "{place}");
            assert!(world.ours.get(RESTORE).is_none(), "{place}");
            let Some(backup) = world.ours.get(BACKUP) else {
                assert!(!was_stored, "what is stored is let go only by a person: {place}");
                continue;
            };
            let conditions = backup["status"]["conditions"].as_array().cloned().unwrap_or_default();
            let deleting = conditions.into_iter().find(|condition| condition["type"] == "Deleting").unwrap_or_default();
            let (reason, message) = (&deleting["reason"], deleting["message"].as_str().unwrap_or_default());
            assert_eq!(reason, "BackupNotRemoved", "{message} {place}");
            let approval = message.rsplit_once("approve=").expect("the way to let it go").1.to_owned();
            world.ours.edit(BACKUP, |backup| {
                backup["metadata"]["annotations"] = json!({ "clusterwright.dev/approve": approval });
            });
            world.turn(&ctx).await;
            assert!(world.ours.get(BACKUP).is_none(), "{place}");
        }
    }
}

/// Whether something of the backup is in its storage.
fn stored(world: &World) -> bool {
    world.ours.get(BACKUP).is_some_and(|backup| backup["status"]["backup"].is_object())
}
