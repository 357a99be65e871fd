//! Pull members of a plane that begins with a backup, whose agents have yet to come to it.

use crds::karmada_deployment::KarmadaMemberPhase as Phase;
use jiff::SignedDuration;
use serde_json::json;

use super::super::{agents_are_awaited, roster};
use super::agents::says;
use super::world::World;

/// A plane with these Pull members that was restored, none of whose agents has come.
fn restored(names: &[&str]) -> World {
    let mut world = World::new(None, names);
    names.iter().for_each(|name| world.name(name, "pull"));
    world.rest();
    assert!(names.iter().all(|name| world.phase(name) == Some(Phase::Joined)));
    names.iter().for_each(|name| says(&mut world, name, 1));
    world.restore();
    world.away = names.iter().map(|name| (*name).to_owned()).collect();
    world.rest();
    world
}

fn is_asked_for_leases(world: &World) -> bool {
    agents_are_awaited(&world.object, &roster(&world.object, &world.neighbours, None))
}

fn check(world: &World, name: &str, expected: (Phase, &str, &str)) {
    let row = world.row(name).unwrap();
    assert_eq!((row.phase, row.reason.as_str(), row.message.as_str()), expected);
}

#[test]
fn what_the_backup_says_of_a_pull_member_is_not_believed_before_its_agent_has_come() {
    let mut world = restored(&["a"]);
    let waits = (Phase::Joining, "WaitingForAgent", "its agent has not come to the restored plane yet");
    check(&world, "a", waits);
    assert!(is_asked_for_leases(&world));
    world.away.clear();
    world.rest();
    check(&world, "a", (Phase::Joined, "AllReady", "Karmada reaches it"));
    assert!(!is_asked_for_leases(&world), "what was found out is remembered");

    // The backup may be older than the Lease.
    let mut world = restored(&["a"]);
    world.plane.delete("Lease", "a");
    world.rest();
    check(&world, "a", waits);
    world.away.clear();
    world.rest();
    assert_eq!(world.phase("a"), Some(Phase::Joined));
}

#[test]
fn after_five_minutes_it_is_said_what_to_do_about_an_agent_that_has_not_come() {
    let mut world = restored(&["a"]);
    world.now += SignedDuration::from_secs(300);
    world.rest();
    let message = "its agent has not come to the restored plane yet; it must reach https://10.0.0.9:30443: see the log of Deployment karmada-agent in namespace karmada-system of the member";
    check(&world, "a", (Phase::Joining, "AgentNotConnected", message));
    // By then Karmada has noticed that it hears nothing.
    let silent = json!([{ "type": "Ready", "status": "Unknown", "reason": "ClusterStatusUnknown", "message": "x" }]);
    let cluster = world.plane.objects.iter_mut().find(|live| live["kind"] == "Cluster").unwrap();
    cluster["status"]["conditions"] = silent;
    world.rest();
    check(&world, "a", (Phase::Joining, "AgentNotConnected", message));
    world.away.clear();
    world.rest();
    assert_eq!(world.phase("a"), Some(Phase::Joined));
}

#[test]
fn push_members_and_those_that_join_after_a_restore_are_as_in_any_plane() {
    let mut world = World::new(None, &["a", "b"]);
    world.name("a", "push");
    world.rest();
    world.restore();
    world.away = ["b".to_owned()].into();
    world.name("b", "pull");
    world.rest();
    assert_eq!(world.phase("a"), Some(Phase::Joined));
    let message = "Karmada does not reach it: it has said nothing of it yet";
    let row = world.row("b").unwrap();
    assert_eq!((row.phase, row.reason.as_str()), (Phase::Joining, "JoiningMember"));
    assert!(row.message.starts_with(message), "{}", row.message);
    world.away.clear();
    world.rest();
    assert_eq!(world.phase("b"), Some(Phase::Joined));
}

#[test]
fn agents_that_do_not_come_hold_up_nobody() {
    let names = ["a", "b", "c", "d", "e", "f", "g"];
    let world = restored(&names);
    let waits = |name: &&&str| world.row(name).unwrap().reason == "WaitingForAgent";
    assert_eq!(names.iter().filter(waits).count(), names.len());
}
