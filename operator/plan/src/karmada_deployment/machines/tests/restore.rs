//! A plane on machines that begins with a backup: its install brings the data, and nothing acts before a person has
//! approved what becomes of members.

use crds::backup::FetchedBackup;
use crds::karmada_deployment::KarmadaRestoreStep as Step;
use crds::step::Intent;
use crds::{KarmadaDeploymentStatus, PlaybookRun};
use serde_json::json;

use super::super::super::tests::restore::{approve, beginning, job_ends, record, show_members};
use super::super::super::tests::world::World;
use super::super::{seats, secret_files};
use super::fleet::Fleet;
use super::stories::{BINARY, ONE, pass, runs};
use crate::key_transfer::KeysSeen;
use crate::testing::backup_keys::{fetched, storage};

const STAGED: &str = "bootstrap-os+preflight+prepare+stage-backup+etcd etcd on";
pub const ALL: &str = "descheduler: {}, search: {}, metricsAdapter: {}";
/// What propagates, schedules or collects garbage.
pub const ACTING: [&str; 6] =
    ["kube-controller-manager", "scheduler", "controller-manager", "descheduler", "search", "metrics-adapter"];

/// Its keys are being fetched.
fn fetching(spec: &str, hosts: usize) -> World {
    let mut world = beginning(spec);
    world.fleet = Fleet::with_hosts(hosts);
    world.settle();
    assert_eq!(world.condition("Ready").1, "FetchingKeys", "{:?}", world.condition("Ready"));
    world
}

/// They are there, and nothing is in the way.
fn begun(spec: &str, hosts: usize) -> World {
    let mut world = fetching(spec, hosts);
    job_ends(&mut world, &fetched());
    world.settle();
    world
}

/// All serves, and waits for its approval.
fn asking(spec: &str, hosts: usize) -> World {
    let mut world = begun(spec, hosts);
    assert_eq!(record(&world).step, Some(Step::Compare), "{:?} {:#?}", world.condition("Ready"), world.log);
    show_members(&mut world);
    world.settle();
    asks_for_an_approval(&world);
    world
}

/// What would become of members waits for approval.
pub fn asks_for_an_approval(world: &World) {
    assert_eq!(record(world).step, Some(Step::Compare), "{:?} {:#?}", world.condition("Ready"), world.log);
    assert_eq!(world.condition("Ready").1, "WaitingForApproval", "{:?}", world.condition("Ready"));
}

fn installs(world: &World) -> Vec<&PlaybookRun> {
    world.fleet.runs.iter().filter(|run| run.spec.intent == Intent::Install).collect()
}

/// How the API server of a machine is started, as the last run said that brought it.
pub fn api_server(world: &World, host: &str) -> String {
    let brings =
        |run: &&PlaybookRun| run.spec.parts().any(|part| part.part == "apiserver" && part.digests.contains_key(host));
    let run = world.fleet.runs.iter().rfind(brings).unwrap();
    let services = run.spec.vars["karmada_hosts"][host]["karmada_services"].as_array().unwrap().clone();
    let service = services.into_iter().find(|service| service["name"] == "apiserver").unwrap();
    let files = secret_files(&world.object, &world.material(), &world.facts().seats, run).unwrap();
    let keys = service["files"].as_object().unwrap();
    assert!(keys.values().all(|key| files.contains_key(key.as_str().unwrap())), "{keys:?}");
    assert_eq!(keys.contains_key("policy.jsonl"), service["exec_start"].as_str().unwrap().contains("ABAC"));
    service["exec_start"].as_str().unwrap().to_owned()
}

#[test]
fn no_host_is_taken_before_the_keys_are_there_and_the_backup_fits() {
    let mut world = fetching(BINARY, 3);
    assert!(world.fleet.sets.is_empty() && world.fleet.machines.is_empty(), "{:?}", world.log);
    let mut backup = fetched();
    backup.plane.as_mut().unwrap().version = Some("1.17.5".into());
    job_ends(&mut world, &backup);
    world.settle();
    let (_, reason, message) = world.condition("Ready");
    assert!(reason == "BackupDoesNotFit" && message.contains("must be of the minor of 1.17.5"), "{message}");
    assert!(world.fleet.sets.is_empty() && world.fleet.machines.is_empty(), "{:?}", world.log);

    let mut world = fetching(BINARY, 3);
    let backup = FetchedBackup { etcd_version: "3.7.0".into(), dns_domain: "other.local".into(), ..fetched() };
    job_ends(&mut world, &backup);
    world.settle();
    let (_, reason, message) = world.condition("Ready");
    assert_eq!(reason, "BackupDoesNotFit");
    for words in ["on machines it comes with spec.version", "must be other.local, which a plane in Pods alone can have"]
    {
        assert!(message.contains(words), "{words}: {message}");
    }
}

#[test]
fn the_install_brings_the_data_to_all_members_of_etcd_and_then_what_serves_is_started_and_nothing_else() {
    let dedicated = BINARY
        .replace("artifacts:", "etcd: {topology: Dedicated, replicas: 3}, artifacts:")
        .replace("replicas: 3}, endpoint", "replicas: 1}, endpoint");
    for (spec, hosts, all) in [(ONE, 1, "h1"), (BINARY, 3, "h1,h2,h3"), (&dedicated, 4, "h1,h2,h3,h4")] {
        let world = asking(&format!("{spec}, {ALL}"), hosts);
        assert_eq!(runs(&world)[0], format!("{STAGED} {all}"), "{:#?}", world.log);
        let brought: Vec<&PlaybookRun> = installs(&world);
        assert_eq!(brought.len(), 1);
        let restore = &brought[0].spec.vars["etcd_restore"];
        assert_eq!((&restore["new_cluster"], &restore["sha256"]), (&json!(true), &json!("a0")));
        assert_eq!(restore["id"].as_str().unwrap().len(), 8);
        for part in ["apiserver", "aggregated-apiserver", "webhook"] {
            assert!(world.fleet.serves(part), "{part}");
        }
        for units in world.fleet.units.values() {
            assert!(ACTING.iter().all(|part| !units.contains_key(*part)), "{units:?}");
        }
        assert!(api_server(&world, "h1").contains("--authorization-mode=ABAC"), "{}", api_server(&world, "h1"));
        assert!(world.host.is_empty(), "nothing is made on a host cluster: {:?}", world.host.keys());
        assert_eq!(world.restore.keys.keys, KeysSeen::Absent, "nobody may write them any more");
        assert_ne!(world.condition("ComponentsReady").0, "True", "no member joins");
        let status = world.object.status.as_ref().unwrap();
        assert!(status.first_installed_at.is_some() && record(&world).etcd_members.is_none());
    }
}

#[test]
fn once_it_is_approved_others_are_let_in_then_what_acts_starts_and_garbage_is_collected_last() {
    for (spec, hosts) in [(ONE, 1), (BINARY, 3)] {
        let mut world = asking(&format!("{spec}, {ALL}"), hosts);
        approve(&mut world);
        world.fleet.played.clear();
        world.settle();
        assert!(world.is_ready(), "{:?} {:#?}", world.condition("Ready"), world.log);
        let record = record(&world);
        assert!(record.step.is_none() && record.approved_at.is_some() && record.restored_at.is_some());
        let order: Vec<&str> = world.fleet.played.iter().flat_map(|(parts, _)| parts.split('+')).collect();
        let at = |part: &str| order.iter().position(|one| *one == part).unwrap();
        let last = order.iter().rposition(|one| *one == "apiserver").unwrap();
        assert!(last < at("scheduler") && at("scheduler") < at("controller-manager"), "{order:?}");
        assert_eq!(order.iter().filter(|one| **one == "apiserver").count(), hosts, "one after the other: {order:?}");
        assert_eq!(order.last(), Some(&"kube-controller-manager"), "{order:?}");
        assert_eq!(order.iter().filter(|one| **one == "kube-controller-manager").count(), 1);
        assert!(ACTING.iter().all(|part| world.fleet.serves(part)), "{:?}", world.fleet.units);
        for host in world.fleet.units.keys() {
            assert!(api_server(&world, host).contains("--authorization-mode=Node,RBAC"));
        }
        assert_eq!(installs(&world).len(), 1);
    }
}

#[test]
fn an_install_that_failed_brings_the_data_again_to_all_of_them() {
    let mut world = fetching(BINARY, 3);
    job_ends(&mut world, &fetched());
    world.fleet.fails.insert(("h2".to_owned(), "etcd".to_owned()));
    world.settle();
    let (_, reason, message) = world.condition("Ready");
    assert_eq!(reason, "InstallFailed");
    let words = ["restoring backup nightly of plane k0: the install failed on", "it ended with 1"];
    assert!(words.iter().all(|words| message.contains(words)), "{message}");
    assert_eq!(record(&world).step, Some(Step::Data), "etcd runs on some of them");
    assert!(!world.fleet.serves("apiserver"));
    world.fleet.fails.clear();
    pass(&mut world, 10);
    assert_eq!(record(&world).step, Some(Step::Compare), "{:?}", world.condition("Ready"));
    let all = installs(&world);
    assert!(all.len() > 1, "{:#?}", world.log);
    assert!(all.iter().all(|run| run.spec.vars["etcd_restore"] == all[0].spec.vars["etcd_restore"]));
    let staged: Vec<&str> = runs(&world).into_iter().filter(|run| run.contains("+etcd etcd on")).collect();
    assert!(staged.iter().all(|run| *run == format!("{STAGED} h1,h2,h3")), "{staged:?}");
}

#[test]
fn a_machine_that_joins_a_plane_that_was_restored_gets_its_member_from_the_others() {
    let mut world = asking(&BINARY.replace("replicas: 3", "replicas: 1"), 2);
    world.object.spec.binary.as_mut().unwrap().control_plane.replicas = 2;
    world.log.clear();
    world.settle();
    assert_eq!(runs(&world)[0], "bootstrap-os+preflight+prepare+etcd etcd on h2", "{:#?}", world.log);
    let joined = world.fleet.runs.iter().find(|run| run.spec.intent == Intent::Join).unwrap();
    assert!(!joined.spec.vars.contains_key("etcd_restore"));
    let units = &world.fleet.units["h2"];
    assert!(units.contains_key("webhook") && ACTING.iter().all(|part| !units.contains_key(*part)), "{units:?}");
    assert!(api_server(&world, "h2").contains("ABAC"));
    assert_eq!(world.condition("Ready").1, "WaitingForApproval", "{:?}", world.condition("Ready"));
    assert_eq!(world.fleet.look(|seen| seats(&world.object, seen)).control_planes.len(), 2);
}

#[test]
fn what_machines_lack_before_they_have_their_data_is_said() {
    let world = begun(BINARY, 2);
    let (_, reason, message) = world.condition("Ready");
    assert_eq!(reason, "WaitingForHosts");
    let words = "restoring backup nightly of plane k0: waiting for Hosts: 2 of 3 machines have one";
    assert!(message.starts_with(words), "{message}");

    let mut world = fetching(BINARY, 3);
    job_ends(&mut world, &fetched());
    world.object.spec.paused = true;
    world.settle();
    assert_eq!(world.condition("Ready").1, "Paused", "{:?}", world.condition("Ready"));
    assert!(runs(&world).is_empty());
    world.object.spec.paused = false;
    world.settle();
    assert_eq!(record(&world).step, Some(Step::Compare), "{:?}", world.condition("Ready"));
}

#[test]
fn a_backup_in_a_volume_does_since_runs_are_beside_the_plane() {
    let mut world = beginning(ONE);
    world.fleet = Fleet::with_hosts(1);
    world.restore.keys.storage = Some(storage(json!({ "volume": { "claimName": "backups" } })));
    world.settle();
    assert_eq!(world.condition("Ready").1, "FetchingKeys", "{:?}", world.condition("Ready"));
    job_ends(&mut world, &fetched());
    world.settle();
    assert_eq!(record(&world).step, Some(Step::Compare), "{:?}", world.condition("Ready"));
}

/// All of it but the lock, which machines are asked for.
fn lose_status(world: &mut World) {
    let last_token = world.object.status.as_ref().unwrap().last_token;
    world.object.status = Some(KarmadaDeploymentStatus { last_token, ..KarmadaDeploymentStatus::default() });
}

#[test]
fn a_lost_status_never_brings_the_data_anew_and_starts_nothing_that_was_not_approved() {
    let mut world = asking(BINARY, 3);
    let before = installs(&world).len();
    lose_status(&mut world);
    world.log.clear();
    world.settle();
    assert_eq!(world.condition("Ready").1, "FetchingKeys", "{:?}", world.condition("Ready"));
    job_ends(&mut world, &fetched());
    pass(&mut world, 2);
    assert_eq!(world.condition("Ready").1, "WaitingForApproval", "{:?}", world.condition("Ready"));
    assert_eq!(installs(&world).len(), before, "{:#?}", world.log);
    assert!(world.fleet.units.values().all(|units| !units.contains_key("controller-manager")));
    approve(&mut world);
    pass(&mut world, 2);
    assert!(world.is_ready(), "{:?}", world.condition("Ready"));
    lose_status(&mut world);
    world.log.clear();
    pass(&mut world, 2);
    assert!(world.is_ready() && runs(&world).is_empty(), "{:?} {:#?}", world.condition("Ready"), world.log);
}
