//! Members of a plane's etcd are defragmented when that is due, once, and beside nothing else.

use crds::names::{annotation, condition};
use crds::playbook_run::RunPhase;
use crds::step::{Intent, Role, Step};
use crds::{Conditions, ObjectExt, PlaybookRun};
use serde_json::json;

use super::super::super::tests::world::World;
use super::stories::{BINARY, pass, runs, settled};

const HOUR: i64 = 60;

/// Due each day at ten, an hour after all begins.
fn scheduled() -> String {
    BINARY.replace("artifacts:", "etcd: {defragmentation: {schedule: 0 10 * * *, minReclaimMiB: 10}}, artifacts:")
}

fn made(world: &World) -> Vec<&PlaybookRun> {
    world.fleet.runs.iter().filter(|run| run.spec.intent == Intent::Maintain).collect()
}

fn ask(world: &mut World, value: &str) {
    world.object.metadata.annotations = Some([(annotation::DEFRAGMENT.to_owned(), value.to_owned())].into());
}

fn stated(world: &World) -> (String, String) {
    let (status, reason, message) = world.condition(condition::ETCD_DEFRAGMENTED);
    (format!("{status} {reason}"), message)
}

#[test]
fn what_the_annotation_asks_for_is_done_once_on_one_machine_for_all_members() {
    let mut world = settled(BINARY, 3);
    assert!(world.object.condition(condition::ETCD_DEFRAGMENTED).is_none());
    ask(&mut world, "1");
    pass(&mut world, 5);
    assert_eq!(runs(&world).iter().filter(|run| run.starts_with("defragment-etcd")).count(), 1, "{:#?}", world.log);
    let run = made(&world)[0];
    assert_eq!((run.spec.steps.as_slice(), run.spec.hosts.len()), ([Step::DefragmentEtcd].as_slice(), 1));
    assert_eq!(run.spec.vars["etcd_members"].as_array().map(Vec::len), Some(3));
    let wanted = json!({ "min_fragmentation_percent": 0, "min_reclaim_mib": 0, "free_space": true });
    assert_eq!(run.spec.vars["etcd_defragmentation"], wanted);
    assert_eq!(stated(&world).0, "True Defragmented", "{}", stated(&world).1);
    assert!(world.is_ready());
    // The run is gone, and the request was followed all the same.
    world.fleet.runs.retain(|run| run.spec.intent != Intent::Maintain);
    pass(&mut world, 2);
    assert!(made(&world).is_empty());
    ask(&mut world, "1.2");
    pass(&mut world, 2);
    assert_eq!(made(&world).len(), 1, "another value is another request");
}

#[test]
fn a_schedule_is_followed_once_and_not_with_a_member_away() {
    let mut world = settled(&scheduled(), 3);
    assert_eq!(stated(&world).0, "True DefragmentationScheduled");
    pass(&mut world, HOUR + 10);
    assert_eq!(made(&world).len(), 1, "{:#?}", world.log);
    let wanted = json!({ "min_fragmentation_percent": 50, "min_reclaim_mib": 10, "free_space": true });
    assert_eq!(made(&world)[0].spec.vars["etcd_defragmentation"], wanted);
    pass(&mut world, 10);
    assert_eq!(made(&world).len(), 1);

    let mut world = settled(&scheduled(), 3);
    world.fleet.dead.insert("h2".to_owned());
    pass(&mut world, HOUR + 10);
    assert!(made(&world).is_empty(), "{:#?}", world.log);
    let (state, message) = stated(&world);
    assert_eq!(state, "False DefragmentationWaiting");
    assert!(message.contains("h2") && message.contains("is not Ready"), "{message}");
}

#[test]
fn it_waits_while_machines_are_changed_and_nothing_is_changed_beside_it() {
    let mut world = settled(BINARY, 3);
    world.object.spec.scheduler.extra_args = serde_yaml::from_str("{v: '4'}").unwrap();
    // The first run that brings the flag is made.
    while !world.log.iter().any(|line| line.contains("scheduler on h1")) {
        assert!(world.turn());
    }
    ask(&mut world, "1");
    world.turn();
    assert_eq!(stated(&world).0, "False DefragmentationWaiting", "{}", stated(&world).1);
    world.settle();
    pass(&mut world, 1);
    let begun = |text: &str| runs(&world).iter().position(|run| run.contains(text));
    assert_eq!(made(&world).len(), 1, "{:#?}", world.log);
    assert!(begun("scheduler on h1") < begun("defragment-etcd") && begun("scheduler on h3").is_some());
    assert!(world.is_ready(), "{:?}", world.condition("Ready"));
}

#[test]
fn one_whose_quota_is_used_up_is_said_with_the_command_and_space_is_made_unasked_where_it_is_scheduled() {
    let full = json!({ "well": true, "version": "3.6.16", "sizeBytes": 9_i64 << 30, "inUseBytes": 1_i64 << 30,
        "quotaBytes": 8_i64 << 30, "alarms": ["NOSPACE"] });
    let mut world = settled(BINARY, 3);
    world.fleet.member = full.clone();
    pass(&mut world, 15);
    let (status, reason, message) = world.condition("Ready");
    assert_eq!((status.as_str(), reason.as_str()), ("False", "EtcdNoSpace"), "{message}");
    let command =
        "kubectl -n fleet annotate --overwrite karmadadeployments.clusterwright.dev k1 clusterwright.dev/defragment=1";
    assert!(message.contains(command), "{message}");
    assert!(made(&world).is_empty());
    let etcd = world.object.status.as_ref().unwrap().etcd.clone().unwrap();
    assert_eq!((etcd.members.len(), etcd.quota_bytes), (3, Some(8 << 30)));

    let mut world = settled(&scheduled(), 3);
    world.fleet.member = full;
    pass(&mut world, 15);
    assert_eq!(made(&world).len(), 1, "{:?}", world.condition("Ready"));
    world.fleet.member = json!({ "well": true, "version": "3.6.16", "sizeBytes": 1_i64 << 30, "inUseBytes": 1_i64 << 30,
        "quotaBytes": 8_i64 << 30 });
    pass(&mut world, 15);
    assert!(world.is_ready(), "{:?}", world.condition("Ready"));
}

#[test]
fn an_old_etcd_is_not_defragmented_nor_is_a_paused_plane_s() {
    let mut world = settled(BINARY, 3);
    world.fleet.member = json!({ "well": true, "version": "3.5.21" });
    pass(&mut world, 15);
    ask(&mut world, "1");
    pass(&mut world, 2);
    let (state, message) = stated(&world);
    assert_eq!(state, "False EtcdTooOld");
    assert!(message.contains("is 3.5.21") && made(&world).is_empty(), "{message}");

    let mut world = settled(BINARY, 3);
    world.object.spec.paused = true;
    ask(&mut world, "1");
    pass(&mut world, 2);
    assert_eq!(stated(&world).0, "False DefragmentationWaiting");
    assert!(made(&world).is_empty());
}

#[test]
fn one_that_has_not_begun_holds_up_no_machine_that_leaves() {
    let mut world = settled(BINARY, 4);
    ask(&mut world, "1");
    while made(&world).is_empty() {
        assert!(world.turn());
    }
    let host = made(&world)[0].spec.hosts[0].clone();
    let name = world.fleet.on(&host).unwrap().name().to_owned();
    world.fleet.delete(&name);
    pass(&mut world, 6);
    assert!(!world.fleet.held(Role::ControlPlane).contains(&host.as_str()), "{:#?}", world.log);
    let ends: Vec<_> =
        made(&world).iter().filter_map(|run| run.status.clone()).map(|end| (end.phase, end.token)).collect();
    assert_eq!(ends, [(Some(RunPhase::Canceled), 0)], "it was canceled before it had begun");
    assert!(world.is_ready(), "{:?}", world.condition("Ready"));
}
