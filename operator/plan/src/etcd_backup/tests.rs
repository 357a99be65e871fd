use crds::etcd_backup::{BackupContent, BackupPhase};
use crds::playbook_run::RunPhase;
use crds::step::{Intent, Step};
use crds::{BackupStorage, ClusterDeployment, Conditions, EtcdBackup, Machine, ObjectExt, PlaybookRun};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::{Action, Observed, plan};
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
    machines: Vec<Machine>,
    runs: Vec<PlaybookRun>,
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
            machines: vec![
                machine("b", "control-plane", provisioned()),
                machine("a", "control-plane", provisioned()),
                machine("new", "control-plane", json!({})),
                machine("w", "worker", provisioned()),
            ],
            runs: Vec::new(),
        }
    }

    fn plan(&self) -> Plan<Action, crds::EtcdBackupStatus> {
        plan(&Observed {
            now: self.now,
            backup: &self.backup,
            storage: self.storage.as_ref(),
            deployment: self.deployment.as_ref(),
            machines: &self.machines.iter().collect::<Vec<_>>(),
            runs: &self.runs.iter().collect::<Vec<_>>(),
        })
    }

    /// Carries out the plan, and says the phase and the message.
    fn step(&mut self) -> (BackupPhase, String) {
        let plan = self.plan();
        for Action::Begin(run) in plan.actions {
            let mut run = *run;
            run.metadata.uid = Some(format!("uid-{}", run.name()));
            run.status = Some(Default::default());
            assert!(!self.runs.iter().any(|there| there.name() == run.name()), "{} is made twice", run.name());
            self.runs.push(run);
        }
        self.backup.status = Some(plan.status.clone());
        (plan.status.phase.unwrap(), plan.status.message.unwrap())
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
fn an_external_etcd_and_a_cluster_that_goes_are_not_waited_for() {
    let mut world = World::new();
    world.deployment.as_mut().unwrap().metadata.deletion_timestamp =
        Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(world.now));
    assert_eq!(world.step().0, BackupPhase::Failed);
    let mut world = World::new();
    world.deployment.as_mut().unwrap().spec.etcd.topology = crds::cluster_deployment::EtcdTopology::External;
    assert_eq!(world.step().0, BackupPhase::Failed);
    assert_eq!(world.backup.condition("Failed").unwrap().reason, "EtcdExternal");
}
