//! Promises about a cluster that begins with a backup: its keys first, nothing before it is approved, and never empty.

use crds::backup::FetchedBackup;
use crds::cluster_deployment::{RecoveryStrategy, RestoredFrom};
use crds::names::{annotation, label};
use crds::references::LocalRef;
use crds::step::{Intent, Step};
use crds::{BackupStorage, EtcdBackup, Host, ObjectExt, PlaybookRun};
use k8s_openapi::api::core::v1::Pod;
use serde_json::{Value, json};

use super::ready;
use crate::key_transfer::KeysSeen;
use crate::testing::World;

const SPEC: &str = "controlPlane: {replicas: 1}, workers: [{name: general, replicas: 1}]";
const LOCATION: &str = "paris/uid-paris/1";

fn storage() -> BackupStorage {
    serde_json::from_value(json!({
        "apiVersion": "clusterwright.dev/v1alpha1", "kind": "BackupStorage",
        "metadata": { "name": "nfs", "namespace": "fleet", "uid": "uid-nfs" },
        "spec": { "volume": { "claimName": "backups" } },
        "status": { "conditions": [{ "type": "Reachable", "status": "True", "reason": "Answers", "message": "",
            "lastTransitionTime": "2026-01-01T00:00:00Z" }] }
    }))
    .unwrap()
}

/// A cluster that is to begin with the backup of another one, and two spare Hosts.
fn beginning() -> World {
    let mut world = World::new(SPEC, 2);
    let from = json!({
        "source": { "stored": { "storageRef": { "name": "nfs" }, "location": LOCATION } }, "identityRef": { "name": "age" }
    });
    world.deployment.spec.restore_from = Some(serde_json::from_value(from).unwrap());
    world.restoring.storage = Some(storage());
    world.restoring.identity = true;
    world
}

fn fetched() -> Value {
    json!({ "backup": FetchedBackup {
        backup: "nightly".into(),
        cluster: "paris".into(),
        cluster_uid: "uid-paris".into(),
        plane: None,
        location: LOCATION.into(),
        taken_at: serde_json::from_value(json!("2025-12-31T21:00:00Z")).unwrap(),
        revision: 77,
        size: 3_250_000,
        sha256: "a0".into(),
        etcd_version: "3.6.16".into(),
        kubernetes_version: "1.35.2".parse().ok(),
        pod_cidr: "10.244.0.0/16".into(),
        service_cidr: "10.96.0.0/16".into(),
        dns_domain: "cluster.local".into(),
    } })
}

/// The Job that fetches the keys ends so.
fn job_ends(world: &mut World, code: i32, said: &str) {
    world.restoring.jobs[0].metadata.uid = Some("uid-job".into());
    let pod: Pod = serde_json::from_value(json!({
        "metadata": { "name": "p", "labels": { label::RESTORE_FROM: "a" }, "ownerReferences": [{
            "apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": "uid-job", "controller": true }] },
        "status": { "containerStatuses": [{ "name": "executor", "image": "", "imageID": "", "ready": false,
            "restartCount": 0, "state": { "terminated": { "exitCode": code, "message": said } } }] }
    }))
    .unwrap();
    world.restoring.pods = vec![pod];
}

/// The same, once it asks for an approval.
fn asking(change: impl FnOnce(&mut Value)) -> World {
    let mut world = beginning();
    world.run_for(1);
    assert_eq!(ready(&world).1, "FetchingKeys", "{:?}", ready(&world));
    let mut told = fetched();
    change(&mut told);
    job_ends(&mut world, 0, &told.to_string());
    world.restoring.keys = KeysSeen::Fetched;
    world.run_for(5);
    world
}

/// A person runs the command of the message.
fn approve(world: &mut World) {
    let (_, _, message) = ready(world);
    let (_, value) = message.rsplit_once("clusterwright.dev/approve=").unwrap_or_default();
    world.deployment.metadata.annotations = Some([(annotation::APPROVE.to_owned(), value.to_owned())].into());
}

fn restored(world: &World) -> Option<RestoredFrom> {
    world.deployment.status.clone()?.restored_from
}

/// Nothing was done with a Host, and no Machine was made for one.
fn is_untouched(world: &World) {
    assert_eq!(world.machines.len(), 0, "{:?}", ready(world));
    assert!(world.hosts.iter().all(|host: &Host| host.spec.claim_ref.is_none()));
    assert!(world.runs.iter().all(|run| run.spec.intent == Intent::Probe));
}

fn installs(world: &World) -> Vec<&PlaybookRun> {
    world.runs.iter().filter(|run| run.spec.intent == Intent::Install).collect()
}

#[test]
fn keys_come_first_then_an_approval_and_then_the_install_with_the_data() {
    let mut world = asking(|_| {});
    let (status, reason, message) = ready(&world);
    assert_eq!((status.as_str(), reason.as_str()), ("False", "WaitingForApproval"), "{message}");
    for words in [
        "backup nightly of cluster paris",
        " hours ago (2025-12-31 21:00:00 UTC)",
        "at revision 77",
        "must be off or reset",
        "no ClusterDeployment paris (UID uid-paris) is here",
        "kubectl -n fleet annotate --overwrite clusterdeployments.clusterwright.dev a clusterwright.dev/approve=restore.",
    ] {
        assert!(message.contains(words), "{words}: {message}");
    }
    assert!(world.pki, "the keys are there before anything else");
    assert!(
        world.restoring.jobs.is_empty() && world.restoring.keys == KeysSeen::Absent,
        "nobody may write them any more"
    );
    is_untouched(&world);
    approve(&mut world);
    world.settle();
    assert_eq!(ready(&world).0, "True", "{:?}", ready(&world));
    let installs = installs(&world);
    let steps = &installs[0].spec.steps;
    let place = |step: Step| steps.iter().position(|there| *there == step);
    assert!(place(Step::ContainerRuntime) < place(Step::StageBackup) && place(Step::StageBackup) < place(Step::Etcd));
    let vars = &installs[0].spec.vars["etcd_restore"];
    assert_eq!((vars["sha256"].as_str(), vars["new_cluster"].as_bool()), (Some("a0"), Some(true)));
    let id = vars["id"].as_str().unwrap();
    assert!(id.len() == 8 && id.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit()), "{id}");
    let restored = restored(&world).unwrap();
    assert!(restored.restored_at.is_some() && restored.approved_at.is_some());
    assert_eq!(world.inits, 1);
}

#[test]
fn an_install_that_fails_goes_on_with_the_same_backup_and_asks_nobody_again() {
    let mut world = asking(|_| {});
    world.fates = vec![crate::testing::Fate::Fails; 2];
    approve(&mut world);
    world.settle();
    assert_eq!(ready(&world).0, "True", "{:?}", ready(&world));
    let vars: Vec<_> = installs(&world).iter().map(|run| run.spec.vars["etcd_restore"].clone()).collect();
    assert_eq!(vars.len(), 3);
    assert!(vars.iter().all(|other| *other == vars[0]));
}

#[test]
fn what_the_data_depends_on_must_be_the_same() {
    for (field, value, words) in [
        ("podCIDR", "10.0.0.0/16", "spec.networking.podCIDR is 10.244.0.0/16, and must be 10.0.0.0/16"),
        ("serviceCIDR", "10.1.0.0/16", "spec.networking.serviceCIDR"),
        ("dnsDomain", "paris.local", "spec.networking.dnsDomain is cluster.local, and must be paris.local"),
        ("kubernetesVersion", "1.34.4", "spec.kubernetesVersion is 1.35.4, and must be of the minor of 1.34.4"),
    ] {
        let mut world = asking(|told| told["backup"][field] = json!(value));
        approve(&mut world);
        world.run_for(3);
        let (_, reason, message) = ready(&world);
        assert_eq!(reason, "BackupDoesNotFit", "{message}");
        assert!(message.contains(words), "{message}");
        is_untouched(&world);
    }
}

#[test]
fn keys_that_are_there_are_never_replaced_and_those_that_are_the_same_are_taken() {
    for (keys, reason) in [(KeysSeen::Differ, "KeysDiffer"), (KeysSeen::InPlace, "WaitingForApproval")] {
        let mut world = beginning();
        world.pki = true;
        world.run_for(1);
        job_ends(&mut world, 0, &fetched().to_string());
        world.restoring.keys = keys;
        world.run_for(5);
        assert_eq!(ready(&world).1, reason, "{:?}", ready(&world));
        is_untouched(&world);
    }
}

#[test]
fn what_is_missing_is_named_and_what_failed_is_tried_again() {
    let check = |change: fn(&mut World), reason: &str, words: &str| {
        let mut world = beginning();
        change(&mut world);
        world.run_for(1);
        let (_, told, message) = ready(&world);
        assert!(told == reason && message.contains(words), "{told}: {message}");
        assert!(!world.pki, "keys were made");
        is_untouched(&world);
    };
    check(|world| world.restoring.storage = None, "WaitingForBackup", "BackupStorage nfs is not there");
    check(|world| world.restoring.identity = false, "WaitingForBackup", "Secret age of spec.restoreFrom.identityRef");
    let unnamed = |world: &mut World| {
        let from = world.deployment.spec.restore_from.as_mut().unwrap();
        from.source = serde_json::from_value(json!({ "backupRef": { "name": "nightly" } })).unwrap();
    };
    check(unnamed, "WaitingForBackup", "EtcdBackup nightly is not there");
    let mut world = beginning();
    world.run_for(1);
    let said = json!({ "reason": "IdentityDoesNotMatch", "message": "the identity is of no use" });
    job_ends(&mut world, 0, &said.to_string());
    world.run_for(1);
    let (_, reason, message) = ready(&world);
    assert!(reason == "KeysNotFetched" && message.contains("of no use; tried again at"), "{message}");
    world.restoring.jobs[0].status.get_or_insert_default().completion_time = Some(world.time());
    let failed = world.restoring.jobs[0].metadata.uid.clone();
    world.run_for(6);
    assert_eq!(ready(&world).1, "FetchingKeys", "{:?}", ready(&world));
    assert!(failed.is_some() && world.restoring.jobs[0].metadata.uid.is_none(), "it is the same Job");
}

/// A good backup of the cluster itself.
fn own_backup(name: &str, completed_at: &str) -> EtcdBackup {
    serde_json::from_value(json!({
        "apiVersion": "clusterwright.dev/v1alpha1", "kind": "EtcdBackup",
        "metadata": { "name": name, "namespace": "fleet", "uid": format!("uid-{name}") },
        "spec": { "clusterName": "a", "storageRef": { "name": "nfs" }, "encryption": { "recipients": ["age1x"] } },
        "status": { "phase": "Succeeded", "backup": {
            "location": format!("a/cd-uid/{name}"), "revision": 7, "keys": 5, "size": 9, "sha256": name, "member": "h1",
            "etcdVersion": "3.6.16", "startedAt": "2026-01-01T00:00:00Z", "completedAt": completed_at } }
    }))
    .unwrap()
}

/// A cluster on h1 and h2 whose API and machines are silent, with two spare Hosts.
fn dead(backups: Vec<EtcdBackup>) -> World {
    let mut world = World::new(SPEC, 4);
    world.deployment.spec.recovery.strategy = RecoveryStrategy::RestoreLatest;
    world.deployment.spec.recovery.identity_ref = Some(LocalRef::new("age"));
    world.settle();
    assert!(installs(&world)[0].spec.vars.is_empty(), "a new cluster has no backup");
    world.backups = backups;
    world.silent = ["h1", "h2"].map(str::to_owned).into();
    world.silent_nodes = world.silent.clone();
    world.api_lost = true;
    let since = world.time();
    if let Some(cluster) = &mut world.cluster {
        cluster.status.get_or_insert_default().unreachable_since = Some(since);
    }
    world
}

#[test]
fn a_lost_cluster_is_built_anew_with_its_newest_good_backup_and_nobody_is_asked() {
    let mut foreign = own_backup("foreign", "2026-01-03T00:00:00Z");
    foreign.status.as_mut().unwrap().backup.as_mut().unwrap().location = "a/another-uid/1".into();
    let mut failed = own_backup("failed", "2026-01-04T00:00:00Z");
    failed.status.as_mut().unwrap().phase = Some(crds::etcd_backup::BackupPhase::Failed);
    let good = [own_backup("second", "2026-01-02T00:00:00Z"), own_backup("first", "2026-01-01T00:00:00Z")];
    let mut world = dead(good.into_iter().chain([foreign, failed]).collect());
    let before = world.runs.iter().map(|run| run.name().to_owned()).collect::<Vec<_>>();
    world.run_for(60);
    assert_eq!(ready(&world).0, "True", "{:?}", ready(&world));
    let restored = restored(&world).unwrap();
    assert_eq!((restored.backup.as_str(), restored.approved_at.clone()), ("second", None));
    assert!(restored.restored_at.is_some() && world.pki);
    let anew = installs(&world).into_iter().filter(|run| !before.contains(&run.name().to_owned()));
    let anew: Vec<_> = anew.collect();
    assert!(!anew.is_empty() && anew.iter().all(|run| run.spec.steps.contains(&Step::StageBackup)));
}

#[test]
fn a_backup_that_was_found_damaged_is_passed_over_and_one_alone_begins_nothing() {
    let damaged = || {
        let mut damaged = own_backup("damaged", "2026-01-05T00:00:00Z");
        let found = json!({ "at": "2026-01-06T00:00:00Z", "how": "Hash" });
        damaged.status.as_mut().unwrap().damaged = serde_json::from_value(found).unwrap();
        damaged
    };
    let mut world = dead(vec![damaged(), own_backup("good", "2026-01-01T00:00:00Z")]);
    world.run_for(60);
    assert_eq!(restored(&world).map(|restored| restored.backup).as_deref(), Some("good"), "{:?}", ready(&world));
    let mut world = dead(vec![damaged()]);
    let before = installs(&world).len();
    world.run_for(40);
    assert_eq!(ready(&world).1, "NoGoodBackup", "{:?}", ready(&world));
    world.lose_status();
    world.run_for(80);
    assert_eq!(installs(&world).len(), before, "it does not begin empty: {:?}", ready(&world));

    let mut world = beginning();
    let from = world.deployment.spec.restore_from.as_mut().unwrap();
    from.source = serde_json::from_value(json!({ "backupRef": { "name": "damaged" } })).unwrap();
    world.restoring.backup = Some(damaged());
    world.run_for(1);
    let (_, reason, message) = ready(&world);
    assert!(reason == "WaitingForBackup" && message.contains("EtcdBackup damaged is not what was stored"), "{message}");
}

#[test]
fn without_a_good_backup_nothing_is_done_and_it_is_said() {
    let mut world = dead(Vec::new());
    let machines: Vec<_> = world.machines.iter().map(|machine| machine.metadata.uid.clone()).collect();
    world.run_for(40);
    let (status, reason, message) = ready(&world);
    assert_eq!((status.as_str(), reason.as_str()), ("False", "NoGoodBackup"), "{message}");
    assert!(message.contains("no good EtcdBackup of ClusterDeployment a (UID cd-uid)"), "{message}");
    let now: Vec<_> = world.machines.iter().map(|machine| machine.metadata.uid.clone()).collect();
    assert_eq!(machines, now);
}

#[test]
fn a_cluster_that_was_lost_never_begins_empty_whenever_its_status_is_lost() {
    for minutes in 0..16 {
        let mut world = dead(vec![own_backup("good", "2026-01-01T00:00:00Z")]);
        let before = installs(&world).len();
        world.run_for(minutes);
        world.lose_status();
        world.run_for(80);
        let installs = installs(&world);
        let anew = installs.get(before..).unwrap_or_default();
        assert!(anew.iter().all(|run| run.spec.steps.contains(&Step::StageBackup)), "lost after {minutes} minutes");
    }
}
