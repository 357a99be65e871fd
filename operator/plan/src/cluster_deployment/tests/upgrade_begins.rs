//! What comes before the first machine gets another Kubernetes version: preflight, a backup, hooks.

use crds::etcd_backup::BackupPhase;
use crds::names::{annotation, condition};
use crds::step::Intent;
use crds::{Conditions, EtcdBackup, EtcdBackupSchedule, ObjectExt, conditions};
use jiff::SignedDuration;
use serde_json::json;

use super::ready;
use crate::hooks::Library;
use crate::testing::{Fate, World};

const SPEC: &str = "controlPlane: {replicas: 1}, workers: [{name: general, replicas: 1}]";

fn built(spec: &str) -> World {
    let mut world = World::new(spec, 2);
    world.settle();
    assert_eq!(ready(&world).0, "True", "{:?}", ready(&world));
    world
}

fn want(world: &mut World, version: &str) {
    world.deployment.spec.kubernetes_version = version.parse().unwrap();
    world.touch();
}

/// The steps of the runs of an intent.
fn steps(world: &World, intent: Intent) -> Vec<String> {
    let runs = world.runs.iter().filter(|run| run.spec.intent == intent);
    runs.map(|run| run.spec.steps.iter().map(|step| step.name()).collect::<Vec<_>>().join(" ")).collect()
}

fn up_to_date(world: &World) -> (String, String) {
    let status = world.deployment.status.clone().unwrap();
    let found = conditions::find(&status.conditions, condition::UP_TO_DATE).unwrap();
    (found.reason.clone(), found.message.clone())
}

fn is_upgraded(world: &World, version: &str) {
    assert_eq!(up_to_date(world).0, "UpToDate", "{:?}\n{}", up_to_date(world), world.report());
    let status = world.deployment.status.clone().unwrap();
    assert_eq!(status.kubernetes_version.as_deref(), Some(version));
}

#[test]
fn what_preflight_finds_blocks_before_any_machine_is_touched_and_is_told_with_what_to_do() {
    let mut world = built(SPEC);
    world.always_fails = vec!["h1".into()];
    want(&mut world, "1.36.0");
    world.settle();
    for run in world.runs.iter_mut().filter(|run| run.spec.intent == Intent::Prefetch) {
        for failure in
            run.status.iter_mut().flat_map(|status| &mut status.hosts).filter_map(|host| host.failure.as_mut())
        {
            (failure.step, failure.reason) = ("preflight-upgrade".into(), "PreflightFailed".into());
            failure.message = "removed-apis: APIs are in use".into();
        }
    }
    world.write_statuses();
    let (reason, message) = up_to_date(&world);
    assert_eq!(reason, "UpgradeFailed", "{message}");
    for part in ["found what blocks it", "removed-apis: APIs are in use", "spec.preflight.ignore", "back to 1.35.4"] {
        assert!(message.contains(part), "{part}: {message}");
    }
    assert!(steps(&world, Intent::Prefetch).iter().all(|steps| steps == "preflight-upgrade prefetch"));
    assert!(steps(&world, Intent::Upgrade).is_empty());
    world.always_fails.clear();
    world.request("a", annotation::RETRY);
    world.settle();
    is_upgraded(&world, "1.36.0");
}

#[test]
fn preflight_is_made_again_after_a_day_and_after_another_version_was_wanted() {
    let mut world = built(SPEC);
    // Nothing begins before there is a backup.
    world.schedules = vec![schedule("nightly")];
    for (version, hours, runs) in
        [("1.36.0", 1, 1), ("1.36.1", 1, 2), ("1.36.0", 30, 3), ("1.36.0", 1, 4), ("1.36.0", 1, 4)]
    {
        want(&mut world, version);
        world.run_for(60);
        want(&mut world, "1.35.4");
        world.settle();
        assert_eq!(steps(&world, Intent::Prefetch).len(), runs, "{version}\n{}", world.report());
        world.jump(SignedDuration::from_hours(hours));
    }
    assert!(steps(&world, Intent::Upgrade).is_empty());
}

fn schedule(name: &str) -> EtcdBackupSchedule {
    serde_json::from_value(json!({
        "apiVersion": "clusterwright.dev/v1alpha1", "kind": "EtcdBackupSchedule",
        "metadata": { "name": name, "namespace": "fleet", "uid": format!("uid-{name}") },
        "spec": {
            "clusterName": "a", "schedule": "0 3 * * *",
            "template": { "storageRef": { "name": "s3" }, "encryption": { "recipients": [] } }
        }
    }))
    .unwrap()
}

/// The backup ends so, now.
fn end(world: &mut World, index: usize, phase: BackupPhase) {
    let now = world.time().0.to_string();
    let backup = &mut world.backups[index];
    let content = json!({
        "location": format!("a/cd-uid/{}", backup.name()), "revision": 7, "keys": 5, "size": 9, "sha256": "x",
        "member": "h1", "etcdVersion": "3.6.16", "startedAt": now, "completedAt": now
    });
    let status = match phase {
        BackupPhase::Succeeded => json!({ "phase": phase, "backup": content }),
        BackupPhase::Pending | BackupPhase::Running | BackupPhase::Failed => {
            json!({ "phase": phase, "message": "the storage is full" })
        }
    };
    backup.status = serde_json::from_value(status).unwrap();
}

/// Until a backup is waited for.
fn until_backup(world: &mut World, number: usize) {
    for _ in 0..2000 {
        if world.backups.len() == number {
            return world.run_for(1);
        }
        world.run_for(1);
    }
    panic!("no backup\n{}", world.report());
}

#[test]
fn where_a_schedule_is_for_the_cluster_a_backup_precedes_the_upgrade_and_one_that_fails_blocks_it() {
    let mut world = built(SPEC);
    world.schedules = vec![schedule("nightly"), schedule("weekly")];
    want(&mut world, "1.36.0");
    until_backup(&mut world, 1);
    let made: EtcdBackup = world.backups[0].clone();
    assert!(made.name().starts_with("nightly-"), "{}", made.name());
    assert!(made.metadata.owner_references.is_none(), "schedules own no backups");
    assert_eq!(made.annotation(annotation::CLUSTER_UID), Some(world.deployment.uid()));
    let (reason, message) = up_to_date(&world);
    assert_eq!(reason, "Upgrading");
    assert!(message.contains(&format!("waits for EtcdBackup {}", made.name())), "{message}");
    world.run_for(20);
    assert_eq!(world.backups.len(), 1, "it is made once");
    assert!(steps(&world, Intent::Upgrade).is_empty() && world.evictions.is_empty());

    end(&mut world, 0, BackupPhase::Failed);
    world.run_for(1);
    let (reason, message) = up_to_date(&world);
    if reason == "BackupRequired" {
        assert!(message.contains("the storage is full") && message.contains("spec.preflight.ignore"), "{message}");
    }
    until_backup(&mut world, 2);
    assert!(steps(&world, Intent::Upgrade).is_empty(), "it blocks");
    end(&mut world, 1, BackupPhase::Succeeded);
    world.settle();
    is_upgraded(&world, "1.36.0");
    assert_eq!(world.backups.len(), 2);
}

#[test]
fn a_good_backup_of_the_last_hour_does_and_one_that_is_ignored_by_name_is_not_waited_for() {
    let mut world = built(SPEC);
    world.schedules = vec![schedule("nightly")];
    want(&mut world, "1.36.0");
    until_backup(&mut world, 1);
    end(&mut world, 0, BackupPhase::Succeeded);
    // By hand: nothing tells whose it is but where it is.
    world.backups[0].metadata.annotations = None;
    world.settle();
    is_upgraded(&world, "1.36.0");
    assert_eq!(world.backups.len(), 1);

    let mut world = built(SPEC);
    world.schedules = vec![schedule("nightly")];
    world.respec(&format!("{SPEC}, preflight: {{ignore: [backup]}}"));
    want(&mut world, "1.36.0");
    world.settle();
    is_upgraded(&world, "1.36.0");
    assert!(world.backups.is_empty());
}

fn library(names: &[&str]) -> Option<Library> {
    let play = "- {hosts: all, tasks: []}";
    let data = names.iter().map(|name| (format!("{name}.yml"), play.to_owned()));
    Some(Library { config_map: "mine".into(), data: Some(data.collect()), binary: Vec::new() })
}

#[test]
fn hooks_of_an_upgrade_are_steps_of_each_machines_run_and_the_next_machine_waits_for_them() {
    let spec = format!(
        "executor: {{customPlaybooksRef: {{name: mine}}}}, hooks: {{beforeUpgrade: [{{name: b}}], afterUpgrade: [{{name: c}}]}}, {SPEC}"
    );
    let mut world = World::new(&spec, 2);
    world.library = library(&["b", "c"]);
    world.settle();
    assert_eq!(ready(&world).0, "True", "{:?}", ready(&world));
    want(&mut world, "1.36.0");
    // All but the last step, which is the hook.
    while steps(&world, Intent::Upgrade).is_empty() {
        world.run_for(1);
    }
    world.fates = vec![Fate::FailsAfter(5)];
    world.run_for(30);
    let upgrades = steps(&world, Intent::Upgrade);
    let wanted = "custom-b etcd kubeadm-upgrade container-runtime control-plane custom-c";
    assert_eq!(upgrades[0], wanted);
    assert!(upgrades.len() > 1 && upgrades[1] == wanted, "the hook after it failed, and is tried again: {upgrades:?}");
    world.settle();
    is_upgraded(&world, "1.36.0");
    let last = steps(&world, Intent::Upgrade).pop().unwrap();
    assert_eq!(last, "custom-b kubeadm-upgrade container-runtime node custom-c");
    let worker = world.machines.iter().find(|machine| machine.spec.role == crds::step::Role::Worker).unwrap();
    assert!(worker.condition(condition::DRAINED).is_none() || worker.spec.drain_for.is_empty());
}
