//! Authorities of a plane are rotated: whoever is asked is believed in each moment, and nobody has the former one in
//! the end.

use std::collections::BTreeSet;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use crds::Reason;
use crds::names::{annotation, condition};
use jiff::SignedDuration;
use serde_json::Value;

use super::super::Place;
use super::super::machines::tests::fleet::Fleet;
use super::world::{World, plane, settled};
use crate::inputs::InputsProblem;
use crate::rotation::own::OwnAuthority;
use crate::rotation::{Stage, Subject};

const ALL: &str = "search: {}, metricsAdapter: {}, descheduler: {}";
const MACHINES: &str = "mode: Binary, binary: {controlPlane: {replicas: 3}, endpoint: {host: 10.0.0.100, provider: Keepalived}, artifacts: {url: 'https://bundle.example.com'}}";

fn annotate(world: &mut World, name: &str, value: &str) {
    world.object.metadata.annotations.get_or_insert_default().insert(name.to_owned(), value.to_owned());
}

/// Reason and message; none: nothing is said of it.
fn says(world: &World) -> Option<(String, String)> {
    let conditions = &world.object.status.as_ref()?.conditions;
    let found = crds::conditions::find(conditions, condition::AUTHORITIES_ROTATED)?;
    Some((found.reason.clone(), found.message.clone()))
}

/// The files of a kind, by their keys' ending, of all Secrets on the host.
fn files(world: &World, ending: &str) -> Vec<String> {
    let secrets = world.host.iter().filter(|((kind, _, _), _)| kind == "Secret").map(|(_, live)| live);
    let of = |secret: &Value| {
        let data = secret["data"].as_object().cloned().unwrap_or_default();
        let found = data.into_iter().filter(|(key, _)| key.ends_with(ending));
        let text = |value: Value| String::from_utf8(STANDARD.decode(value.as_str().unwrap()).unwrap()).unwrap();
        found.map(|(_, value)| text(value)).collect::<Vec<String>>()
    };
    secrets.flat_map(of).collect()
}

/// Each certificate of the plane's own authority is believed by each component.
fn everybody_believes_everybody(world: &World) {
    let trusted = files(world, "pki.ca.crt");
    let signers: BTreeSet<String> = ["client.crt", "apiserver.crt", "webhook.crt", "search.crt"]
        .iter()
        .flat_map(|ending| files(world, ending))
        .filter_map(|text| text.split_whitespace().nth(1).map(str::to_owned))
        .filter(|signer| signer.starts_with("ca-") || signer == "corp")
        .collect();
    for (signer, trusted) in signers.iter().flat_map(|signer| trusted.iter().map(move |trusted| (signer, trusted))) {
        assert!(trusted.split(' ').any(|one| one == signer), "{signer} is not among {trusted}: {:#?}", world.log);
    }
}

/// Plays until nothing is left to do, and looks in each moment.
fn settle(world: &mut World) {
    for _ in 0..400 {
        let goes_on = world.turn();
        everybody_believes_everybody(world);
        if !goes_on {
            world.object.status = Some(world.plan().status);
            return;
        }
    }
    panic!("it has not come to rest: {:?}", says(world));
}

fn approve(world: &mut World) {
    let (reason, message) = says(world).unwrap();
    assert_eq!(reason, "WaitingForApproval", "{message}");
    let (_, value) = message.rsplit_once("clusterwright.dev/approve=").unwrap();
    let value = value.to_owned();
    annotate(world, annotation::APPROVE, &value);
}

/// The moves that were made, as they are logged.
fn moves(world: &World) -> Vec<&str> {
    let names = ["Begin", "Sign", "Complete", "take "];
    world.log.iter().map(String::as_str).filter(|line| names.iter().any(|name| line.starts_with(name))).collect()
}

#[test]
fn an_authority_of_a_plane_in_pods_is_rotated_in_three_stages_and_its_end_is_approved() {
    let mut world = settled(ALL);
    assert_eq!(says(&world), None);
    world.log.clear();
    annotate(&mut world, annotation::ROTATE, "ca.1");
    settle(&mut world);
    assert_eq!(moves(&world), ["Begin(1) ca", "Sign ca"]);
    let (reason, message) = says(&world).unwrap();
    assert!(reason == "WaitingForApproval" && message.contains("whoever has a kubeconfig"), "{message}");
    assert!(world.is_ready(), "{:?}", world.condition("Ready"));
    let (_, _, ready) = world.condition("Ready");
    assert!(ready.contains("rotation of ca is prepared") && ready.contains("approve="), "{ready}");
    assert!(
        files(&world, "apiserver.crt").iter().all(|file| file.starts_with("by ca-1 ")),
        "all are from the next one"
    );

    world.log.clear();
    approve(&mut world);
    settle(&mut world);
    assert_eq!(moves(&world), ["Complete ca"]);
    assert_eq!(says(&world).unwrap(), ("Rotated".into(), "ca.1: the plane has the new one alone".into()));
    assert!(files(&world, "pki.ca.crt").iter().all(|file| file == "ca-1"), "{:?}", files(&world, "pki.ca.crt"));
    let webhooks = world.find(Place::Plane, "ValidatingWebhookConfiguration", "validating-config").unwrap();
    assert_eq!(webhooks["webhooks"][0]["clientConfig"]["caBundle"], STANDARD.encode("ca-1"));

    world.log.clear();
    settle(&mut world);
    assert!(world.log.is_empty(), "{:?}", world.log);
    assert_eq!(says(&world).unwrap().0, "Rotated");
}

#[test]
fn others_are_rotated_unasked_to_their_end_and_the_key_that_encrypts_is_not() {
    for (subject, component) in [(Subject::EtcdCa, "etcd"), (Subject::FrontProxyCa, "apiserver")] {
        let mut world = settled(ALL);
        world.log.clear();
        annotate(&mut world, annotation::ROTATE, &format!("{}.4", subject.name()));
        settle(&mut world);
        let name = subject.name();
        assert_eq!(moves(&world), [format!("Begin(4) {name}"), format!("Sign {name}"), format!("Complete {name}")]);
        assert_eq!(says(&world).unwrap().0, "Rotated");
        let rolled = world.log.iter().filter(|line| line.ends_with(&format!(" k1-{component}"))).count();
        assert!(rolled >= 3, "{:#?}", world.log);
        assert_eq!(world.authorities.rings[&subject].stage, Stage::Settled);
    }
    let mut world = settled(ALL);
    annotate(&mut world, annotation::ROTATE, "service-account-key.1");
    settle(&mut world);
    approve(&mut world);
    settle(&mut world);
    assert!(files(&world, "pki.sa.key").iter().all(|file| file == "service-account-key-1"));

    world.log.clear();
    annotate(&mut world, annotation::ROTATE, "encryption-key.1");
    settle(&mut world);
    let (reason, message) = says(&world).unwrap();
    assert!(reason == "RotationRefused" && message.contains("is none of ca, etcd-ca,"), "{message}");
    assert!(world.log.is_empty() && world.is_ready());
}

#[test]
fn nothing_is_rotated_while_something_does_not_work_or_is_paused() {
    let mut world = settled(ALL);
    world.stuck.insert("k1-webhook".to_owned());
    annotate(&mut world, annotation::ROTATE, "ca.1");
    settle(&mut world);
    let (reason, message) = says(&world).unwrap();
    assert_eq!(moves(&world), ["Begin(1) ca"], "{message}");
    assert!(reason == "RotatingAuthorities" && message.contains("the next one is trusted: "), "{message}");
    world.stuck.clear();
    world.object.spec.paused = true;
    settle(&mut world);
    assert!(says(&world).unwrap().1.contains("paused: it goes on once spec.paused is false"), "{:?}", says(&world));
    assert_eq!(moves(&world), ["Begin(1) ca"]);
    world.object.spec.paused = false;
    settle(&mut world);
    assert_eq!(moves(&world), ["Begin(1) ca", "Sign ca"]);
}

fn own(world: &World, fingerprint: &str) -> OwnAuthority {
    OwnAuthority {
        fingerprint: fingerprint.to_owned(),
        begins: world.now - SignedDuration::from_hours(24),
        ends: world.now + SignedDuration::from_hours(24 * 3000),
        is_self_signed: false,
        is_retired: false,
    }
}

#[test]
fn a_plane_begins_with_its_owners_authority_and_is_rotated_to_another_one() {
    let mut world = World::new(plane("certificates: {caRef: {name: corp}}"));
    let absent = InputsProblem::waits(Reason::SecretNotFound, "Secret corp of spec.certificates.caRef is not there");
    world.own = Some(Err(absent));
    settle(&mut world);
    assert!(!world.keys, "nothing is made without it");
    assert_eq!(world.condition("Ready").1, "SecretNotFound");

    let mut early = own(&world, "corp");
    early.ends = world.now + SignedDuration::from_hours(24);
    world.own = Some(Ok([(Subject::Ca, early)].into()));
    settle(&mut world);
    let (_, reason, message) = world.condition("Ready");
    assert!(!world.keys && reason == "InvalidAuthority" && message.contains("validityDays"), "{message}");

    world.own = Some(Ok([(Subject::Ca, own(&world, "corp"))].into()));
    settle(&mut world);
    assert!(world.is_ready(), "{:?}", world.condition("Ready"));
    assert_eq!(says(&world).unwrap().1, "ca is that of Secret corp of spec.certificates.caRef");
    assert!(files(&world, "pki.ca.crt").iter().all(|file| file == "corp"));

    annotate(&mut world, annotation::ROTATE, "ca.1");
    settle(&mut world);
    assert!(says(&world).unwrap().1.contains("it is yours, and none is made in its place"), "{:?}", says(&world));
    world.object.metadata.annotations = None;
    world.own = Some(Ok([(Subject::Ca, own(&world, "ca-next"))].into()));
    settle(&mut world);
    approve(&mut world);
    settle(&mut world);
    assert_eq!(moves(&world), ["take ca-next for ca", "Sign ca", "Complete ca"]);
    assert!(files(&world, "pki.ca.crt").iter().all(|file| file == "ca-next"));

    // Without the reference it keeps what it has.
    world.object.spec.certificates.ca_ref = None;
    world.own = None;
    settle(&mut world);
    assert_eq!(says(&world), None);
}

#[test]
fn on_machines_etcd_the_endpoint_and_all_services_are_brought_each_stage_one_machine_after_the_other() {
    let mut world = World::new(plane(MACHINES));
    world.fleet = Fleet::with_hosts(3);
    world.settle();
    assert!(world.is_ready(), "{:?} {:#?}", world.condition("Ready"), world.log);
    for (subject, brought) in [
        (Subject::EtcdCa, vec!["etcd", "apiserver", "aggregated-apiserver"]),
        (Subject::Ca, vec!["load-balancer", "apiserver", "webhook", "scheduler"]),
    ] {
        world.log.clear();
        world.fleet.played.clear();
        annotate(&mut world, annotation::ROTATE, &format!("{}.1", subject.name()));
        world.settle();
        if subject.is_held_by_people() {
            approve(&mut world);
            world.settle();
        }
        assert_eq!(says(&world).unwrap().0, "Rotated", "{:?} {:#?}", says(&world), world.log);
        for part in brought {
            let hosts: Vec<String> = world
                .fleet
                .played
                .iter()
                .filter(|(played, _)| played.split('+').any(|one| one == part))
                .map(|(_, hosts)| hosts.join(","))
                .collect();
            // What holds the endpoint only believes: who signs is the same to it.
            let stages = if part == "load-balancer" { 2 } else { 3 };
            assert_eq!(hosts, ["h1", "h2", "h3"].repeat(stages), "{part} of {}", subject.name());
        }
    }
}
