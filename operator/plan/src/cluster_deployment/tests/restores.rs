//! Promises beside a restore of etcd: while the control plane may be stopped for it, nothing is done that is decided by
//! an API that does not answer.

use crds::EtcdRestore;
use crds::names::condition;
use crds::step::{Intent, Step};
use crds::{ObjectExt, conditions};
use serde_json::json;

use super::ready;
use crate::testing::World;

fn restore(phase: &str) -> EtcdRestore {
    serde_json::from_value(json!({
        "apiVersion": "clusterwright.dev/v1alpha1", "kind": "EtcdRestore",
        "metadata": { "name": "back", "namespace": "fleet", "uid": "uid-back" },
        "spec": {
            "clusterName": "a", "source": { "backupRef": { "name": "b" } }, "identityRef": { "name": "i" }
        },
        "status": { "phase": phase, "message": "run a-restore-x-0: restore-etcd" }
    }))
    .unwrap()
}

/// A cluster that stands, and of which more is wanted: another worker, and one machine less.
fn changed(phase: &str) -> (World, usize) {
    let mut world = World::new("controlPlane: {replicas: 3}, workers: [{name: general, replicas: 1}]", 6);
    world.settle();
    assert_eq!(ready(&world).0, "True", "{:?}", ready(&world));
    let before = world.runs.len();
    world.restores = vec![restore(phase)];
    world.deployment.spec.workers[0].replicas = Some(2);
    world.settle();
    (world, before)
}

#[test]
fn nothing_begins_while_a_restore_holds_the_cluster_and_the_cluster_says_why() {
    for (phase, reason) in [
        ("BackingUp", "BackingUp"),
        ("Restoring", "Restoring"),
        ("Interrupted", "RestoreInterrupted"),
        ("Undoing", "UndoingRestore"),
    ] {
        let (world, before) = changed(phase);
        assert_eq!(world.runs.len(), before, "{phase}");
        let (status, told, message) = ready(&world);
        assert_eq!((status.as_str(), told.as_str()), ("False", reason), "{message}");
        assert!(message.contains("EtcdRestore back: run a-restore-x-0"), "{message}");
        let status = world.deployment.status.clone().unwrap();
        assert!(conditions::find(&status.conditions, condition::CONTROL_PLANE_READY).unwrap().reason == reason);
    }
}

#[test]
fn a_restore_that_only_waits_or_is_over_holds_nothing() {
    for phase in ["Pending", "Staging", "AwaitingApproval", "Restarting", "Succeeded", "Undone", "Failed"] {
        let (world, before) = changed(phase);
        assert!(world.runs.len() > before, "{phase}");
        assert_eq!(ready(&world).0, "True", "{phase}: {:?}", ready(&world));
    }
}

#[test]
fn the_runs_of_a_restore_that_is_not_over_are_no_history() {
    let (mut world, _) = changed("Interrupted");
    let owned: Vec<String> = (0..40)
        .map(|number| {
            let mut run = world.runs[0].clone();
            run.metadata.name = Some(format!("a-restore-x-{number}"));
            run.metadata.uid = Some(format!("uid-of-restore-{number}"));
            run.metadata.owner_references =
                crds::references::controller_ref(&world.restores[0]).map(|owner| vec![owner]);
            run.spec.intent = crds::Intent::Restore;
            let name = run.name().to_owned();
            world.runs.push(run);
            name
        })
        .collect();
    world.settle();
    let kept = |world: &World| owned.iter().filter(|name| world.runs.iter().any(|run| run.name() == *name)).count();
    assert_eq!(kept(&world), 40);
    world.restores = vec![restore("Succeeded")];
    world.settle();
    assert!(kept(&world) < 40);
}

/// A run of an object beside the cluster, which waits for the lock.
fn ask(world: &mut World, name: &str, intent: Intent, step: Step) {
    world.custom_run(name, &["h1"]);
    let spec = &mut world.runs.last_mut().unwrap().spec;
    (spec.intent, spec.steps) = (intent, vec![step]);
}

fn ended_with(world: &World, name: &str) -> Option<(crds::playbook_run::RunPhase, i64)> {
    let status = world.runs.iter().find(|run| run.name() == name)?.status.as_ref()?;
    Some((status.phase?, status.token))
}

#[test]
fn backups_and_restores_go_over_ssh_and_need_no_api_rows_35_and_36() {
    let mut world = World::new("controlPlane: {replicas: 1}", 1);
    world.settle();
    world.cut = true;
    world.run_for(20);
    for (name, intent, step) in [
        ("nightly", Intent::Backup, Step::BackupEtcd),
        ("stages", Intent::Stage, Step::StageBackup),
        ("restores", Intent::Restore, Step::RestoreEtcd),
    ] {
        ask(&mut world, name, intent, step);
        world.run_for(20);
        let (phase, token) = ended_with(&world, name).unwrap();
        assert!(phase == crds::playbook_run::RunPhase::Succeeded && token > 0, "{name}: {phase:?}");
    }
}

#[test]
fn a_backup_that_has_not_begun_holds_up_no_machine_that_leaves() {
    let mut world = World::new("controlPlane: {replicas: 3, endpoint: {host: 10.0.0.100}}", 4);
    world.settle();
    ask(&mut world, "nightly", Intent::Backup, Step::BackupEtcd);
    world.runs.last_mut().unwrap().spec.hosts = ["h1", "h2", "h3"].map(str::to_owned).to_vec();
    let leaving = world.machines[0].name().to_owned();
    world.delete_machine(0);
    world.settle();
    assert!(!world.machines.iter().any(|machine| machine.name() == leaving), "{:?}", ready(&world));
    assert!(!world.runs.iter().any(|run| run.name() == "nightly"), "it is asked for again, on those that stay");
    assert_eq!(ready(&world).0, "True", "{:?}", ready(&world));
}
