mod faults;
mod on_machines;
mod verifying;

use crds::etcd_backup::{BackupContent, BackupPhase};
use crds::playbook_run::RunPhase;
use crds::step::{Intent, Step};
use crds::{
    BackupStorage, ClusterDeployment, Conditions, EtcdBackup, EtcdRestore, KarmadaDeployment, Machine, ObjectExt,
    PlaybookRun,
};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{Pod, Secret};
use serde_json::{Value, json};

use super::{Action, Observed, plan};
use crate::inputs::artifacts::ArtifactsSeen;
use crate::inputs::{InputsProblem, StorageSeen};
use crate::{Next, Plan};

const NOW: &str = "2026-11-23T12:00:00Z";

fn object<K: serde::de::DeserializeOwned>(kind: &str, name: &str, spec: Value, status: Value) -> K {
    serde_json::from_value(json!({
        "apiVersion": "clusterwright.dev/v1alpha1", "kind": kind,
        "metadata": {
            "name": name, "namespace": "fleet", "uid": format!("uid-{name}"), "generation": 1,
            "creationTimestamp": NOW
        },
        "spec": spec, "status": status
    }))
    .unwrap()
}

struct World {
    now: Timestamp,
    backup: EtcdBackup,
    storage: Option<BackupStorage>,
    deployment: Option<ClusterDeployment>,
    plane: Option<KarmadaDeployment>,
    machines: Vec<Machine>,
    runs: Vec<PlaybookRun>,
    restores: Option<Vec<EtcdRestore>>,
    others: Vec<ClusterDeployment>,
    identity: Option<Secret>,
    artifacts: Result<ArtifactsSeen, InputsProblem>,
    jobs: Vec<Job>,
    pods: Vec<Pod>,
    is_gone: bool,
}

impl World {
    fn new() -> Self {
        let recipient = format!("age1{}", "q".repeat(58));
        let machine = |name: &str, role: &str, status: Value| -> Machine {
            let spec = json!({ "clusterName": "paris", "role": role, "kubernetesVersion": "1.35.4", "setName": "s", "hostRef": { "name": format!("host-{name}") } });
            object("Machine", name, spec, status)
        };
        let provisioned = || json!({ "provisionedAt": NOW });
        Self {
            now: NOW.parse().unwrap(),
            backup: object(
                "EtcdBackup",
                "nightly",
                json!({ "clusterName": "paris", "storageRef": { "name": "s3" }, "encryption": { "recipients": [recipient] } }),
                json!({}),
            ),
            storage: Some(storage("True")),
            deployment: Some(object(
                "ClusterDeployment",
                "paris",
                json!({
                    "kubernetesVersion": "1.35.4", "controlPlane": { "replicas": 3 },
                    "networking": { "podCIDR": "10.0.0.0/16", "serviceCIDR": "10.1.0.0/16", "plugin": { "name": "bridge" } }
                }),
                json!({ "installedAt": NOW }),
            )),
            plane: None,
            machines: vec![
                machine("b", "control-plane", provisioned()),
                machine("a", "control-plane", provisioned()),
                machine("new", "control-plane", json!({})),
                machine("w", "worker", provisioned()),
            ],
            runs: Vec::new(),
            restores: Some(Vec::new()),
            others: Vec::new(),
            identity: None,
            artifacts: Ok(ArtifactsSeen::default()),
            jobs: Vec::new(),
            pods: Vec::new(),
            is_gone: false,
        }
    }

    fn plan(&self) -> Plan<Action, crds::EtcdBackupStatus> {
        plan(&Observed {
            now: self.now,
            backup: &self.backup,
            storage: self.storage.as_ref(),
            deployment: self.deployment.as_ref(),
            plane: self.plane.as_ref(),
            machines: &self.machines.iter().collect::<Vec<_>>(),
            runs: &self.runs.iter().collect::<Vec<_>>(),
            restores: self.restores.as_ref().map(|restores| restores.iter().collect::<Vec<_>>()).as_deref(),
            deployments: &self.others.iter().collect::<Vec<_>>(),
            seen: &StorageSeen::default(),
            image: "executor:1",
            identity: self.identity.as_ref(),
            artifacts: &self.artifacts,
            jobs: &self.jobs,
            pods: &self.pods,
        })
    }

    /// Carries out the plan, and says the phase and the message.
    fn step(&mut self) -> (BackupPhase, String) {
        let plan = self.plan();
        for action in plan.actions {
            self.apply(action);
        }
        self.backup.status = Some(plan.status.clone());
        (plan.status.phase.unwrap(), plan.status.message.unwrap())
    }

    fn apply(&mut self, action: Action) {
        match action {
            Action::AddFinalizer => {
                self.backup.metadata.finalizers = Some(vec!["clusterwright.dev/backup-removed".into()]);
            }
            Action::Begin(run) => {
                let mut run = *run;
                run.metadata.uid = Some(format!("uid-{}", run.name()));
                run.status = Some(Default::default());
                assert!(!self.runs.iter().any(|there| there.name() == run.name()), "{} is made twice", run.name());
                self.runs.push(run);
            }
            Action::CancelRun(run) => {
                let found = self.runs.iter_mut().find(|there| there.name() == run.name());
                found.unwrap().spec.cancel = true;
            }
            Action::Remove(job) | Action::Verify(job) => {
                let mut job = *job;
                job.metadata.uid = Some(format!("uid-{}", job.name()));
                assert!(self.jobs.is_empty(), "one at a time");
                self.jobs.push(job);
            }
            Action::Forget(job) => self.jobs.retain(|there| there.name() != job.name()),
            Action::RemoveFinalizer | Action::Expire => self.is_gone = true,
        }
    }

    /// Taken, with this policy, and being deleted.
    fn deleted(policy: &str) -> Self {
        let mut world = Self::new();
        world.backup.spec.deletion_policy = serde_json::from_value(json!(policy)).unwrap();
        world.step();
        world.end_run(RunPhase::Succeeded, false).status.as_mut().unwrap().backup = Some(content());
        assert_eq!(world.step().0, BackupPhase::Succeeded);
        world.delete();
        world
    }

    fn delete(&mut self) {
        self.backup.metadata.deletion_timestamp = Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(self.now));
    }

    /// The Pod of the Job ends so.
    fn job_ends(&mut self, message: &Value) {
        let uid = self.jobs[0].metadata.uid.clone();
        let ended = json!({ "exitCode": 0, "message": message.to_string() });
        let pod = json!({
            "metadata": {
                "name": "p", "labels": { "clusterwright.dev/backup": "nightly" },
                "ownerReferences": [{ "apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": uid }]
            },
            "status": { "containerStatuses": [{
                "name": "executor", "image": "x", "imageID": "", "ready": false, "restartCount": 0,
                "state": { "terminated": ended }
            }]}
        });
        self.pods = vec![serde_json::from_value(pod).unwrap()];
    }

    fn deleting(&self) -> (String, String) {
        let deleting = self.backup.condition("Deleting").unwrap();
        (deleting.reason.clone(), deleting.message.clone())
    }

    fn end_run(&mut self, phase: RunPhase, retriable: bool) -> &mut PlaybookRun {
        let now = k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(self.now);
        let run = self.runs.last_mut().unwrap();
        let status = run.status.get_or_insert_default();
        (status.phase, status.retriable, status.finished_at) = (Some(phase), Some(retriable), Some(now));
        status.message = Some("the storage does not answer".into());
        run
    }
}

fn storage(reachable: &str) -> BackupStorage {
    let condition = json!({
        "type": "Reachable", "status": reachable, "reason": "Because", "message": "no such bucket",
        "lastTransitionTime": NOW
    });
    object("BackupStorage", "s3", json!({ "volume": { "claimName": "nfs" } }), json!({ "conditions": [condition] }))
}

fn content() -> BackupContent {
    serde_json::from_value(json!({
        "location": "paris/uid-paris/x", "revision": 77, "keys": 5, "size": 3_250_000, "sha256": "00", "member": "host-a",
        "etcdVersion": "3.6.16", "startedAt": NOW, "completedAt": NOW
    }))
    .unwrap()
}

#[test]
fn a_backup_is_one_run_on_the_members_that_stay_and_is_complete_once_it_is_there() {
    let mut world = World::new();
    let (phase, _) = world.step();
    assert_eq!((phase, world.runs.len()), (BackupPhase::Pending, 1));
    let spec = &world.runs[0].spec;
    assert_eq!((spec.intent, spec.steps.as_slice()), (Intent::Backup, &[Step::BackupEtcd][..]));
    assert_eq!(spec.hosts, ["host-a", "host-b"]);
    assert!(world.runs[0].is_owned_by("uid-nightly"));

    let progress = json!({ "step": "backup-etcd", "task": "", "done": 1, "total": 2, "bytes": 2 << 20 });
    world.runs[0].status.as_mut().unwrap().progress = serde_json::from_value(progress).unwrap();
    let (phase, message) = world.step();
    assert_eq!((phase, world.runs.len()), (BackupPhase::Running, 1));
    assert!(message.contains("2.0 MiB stored"), "{message}");
    assert_eq!(world.backup.status.as_ref().unwrap().progress, Some(2 << 20));

    world.end_run(RunPhase::Succeeded, false).status.as_mut().unwrap().backup = Some(content());
    let (phase, message) = world.step();
    assert_eq!(phase, BackupPhase::Succeeded);
    assert!(message.contains("3.1 MiB of 5 keys at revision 77, from host-a"), "{message}");
    let status = world.backup.status.clone().unwrap();
    assert_eq!((status.backup, status.progress), (Some(content()), None));
    assert_eq!(world.backup.condition("Complete").unwrap().status, "True");
    assert!(world.backup.condition("Reconciling").is_none());
    world.runs.clear();
    assert_eq!(world.step().0, BackupPhase::Succeeded);
    assert!(world.runs.is_empty());
}

#[test]
fn a_backup_that_is_there_counts_though_a_member_that_was_not_needed_failed_in_its_run() {
    let mut world = World::new();
    world.step();
    world.end_run(RunPhase::Failed, true).status.as_mut().unwrap().backup = Some(content());
    assert_eq!(world.step().0, BackupPhase::Succeeded);
}

#[test]
fn it_waits_for_what_it_needs_and_says_so() {
    let check = |change: fn(&mut World), reason: &str, words: &str| {
        let mut world = World::new();
        change(&mut world);
        let (phase, message) = world.step();
        assert_eq!((phase, world.runs.len()), (BackupPhase::Pending, 0), "{reason}");
        assert!(message.contains(words), "{message}");
        assert_eq!(world.backup.condition("Complete").unwrap().reason, reason);
        assert_eq!(world.plan().next, Next::OnChange);
    };
    check(|world| world.deployment = None, "ClusterNotFound", "paris is not there");
    check(|world| world.deployment.as_mut().unwrap().status = None, "NotInstalled", "not installed");
    check(|world| world.storage = None, "StorageNotFound", "s3 is not there");
    check(|world| world.storage.as_mut().unwrap().status = None, "StorageNotProbed", "is being probed");
    check(|world| world.storage = Some(storage("False")), "StorageUnreachable", "no such bucket");
}

#[test]
fn a_failed_attempt_is_followed_by_another_three_in_all_and_none_where_none_helps() {
    let mut world = World::new();
    for attempt in 1..=3 {
        world.step();
        assert_eq!(world.runs.len(), attempt);
        world.end_run(RunPhase::Failed, true);
        let (phase, message) = world.step();
        if attempt == 3 {
            assert_eq!(phase, BackupPhase::Failed);
            assert!(message.contains("attempt 3 of 3") && message.contains("does not answer"), "{message}");
        } else {
            assert_eq!((phase, world.runs.len()), (BackupPhase::Pending, attempt), "not before its time");
            assert!(matches!(world.plan().next, Next::After(_)));
            world.now += SignedDuration::from_mins(30);
        }
    }
    assert_eq!(world.backup.condition("Failed").unwrap().status, "True");
    assert_eq!(world.backup.condition("Stalled").unwrap().status, "True");

    for (phase, retriable) in [(RunPhase::Failed, false), (RunPhase::Canceled, true)] {
        let mut world = World::new();
        world.step();
        world.end_run(phase, retriable);
        assert_eq!(world.step().0, BackupPhase::Failed, "{phase:?}");
    }
}

#[test]
fn a_cluster_that_goes_is_not_waited_for() {
    let mut world = World::new();
    world.deployment.as_mut().unwrap().metadata.deletion_timestamp =
        Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(world.now));
    assert_eq!(world.step().0, BackupPhase::Failed);
}

/// The backup is made by attempts of these names, on no Host.
fn is_taken_without_machines(world: &mut World, names: [&str; 2]) {
    world.step();
    world.end_run(RunPhase::Failed, true);
    world.step();
    world.now += SignedDuration::from_secs(3600);
    world.step();
    let runs: Vec<&str> = world.runs.iter().map(|run| run.name()).collect();
    assert!(runs.iter().zip(names).all(|(run, name)| run.starts_with(name)), "{runs:?}");
    assert!(world.runs.iter().all(|run| run.name().len() <= 63), "{runs:?}");
    assert!(world.runs.iter().all(|run| run.spec.hosts.is_empty() && run.spec.intent == Intent::Backup));
    world.end_run(RunPhase::Succeeded, false).status.as_mut().unwrap().backup = Some(content());
    assert_eq!(world.step().0, BackupPhase::Succeeded);
    assert!(world.plan().actions.is_empty());
}

#[test]
fn an_external_etcd_is_read_without_its_machines_once_its_cluster_is_installed() {
    let mut world = World::new();
    let deployment = world.deployment.as_mut().unwrap();
    deployment.spec.etcd.topology = crds::cluster_deployment::EtcdTopology::External;
    let installed = deployment.status.take();
    assert!(world.step().1.contains("is not installed yet"));
    world.deployment.as_mut().unwrap().status = installed;
    is_taken_without_machines(&mut world, ["paris-backup-"; 2]);
    assert!(world.runs.iter().all(|run| run.spec.cluster_name.as_deref() == Some("paris")));
}

#[test]
fn a_snapshot_of_an_external_etcd_is_not_written_to_a_machine() {
    let mut world = World::new();
    world.backup.spec.spool = true;
    world.deployment.as_mut().unwrap().spec.etcd.topology = crds::cluster_deployment::EtcdTopology::External;
    assert_eq!(world.step().0, BackupPhase::Failed);
    assert_eq!(world.backup.condition("Failed").unwrap().reason, "SpoolNotPossible");
}

#[test]
fn an_etcd_without_a_cluster_is_read_by_runs_of_no_cluster() {
    let mut world = World::new();
    world.deployment = None;
    world.machines.clear();
    world.backup.metadata.name = Some(format!("metadata-{}", "b".repeat(41)));
    world.backup.spec.cluster_name = None;
    let etcd = json!({ "endpoints": ["https://10.0.0.5:2379"], "secretRef": { "name": "etcd" } });
    world.backup.spec.etcd = serde_json::from_value(etcd).unwrap();
    world.storage = Some(storage("False"));
    assert_eq!(world.step().0, BackupPhase::Pending);
    world.storage = Some(storage("True"));
    is_taken_without_machines(&mut world, ["metadata-bbbbbbbbbbbbbbbbbbbbbbb-backup-"; 2]);
    assert!(world.runs.iter().all(|run| run.spec.cluster_name.is_none()));
}

fn karmada(more: Value) -> KarmadaDeployment {
    let mut spec = json!({ "version": "1.18.2", "crds": { "bundle": { "url": "https://b.example" } } });
    spec.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    object("KarmadaDeployment", "k1", spec, json!({ "version": "1.18.2" }))
}

/// A backup of the plane k1, which is not there yet.
fn of_plane() -> World {
    let mut world = World::new();
    world.deployment = None;
    world.machines.clear();
    world.backup.spec.cluster_name = None;
    world.backup.spec.karmada_deployment_ref = Some(crds::references::LocalRef::new("k1"));
    world
}

#[test]
fn a_plane_is_read_by_runs_without_machines_once_it_is_installed_whatever_it_does_since() {
    let mut world = of_plane();
    let waits = |world: &mut World| {
        let (phase, message) = world.step();
        assert_eq!((phase, world.plan().next), (BackupPhase::Pending, Next::after_seconds(30)));
        assert!(world.runs.is_empty());
        (world.backup.condition("Complete").unwrap().reason.clone(), message)
    };
    let (reason, message) = waits(&mut world);
    assert_eq!(reason, "KarmadaDeploymentNotFound");
    assert!(message.contains("KarmadaDeployment k1 is not there"), "{message}");
    world.plane = Some(karmada(json!({})));
    world.plane.as_mut().unwrap().status = None;
    assert_eq!(waits(&mut world).0, "NotInstalled");
    // It has been whole once; that it is paused, or broken, is no reason to be without a backup.
    world.plane = Some(karmada(json!({ "paused": true })));
    is_taken_without_machines(&mut world, ["nightly-backup-"; 2]);
    assert!(world.runs.iter().all(|run| run.spec.cluster_name.is_none()));
}

#[test]
fn a_plane_that_goes_is_given_up_and_says_so() {
    let mut going = karmada(json!({}));
    going.metadata.deletion_timestamp = going.metadata.creation_timestamp.clone();
    let mut world = of_plane();
    world.plane = Some(going);
    let (phase, message) = world.step();
    assert_eq!((phase, world.runs.len()), (BackupPhase::Failed, 0));
    assert_eq!(world.backup.condition("Failed").unwrap().reason, "ClusterDeleting");
    assert!(message.contains("KarmadaDeployment k1 is being deleted"), "{message}");
}

#[test]
fn a_backup_that_is_deleted_removes_what_it_has_stored_first_if_that_is_wished() {
    let mut world = World::deleted("Delete");
    assert_eq!(world.backup.metadata.finalizers.as_ref().unwrap().len(), 1);
    world.step();
    assert_eq!((world.jobs.len(), world.is_gone), (1, false));
    let job = serde_json::to_value(&world.jobs[0]).unwrap();
    let arguments = job.pointer("/spec/template/spec/containers/0/args").unwrap();
    let words: Vec<&str> = arguments.as_array().unwrap().iter().map(|word| word.as_str().unwrap()).collect();
    assert_eq!(
        (words[0], &words[5..]),
        ("remove-backup", &["--location", "paris/uid-paris/x", "--backup", "nightly"][..])
    );
    assert!(job["metadata"]["name"].as_str().unwrap().len() <= 63);
    assert_eq!(job["metadata"]["ownerReferences"][0]["kind"], "BackupStorage");
    world.step();
    assert_eq!((world.jobs.len(), world.deleting().0.as_str()), (1, "RemovingBackup"));
    assert!(world.deleting().1.contains("removes paris/uid-paris/x"), "{}", world.deleting().1);
    assert_eq!(world.backup.condition("Complete").unwrap().status, "True");
    world.job_ends(&json!({ "removed": true }));
    world.step();
    assert_eq!((world.jobs.len(), world.is_gone), (0, true));

    let mut world = World::deleted("Retain");
    assert_eq!(world.backup.metadata.finalizers, None);
    world.step();
    assert_eq!((world.jobs.len(), world.is_gone), (0, false), "nothing holds it");
}

#[test]
fn a_removal_that_fails_is_tried_again_and_a_person_may_let_the_backup_go() {
    let mut world = World::deleted("Delete");
    world.step();
    let first = world.jobs[0].name().to_owned();
    world.job_ends(&json!({ "removed": false, "reason": "StorageFailed", "message": "it is on fire" }));
    world.step();
    let (reason, message) = world.deleting();
    assert_eq!((reason.as_str(), world.jobs.len()), ("BackupNotRemoved", 0));
    assert!(message.contains("it is on fire; tried again at 12:02:00 UTC"), "{message}");
    assert!(world.backup.condition("Reconciling").is_some());
    let before = world.backup.status.clone();
    world.now += SignedDuration::from_secs(119);
    world.step();
    assert_eq!((world.jobs.len(), &world.backup.status), (0, &before), "at rest nothing is written");
    world.now += SignedDuration::from_secs(1);
    world.step();
    assert_eq!(world.jobs.len(), 1);
    assert_ne!(world.jobs[0].name(), first);

    let command = message.rsplit_once("kubectl").unwrap().1.to_owned();
    assert!(command.contains("annotate --overwrite etcdbackups.clusterwright.dev nightly"), "{command}");
    let value = command.rsplit_once('=').unwrap().1.to_owned();
    world.backup.metadata.annotations = Some([("clusterwright.dev/approve".to_owned(), value)].into());
    world.step();
    assert_eq!((world.jobs.len(), world.is_gone), (0, true));
}

#[test]
fn a_storage_that_is_gone_or_away_is_told_of_with_the_way_to_let_go() {
    let check = |change: fn(&mut World), reason: &str, words: &str, is_stuck: bool| {
        let mut world = World::deleted("Delete");
        change(&mut world);
        world.step();
        let (found, message) = world.deleting();
        assert_eq!((found.as_str(), world.jobs.len(), world.is_gone), (reason, 0, false), "{message}");
        assert!(message.contains(words), "{message}");
        assert_eq!(message.contains("clusterwright.dev/approve=leave."), is_stuck, "{message}");
        assert_eq!(world.backup.condition("Stalled").is_some(), is_stuck);
        assert!(message.len() < 600, "{message}");
    };
    check(|world| world.storage = None, "BackupNotRemoved", "BackupStorage s3 is not there", true);
    check(|world| world.storage = Some(storage("False")), "BackupNotRemoved", "no such bucket", true);
    check(|world| world.storage.as_mut().unwrap().status = None, "RemovingBackup", "is being probed", false);
    let bucket = |world: &mut World| {
        let s3 = json!({ "endpoint": "https://s3:9000", "bucket": "etcd", "credentialsRef": { "name": "login" } });
        world.storage.as_mut().unwrap().spec = serde_json::from_value(json!({ "s3": s3 })).unwrap();
    };
    check(bucket, "BackupNotRemoved", "Secret login of spec.s3.credentialsRef is not there", true);
    let restored = |world: &mut World| world.restores = Some(vec![restore("AwaitingApproval")]);
    check(restored, "BackupInUse", "EtcdRestore back is about this backup", false);
    let begins = |world: &mut World| world.others = vec![begins_with_it(json!({}))];
    check(begins, "BackupInUse", "ClusterDeployment moved is about this backup", false);
    check(|world| world.restores = None, "BackupInUse", "cannot be decoded", false);
}

/// A ClusterDeployment that names the backup in `restoreFrom`.
fn begins_with_it(status: Value) -> ClusterDeployment {
    let source = json!({ "source": { "backupRef": { "name": "nightly" } }, "identityRef": { "name": "i" } });
    let spec = json!({ "kubernetesVersion": "1.35.4", "controlPlane": { "replicas": 1 }, "restoreFrom": source });
    object("ClusterDeployment", "moved", spec, status)
}

fn restore(phase: &str) -> EtcdRestore {
    let spec = json!({
        "clusterName": "paris", "source": { "backupRef": { "name": "nightly" } }, "identityRef": { "name": "i" }
    });
    object("EtcdRestore", "back", spec, json!({ "phase": phase }))
}

#[test]
fn a_backup_that_is_deleted_while_it_is_taken_is_stopped_and_what_it_stored_all_the_same_is_removed() {
    let mut world = World::new();
    world.backup.spec.deletion_policy = crds::etcd_backup::BackupDeletionPolicy::Delete;
    world.step();
    world.delete();
    world.step();
    assert!(world.runs[0].spec.cancel && !world.is_gone);
    world.step();
    assert_eq!((world.deleting().0.as_str(), world.runs.len()), ("RemovingBackup", 1));
    let mut other = World { runs: world.runs.clone(), backup: world.backup.clone(), ..World::new() };
    // It had stored all of it before it was stopped; nobody has written that down.
    world.end_run(RunPhase::Canceled, false).status.as_mut().unwrap().backup = Some(content());
    world.step();
    assert_eq!((world.jobs.len(), world.is_gone), (1, false));
    other.end_run(RunPhase::Canceled, false);
    other.step();
    assert_eq!((other.jobs.len(), other.is_gone), (0, true));
}

#[test]
fn a_backup_goes_by_itself_once_its_time_is_over_and_nobody_needs_it() {
    let mut world = World::new();
    world.backup.spec.ttl_seconds = Some(3600);
    world.step();
    world.end_run(RunPhase::Succeeded, false).status.as_mut().unwrap().backup = Some(content());
    world.step();
    world.now += SignedDuration::from_secs(3599);
    world.step();
    assert_eq!((world.is_gone, world.plan().next), (false, Next::after_seconds(1)));
    world.now += SignedDuration::from_secs(1);
    world.restores = Some(vec![restore("Staging")]);
    world.step();
    assert!(!world.is_gone);
    world.restores = Some(vec![restore("Undone")]);
    world.others = vec![begins_with_it(json!({}))];
    world.step();
    assert!(!world.is_gone, "a cluster is to begin with it");
    world.others = vec![begins_with_it(json!({ "installedAt": NOW }))];
    world.step();
    assert!(world.is_gone);

    let mut world = World::new();
    world.step();
    world.end_run(RunPhase::Failed, false);
    world.step();
    world.now += SignedDuration::from_hours(100_000);
    world.step();
    assert!(!world.is_gone && world.plan().next == Next::OnChange, "without a time it stays");
}

#[test]
fn a_backup_before_a_restore_has_one_attempt_and_none_once_the_restore_has_begun() {
    let world = |phase: &str| {
        let mut world = World::new();
        world.backup.metadata.labels = Some([("clusterwright.dev/restore".to_owned(), "back".to_owned())].into());
        let uid = ("clusterwright.dev/restore-uid".to_owned(), "uid-back".to_owned());
        world.backup.metadata.annotations = Some([uid].into());
        let spec = json!({ "clusterName": "paris", "source": { "backupRef": { "name": "older" } }, "identityRef": { "name": "i" } });
        world.restores = Some(vec![object("EtcdRestore", "back", spec, json!({ "phase": phase }))]);
        world
    };
    for phase in ["AwaitingApproval", "BackingUp"] {
        let mut world = world(phase);
        world.step();
        assert_eq!(world.runs.len(), 1, "{phase}");
        world.end_run(RunPhase::Failed, true);
        assert_eq!(world.step().0, BackupPhase::Failed, "the restore waits for it");
    }
    for phase in ["Restoring", "Restarting", "Interrupted", "Succeeded", "Failed"] {
        let mut world = world(phase);
        assert_eq!((world.step().0, world.runs.len()), (BackupPhase::Failed, 0), "{phase}");
        assert_eq!(world.backup.condition("Failed").unwrap().reason, "RestoreBegan");
    }
}
