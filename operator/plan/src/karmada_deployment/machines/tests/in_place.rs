//! A plane on machines that an EtcdRestore sets back in its place: the backup lies ready before anything stops, one run
//! stops all services and swaps etcd's data, and nothing acts before a person has approved what becomes of members.

use std::collections::BTreeMap;

use crds::PlaybookRun;
use crds::etcd_restore::RestorePhase;
use crds::karmada_deployment::KarmadaRestoreStep as Step;
use crds::step::Intent;
use serde_json::json;

use super::super::super::tests::in_place::{give_keys, handed};
use super::super::super::tests::restore::{approve, record, show_members};
use super::super::super::tests::world::World;
use super::super::secret_files;
use super::fleet::Unit;
use super::restore::{ACTING, ALL, api_server, asks_for_an_approval};
use super::stories::{BINARY, ONE, pass, runs, settled};
use crate::key_transfer::KeysSeen;

const STOPPED: &str = "metrics-adapter+search+descheduler+controller-manager+scheduler+webhook+aggregated-apiserver+kube-controller-manager+apiserver";

/// A plane that works, which an EtcdRestore was handed over to.
fn set_back(spec: &str, hosts: usize) -> World {
    let mut world = settled(&format!("{spec}, {ALL}"), hosts);
    give_keys(&mut world);
    world.restores = vec![handed(&world, "back")];
    show_members(&mut world);
    world
}

/// The same, once what would become of members waits for approval.
fn asking(spec: &str, hosts: usize) -> World {
    let mut world = set_back(spec, hosts);
    world.settle();
    asks_for_an_approval(&world);
    world
}

fn dedicated() -> String {
    let topology = "etcd: {topology: Dedicated, replicas: 3}, artifacts:";
    BINARY.replace("artifacts:", topology).replace("replicas: 3}, endpoint", "replicas: 1}, endpoint")
}

fn made(world: &World, intent: Intent) -> Vec<&PlaybookRun> {
    world.fleet.runs.iter().filter(|run| run.spec.intent == intent).collect()
}

fn record_step(world: &World) -> Option<Step> {
    world.object.status.as_ref().and_then(|status| status.restored_from.as_ref()?.step)
}

fn goes_back(world: &mut World) {
    world.restores[0].status.as_mut().unwrap().phase = Some(RestorePhase::Undoing);
}

/// What runs on the machines.
fn units(world: &World) -> &BTreeMap<String, BTreeMap<String, Unit>> {
    &world.fleet.units
}

#[test]
fn the_backup_lies_ready_before_all_stops_and_etcd_is_set_back_by_one_run_on_all_machines() {
    let dedicated = dedicated();
    for (spec, hosts, of_etcd, all) in
        [(ONE, 1, "h1", "h1"), (BINARY, 3, "h1,h2,h3", "h1,h2,h3"), (&dedicated, 4, "h2,h3,h4", "h1,h2,h3,h4")]
    {
        let world = asking(spec, hosts);
        assert_eq!(runs(&world)[0], format!("stage-backup  on {of_etcd}"), "{:#?}", world.log);
        assert_eq!(runs(&world)[1], format!("karmada-service+restore-etcd {STOPPED} on {all}"), "{:#?}", world.log);
        let (staging, restoring) = (made(&world, Intent::Stage), made(&world, Intent::Restore));
        assert_eq!((staging.len(), restoring.len()), (1, 1), "{:#?}", world.log);
        let of_restore = restoring[0];
        for run in [staging[0], of_restore] {
            assert_eq!(run.spec.restore_ref.as_ref().unwrap().name, "back");
            assert_eq!((run.spec.timeout_seconds, &run.spec.vars["etcd_restore"]["id"]), (3600, &json!("uidofbac")));
        }
        let restore = &of_restore.spec.vars["etcd_restore"];
        assert_eq!((&restore["sha256"], &restore["cluster_id"]), (&json!("a0"), &json!("c0")));
        let services = of_restore.spec.vars["karmada_hosts"]["h1"]["karmada_services"].as_array().unwrap();
        assert!(services.iter().all(|service| service["state"] == "stopped"), "{services:?}");
        let files = secret_files(&world.object, &world.material(), &world.facts().seats, of_restore).unwrap();
        let mut keys = services.iter().flat_map(|service| service["files"].as_object().unwrap().values());
        assert!(keys.all(|key| files.contains_key(key.as_str().unwrap())));

        let record = record(&world);
        assert_eq!((record.bump, record.staged.map(|staged| staged.revision)), (Some(1_000_000_013), Some(77)));
        for part in ["apiserver", "aggregated-apiserver", "webhook"] {
            assert!(world.fleet.serves(part), "{part}");
        }
        assert!(ACTING.iter().all(|part| !world.fleet.serves(part)), "{:?}", units(&world));
        assert!(api_server(&world, "h1").contains("--authorization-mode=ABAC"), "{}", api_server(&world, "h1"));
        assert_eq!(world.restore.keys.keys, KeysSeen::Absent, "nobody may read the backup any more");
        // What is stopped interrupts nobody: it starts on all machines at once.
        let brought = |part: &str| world.fleet.played.iter().filter(|(parts, _)| parts.contains(part)).count();
        assert_eq!(brought("aggregated-apiserver"), 2, "{:?}", world.fleet.played);
    }
}

#[test]
fn once_it_is_approved_the_plane_is_as_it_was() {
    for (spec, hosts) in [(ONE, 1), (BINARY, 3)] {
        let before = units(&set_back(spec, hosts)).clone();
        let mut world = asking(spec, hosts);
        approve(&mut world);
        world.settle();
        assert!(world.is_ready(), "{:?} {:#?}", world.condition("Ready"), world.log);
        let done = record(&world);
        assert!(done.step.is_none() && done.approved_at.is_some() && done.restored_at.is_some());
        assert_eq!(units(&world), &before);
        assert_eq!((made(&world, Intent::Stage).len(), made(&world, Intent::Restore).len()), (1, 1));
        world.log.clear();
        pass(&mut world, 2);
        assert!(runs(&world).is_empty(), "{:#?}", world.log);
    }
}

#[test]
fn one_that_goes_back_has_the_data_of_before_again_wherever_it_was() {
    for turns in [1, 2, 3, 4, 5, 6, 8, 10, 12, 15, 20, 40, 80] {
        let mut world = set_back(BINARY, 3);
        let before = units(&world).clone();
        for _ in 0..turns {
            world.turn();
        }
        let has_begun = !made(&world, Intent::Restore).is_empty();
        goes_back(&mut world);
        world.settle();
        assert!(world.is_ready(), "{turns}: {:?} {:#?}", world.condition("Ready"), world.log);
        let done = record(&world);
        assert!(done.step.is_none() && done.undone_at.is_some() && done.restored_at.is_none(), "{turns}: {done:?}");
        assert_eq!(units(&world), &before, "{turns}");
        let undone = runs(&world).iter().filter(|run| run.contains("undo-restore")).count();
        assert!(undone == 1 || !has_begun, "{turns}: {:#?}", world.log);
        let restored = runs(&world).iter().filter(|run| run.contains("restore-etcd")).count();
        assert!(restored <= 1 && undone <= 1, "{turns}: {:#?}", world.log);
        assert_eq!(world.restore.keys.keys, KeysSeen::Absent, "{turns}");
    }
}

#[test]
fn a_backup_that_cannot_be_laid_ready_stops_nothing_and_the_way_back_changes_nothing() {
    let mut world = set_back(BINARY, 3);
    let before = units(&world).clone();
    world.fleet.dead.insert("h2".into());
    world.settle();
    let (_, reason, message) = world.condition("Ready");
    let words = [
        "restoring backup nightly of plane k1: laying the backup ready failed on",
        "h2: SSH does not answer",
        "tried again at",
    ];
    assert!(reason == "StagingFailed" && words.iter().all(|words| message.contains(words)), "{reason} {message}");
    assert_eq!((record(&world).step, units(&world)), (Some(Step::Stage), &before));
    pass(&mut world, 40);
    assert!(world.condition("Ready").2.contains("tried again at"), "a machine that is away is waited for");
    goes_back(&mut world);
    world.fleet.dead.clear();
    pass(&mut world, 2);
    assert!(world.is_ready() && made(&world, Intent::Restore).is_empty(), "{:?}", world.condition("Ready"));
    assert_eq!(units(&world), &before);
}

#[test]
fn a_run_that_fails_on_a_machine_is_tried_again_on_all_and_says_so() {
    let mut world = set_back(BINARY, 3);
    world.fleet.fails.insert(("h2".to_owned(), "webhook".to_owned()));
    world.settle();
    let (_, reason, message) = world.condition("Ready");
    let words = "restoring backup nightly of plane k1: setting etcd back failed on";
    assert!(reason == "RestoreInterrupted" && message.starts_with(words), "{reason} {message}");
    assert_eq!(record(&world).step, Some(Step::Stop));
    pass(&mut world, 60);
    let message = world.condition("Ready").2;
    assert!(
        message.contains("attempts (TaskFailed: h2: restore-etcd, t: it ended with 1); correct it, then kubectl"),
        "{message}"
    );
    world.fleet.fails.clear();
    let tried = made(&world, Intent::Restore).len();
    let retry = world.object.metadata.generation.unwrap().to_string();
    world.object.metadata.annotations.get_or_insert_default().insert("clusterwright.dev/retry".into(), retry);
    world.settle();
    asks_for_an_approval(&world);
    let all = made(&world, Intent::Restore);
    assert!(tried > 1 && all.len() == tried + 1, "{:#?}", world.log);
    assert!(all.iter().all(|run| run.spec.hosts.len() == 3 && run.spec.vars == all[0].spec.vars));
}

#[test]
fn one_whose_machine_is_lost_before_etcd_was_touched_goes_back_without_it() {
    let mut world = set_back(BINARY, 3);
    while record_step(&world) != Some(Step::Stop) {
        world.turn();
    }
    world.fleet.dead.insert("h2".into());
    pass(&mut world, 3);
    let (_, reason, message) = world.condition("Ready");
    assert!(reason == "RestoreInterrupted" && message.contains("h2: SSH does not answer"), "{reason} {message}");
    goes_back(&mut world);
    world.log.clear();
    pass(&mut world, 2);
    let done = record(&world);
    assert!(done.step.is_none() && done.undone_at.is_some(), "{done:?} {:?}", world.condition("Ready"));
    assert!(!runs(&world).iter().any(|run| run.contains("undo-restore")), "{:#?}", world.log);
    assert!(ACTING.iter().all(|part| world.fleet.serves(part)), "{:?}", units(&world));
}

#[test]
fn a_status_that_is_lost_on_the_way_back_is_no_reason_to_act_by_the_backup() {
    let mut world = asking(BINARY, 3);
    goes_back(&mut world);
    while !runs(&world).iter().any(|run| run.contains("undo-restore")) {
        world.turn();
    }
    for _ in 0..3 {
        world.turn();
    }
    world.object.status.as_mut().unwrap().restored_from = None;
    world.settle();
    let done = record(&world);
    assert!(world.is_ready() && done.undone_at.is_some(), "{done:?} {:?}", world.condition("Ready"));
    assert_eq!(made(&world, Intent::Restore).len(), 2, "{:#?}", world.log);
}

#[test]
fn nothing_else_is_begun_with_the_machines_meanwhile() {
    let mut world = set_back(&BINARY.replace("replicas: 3", "replicas: 1"), 2);
    world.object.spec.binary.as_mut().unwrap().control_plane.replicas = 2;
    world.settle();
    let at = |text: &str| runs(&world).iter().position(|run| run.contains(text)).unwrap();
    assert!(at("stage-backup") < at("restore-etcd") && at("restore-etcd") < at("bootstrap-os"), "{:#?}", world.log);
    asks_for_an_approval(&world);
    assert!(api_server(&world, "h2").contains("ABAC"));
    let joined = &units(&world)["h2"];
    assert!(ACTING.iter().all(|part| !joined.contains_key(*part)), "{joined:?}");
}

#[test]
fn a_paused_plane_is_not_stopped() {
    let mut world = set_back(BINARY, 3);
    world.turn();
    world.object.spec.paused = true;
    world.settle();
    assert_eq!((record(&world).step, world.condition("Ready").1.as_str()), (Some(Step::Stage), "Paused"));
    assert!(runs(&world).is_empty() && ACTING.iter().all(|part| world.fleet.serves(part)), "{:#?}", world.log);
    world.object.spec.paused = false;
    world.settle();
    asks_for_an_approval(&world);
}

#[test]
fn a_lost_status_never_swaps_data_again_and_starts_nothing_that_was_not_approved() {
    let mut world = asking(BINARY, 3);
    world.log.clear();
    world.object.status.as_mut().unwrap().restored_from = None;
    world.settle();
    asks_for_an_approval(&world);
    let touches = ["stage-backup", "restore-etcd", "undo-restore"];
    assert!(!runs(&world).iter().any(|run| touches.iter().any(|step| run.contains(step))), "{:#?}", world.log);
    assert!(ACTING.iter().all(|part| !world.fleet.serves(part)), "{:?}", units(&world));
}

#[test]
fn a_second_restore_has_runs_of_its_own() {
    let mut world = asking(BINARY, 3);
    approve(&mut world);
    world.settle();
    give_keys(&mut world);
    world.restores = vec![handed(&world, "again")];
    world.settle();
    asks_for_an_approval(&world);
    let ids: Vec<_> =
        made(&world, Intent::Restore).iter().map(|run| run.spec.vars["etcd_restore"]["id"].clone()).collect();
    assert_eq!(ids, ["uidofbac", "uidofaga"]);
}
