//! Promises about a cluster's etcd: it is looked at, what is wrong is said, and its members are defragmented when that
//! is due, once, and beside nothing else.

use crds::names::{annotation, condition};
use crds::step::{Intent, Step};
use crds::{Conditions, ObjectExt, PlaybookRun, Reason};
use jiff::SignedDuration;

use super::ready;
use crate::testing::{Fate, World};

const THREE: &str = "controlPlane: {replicas: 3, endpoint: {host: 10.0.0.9}}";
const GIB: i64 = 1 << 30;

fn standing(spec: &str) -> World {
    let mut world = World::new(spec, 5);
    world.settle();
    assert_eq!(ready(&world).0, "True", "{:?}", ready(&world));
    world
}

/// With `etcd.defragmentation`, due each day at this hour.
fn scheduled(hour: u8) -> String {
    format!("{THREE}, etcd: {{defragmentation: {{schedule: 0 {hour} * * *, minReclaimMiB: 10}}}}")
}

fn pass(world: &mut World, time: SignedDuration) {
    let until = world.time().0 + time;
    while world.time().0 < until {
        world.run_for(1);
    }
}

fn hours(number: i64) -> SignedDuration {
    SignedDuration::from_hours(number)
}

/// Until a look has seen what is so now.
fn look(world: &mut World) {
    pass(world, hours(8));
}

fn stated(world: &World, type_: &str) -> Option<(String, String)> {
    let found = world.deployment.condition(type_)?;
    Some((format!("{} {}", found.status, found.reason), found.message.clone()))
}

fn runs(world: &World, intent: Intent) -> Vec<&PlaybookRun> {
    world.runs.iter().filter(|run| run.spec.intent == intent).collect()
}

/// How often the members were looked at.
fn looks(world: &World) -> i32 {
    let looks = world.runs.iter().filter(|run| crate::etcd::is_probe(run));
    looks.map(|run| crate::attempts::attempt_of(run) + 1).max().unwrap_or_default()
}

fn defragmentations(world: &World) -> usize {
    world.begun_runs.values().filter(|(intent, _)| *intent == Intent::Maintain).count()
}

#[test]
fn every_member_is_looked_at_now_and_then_and_the_status_stays_as_it_is_meanwhile() {
    let mut world = standing(THREE);
    assert_eq!(stated(&world, condition::ETCD_DATA_HEALTHY).unwrap().0, "Unknown EtcdNotLookedAt");
    pass(&mut world, hours(7));
    let etcd = world.deployment.status.as_ref().unwrap().etcd.clone().unwrap();
    let hosts: Vec<&str> = etcd.members.iter().map(|member| member.host.as_str()).collect();
    assert_eq!(hosts, ["h1", "h2", "h3"]);
    assert_eq!((etcd.size_bytes, etcd.quota_bytes), (Some(64 << 20), Some(8 * GIB)));
    assert_eq!(etcd.members.iter().filter(|member| member.is_leader).count(), 1);
    assert_eq!(etcd.hash_check.as_ref().map(|check| (check.revision, check.members.len())), Some((7, 3)));
    assert_eq!(stated(&world, condition::ETCD_DATA_HEALTHY).unwrap().0, "True EtcdDataHealthy");
    assert_eq!(stated(&world, condition::ETCD_DEFRAGMENTED), None);

    let before = looks(&world);
    pass(&mut world, hours(24));
    let looks = looks(&world) - before;
    assert!((3..=4).contains(&looks), "{looks} looks a day");
    assert!(runs(&world, Intent::Probe).iter().filter(|run| crate::etcd::is_probe(run)).count() <= 3, "old ones go");
    let later = world.deployment.status.as_ref().unwrap().etcd.clone().unwrap();
    assert!(later.looked_at > etcd.looked_at);
    assert_eq!(later.members, etcd.members);

    // A little more is no news.
    world.data.size += 8 << 20;
    look(&mut world);
    assert_eq!(world.deployment.status.as_ref().unwrap().etcd.as_ref().unwrap().size_bytes, Some(64 << 20));
    assert_eq!(defragmentations(&world), 0, "nobody asked");
}

#[test]
fn members_are_compared_as_often_as_the_spec_says_and_never_with_0() {
    let mut world = standing(&format!("{THREE}, etcd: {{hashCheckSeconds: 0}}"));
    look(&mut world);
    assert_eq!(world.deployment.status.as_ref().unwrap().etcd.as_ref().unwrap().hash_check, None);
    world.deployment.spec.etcd.hash_check_seconds = Some(600);
    world.touch();
    let before = looks(&world);
    pass(&mut world, hours(6));
    let looks = looks(&world) - before;
    assert!((4..=36).contains(&looks), "every ten minutes, and up to an hour more: {looks}");
}

#[test]
fn members_that_differ_are_named_and_nothing_is_defragmented_or_joined_beside_them() {
    let mut world = standing(THREE);
    world.data.differ.insert("h2".into());
    look(&mut world);
    world.request("a", annotation::DEFRAGMENT);
    pass(&mut world, hours(1));
    assert_eq!(stated(&world, condition::ETCD_DEFRAGMENTED).unwrap().0, "False EtcdCorrupt");
    let (state, message) = stated(&world, condition::ETCD_DATA_HEALTHY).unwrap();
    assert_eq!(state, "False EtcdCorrupt");
    assert!(message.contains("revision 7, by their hashes: 0 (h1, h3), 1 (h2)"), "{message}");
    assert_eq!(stated(&world, condition::ETCD_READY).unwrap().0, "False EtcdCorrupt");
    assert!(ready(&world).2.contains("hold different data"), "{:?}", ready(&world));
    assert_eq!(defragmentations(&world), 0);
    // It holds the same again.
    world.data.differ.clear();
    pass(&mut world, hours(3));
    assert_eq!(stated(&world, condition::ETCD_DATA_HEALTHY).unwrap().0, "True EtcdDataHealthy");
    assert_eq!(ready(&world).0, "True");
}

#[test]
fn a_database_that_is_large_is_said_and_is_no_part_of_ready() {
    let mut world = standing(THREE);
    (world.data.size, world.data.in_use) = (7 * GIB, GIB);
    look(&mut world);
    let (state, message) = stated(&world, condition::ETCD_DATA_HEALTHY).unwrap();
    assert_eq!(state, "False EtcdDatabaseLarge");
    assert!(message.contains("7.0 GiB of 8.0 GiB, 6.0 GiB of it free"), "{message}");
    assert!(message.contains("clusterwright.dev/defragment=1"), "{message}");
    let (is_ready, _, status) = ready(&world);
    assert_eq!(is_ready, "True");
    assert!(status.contains("etcd's database is large"), "{status}");
    world.request("a", annotation::DEFRAGMENT);
    pass(&mut world, hours(1));
    assert_eq!(
        stated(&world, condition::ETCD_DATA_HEALTHY).unwrap().0,
        "True EtcdDataHealthy",
        "it was looked at again"
    );
}

#[test]
fn what_the_annotation_asks_for_is_done_once_on_one_machine_for_all_members() {
    let mut world = standing(THREE);
    world.request("a", annotation::DEFRAGMENT);
    pass(&mut world, hours(30));
    assert_eq!(defragmentations(&world), 1);
    let run = runs(&world, Intent::Maintain)[0];
    assert_eq!((run.spec.steps.as_slice(), run.spec.hosts.len()), ([Step::DefragmentEtcd].as_slice(), 1));
    assert_eq!(run.spec.vars["etcd_members"].as_array().map(Vec::len), Some(3));
    let wanted = serde_json::json!({"min_fragmentation_percent": 0, "min_reclaim_mib": 0, "free_space": true});
    assert_eq!(run.spec.vars["etcd_defragmentation"], wanted);
    let (state, message) = stated(&world, condition::ETCD_DEFRAGMENTED).unwrap();
    assert_eq!(state, "True Defragmented");
    assert!(message.contains(run.name()), "{message}");
    assert_eq!(ready(&world).0, "True");

    // The run is gone, and the request was followed all the same.
    world.runs.retain(|run| run.spec.intent != Intent::Maintain);
    pass(&mut world, hours(1));
    assert_eq!(defragmentations(&world), 1);
    world.request("a", annotation::DEFRAGMENT);
    pass(&mut world, hours(1));
    assert_eq!(defragmentations(&world), 2, "another value is another request");
}

#[test]
fn one_that_fails_is_said_with_the_command_for_another_and_is_not_made_again_unasked() {
    let mut world = standing(THREE);
    world.request("a", annotation::DEFRAGMENT);
    world.fates = vec![Fate::Fails];
    pass(&mut world, hours(5));
    assert_eq!(defragmentations(&world), 1);
    let (state, message) = stated(&world, condition::ETCD_DEFRAGMENTED).unwrap();
    assert_eq!(state, "False DefragmentationFailed");
    assert!(message.contains("clusterwright.dev/defragment=1.2"), "{message}");
    assert_eq!(ready(&world).0, "True");
}

#[test]
fn a_schedule_is_followed_once_each_time_and_waits_for_all_members() {
    let mut world = standing(&scheduled(3));
    pass(&mut world, hours(48));
    let made = defragmentations(&world);
    assert_eq!(made, 2, "one a day, at {}", world.time().0);
    let run = runs(&world, Intent::Maintain)[0];
    let wanted = serde_json::json!({"min_fragmentation_percent": 50, "min_reclaim_mib": 10, "free_space": true});
    assert_eq!(run.spec.vars["etcd_defragmentation"], wanted);
    // A machine is away when it is due.
    world.silent_nodes.insert("h2".into());
    world.silent.insert("h2".into());
    pass(&mut world, hours(24));
    assert_eq!(defragmentations(&world), 2, "never with a member away");
    world.silent_nodes.clear();
    world.silent.clear();
    pass(&mut world, hours(24));
    assert_eq!(defragmentations(&world), 3, "what was left out is not made up for");
}

#[test]
fn a_schedule_that_cannot_be_read_is_said_and_keeps_nobody_from_asking() {
    let mut world = standing(&scheduled(3));
    world.deployment.spec.etcd.defragmentation.as_mut().unwrap().time_zone = "Mars".into();
    world.touch();
    world.settle();
    let (state, message) = stated(&world, condition::ETCD_DEFRAGMENTED).unwrap();
    assert_eq!(state, "False TimeZoneUnknown");
    assert!(message.starts_with("spec.etcd.defragmentation.timeZone: \"Mars\""), "{message}");
    world.request("a", annotation::DEFRAGMENT);
    pass(&mut world, hours(1));
    assert_eq!(defragmentations(&world), 1);
}

#[test]
fn in_a_paused_cluster_it_waits() {
    let mut world = standing(THREE);
    world.deployment.spec.paused = true;
    world.touch();
    world.request("a", annotation::DEFRAGMENT);
    pass(&mut world, hours(1));
    assert_eq!(stated(&world, condition::ETCD_DEFRAGMENTED).unwrap().0, "False DefragmentationWaiting");
    assert_eq!(defragmentations(&world), 0);
}

#[test]
fn an_old_etcd_is_not_defragmented() {
    let mut world = standing(THREE);
    world.data.version = "3.5.21".into();
    look(&mut world);
    world.request("a", annotation::DEFRAGMENT);
    pass(&mut world, hours(1));
    let (state, message) = stated(&world, condition::ETCD_DEFRAGMENTED).unwrap();
    assert_eq!(state, "False EtcdTooOld");
    assert!(message.contains("etcd of h1 is 3.5.21"), "{message}");
    assert_eq!(defragmentations(&world), 0);
}

#[test]
fn space_is_made_unasked_where_defragmentation_is_configured_and_else_by_the_command_that_is_printed() {
    let mut world = standing(&scheduled(3));
    world.data.is_full = true;
    let before = world.time().0;
    while world.data.is_full {
        world.run_for(1);
        assert!(world.time().0.duration_since(before) < hours(8), "{:?}", ready(&world));
    }
    pass(&mut world, hours(1));
    assert_eq!(stated(&world, condition::ETCD_READY).unwrap().0, "True AllReady");

    let mut world = standing(THREE);
    world.data.is_full = true;
    look(&mut world);
    assert_eq!(stated(&world, condition::ETCD_READY).unwrap().0, "False EtcdNoSpace");
    let (_, reason, message) = ready(&world);
    assert!(reason == Reason::EtcdNoSpace && message.contains("clusterwright.dev/defragment=1"), "{message}");
    assert_eq!(defragmentations(&world), 0);
    world.request("a", annotation::DEFRAGMENT);
    pass(&mut world, hours(1));
    assert_eq!((world.data.is_full, ready(&world).0.as_str()), (false, "True"));
}

#[test]
fn space_that_cannot_be_made_is_not_tried_without_end() {
    let mut world = standing(&scheduled(3));
    world.data.is_full = true;
    world.fates = vec![Fate::Fails; 40];
    pass(&mut world, hours(20));
    let made = defragmentations(&world);
    assert!((3..=4).contains(&made), "three a day, and the one of the schedule: {made}");
}

#[test]
fn what_is_wanted_of_machines_stays_the_same_whatever_is_wanted_of_maintenance() {
    let world = standing(THREE);
    let wanted = crate::provisioning::wanted(&world.deployment);
    let other = standing(&scheduled(3));
    assert_eq!(crate::provisioning::wanted(&other.deployment), wanted);
}
