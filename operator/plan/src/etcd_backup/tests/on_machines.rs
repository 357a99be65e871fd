//! Promises about backups of planes on machines.

use crds::{ClusterKind, FormerRef};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::*;

/// A backup of the plane k1, which is on machines; with these further fields of its spec and of `binary`.
fn world(more: Value, etcd: Value) -> World {
    let mut world = of_plane();
    let mut binary = json!({ "controlPlane": { "replicas": 3 }, "artifacts": { "url": "https://b.example" } });
    binary.as_object_mut().unwrap().extend(etcd.as_object().unwrap().clone());
    let mut spec = json!({ "mode": "Binary", "binary": binary });
    spec.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    world.plane = Some(karmada(spec));
    let machine = |name: &str, role: &str, status: Value| -> Machine {
        let host = json!({ "name": format!("host-{name}") });
        let spec = json!({ "clusterName": "k1", "clusterKind": "KarmadaDeployment", "role": role, "hostRef": host });
        object("Machine", name, spec, status)
    };
    let provisioned = || json!({ "provisionedAt": NOW });
    world.machines = vec![
        machine("b", "control-plane", provisioned()),
        machine("a", "control-plane", provisioned()),
        machine("joins", "control-plane", json!({})),
        machine("e", "etcd", provisioned()),
    ];
    world
}

#[test]
fn a_plane_on_machines_is_read_by_a_run_of_its_own_on_the_members_that_stay() {
    for (etcd, hosts) in [
        (json!({}), &["host-a", "host-b"][..]),
        (json!({ "etcd": { "topology": "Dedicated", "replicas": 1 } }), &["host-e"][..]),
    ] {
        let mut world = world(json!({}), etcd);
        world.step();
        let run = &world.runs[0];
        assert_eq!(run.spec.former(), Some(FormerRef::plane("k1")));
        assert_eq!(run.spec.hosts, hosts);
        assert_eq!((run.spec.intent, run.spec.steps.as_slice()), (Intent::Backup, &[Step::BackupEtcd][..]));
        assert!(run.name().starts_with("k1-backup-") && run.is_owned_by("uid-nightly"), "{}", run.name());
        world.end_run(RunPhase::Succeeded, false).status.as_mut().unwrap().backup = Some(content());
        assert_eq!(world.step().0, BackupPhase::Succeeded);
        assert!(world.plan().actions.is_empty());
    }
}

#[test]
fn a_snapshot_goes_over_the_disk_of_a_machine_where_there_is_one() {
    let external = json!({ "external": { "endpoints": ["https://10.0.0.5:2379"], "secretRef": { "name": "e" } } });
    let mut spooled = world(json!({}), json!({}));
    spooled.backup.spec.spool = true;
    assert_eq!((spooled.step().0, spooled.runs.len()), (BackupPhase::Pending, 1));
    let mut in_pods = of_plane();
    in_pods.plane = Some(karmada(json!({})));
    for mut world in [world(json!({ "etcd": external }), json!({})), in_pods] {
        world.backup.spec.spool = true;
        let (phase, message) = world.step();
        assert_eq!((phase, world.runs.len()), (BackupPhase::Failed, 0));
        assert_eq!(world.backup.condition("Failed").unwrap().reason, "SpoolNotPossible");
        assert!(message.contains("the etcd of KarmadaDeployment k1 is on no machine"), "{message}");
    }
}

#[test]
fn an_external_etcd_of_a_plane_on_machines_is_read_without_them() {
    let external = json!({ "external": { "endpoints": ["https://10.0.0.5:2379"], "secretRef": { "name": "e" } } });
    let mut world = world(json!({ "etcd": external }), json!({}));
    is_taken_without_machines(&mut world, ["nightly-backup-"; 2]);
    assert!(
        world.runs.iter().all(|run| run.spec.former().is_none() && run.spec.cluster_kind == ClusterKind::default())
    );
}

#[test]
fn members_whose_certificates_have_ended_are_waited_for_as_a_cluster_s_are() {
    let mut world = world(json!({}), json!({}));
    for machine in &mut world.machines {
        let ended = json!([{ "name": "etcd-server", "expiresAt": "2026-11-16T12:00:00Z" }]);
        machine.status.as_mut().unwrap().certificates = serde_json::from_value(ended).unwrap();
    }
    let (phase, message) = world.step();
    assert_eq!((phase, world.runs.len()), (BackupPhase::Pending, 0));
    assert!(message.contains("etcd of KarmadaDeployment k1 cannot be read: certificate etcd-server"), "{message}");
    assert_eq!(world.plan().next, Next::after_seconds(30));
}

#[test]
fn a_plane_on_machines_that_goes_is_given_up() {
    let mut world = world(json!({}), json!({}));
    world.plane.as_mut().unwrap().metadata.deletion_timestamp = Some(Time(world.now));
    assert_eq!((world.step().0, world.runs.len()), (BackupPhase::Failed, 0));
    assert_eq!(world.backup.condition("Failed").unwrap().reason, "ClusterDeleting");
}
