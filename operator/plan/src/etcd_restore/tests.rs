mod faults;
mod planes;

use crds::etcd_restore::RestorePhase;
use crds::names::{annotation, finalizer};
use crds::playbook_run::{RunPhase, StepPhase, StepStatus};
use crds::step::{Intent, Step};
use crds::{BackupStorage, ClusterDeployment, Conditions, EtcdBackup, EtcdRestore, Machine, ObjectExt, PlaybookRun};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde_json::{Value, json};

use super::{Action, Observed, holds_the_cluster, is_over, plan};
use crate::key_transfer::RestoringSeen;
use crate::{Next, Plan};

const NOW: &str = "2026-03-01T12:00:00Z";

fn object<K: serde::de::DeserializeOwned>(kind: &str, name: &str, spec: Value, status: Value) -> K {
    serde_json::from_value(json!({
        "apiVersion": "clusterwright.dev/v1alpha1", "kind": kind,
        "metadata": {
            "name": name, "namespace": "fleet", "uid": format!("{name}-uid-of-it"), "generation": 1,
            "creationTimestamp": NOW
        },
        "spec": spec, "status": status
    }))
    .unwrap()
}

/// A cluster of three control planes and a worker, and one restore of it.
struct World {
    now: Timestamp,
    resumed_at: Option<Timestamp>,
    restore: EtcdRestore,
    backup: Option<EtcdBackup>,
    storage: Option<BackupStorage>,
    safety: Option<EtcdBackup>,
    deployment: Option<ClusterDeployment>,
    machines: Vec<Machine>,
    runs: Vec<PlaybookRun>,
    others: Vec<EtcdRestore>,
    gone: bool,
}

fn restore(name: &str) -> EtcdRestore {
    let source = json!({ "backupRef": { "name": "nightly" } });
    object(
        "EtcdRestore",
        name,
        json!({ "clusterName": "paris", "source": source, "identityRef": { "name": "i" } }),
        json!({}),
    )
}

fn storage(reachable: &str) -> BackupStorage {
    let condition = json!({
        "type": "Reachable", "status": reachable, "reason": "Because", "message": "no such bucket",
        "lastTransitionTime": NOW
    });
    object("BackupStorage", "s3", json!({ "volume": { "claimName": "nfs" } }), json!({ "conditions": [condition] }))
}

fn backup(phase: &str) -> EtcdBackup {
    let spec = json!({
        "clusterName": "paris", "storageRef": { "name": "s3" },
        "encryption": { "recipients": [format!("age1{}", "q".repeat(58))] }
    });
    object("EtcdBackup", "nightly", spec, json!({ "phase": phase }))
}

fn machine(name: &str, role: &str) -> Machine {
    let spec = json!({
        "clusterName": "paris", "role": role, "kubernetesVersion": "1.35.4", "setName": "s", "hostRef": { "name": name }
    });
    object("Machine", name, spec, json!({ "provisionedAt": NOW, "nodeName": format!("node-{name}") }))
}

impl World {
    fn new() -> Self {
        let spec = json!({
            "kubernetesVersion": "1.35.4", "controlPlane": { "replicas": 3 },
            "networking": { "podCIDR": "10.0.0.0/16", "serviceCIDR": "10.1.0.0/16", "plugin": { "name": "bridge" } }
        });
        Self {
            now: NOW.parse().unwrap(),
            resumed_at: None,
            restore: restore("undo-monday"),
            backup: Some(backup("Succeeded")),
            storage: Some(storage("True")),
            safety: None,
            deployment: Some(object("ClusterDeployment", "paris", spec, json!({ "installedAt": NOW }))),
            machines: ["b", "a", "c"]
                .map(|name| machine(name, "control-plane"))
                .into_iter()
                .chain([machine("w", "worker")])
                .collect(),
            runs: Vec::new(),
            others: Vec::new(),
            gone: false,
        }
    }

    fn plan(&self) -> Plan<Action, crds::EtcdRestoreStatus> {
        let restores: Vec<&EtcdRestore> = self.others.iter().chain([&self.restore]).collect();
        plan(&Observed {
            now: self.now,
            resumed_at: self.resumed_at,
            restore: &self.restore,
            backup: self.backup.as_ref(),
            storage: self.storage.as_ref(),
            safety: self.safety.as_ref(),
            safety_storage: self.storage.as_ref(),
            deployment: self.deployment.as_ref(),
            machines: &self.machines.iter().collect::<Vec<_>>(),
            runs: &self.runs.iter().collect::<Vec<_>>(),
            restores: &restores,
            plane: None,
            keys: &RestoringSeen::default(),
        })
    }

    /// Carries out the plan, and says the phase and the message.
    fn step(&mut self) -> (RestorePhase, String) {
        let plan = self.plan();
        for action in plan.actions {
            match action {
                Action::AddFinalizer => self.restore.metadata.finalizers = Some(vec![finalizer::RESTORE.into()]),
                Action::RemoveFinalizer => self.gone = true,
                Action::FetchKeys(_) | Action::DropKeyTransfer => panic!("a cluster's are fetched by its runs"),
                Action::BackUp(mut backup) => {
                    assert!(self.safety.is_none(), "it is made once");
                    assert!(backup.metadata.owner_references.is_none(), "it stays when the restore goes");
                    backup.metadata.uid = Some("uid-of-safety".into());
                    self.safety = Some(*backup);
                }
                Action::Begin(run) => {
                    let held = self.restore.metadata.finalizers.as_ref().is_some_and(|all| !all.is_empty());
                    assert!(held, "a run of an object that may go at any moment");
                    let mut run = *run;
                    assert!(!self.runs.iter().any(|there| there.name() == run.name()), "{} is made twice", run.name());
                    let live = |run: &PlaybookRun| run.status.as_ref().is_none_or(|it| it.phase.is_none());
                    assert!(!self.runs.iter().any(live), "{} is made beside another", run.name());
                    run.metadata.uid = Some(format!("uid-{}", run.name()));
                    run.status = Some(Default::default());
                    self.runs.push(run);
                }
            }
        }
        self.restore.status = Some(plan.status.clone());
        (plan.status.phase.unwrap(), plan.status.message.unwrap())
    }

    fn last(&self) -> &PlaybookRun {
        self.runs.last().unwrap()
    }

    /// The last run ends in this phase, in the step of this index.
    fn end(&mut self, phase: RunPhase, failed_in: Option<usize>) {
        let now = Time(self.now);
        let run = self.runs.last_mut().unwrap();
        let steps = run.spec.steps.clone();
        let status = run.status.get_or_insert_default();
        status.steps = steps
            .iter()
            .enumerate()
            .map(|(index, step)| StepStatus {
                name: *step,
                phase: match failed_in {
                    Some(failed) if index > failed => StepPhase::Skipped,
                    Some(failed) if index == failed => StepPhase::Failed,
                    Some(_) | None => StepPhase::Succeeded,
                },
                started_at: None,
                finished_at: None,
                changed: 0,
            })
            .collect();
        (status.phase, status.retriable, status.finished_at) = (Some(phase), Some(true), Some(now));
        status.message = Some("the machine a does not answer".into());
    }

    fn succeed(&mut self) {
        self.end(RunPhase::Succeeded, None);
    }

    /// Staged, with the message that asks for approval.
    fn staged() -> (Self, String) {
        let mut world = Self::new();
        world.step();
        world.succeed();
        let staged = json!({
            "backup": "nightly", "location": "paris/x/y", "takenAt": "2026-03-01T03:00:00Z", "revision": 1000, "keys": 812,
            "size": 3_250_000, "sha256": "ab12", "etcdVersion": "3.6.16", "currentRevision": 1500, "bump": 1_000_000_000,
            "clusterID": "beef"
        });
        world.runs.last_mut().unwrap().status.as_mut().unwrap().staged = serde_json::from_value(staged).unwrap();
        let (phase, message) = world.step();
        assert_eq!(phase, RestorePhase::AwaitingApproval, "{message}");
        (world, message)
    }

    /// Types the command that the message has for this.
    fn approve(&mut self, message: &str, what: &str) {
        let key = format!("{}=", annotation::APPROVE);
        let values = message.split(key.as_str()).skip(1).map(|rest| rest.split([';', ' ']).next().unwrap());
        let value = values
            .into_iter()
            .find(|value| value.rsplit(',').next().unwrap().starts_with(what))
            .unwrap_or_else(|| panic!("no {what}: {message}"));
        self.restore.metadata.annotations = Some([(annotation::APPROVE.to_owned(), value.to_owned())].into());
    }

    /// Approved, and the run has begun.
    fn restoring() -> Self {
        let (mut world, message) = Self::staged();
        world.approve(&message, "restore");
        assert_eq!(world.step().0, RestorePhase::BackingUp);
        world.back_up("Succeeded");
        assert_eq!(world.step().0, RestorePhase::Restoring);
        world
    }

    /// The backup of what is there is so.
    fn back_up(&mut self, phase: &str) {
        let content = json!({
            "location": "paris/u/1", "revision": 1500, "keys": 900, "size": 1, "sha256": "", "member": "a",
            "etcdVersion": "3.6.16", "startedAt": NOW, "completedAt": NOW
        });
        let backup = if phase == "Succeeded" { content } else { Value::Null };
        let status = json!({ "phase": phase, "message": "no member answers", "backup": backup });
        self.safety.as_mut().unwrap().status = serde_json::from_value(status).unwrap();
    }

    fn delete(&mut self) {
        self.restore.metadata.deletion_timestamp = Some(Time(self.now));
    }
}

#[test]
fn a_backup_is_laid_ready_and_nothing_of_the_cluster_is_touched_before_a_person_approves_what_is_lost() {
    let (mut world, message) = World::staged();
    let spec = &world.last().spec;
    assert_eq!((spec.intent, spec.steps.as_slice()), (Intent::Stage, &[Step::StageBackup][..]));
    assert_eq!(spec.hosts, ["a", "b", "c"]);
    assert_eq!(spec.vars["etcd_restore"], json!({ "id": "undomond" }));
    assert_eq!(spec.restore_ref.as_ref().unwrap().name, "undo-monday");
    assert!(
        message.contains("3.1 MiB with 812 keys at revision 1000") && message.contains("500 changes since are lost"),
        "{message}"
    );
    assert!(message.contains("2026-03-01 03:00:00 UTC") && message.contains("kubectl -n fleet annotate"), "{message}");
    assert!(!holds_the_cluster(&world.restore));
    assert_eq!(world.restore.condition("Stalled").unwrap().reason, "WaitingForApproval");
    for other in ["restore.000000000000", "1", "restore", ""] {
        world.restore.metadata.annotations = Some([(annotation::APPROVE.to_owned(), other.to_owned())].into());
        assert_eq!(world.step().0, RestorePhase::AwaitingApproval, "{other}");
    }
    assert_eq!(world.runs.len(), 1);
}

#[test]
fn once_it_is_approved_all_members_are_restored_and_then_every_machine_restarted() {
    let mut world = World::restoring();
    let spec = &world.last().spec;
    assert_eq!(spec.intent, Intent::Restore);
    assert_eq!(spec.steps, [Step::HoldControlPlane, Step::RestoreEtcd, Step::ReleaseControlPlane]);
    assert_eq!(spec.hosts, ["a", "b", "c"]);
    let vars = &spec.vars["etcd_restore"];
    assert_eq!((&vars["sha256"], &vars["cluster_id"]), (&json!("ab12"), &json!("beef")));
    assert_eq!(vars["nodes"], json!(["node-a", "node-b", "node-c", "node-w"]));
    assert!(!spec.resume && holds_the_cluster(&world.restore));

    world.succeed();
    assert_eq!(world.step().0, RestorePhase::Restarting);
    assert!(!holds_the_cluster(&world.restore));
    let spec = &world.last().spec;
    assert_eq!(spec.steps, [Step::RestartServices, Step::Network, Step::PostInstall]);
    assert_eq!(spec.hosts, ["a", "b", "c", "w"]);
    world.succeed();
    let (phase, message) = world.step();
    assert_eq!(phase, RestorePhase::Succeeded);
    assert!(message.contains("restored to backup nightly of 2026-03-01 03:00:00 UTC, revision 1000"), "{message}");
    assert_eq!(world.restore.condition("Complete").unwrap().status, "True");
    assert!(is_over(&world.restore) && world.restore.condition("Stalled").is_none());
    let before = world.restore.clone();
    world.step();
    assert_eq!((before, world.runs.len()), (world.restore, 3), "at rest nothing is written");
}

#[test]
fn an_interrupted_restore_goes_on_only_with_an_approval_of_its_own_for_each_attempt() {
    let mut world = World::restoring();
    for attempt in 1..=3 {
        world.end(RunPhase::Failed, Some(1));
        let (phase, message) = world.step();
        assert_eq!(phase, RestorePhase::Interrupted, "{message}");
        assert!(message.contains("the machine a does not answer"), "{message}");
        assert_eq!((world.plan().next, world.runs.len()), (Next::OnChange, attempt + 1), "never by itself");
        assert!(holds_the_cluster(&world.restore));
        world.approve(&message, "restore");
        assert_eq!(world.step().0, RestorePhase::Restoring);
        assert!(world.last().spec.resume, "it goes on where it ended");
    }
    world.succeed();
    assert_eq!(world.step().0, RestorePhase::Restarting);
}

#[test]
fn the_way_back_is_one_approval_until_an_api_server_may_have_written() {
    let mut world = World::restoring();
    world.end(RunPhase::Unknown, Some(1));
    let (_, message) = world.step();
    world.approve(&message, "undo");
    assert_eq!(world.step().0, RestorePhase::Undoing);
    assert_eq!(world.last().spec.steps, [Step::HoldControlPlane, Step::UndoRestore, Step::ReleaseControlPlane]);
    world.end(RunPhase::Failed, Some(1));
    let (phase, message) = world.step();
    assert_eq!(phase, RestorePhase::Interrupted);
    assert!(!message.contains("to go on"), "back is the only way now: {message}");
    world.approve(&message, "undo");
    world.step();
    world.succeed();
    assert_eq!(world.step().0, RestorePhase::Undone);
    assert_eq!(world.restore.condition("Failed").unwrap().reason, "RestoreUndone");

    let mut world = World::restoring();
    world.end(RunPhase::Failed, Some(2));
    let (phase, message) = world.step();
    assert_eq!(phase, RestorePhase::Interrupted);
    assert!(message.contains("=restore.") && !message.contains("undo."), "{message}");
}

#[test]
fn machines_that_cannot_be_restarted_are_named_and_do_not_undo_what_was_restored() {
    let mut world = World::restoring();
    world.succeed();
    for attempt in 1..=3 {
        assert_eq!(world.step().0, RestorePhase::Restarting);
        world.end(RunPhase::Failed, Some(0));
        if attempt < 3 {
            assert_eq!(world.step().0, RestorePhase::Restarting);
            assert!(matches!(world.plan().next, Next::After(_)));
            world.now += SignedDuration::from_mins(30);
        }
    }
    let (phase, message) = world.step();
    assert_eq!(phase, RestorePhase::Succeeded);
    assert!(message.contains("not all machines were restarted") && message.contains("a does not answer"), "{message}");
}

#[test]
fn it_waits_for_what_it_needs_and_gives_up_where_nothing_can_come_of_it() {
    let check = |change: fn(&mut World), phase: RestorePhase, reason: &str, words: &str| {
        let mut world = World::new();
        change(&mut world);
        let (told, message) = world.step();
        assert_eq!((told, world.runs.len()), (phase, 0), "{reason}: {message}");
        assert!(message.contains(words), "{message}");
        assert_eq!(world.restore.condition("Complete").unwrap().reason, reason);
    };
    use RestorePhase::{Failed, Pending};
    check(|world| world.deployment = None, Pending, "ClusterNotFound", "paris is not there");
    check(|world| world.deployment.as_mut().unwrap().status = None, Pending, "NotInstalled", "not installed");
    check(|world| world.backup = None, Pending, "BackupNotFound", "nightly is not there");
    check(|world| world.backup = Some(backup("Running")), Pending, "BackupNotComplete", "still being taken");
    check(|world| world.backup = Some(backup("Failed")), Failed, "BackupNotFound", "has failed");
    let damaged = |world: &mut World| {
        let found = json!({ "phase": "Succeeded", "damaged": { "at": "2026-11-23T12:00:00Z", "how": "Hash" } });
        world.backup.as_mut().unwrap().status = serde_json::from_value(found).unwrap();
    };
    check(damaged, Failed, "BackupCorrupt", "names this one by source.stored");
    check(|world| world.storage = None, Pending, "StorageNotFound", "s3 is not there");
    check(|world| world.storage = Some(storage("False")), Pending, "StorageUnreachable", "no such bucket");
    check(|world| world.machines[0].status = None, Pending, "WaitingForMachines", "Machine b joins");
    check(
        |world| world.machines[0].metadata.deletion_timestamp = Some(Time(world.now)),
        Pending,
        "WaitingForMachines",
        "Machine b leaves",
    );
    check(|world| world.others.push(restore("a-first-one")), Pending, "WaitingForRestore", "a-first-one");
    check(
        |world| world.backup.as_mut().unwrap().spec.cluster_name = Some("rome".into()),
        Failed,
        "BackupOfOtherCluster",
        "of cluster rome",
    );
}

#[test]
fn staging_is_tried_three_times_and_other_members_than_those_that_were_staged_need_a_new_restore() {
    let mut world = World::new();
    for attempt in 1..=3 {
        assert_eq!(world.step().0, RestorePhase::Staging);
        assert_eq!(world.runs.len(), attempt);
        world.end(RunPhase::Failed, Some(0));
        world.now += SignedDuration::from_mins(30);
    }
    world.now -= SignedDuration::from_mins(30);
    let (phase, message) = world.step();
    assert_eq!(phase, RestorePhase::Failed);
    assert!(message.contains("attempt 3 of 3") && message.contains("make a new EtcdRestore"), "{message}");

    let (mut world, message) = World::staged();
    world.machines.push(machine("d", "control-plane"));
    world.approve(&message, "restore");
    let (phase, message) = world.step();
    assert_eq!(phase, RestorePhase::Failed, "{message}");
    assert_eq!(world.restore.condition("Failed").unwrap().reason, "MembersChanged");
}

#[test]
fn what_it_left_on_the_machines_is_removed_in_time_or_when_it_is_deleted() {
    let mut world = World::restoring();
    world.succeed();
    world.step();
    world.succeed();
    world.step();
    assert_eq!(world.plan().next, Next::after_seconds(604_801));
    world.now += SignedDuration::from_hours(24 * 7) + SignedDuration::from_secs(1);
    world.step();
    assert_eq!(world.last().spec.steps, [Step::RemoveOldData]);
    world.succeed();
    world.step();
    assert!(world.restore.status.as_ref().unwrap().old_data_removed_at.is_some() && !world.gone);
    world.runs.clear();
    world.delete();
    world.step();
    assert!(world.gone && world.runs.is_empty());

    let (mut world, _) = World::staged();
    world.delete();
    assert_eq!(world.step().0, RestorePhase::Failed);
    assert_eq!(world.last().spec.steps, [Step::RemoveOldData]);
    assert!(!world.gone);
    world.succeed();
    world.step();
    assert!(world.gone);
}

#[test]
fn a_restore_that_holds_the_cluster_is_not_let_go_before_it_has_an_end() {
    let mut world = World::restoring();
    world.delete();
    world.end(RunPhase::Failed, Some(1));
    let (phase, message) = world.step();
    assert!(phase == RestorePhase::Interrupted && !world.gone);
    world.approve(&message, "undo");
    world.step();
    world.succeed();
    world.step();
    assert!(!world.gone);
    world.step();
    world.succeed();
    world.step();
    assert!(world.gone);

    let mut world = World::restoring();
    world.end(RunPhase::Failed, Some(1));
    world.step();
    world.deployment = None;
    world.delete();
    world.step();
    assert!(world.gone, "there is no cluster that it could hold");
}

#[test]
fn a_status_that_was_lost_is_found_again_in_the_runs() {
    let mut world = World::restoring();
    world.end(RunPhase::Failed, Some(1));
    world.step();
    let known = world.restore.status.take();
    world.step();
    assert_eq!(world.restore.status.as_ref().unwrap().phase, known.as_ref().unwrap().phase);
    assert_eq!(world.restore.status.as_ref().unwrap().message, known.unwrap().message);
}

#[test]
fn what_is_there_is_backed_up_once_between_the_approval_and_the_hold() {
    let (mut world, message) = World::staged();
    assert!(message.contains("first, EtcdBackup undo-monday-before is made of what is there"), "{message}");
    world.approve(&message, "restore");
    let (phase, message) = world.step();
    assert_eq!((phase, world.runs.len()), (RestorePhase::BackingUp, 1), "{message}");
    assert!(!holds_the_cluster(&world.restore) && super::keeps_others_out(&world.restore));
    let spec = &world.safety.as_ref().unwrap().spec;
    assert_eq!((spec.cluster_name.as_deref(), spec.storage_ref.name.as_str()), (Some("paris"), "s3"));
    assert_eq!(spec.encryption, world.backup.as_ref().unwrap().spec.encryption);
    for told in ["Pending", "Running"] {
        world.back_up(told);
        assert_eq!((world.step().0, world.runs.len()), (RestorePhase::BackingUp, 1), "{told}");
    }
    world.back_up("Succeeded");
    assert_eq!((world.step().0, world.runs.len()), (RestorePhase::Restoring, 2));
    let named = |world: &World| world.restore.status.as_ref().unwrap().safety_backup.clone().map(|it| it.name);
    assert_eq!(named(&world).as_deref(), Some("undo-monday-before"));
    // Whatever becomes of it now, nothing is made or restored again.
    world.safety = None;
    world.restore.status.as_mut().unwrap().phase = None;
    assert_eq!((world.step().0, world.runs.len()), (RestorePhase::Restoring, 2));
    world.succeed();
    world.step();
    world.succeed();
    let (phase, message) = world.step();
    assert_eq!(phase, RestorePhase::Succeeded);
    assert!(message.contains("make an EtcdRestore with source.backupRef undo-monday-before"), "{message}");
    assert!(world.safety.is_none());
}

#[test]
fn a_backup_of_what_is_there_that_cannot_be_taken_does_not_hold_the_restore_up_and_is_told() {
    let (mut world, message) = World::staged();
    world.approve(&message, "restore");
    world.step();
    world.back_up("Failed");
    assert_eq!(world.step().0, RestorePhase::Restoring);
    assert_eq!(world.restore.status.as_ref().unwrap().safety_backup, None);
    world.succeed();
    world.step();
    world.succeed();
    let (_, message) = world.step();
    assert!(
        message.contains("no backup was made of what was there: EtcdBackup undo-monday-before: no member"),
        "{message}"
    );

    let (mut world, _) = World::staged();
    world.storage = Some(storage("False"));
    let (_, message) = world.step();
    assert!(message.contains("no backup is made of what is there: BackupStorage s3 cannot be used"), "{message}");
    world.approve(&message, "restore");
    assert_eq!((world.step().0, world.safety.is_none()), (RestorePhase::Restoring, true));

    let (mut world, message) = World::staged();
    world.safety = Some(backup("Succeeded"));
    world.approve(&message, "restore");
    assert_eq!(world.step().0, RestorePhase::Restoring, "one of somebody else's is left alone");
    assert_eq!(world.restore.status.as_ref().unwrap().safety_backup, None);
}

#[test]
fn no_backup_is_made_of_what_is_there_where_none_is_wanted() {
    let check = |safety: Value, source: Value, expected: bool| {
        let (mut world, _) = World::staged();
        world.restore.spec.safety_backup = serde_json::from_value(safety).unwrap();
        world.restore.spec.source = serde_json::from_value(source).unwrap();
        let (_, message) = world.step();
        assert_eq!(message.contains("what is there"), expected, "{message}");
        world.approve(&message, "restore");
        let phase = if expected { RestorePhase::BackingUp } else { RestorePhase::Restoring };
        assert_eq!(world.step().0, phase);
    };
    let of_backup = || json!({ "backupRef": { "name": "nightly" } });
    let stored = || json!({ "stored": { "storageRef": { "name": "s3" }, "location": "a" } });
    let given = || json!({ "storageRef": { "name": "s3" }, "encryption": { "recipients": ["age1x"] } });
    check(Value::Null, of_backup(), true);
    check(json!({ "skip": true }), of_backup(), false);
    check(Value::Null, stored(), false);
    check(given(), stored(), true);
}

#[test]
fn a_run_begins_beside_a_restore_as_its_phase_lets_it() {
    let run = |backup: &str| -> PlaybookRun {
        let spec = json!({ "clusterName": "paris", "intent": "Backup", "steps": ["backup-etcd"], "hosts": ["a"],
            "backupRef": { "name": backup } });
        object("PlaybookRun", "run", spec, json!({}))
    };
    let mut restore = restore("back");
    for (phase, own, other) in [
        (RestorePhase::AwaitingApproval, true, true),
        (RestorePhase::BackingUp, true, false),
        (RestorePhase::Restoring, false, false),
        (RestorePhase::Interrupted, false, false),
        (RestorePhase::Undoing, false, false),
        (RestorePhase::Restarting, true, true),
    ] {
        restore.status = Some(crds::EtcdRestoreStatus { phase: Some(phase), ..Default::default() });
        let lets = |backup: &str| super::lets_backup_begin(&restore, &run(backup));
        assert_eq!((lets("back-before"), lets("nightly")), (own, other), "{phase:?}");
    }
    let long = super::safety_name(&self::restore(&"a".repeat(50)));
    assert!(
        long.len() == 50 && long.ends_with("-before") && long != super::safety_name(&self::restore(&"a".repeat(49)))
    );
}
