//! A rebuild that is cut off at any of its writes, that sees what was there before, or whose objects lose what they say
//! of themselves, comes to the same end: nothing is begun twice, no Host is claimed twice, and none stays claimed.

use std::collections::BTreeSet;

use crds::cluster_deployment::RecoveryStrategy;
use crds::step::Intent;

use super::ready;
use crate::testing::{Kind, Mishap, World};

const ONE: &str = "controlPlane: {replicas: 1}, workers: [{name: general, replicas: 1}]";
const THREE: &str =
    "controlPlane: {replicas: 3, endpoint: {host: 10.0.0.100}}, workers: [{name: general, replicas: 1}]";
const OWN_ETCD: &str = "controlPlane: {replicas: 1}, etcd: {topology: Dedicated, replicas: 1}";
/// It comes to rest before.
const TURNS: usize = 120;

/// How it ends.
#[derive(Debug, PartialEq)]
struct End {
    ready: (String, String),
    machines: usize,
    claimed: usize,
    quarantined: BTreeSet<String>,
    voters: usize,
    nodes: usize,
    begun: usize,
    runs: Vec<(Intent, usize)>,
}

impl End {
    fn new(world: &World) -> Self {
        let named = |holds: &dyn Fn(&&crds::Host) -> bool| -> BTreeSet<String> {
            let hosts = world.hosts.iter().filter(holds);
            hosts.filter_map(|host| host.metadata.name.clone()).collect()
        };
        let (status, reason, _) = ready(world);
        let mut runs: Vec<(Intent, usize)> = world.begun_runs.values().copied().collect();
        runs.sort_by_key(|(intent, hosts)| (intent.spec().slug, *hosts));
        Self {
            ready: (status, reason),
            machines: world.machines.len(),
            claimed: named(&|host| host.spec.claim_ref.is_some()).len(),
            quarantined: named(&|host| host.spec.quarantine.is_some()),
            voters: world.voters.len(),
            nodes: world.nodes.len(),
            begun: world.inits,
            runs,
        }
    }
}

/// A cluster all of whose machines are dead, and spare Hosts for it and one more.
fn dead(spec: &str, machines: usize) -> World {
    let mut world = World::new(spec, 2 * machines + 1);
    world.deployment.spec.recovery.strategy = RecoveryStrategy::Rebuild;
    world.settle();
    assert_eq!(ready(&world).0, "True");
    for host in 1..=machines {
        world.kill(&format!("h{host}"));
    }
    world.written = 0;
    world
}

/// The same end, whichever write meets with the mishap.
fn check(spec: &str, machines: usize, mishap: Mishap) {
    let mut reference = dead(spec, machines);
    let trace = reference.trace(TURNS);
    let end = End::new(&reference);
    assert_eq!((end.ready.0.as_str(), end.begun), ("True", 2));
    assert_eq!((end.machines, end.claimed, end.quarantined.len()), (machines, machines, machines));
    for number in 0..reference.written {
        let last = trace.iter().rfind(|world| world.written <= number);
        let mut world = last.unwrap().clone();
        world.play(TURNS, number, mishap);
        assert_eq!(End::new(&world), end, "{mishap:?} at write {number}: {:?}", ready(&world));
    }
}

fn check_all(mishap: Mishap) {
    check(ONE, 2, mishap);
    check(OWN_ETCD, 2, mishap);
}

#[test]
fn an_operator_that_is_killed_after_any_write_goes_on() {
    check_all(Mishap::Killed);
    check(THREE, 4, Mishap::Killed);
}

#[test]
fn a_write_whose_answer_is_lost_is_done_once_more_and_changes_nothing() {
    check_all(Mishap::AnswerLost);
}

#[test]
fn a_write_that_is_refused_once_or_twenty_times_is_made_again() {
    check_all(Mishap::Refused(1));
    check_all(Mishap::Refused(20));
}

#[test]
fn a_cache_that_is_behind_begins_nothing_twice() {
    check_all(Mishap::Stale(1));
    check_all(Mishap::Stale(5));
}

#[test]
fn a_status_that_is_lost_at_any_write_is_made_again() {
    for kind in Kind::ALL {
        check_all(Mishap::StatusLost(kind));
    }
    check(THREE, 4, Mishap::StatusLost(Kind::ClusterDeployment));
}
