//! Promises about certificates: when they end is known, and said in time; and they are renewed before, one machine at a
//! time.

use crds::names::condition;
use crds::step::{Intent, Step};
use crds::{Conditions, PlaybookRun};
use jiff::SignedDuration;
use proptest::prelude::*;

use super::ready;
use crate::certificates::is_probe;
use crate::testing::{Fate, World};

const THREE: &str = "controlPlane: {replicas: 3, endpoint: {host: 10.0.0.9}}, workers: [{name: w, replicas: 1}]";

fn standing(spec: &str) -> World {
    let mut world = World::new(spec, 6);
    world.settle();
    assert_eq!(ready(&world).0, "True", "{:?}", ready(&world));
    world
}

fn hours(number: i64) -> SignedDuration {
    SignedDuration::from_hours(number)
}

fn days(number: i64) -> SignedDuration {
    hours(24 * number)
}

fn pass(world: &mut World, time: SignedDuration) {
    let until = world.time().0 + time;
    while world.time().0 < until {
        world.run_for(1);
    }
}

fn looks(world: &World) -> Vec<&PlaybookRun> {
    world.runs.iter().filter(|run| is_probe(run)).collect()
}

fn stated(world: &World) -> (String, String) {
    let found = world.deployment.condition(condition::CERTIFICATES_VALID).unwrap();
    (format!("{} {}", found.status, found.reason), found.message.clone())
}

#[test]
fn when_certificates_end_is_looked_at_hours_after_a_machine_joined_and_then_once_a_day() {
    let mut world = standing(THREE);
    assert_eq!(stated(&world).0, "Unknown CertificatesNotSeen");
    assert_eq!(looks(&world).len(), 0);
    pass(&mut world, hours(8));
    assert_eq!(looks(&world).len(), 1, "all machines at once");
    assert_eq!(looks(&world)[0].spec.hosts, ["h1", "h2", "h3", "h4"]);
    let (state, message) = stated(&world);
    assert_eq!(state, "True Valid");
    assert!(message.contains("certificate apiserver of a-control-plane-"), "{message}");
    assert!(message.ends_with("on 2027-01-01"), "{message}");
    let status = world.machines[0].status.clone().unwrap();
    assert_eq!(status.certificates_expire_at.unwrap().0, world.certificates["h1"]);
    assert_eq!(status.certificates.len(), 2);
    let before = world.runs.iter().filter(|run| is_probe(run)).map(crate::attempts::attempt_of).max();
    pass(&mut world, days(4));
    let after = world.runs.iter().filter(|run| is_probe(run)).map(crate::attempts::attempt_of).max();
    assert!((4..=5).contains(&(after.unwrap() - before.unwrap())), "{before:?} {after:?}");
    assert!(looks(&world).len() <= 2, "old ones go");
}

#[test]
fn a_machine_that_does_not_answer_is_asked_again_and_what_it_said_stays() {
    let mut world = standing(THREE);
    pass(&mut world, hours(8));
    world.silent.insert("h2".into());
    let seen = |world: &World| {
        let machine = world.machine_on("h2").unwrap();
        machine.status.clone().unwrap().certificates_seen_at.unwrap().0
    };
    let before = seen(&world);
    pass(&mut world, days(2));
    assert_eq!(seen(&world), before);
    assert!(looks(&world).iter().any(|run| run.spec.hosts == ["h2"]), "it alone, before the day is over");
    world.silent.clear();
    pass(&mut world, hours(8));
    assert!(seen(&world) > before);
}

/// A cluster whose certificates have been looked at.
fn looked_at(spec: &str) -> World {
    let mut world = standing(spec);
    pass(&mut world, hours(8));
    world
}

/// The Hosts of the renewals, in their order.
fn renewals(world: &World) -> Vec<&str> {
    let renewals = world.runs.iter().filter(|run| run.spec.intent == Intent::Renew);
    renewals
        .map(|run| {
            assert_eq!(run.spec.steps, [Step::RenewCertificates]);
            assert_eq!(run.spec.hosts.len(), 1, "one machine at a time");
            run.spec.hosts[0].as_str()
        })
        .collect()
}

fn sorted(mut hosts: Vec<&str>) -> Vec<&str> {
    hosts.sort_unstable();
    hosts
}

#[test]
fn certificates_are_renewed_a_third_of_their_life_before_they_end_one_control_plane_after_the_other() {
    let mut world = looked_at(THREE);
    world.jump(days(240));
    pass(&mut world, days(1));
    assert_eq!(renewals(&world), [] as [&str; 0], "they are not due yet");
    let mut said = Vec::new();
    let until = world.time().0 + days(5);
    while world.time().0 < until {
        world.run_for(1);
        assert_eq!(ready(&world).0, "True", "{:?}", ready(&world));
        let working =
            world.runs.iter().filter(|run| run.spec.intent == Intent::Renew && !crate::attempts::is_over(run));
        assert!(working.count() <= 1, "one machine at a time");
        said.push(ready(&world).2);
    }
    let renewed = renewals(&world);
    assert_eq!(sorted(renewed.clone()), ["h1", "h2", "h3"], "no worker: its kubelet does that");
    for (number, host) in renewed.iter().enumerate() {
        let number = number + 1;
        let expected =
            format!("running; renewing certificates: control plane {number} of 3 ({host}): renew-certificates");
        assert!(said.contains(&expected), "{expected}: {said:?}");
    }
    assert_eq!(ready(&world).2, "running");
    let (state, message) = stated(&world);
    assert_eq!(state, "True Valid");
    // A worker's kubelet would have renewed its own.
    assert!(message.contains("kubelet.conf"), "{message}");
    for host in ["h1", "h2", "h3"] {
        let seen = world.machine_on(host).unwrap().status.clone().unwrap().certificates_expire_at.unwrap().0;
        assert_eq!(seen, world.certificates[host]);
        assert!(seen.duration_since(world.time().0) > days(355));
    }
    pass(&mut world, days(3));
    assert_eq!(renewals(&world).len(), 3, "once");
}

#[test]
fn an_edit_of_when_they_are_renewed_is_followed() {
    let spec = |certificates: &str| format!("controlPlane: {{replicas: 1}}, certificates: {{{certificates}}}");
    let mut world = looked_at(&spec("validityDays: 10"));
    assert_eq!(renewals(&world), [] as [&str; 0]);
    world.respec(&spec("validityDays: 365, renewBeforeDays: 30"));
    pass(&mut world, days(2));
    assert_eq!(renewals(&world), ["h1"], "they end sooner than they are to be renewed");
    assert!(world.certificates["h1"].duration_since(world.time().0) > days(360));
}

#[test]
fn certificates_that_have_ended_are_renewed_though_no_api_is_reached() {
    let mut world = looked_at(THREE);
    world.cut = true;
    world.jump(days(400));
    world.run_for(1);
    assert!(["False Expired", "True RenewingCertificates", "False RenewingCertificates"].contains(&&*stated(&world).0));
    pass(&mut world, days(1));
    assert_eq!(sorted(renewals(&world)), ["h1", "h2", "h3"]);
    assert!(["h1", "h2", "h3"].iter().all(|host| world.certificates[*host] > world.time().0));
}

#[test]
fn dedicated_members_of_etcd_come_before_the_control_planes() {
    let mut world = looked_at("controlPlane: {replicas: 1}, etcd: {topology: Dedicated, replicas: 3}");
    world.jump(days(250));
    pass(&mut world, days(2));
    let roles: Vec<_> = renewals(&world).iter().map(|host| world.role_of(host).unwrap().name()).collect();
    assert_eq!(roles, ["etcd", "etcd", "etcd", "control-plane"]);
}

#[test]
fn a_machine_that_cannot_be_renewed_holds_up_no_other_and_is_tried_again_and_said() {
    let mut world = looked_at(THREE);
    world.jump(days(243));
    world.always_fails = vec!["h1".into()];
    pass(&mut world, days(2));
    let renewed = |world: &World, host: &str| world.certificates[host].duration_since(world.time().0) > days(300);
    assert!(renewed(&world, "h2") && renewed(&world, "h3") && !renewed(&world, "h1"));
    let (state, message) = stated(&world);
    assert_eq!(state, "False RenewalFailed", "{message}");
    assert!(message.contains("(h1) could not be renewed (TaskFailed: "), "{message}");
    assert!(ready(&world).2.contains("could not be renewed"), "{:?}", ready(&world));
    world.always_fails.clear();
    pass(&mut world, days(2));
    assert!(renewed(&world, "h1"));
    assert_eq!(stated(&world).0, "True Valid");
}

#[test]
fn in_a_paused_cluster_nothing_is_renewed() {
    let mut world = looked_at(THREE);
    world.deployment.spec.paused = true;
    world.touch();
    world.jump(days(340));
    pass(&mut world, days(1));
    assert_eq!(renewals(&world), [] as [&str; 0]);
    assert_eq!(stated(&world).0.split(' ').next(), Some("False"), "that they end is said all the same");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 6, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn whatever_comes_of_the_runs_no_certificate_ends_that_could_be_renewed(
        fates in prop::collection::vec(prop_oneof![
            Just(Fate::Well), Just(Fate::Fails), Just(Fate::Unreachable), Just(Fate::Lost(0)), Just(Fate::Lost(1)),
            Just(Fate::Deadline(0)), Just(Fate::NotStarted),
        ], 0..20),
    ) {
        let mut world = looked_at(THREE);
        world.fates = fates;
        for _ in 0..66 {
            world.jump(days(6));
            world.run_for(20);
            for host in ["h1", "h2", "h3"] {
                prop_assert!(world.certificates[host] > world.time().0, "{host}");
            }
        }
        prop_assert_eq!(ready(&world).0, "True");
    }
}

#[test]
fn the_end_of_an_authority_is_spoken_of_a_year_before_and_urgently_for_90_days_with_what_to_type() {
    let mut world = looked_at(THREE);
    let lasts = days(10 * 365);
    // The worker's kubelet renews its own.
    let renewed = world.begun + lasts + days(365);
    world.certificates.insert("h4".into(), renewed);
    let until_left = |world: &mut World, left: i64| {
        let at = world.begun + lasts - days(left);
        // Leaves are renewed meanwhile.
        while at.duration_since(world.time().0) > days(60) {
            world.jump(days(60));
            world.run_for(20);
        }
        world.jump(at.duration_since(world.time().0));
        pass(world, days(2));
        stated(world)
    };
    let (state, message) = until_left(&mut world, 400);
    assert_eq!(state, "True Valid", "{message}");
    let (state, message) = until_left(&mut world, 300);
    assert_eq!(state, "True AuthorityEndsInAYear");
    let command = "clusterwright.dev/rotate=ca.1";
    assert!(message.starts_with("authority kubernetes-ca ends on ") && message.ends_with(command), "{message}");
    let (state, message) = until_left(&mut world, 80);
    assert_eq!(state, "False AuthorityExpiresSoon");
    assert!(message.ends_with(command), "{message}");
    let (state, message) = until_left(&mut world, 20);
    assert_eq!(state, "False ExpiresSoon");
    assert!(message.contains("certificate kubernetes-ca of") && message.ends_with(command), "{message}");
    let (state, message) = until_left(&mut world, -3);
    assert_eq!(state, "False Expired");
    assert!(message.contains("it is too late to rotate it: make the cluster anew"), "{message}");
}
