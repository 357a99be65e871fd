//! Promises about a restore of a Karmada control plane: it is checked while the plane works, approved, handed over, and
//! says what the plane says.

use crds::etcd_restore::RestorePhase as Phase;
use crds::karmada_deployment::{KarmadaRestoreStep as Step, KarmadaRestoredFrom};
use crds::names::{annotation, finalizer};
use crds::step::Step::RemoveOldData;
use crds::{ClusterKind, EtcdBackup, EtcdRestore, EtcdRestoreStatus, KarmadaDeployment, Machine, PlaybookRun};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde_json::{Value, json};

use super::super::{Action, Observed, is_over, needs_keys, plan};
use super::{NOW, object};
use crate::Plan;
use crate::key_transfer::{KeysSeen, RestoringSeen};
use crate::testing::backup_keys::{LOCATION, arrive, drop_all, fetched, seen, storage};

struct World {
    now: Timestamp,
    restore: EtcdRestore,
    others: Vec<EtcdRestore>,
    backup: Option<EtcdBackup>,
    safety: Option<EtcdBackup>,
    plane: Option<KarmadaDeployment>,
    keys: RestoringSeen,
    is_gone: bool,
    machines: Vec<Machine>,
    /// Those that it has made.
    runs: Vec<PlaybookRun>,
    log: Vec<&'static str>,
}

fn restore(name: &str) -> EtcdRestore {
    let spec = json!({
        "karmadaDeploymentRef": { "name": "k1" }, "source": { "backupRef": { "name": "nightly" } },
        "identityRef": { "name": "age" }
    });
    object("EtcdRestore", name, spec, json!({}))
}

fn backup(of: Value) -> EtcdBackup {
    let mut spec = json!({
        "storageRef": { "name": "bucket" }, "encryption": { "recipients": [format!("age1{}", "q".repeat(58))] }
    });
    spec.as_object_mut().unwrap().extend(of.as_object().unwrap().clone());
    let content = json!({ "location": LOCATION, "startedAt": NOW, "completedAt": NOW, "revision": 77, "keys": 1, "size": 9, "sha256": "a0",
        "etcdVersion": "3.6.6", "member": "k1-etcd-0" });
    object("EtcdBackup", "nightly", spec, json!({ "phase": "Succeeded", "backup": content }))
}

impl World {
    fn new() -> Self {
        let spec = json!({ "version": "1.18.2", "crds": { "bundle": { "url": "https://bundle.example.com" } } });
        Self {
            now: NOW.parse().unwrap(),
            restore: restore("back"),
            others: Vec::new(),
            backup: Some(backup(json!({ "karmadaDeploymentRef": { "name": "k1" } }))),
            safety: None,
            plane: Some(object("KarmadaDeployment", "k1", spec, json!({ "version": "1.18.2" }))),
            keys: seen(),
            is_gone: false,
            machines: Vec::new(),
            runs: Vec::new(),
            log: Vec::new(),
        }
    }

    /// Of a plane on a machine.
    fn on_machines() -> Self {
        let mut world = Self::new();
        let binary = json!({ "controlPlane": { "replicas": 1 }, "artifacts": { "url": "https://a" } });
        world.plane.as_mut().unwrap().spec.binary = serde_json::from_value(binary).unwrap();
        let spec = json!({ "clusterName": "k1", "clusterKind": "KarmadaDeployment", "role": "control-plane", "hostRef": { "name": "h1" } });
        world.machines = vec![object("Machine", "m1", spec, json!({ "provisionedAt": NOW }))];
        world
    }

    fn plan(&self) -> Plan<Action, EtcdRestoreStatus> {
        let restores: Vec<&EtcdRestore> = self.others.iter().chain([&self.restore]).collect();
        let (storage, none) = (self.keys.storage.as_ref(), RestoringSeen::default());
        let keys = RestoringSeen { backup: self.backup.clone(), ..self.keys.clone() };
        plan(&Observed {
            now: self.now,
            resumed_at: None,
            restore: &self.restore,
            backup: self.backup.as_ref(),
            storage,
            safety: self.safety.as_ref(),
            safety_storage: storage,
            deployment: None,
            machines: &self.machines.iter().collect::<Vec<_>>(),
            runs: &self.runs.iter().collect::<Vec<_>>(),
            restores: &restores,
            plane: self.plane.as_ref(),
            keys: if needs_keys(&self.restore) { &keys } else { &none },
        })
    }

    fn step(&mut self) -> (Phase, String, String) {
        let plan = self.plan();
        for action in plan.actions {
            match action {
                Action::AddFinalizer => self.restore.metadata.finalizers = Some(vec![finalizer::RESTORE.into()]),
                Action::RemoveFinalizer => self.is_gone = true,
                Action::FetchKeys(transfer) => {
                    assert!(self.restore.metadata.finalizers.is_some(), "nobody would remove what fetches them");
                    self.log.push("fetch");
                    self.keys.jobs.push(transfer.job);
                }
                Action::DropKeyTransfer => {
                    self.log.push("drop");
                    drop_all(&mut self.keys);
                }
                Action::BackUp(backup) => {
                    assert!(self.safety.is_none(), "it is made once");
                    self.safety = Some(*backup);
                }
                Action::Begin(run) => self.runs.push(*run),
            }
        }
        self.restore.status = Some(plan.status.clone());
        let complete = crds::conditions::find(&plan.status.conditions, "Complete").cloned();
        let reason = complete.map(|said| said.reason).unwrap_or_default();
        (plan.status.phase.unwrap(), reason, plan.status.message.unwrap())
    }

    /// Until it says the same twice.
    fn settle(&mut self) -> (Phase, String, String) {
        let mut last = self.step();
        for _ in 0..20 {
            let (next, actions) = (self.step(), self.plan().actions);
            if next == last && actions.is_empty() {
                return next;
            }
            last = next;
        }
        panic!("it does not come to rest: {last:?}");
    }

    fn fetched(mut self) -> Self {
        self.settle();
        arrive(&mut self.keys, &fetched(), KeysSeen::InPlace);
        self
    }

    fn approve(&mut self) {
        let message = self.restore.status.as_ref().unwrap().message.clone().unwrap();
        let (_, value) = message.split_once("clusterwright.dev/approve=").expect("there is a command");
        let value = value.split([' ', ';']).next().unwrap().to_owned();
        self.restore.metadata.annotations = Some([(annotation::APPROVE.to_owned(), value)].into());
    }

    fn safety_ends(&mut self, phase: &str) {
        let content = json!({ "location": "l", "startedAt": NOW, "completedAt": NOW, "revision": 99, "keys": 1, "size": 9, "sha256": "b0",
            "etcdVersion": "3.6.6", "member": "k1-etcd-0" });
        let status = json!({ "phase": phase, "message": "it ended", "backup": content });
        self.safety.as_mut().unwrap().status = serde_json::from_value(status).unwrap();
    }

    /// One that the plane may take over.
    fn handed() -> Self {
        Self::new().hand_over()
    }

    fn hand_over(self) -> Self {
        let mut world = self.fetched();
        world.settle();
        world.approve();
        world.settle();
        world.safety_ends("Succeeded");
        let (phase, ..) = world.settle();
        assert_eq!(phase, Phase::Restoring);
        world
    }

    /// The plane has taken it over, and is at this step.
    fn taken(&mut self, step: Option<Step>) {
        let record = self.restore.status.as_ref().unwrap().plane_backup.clone().unwrap();
        let former_claims: &[&str] = if self.machines.is_empty() { &["data-k1-etcd-0"] } else { &[] };
        let former_claims = former_claims.iter().map(|&claim| claim.to_owned()).collect();
        let status = self.plane.as_mut().unwrap().status.as_mut().unwrap();
        status.message = Some("comparing".into());
        status.restored_from = Some(KarmadaRestoredFrom { step, former_claims, ..record });
    }
}

#[test]
fn it_is_checked_approved_backed_up_handed_over_and_says_what_the_plane_says() {
    let mut world = World::new();
    let (phase, reason, _) = world.settle();
    assert_eq!((phase, reason.as_str(), world.log.as_slice()), (Phase::Staging, "FetchingKeys", &["fetch"][..]));
    arrive(&mut world.keys, &fetched(), KeysSeen::InPlace);
    let (phase, reason, message) = world.settle();
    assert_eq!((phase, reason.as_str()), (Phase::AwaitingApproval, "WaitingForApproval"), "{message}");
    for words in [
        "backup nightly of plane k0",
        "at revision 77, decrypts and fits KarmadaDeployment k1",
        "first, EtcdBackup back-before is made of what is there, in BackupStorage bucket",
        "kubectl -n fleet annotate --overwrite etcdrestores.clusterwright.dev back clusterwright.dev/approve=restore.",
    ] {
        assert!(message.contains(words), "{words}: {message}");
    }
    assert!(world.restore.status.as_ref().unwrap().began_at.is_none());
    // The Job goes by itself, however long the approval takes; nothing is fetched for nobody.
    world.keys.jobs.clear();
    world.keys.pods.clear();
    assert_eq!(world.settle().0, Phase::AwaitingApproval);
    world.approve();
    assert_eq!(world.settle().0, Phase::BackingUp);
    let safety = &world.safety.as_ref().unwrap().spec;
    assert_eq!(
        (safety.cluster_name.as_deref(), safety.karmada_deployment_ref.as_ref().unwrap().name.as_str()),
        (None, "k1")
    );
    world.safety_ends("Succeeded");
    assert_eq!(world.settle().0, Phase::Restoring);
    let status = world.restore.status.clone().unwrap();
    assert!(status.began_at.is_some() && status.finished_at.is_none());
    assert_eq!(status.safety_backup.unwrap().name, "back-before");
    let record = status.plane_backup.unwrap();
    assert_eq!((record.step, record.restore_ref.unwrap().name.as_str()), (Some(Step::Stop), "back"));
    assert_eq!(world.log, ["fetch"]);

    for (step, phase) in [
        (Step::Stop, Phase::Restoring),
        (Step::Data, Phase::Restoring),
        (Step::Serve, Phase::Restoring),
        (Step::Compare, Phase::Restoring),
        (Step::Release, Phase::Restarting),
        (Step::Collect, Phase::Restarting),
    ] {
        world.taken(Some(step));
        let (is, reason, message) = world.settle();
        assert_eq!((is, reason.as_str()), (phase, "Restoring"), "{step:?}");
        assert!(message.starts_with("KarmadaDeployment k1: comparing"), "{message}");
        assert_eq!(message.contains("to go back to the data of before: kubectl"), step <= Step::Compare, "{message}");
    }
    world.taken(None);
    let (phase, reason, message) = world.settle();
    assert_eq!((phase, reason.as_str()), (Phase::Succeeded, "Restored"));
    for words in [
        "revision 77",
        "data-k1-etcd-0 of the host have etcd's data of before",
        "EtcdBackup back-before has what was there",
    ] {
        assert!(message.contains(words), "{words}: {message}");
    }
    assert!(is_over(&world.restore) && world.restore.status.as_ref().unwrap().finished_at.is_some());
    assert!(world.plan().actions.is_empty());
}

#[test]
fn what_the_plane_asks_for_is_asked_for_here_too() {
    let mut world = World::handed();
    world.taken(Some(Step::Compare));
    let condition = json!([{ "type": "Ready", "status": "False", "reason": "WaitingForApproval", "message": "",
        "lastTransitionTime": NOW }]);
    world.plane.as_mut().unwrap().status.as_mut().unwrap().conditions = serde_json::from_value(condition).unwrap();
    let (phase, reason, _) = world.settle();
    assert_eq!((phase, reason.as_str()), (Phase::Restoring, "WaitingForApproval"));
    let stalled = |world: &World| {
        let conditions = &world.restore.status.as_ref().unwrap().conditions;
        crds::conditions::is_true(conditions, "Stalled")
    };
    assert!(stalled(&world));
    world.taken(Some(Step::Release));
    world.settle();
    assert!(!stalled(&world));
}

#[test]
fn the_plane_does_not_stop_before_the_key_of_the_snapshot_is_there() {
    let mut world = World::new().fetched();
    world.settle();
    drop_all(&mut world.keys);
    world.approve();
    world.settle();
    world.safety_ends("Failed");
    let (phase, reason, _) = world.settle();
    assert_eq!(
        (phase, reason.as_str(), world.log.as_slice()),
        (Phase::Staging, "FetchingKeys", &["fetch", "fetch"][..])
    );
    assert!(world.restore.status.as_ref().unwrap().began_at.is_none());
    arrive(&mut world.keys, &fetched(), KeysSeen::InPlace);
    assert_eq!(world.settle().0, Phase::Restoring);
}

#[test]
fn what_does_not_fit_or_is_not_possible_is_refused_and_nothing_is_left_of_it() {
    let check = |change: &dyn Fn(&mut World), reason: &str, words: &str| {
        let mut world = World::new();
        change(&mut world);
        let first = world.settle();
        let (phase, is, message) = if first.0 == Phase::Staging {
            let (backup, keys) = (fetched(), world.keys.keys.clone());
            let keys = if keys == KeysSeen::Absent { KeysSeen::InPlace } else { keys };
            arrive(&mut world.keys, &backup, keys);
            world.settle()
        } else {
            first
        };
        assert_eq!((phase, is.as_str()), (Phase::Failed, reason), "{message}");
        assert!(message.contains(words), "{message}");
        assert!(world.keys.jobs.is_empty() && world.plan().actions.is_empty());
    };
    let external = json!({ "endpoints": ["https://10.0.0.1:2379"], "secretRef": { "name": "e" } });
    let external = move |world: &mut World| {
        world.plane.as_mut().unwrap().spec.etcd.external = serde_json::from_value(external.clone()).unwrap();
    };
    check(&external, "EtcdExternal", "whoever runs it restores it");
    let domain = |world: &mut World| world.plane.as_mut().unwrap().spec.host_dns_domain = "other.local".into();
    check(&domain, "BackupDoesNotFit", "spec.hostDNSDomain is other.local, and must be cluster.local; set it so");
    let other = |world: &mut World| world.backup = Some(backup(json!({ "karmadaDeploymentRef": { "name": "k2" } })));
    check(&other, "BackupOfOtherCluster", "is of KarmadaDeployment k2, and this restores KarmadaDeployment k1");
    let cluster = |world: &mut World| world.backup = Some(backup(json!({ "clusterName": "paris" })));
    check(&cluster, "BackupOfOtherCluster", "this restores KarmadaDeployment k1");
    let volume = |world: &mut World| {
        world.keys.storage = Some(storage(json!({ "volume": { "claimName": "backups" } })));
    };
    check(&volume, "BackupNotSupported", "copy the backup into a bucket, and name that one");
    let deleting = |world: &mut World| {
        world.plane.as_mut().unwrap().metadata.deletion_timestamp = Some(Time(NOW.parse().unwrap()));
    };
    check(&deleting, "ClusterDeleting", "KarmadaDeployment k1 is being deleted");

    let mut world = World::new();
    world.settle();
    arrive(&mut world.keys, &fetched(), KeysSeen::Differ);
    let (phase, reason, message) = world.settle();
    assert_eq!((phase, reason.as_str()), (Phase::Failed, "KeysDiffer"));
    assert!(message.contains("is encrypted with a key") && !message.contains("delete secret"), "{message}");
    assert!(world.keys.jobs.is_empty(), "{:?}", world.log);
}

#[test]
fn what_is_in_the_way_for_a_while_is_waited_for_and_touches_nothing() {
    let check = |change: &dyn Fn(&mut World), reason: &str, words: &str| {
        let mut world = World::new();
        change(&mut world);
        let (phase, is, message) = world.settle();
        assert_eq!((phase, is.as_str()), (Phase::Pending, reason), "{message}");
        assert!(message.contains(words) && world.log.is_empty(), "{message}");
    };
    check(&|world| world.plane = None, "KarmadaDeploymentNotFound", "make it, or delete this EtcdRestore");
    check(&|world| world.plane.as_mut().unwrap().spec.paused = true, "Paused", "once its spec.paused is false");
    check(&|world| world.plane.as_mut().unwrap().status = None, "NotInstalled", "is not installed yet");
    check(&|world| world.keys.identity = false, "WaitingForBackup", "Secret age of spec.identityRef is not there");
    let upgrading = |world: &mut World| {
        let upgrade = json!({ "from": "1.17.5", "to": "1.18.2", "step": "Etcd", "steps": ["Etcd"], "changes": [],
            "digest": "d", "summary": "s" });
        world.plane.as_mut().unwrap().status.as_mut().unwrap().upgrade = serde_json::from_value(upgrade).unwrap();
    };
    check(&upgrading, "Upgrading", "is being upgraded");
    let earlier = |world: &mut World| {
        let mut earlier = restore("an-earlier-one");
        earlier.status = Some(EtcdRestoreStatus { phase: Some(Phase::Restoring), ..EtcdRestoreStatus::default() });
        world.others = vec![earlier];
    };
    check(&earlier, "WaitingForRestore", "EtcdRestore an-earlier-one of KarmadaDeployment k1 is not over yet");
    let begins = |world: &mut World| {
        let mut donor = World::handed();
        donor.taken(Some(Step::Compare));
        let mut record = donor.plane.unwrap().status.unwrap().restored_from.unwrap();
        record.restore_ref = None;
        world.plane.as_mut().unwrap().status.as_mut().unwrap().restored_from = Some(record);
    };
    check(&begins, "NotInstalled", "begins with a backup itself");
}

#[test]
fn one_that_is_deleted_before_it_was_handed_over_leaves_nothing_and_one_after_it_ends_with_the_plane() {
    let deleted = |world: &mut World| world.restore.metadata.deletion_timestamp = Some(Time(world.now));
    let mut world = World::new().fetched();
    world.settle();
    deleted(&mut world);
    world.step();
    assert_eq!(world.log, ["fetch", "drop"]);
    assert!(!world.is_gone, "its end is written first");
    world.step();
    assert!(world.is_gone && world.restore.status.as_ref().unwrap().began_at.is_none());

    let mut world = World::handed();
    world.taken(Some(Step::Compare));
    deleted(&mut world);
    for _ in 0..3 {
        assert_eq!(world.step().0, Phase::Restoring);
    }
    assert!(!world.is_gone, "the plane still needs it");
    world.taken(None);
    assert_eq!(world.step().0, Phase::Succeeded);
    world.step();
    assert!(world.is_gone);
}

#[test]
fn one_that_waits_for_another_leaves_what_that_one_has_fetched_when_it_is_deleted() {
    let mut world = World::new();
    world.keys.keys = KeysSeen::InPlace;
    world.others = vec![restore("an-earlier-one")];
    world.settle();
    world.restore.metadata.deletion_timestamp = Some(Time(world.now));
    world.step();
    world.step();
    assert!(world.is_gone && world.log.is_empty(), "{:?}", world.log);
}

#[test]
fn it_goes_back_once_that_is_approved_and_not_after_what_acts_was() {
    let mut world = World::handed();
    world.taken(Some(Step::Compare));
    world.settle();
    world.approve();
    let (phase, reason, _) = world.settle();
    assert_eq!((phase, reason.as_str()), (Phase::Undoing, "UndoingRestore"));
    let mut late = World::handed();
    late.restore.metadata.annotations = world.restore.metadata.annotations.clone();
    late.taken(Some(Step::Release));
    assert_eq!(late.settle().0, Phase::Restarting);

    world.taken(None);
    let record = world.plane.as_mut().unwrap().status.as_mut().unwrap().restored_from.as_mut().unwrap();
    record.undone_at = Some(Time(world.now));
    let (phase, reason, message) = world.settle();
    assert_eq!((phase, reason.as_str()), (Phase::Undone, "RestoreUndone"));
    let claims = world.restore.status.as_ref().unwrap().plane_backup.as_ref().unwrap().claims.clone().unwrap();
    assert!(message.contains(&format!("PersistentVolumeClaims {claims}-* of the host")), "{message}");
    assert!(is_over(&world.restore));
}

#[test]
fn of_a_plane_on_machines_what_was_there_before_is_removed_once_it_was_kept_for_long_enough() {
    let mut world = World::on_machines().hand_over();
    let record = world.restore.status.as_ref().unwrap().plane_backup.clone().unwrap();
    assert_eq!((record.step, &record.claims, record.bump), (Some(Step::Stage), &None, None));
    for step in [Step::Stage, Step::Stop, Step::Compare] {
        world.taken(Some(step));
        let (phase, _, message) = world.settle();
        assert_eq!(phase, Phase::Restoring, "{message}");
        assert!(message.contains("to go back to the data of before: kubectl"), "{message}");
    }
    world.taken(None);
    let (phase, _, message) = world.settle();
    assert_eq!(phase, Phase::Succeeded);
    assert!(message.contains("the data of before stays on the machines for 604800 s"), "{message}");
    assert!(world.runs.is_empty());
    world.now += jiff::SignedDuration::from_secs(604_801);
    world.settle();
    let run = &world.runs[0];
    assert_eq!((run.spec.steps.as_slice(), run.spec.hosts.as_slice()), (&[RemoveOldData][..], &["h1".to_owned()][..]));
    assert_eq!((run.spec.cluster_kind, run.spec.cluster_name.as_deref()), (ClusterKind::KarmadaDeployment, Some("k1")));
    // Who deletes it waits until nothing is left.
    world.restore.metadata.deletion_timestamp = Some(Time(world.now));
    world.settle();
    assert!(!world.is_gone && world.runs.len() == 1);
    world.runs[0].status = serde_json::from_value(json!({ "phase": "Succeeded", "finishedAt": world.now })).unwrap();
    world.step();
    assert!(world.is_gone && world.restore.status.as_ref().unwrap().old_data_removed_at.is_some());
}

#[test]
fn of_a_plane_on_machines_that_went_back_it_goes_when_the_restore_is_deleted_and_of_one_that_is_gone_nothing_does() {
    let undone = || {
        let mut world = World::on_machines().hand_over();
        world.taken(None);
        let record = world.plane.as_mut().unwrap().status.as_mut().unwrap().restored_from.as_mut().unwrap();
        record.undone_at = Some(Time(world.now));
        let (phase, _, message) = world.settle();
        assert_eq!(phase, Phase::Undone);
        assert!(message.contains("what was made of backup nightly stays on the machines for"), "{message}");
        world.restore.metadata.deletion_timestamp = Some(Time(world.now));
        world
    };
    let mut world = undone();
    world.settle();
    assert!(!world.is_gone && world.runs.len() == 1);
    let mut gone = undone();
    gone.plane = None;
    gone.step();
    assert!(gone.is_gone && gone.runs.is_empty(), "whoever cleans its machines removes that, too");
}
