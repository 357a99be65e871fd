//! Authorities that the cluster's owner brings: what the cluster begins with, what it is rotated to, and what is
//! refused before anything is done.

use crds::Conditions;
use crds::names::{annotation, condition};
use crds::references::LocalRef;
use jiff::SignedDuration;

use super::ready;
use crate::inputs::InputsProblem;
use crate::rotation::own::{OwnAuthorities, OwnAuthority};
use crate::rotation::{Stage, Subject};
use crate::testing::World;

const SPEC: &str =
    "controlPlane: {replicas: 1}, workers: [{name: general, replicas: 1}], certificates: {caRef: {name: corp}}";
const DAY: SignedDuration = SignedDuration::from_hours(24);

/// The Secret has these pairs, which are valid for years.
fn bring(world: &mut World, pairs: &[(Subject, &str)]) {
    let one = |(subject, fingerprint): &(Subject, &str)| {
        let authority = OwnAuthority {
            fingerprint: (*fingerprint).to_owned(),
            begins: world.now - DAY,
            ends: world.now + 3000 * DAY,
            is_self_signed: true,
            is_retired: false,
        };
        (*subject, authority)
    };
    world.own_authorities = Some(Ok(pairs.iter().map(one).collect::<OwnAuthorities>()));
}

fn change(world: &mut World, subject: Subject, change: impl FnOnce(&mut OwnAuthority)) {
    let Some(Ok(own)) = &mut world.own_authorities else { panic!("nothing is brought") };
    change(own.get_mut(&subject).unwrap());
}

fn lose(world: &mut World) {
    let problem =
        InputsProblem::waits(crds::Reason::SecretNotFound, "Secret corp of spec.certificates.caRef is not there");
    world.own_authorities = Some(Err(problem));
}

fn built(spec: &str, pairs: &[(Subject, &str)]) -> World {
    let mut world = World::new(spec, 5);
    bring(&mut world, pairs);
    world.settle();
    assert_eq!(ready(&world).0, "True", "{:?}", ready(&world));
    world
}

fn says(world: &World) -> Option<(String, String)> {
    let found = world.deployment.condition(condition::AUTHORITIES_ROTATED)?;
    Some((found.reason.clone(), found.message.clone()))
}

fn annotate(world: &mut World, name: &str, value: &str) {
    world.deployment.metadata.annotations.get_or_insert_default().insert(name.into(), value.into());
}

/// Does what the message says, which asks for an approval.
fn approve(world: &mut World) {
    let (reason, message) = says(world).unwrap();
    assert_eq!(reason, "WaitingForApproval", "{message}");
    let (_, value) = message.rsplit_once("clusterwright.dev/approve=").unwrap();
    let value = value.to_owned();
    annotate(world, annotation::APPROVE, &value);
    world.settle();
}

fn signer(world: &World, subject: Subject) -> (Stage, String) {
    let ring = &world.authorities.rings[&subject];
    (ring.stage, ring.signer.clone())
}

#[test]
fn a_cluster_begins_with_what_it_is_given_and_the_rest_is_made() {
    let world = built(SPEC, &[(Subject::Ca, "corp-1"), (Subject::EtcdCa, "corp-etcd")]);
    assert_eq!(signer(&world, Subject::Ca), (Stage::Settled, "corp-1".into()));
    assert_eq!(signer(&world, Subject::EtcdCa), (Stage::Settled, "corp-etcd".into()));
    assert_eq!(signer(&world, Subject::FrontProxyCa), (Stage::Settled, "front-proxy-ca-0".into()));
    let (reason, message) = says(&world).unwrap();
    assert_eq!(reason, "Rotated");
    assert_eq!(message, "ca, etcd-ca are those of Secret corp of spec.certificates.caRef");
    assert_eq!(world.inits, 1);
}

/// What is wrong with `ca`, before anything is begun.
fn refused(spec: &str, wrong: impl FnOnce(&mut World)) -> String {
    let mut world = World::new(spec, 5);
    bring(&mut world, &[(Subject::Ca, "corp-1")]);
    wrong(&mut world);
    world.run_for(30);
    assert!(!world.pki && world.runs.is_empty(), "{}", world.report());
    let (status, reason, message) = ready(&world);
    assert_eq!(status, "False");
    // Once it is put right, it goes on by itself.
    bring(&mut world, &[(Subject::Ca, "corp-2")]);
    world.settle();
    assert_eq!((ready(&world).0.as_str(), signer(&world, Subject::Ca).1.as_str()), ("True", "corp-2"));
    format!("{reason}: {message}")
}

#[test]
fn what_the_cluster_cannot_have_is_said_before_keys_are_made_or_a_run_begins() {
    let check = |wrong: &dyn Fn(&mut World), expected: &str| {
        let said = refused(SPEC, wrong);
        assert!(said.contains(expected), "{said}");
    };
    check(&lose, "SecretNotFound: Secret corp of spec.certificates.caRef is not there");
    let begins = |world: &mut World| {
        let at = world.now + 400 * DAY;
        change(world, Subject::Ca, |own| own.begins = at);
    };
    check(&begins, "InvalidAuthority: Secret corp of spec.certificates.caRef: ca.crt begins on ");
    let ended = |world: &mut World| {
        let at = world.now - DAY;
        change(world, Subject::Ca, |own| own.ends = at);
    };
    check(&ended, "give one that lasts 365 days or longer (certificates.validityDays)");
    let soon = |world: &mut World| {
        let at = world.now + 300 * DAY;
        change(world, Subject::Ca, |own| own.ends = at);
    };
    check(&soon, "before a certificate would that is made now (365 days, certificates.validityDays)");
    let lasts = SPEC.replace("certificates: {", "certificates: {validityDays: 30, ");
    let mut world = World::new(&lasts, 5);
    bring(&mut world, &[(Subject::Ca, "corp-1")]);
    soon(&mut world);
    world.settle();
    assert_eq!(ready(&world).0, "True", "{:?}", ready(&world));
}

#[test]
fn haproxy_believes_no_authority_that_another_one_issued() {
    let held = SPEC.replace(
        "replicas: 1}, workers",
        "replicas: 1, endpoint: {host: 10.9.9.9, provider: Keepalived, keepalived: {interface: eth0, virtualRouterID: 9}}}, workers",
    );
    let issued = |world: &mut World| change(world, Subject::Ca, |own| own.is_self_signed = false);
    let said = refused(&held, issued);
    assert!(said.contains("believes self-signed ones only"), "{said}");
    let mut world = World::new(SPEC, 5);
    bring(&mut world, &[(Subject::Ca, "corp-1")]);
    issued(&mut world);
    world.settle();
    assert_eq!(ready(&world).0, "True", "{:?}", ready(&world));
}

#[test]
fn the_authority_of_an_external_etcd_is_not_the_clusters_to_bring() {
    let mut world = World::new(
        "controlPlane: {replicas: 1}, etcd: {topology: External, endpoints: ['https://10.7.7.7:2379'], secretRef: {name: e}}, workers: [], certificates: {caRef: {name: corp}}",
        1,
    );
    world.etcd_client = Some(Ok("client".into()));
    bring(&mut world, &[(Subject::Ca, "corp-1"), (Subject::EtcdCa, "corp-etcd")]);
    world.run_for(30);
    let (_, reason, message) = ready(&world);
    assert_eq!(reason, "InvalidAuthority");
    assert!(
        message.contains("etcd is external, and so is its authority: remove etcd-ca.crt and etcd-ca.key"),
        "{message}"
    );
    bring(&mut world, &[(Subject::Ca, "corp-1")]);
    world.settle();
    assert_eq!((signer(&world, Subject::Ca).1.as_str(), world.inits), ("corp-1", 1));
    assert_eq!(says(&world).unwrap().0, "Rotated");
    bring(&mut world, &[(Subject::Ca, "corp-1"), (Subject::EtcdCa, "corp-etcd")]);
    world.settle();
    assert_eq!(says(&world).unwrap().0, "InvalidAuthority");
}

#[test]
fn another_pair_is_a_rotation_to_it_with_the_same_stages_and_the_same_approval() {
    let mut world = built(SPEC, &[(Subject::Ca, "corp-1"), (Subject::EtcdCa, "corp-etcd")]);
    bring(&mut world, &[(Subject::Ca, "corp-2"), (Subject::EtcdCa, "corp-etcd")]);
    world.settle();
    let ring = &world.authorities.rings[&Subject::Ca];
    assert_eq!((ring.stage, ring.signer.as_str()), (Stage::Sign, "corp-2"), "{:?}", says(&world));
    assert!(ring.trusted.contains("corp-1"));
    approve(&mut world);
    assert_eq!(signer(&world, Subject::Ca), (Stage::Settled, "corp-2".into()));
    assert_eq!(says(&world).unwrap().0, "Rotated");
    assert!(world.authorities.rotated.is_empty(), "no number is used up that an annotation may ask for");
    assert_eq!(ready(&world).0, "True");
}

#[test]
fn a_cluster_that_was_made_without_takes_them_one_after_the_other_and_says_so() {
    let mut world = built(&SPEC.replace(", certificates: {caRef: {name: corp}}", ""), &[]);
    world.deployment.spec.certificates.ca_ref = Some(LocalRef::new("corp"));
    world.touch();
    bring(
        &mut world,
        &[(Subject::Ca, "corp-1"), (Subject::EtcdCa, "corp-etcd"), (Subject::FrontProxyCa, "corp-front")],
    );
    let mut messages = Vec::new();
    for _ in 0..60 {
        world.run_for(1);
        messages.extend(says(&world).map(|(_, message)| message));
    }
    let expected = "; then rotation of etcd-ca to that of Secret corp of spec.certificates.caRef";
    assert!(messages.iter().any(|message| message.ends_with(expected)), "{messages:#?}");
    world.settle();
    approve(&mut world);
    for (subject, expected) in
        [(Subject::Ca, "corp-1"), (Subject::EtcdCa, "corp-etcd"), (Subject::FrontProxyCa, "corp-front")]
    {
        assert_eq!(signer(&world, subject), (Stage::Settled, expected.into()), "{:?}", says(&world));
    }
    // The Secret with yet another one, while one is rotated.
    bring(&mut world, &[(Subject::Ca, "corp-3")]);
    world.settle();
    bring(&mut world, &[(Subject::Ca, "corp-4")]);
    world.settle();
    assert_eq!(signer(&world, Subject::Ca), (Stage::Sign, "corp-3".into()));
    approve(&mut world);
    approve(&mut world);
    assert_eq!(signer(&world, Subject::Ca), (Stage::Settled, "corp-4".into()));
}

#[test]
fn a_reference_that_is_taken_away_and_a_secret_that_is_lost_leave_the_cluster_as_it_is() {
    let mut world = built(SPEC, &[(Subject::Ca, "corp-1")]);
    lose(&mut world);
    world.scale_workers("a", 2);
    world.settle();
    let (reason, message) = says(&world).unwrap();
    assert_eq!(
        (reason.as_str(), message.as_str()),
        ("SecretNotFound", "Secret corp of spec.certificates.caRef is not there")
    );
    assert_eq!((ready(&world).0.as_str(), world.machines.len()), ("True", 3), "a machine has joined meanwhile");
    annotate(&mut world, annotation::ROTATE, "service-account-key.1");
    world.settle();
    approve(&mut world);
    assert_eq!(signer(&world, Subject::ServiceAccountKey).1, "service-account-key-1", "{:?}", says(&world));
    assert_eq!(says(&world).unwrap().0, "SecretNotFound", "it is said again");
    world.deployment.spec.certificates.ca_ref = None;
    world.own_authorities = None;
    world.touch();
    world.settle();
    assert_eq!(signer(&world, Subject::Ca), (Stage::Settled, "corp-1".into()));
    assert_eq!(says(&world).unwrap().0, "Rotated", "of the key, by the annotation");
    annotate(&mut world, annotation::ROTATE, "ca.1");
    world.settle();
    approve(&mut world);
    assert_eq!(signer(&world, Subject::Ca).1, "ca-1", "one is made where none is brought");
}

#[test]
fn an_annotation_is_refused_for_what_is_brought_and_holds_for_what_is_made() {
    let mut world = built(SPEC, &[(Subject::Ca, "corp-1")]);
    annotate(&mut world, annotation::ROTATE, "ca.1");
    world.settle();
    let (reason, message) = says(&world).unwrap();
    assert_eq!(reason, "RotationRefused", "{message}");
    let expected =
        "put the one that follows it into Secret corp of spec.certificates.caRef (ca.crt and ca.key, in one edit)";
    assert!(message.contains(expected), "{message}");
    annotate(&mut world, annotation::ROTATE, "front-proxy-ca.1");
    world.settle();
    assert_eq!(signer(&world, Subject::FrontProxyCa), (Stage::Settled, "front-proxy-ca-1".into()));
    lose(&mut world);
    annotate(&mut world, annotation::ROTATE, "etcd-ca.1");
    world.settle();
    assert_eq!(says(&world).unwrap().0, "RotationRefused", "it may be in the Secret");
    assert_eq!(signer(&world, Subject::EtcdCa).1, "etcd-ca-0");
}

#[test]
fn one_that_was_retired_does_not_come_back_and_one_that_ends_stays_until_another_is_brought() {
    let mut world = built(SPEC, &[(Subject::Ca, "corp-1")]);
    bring(&mut world, &[(Subject::Ca, "corp-0")]);
    change(&mut world, Subject::Ca, |own| own.is_retired = true);
    world.settle();
    let (reason, message) = says(&world).unwrap();
    assert_eq!(reason, "InvalidAuthority");
    assert!(message.contains("ca.crt has a key that was there before"), "{message}");
    assert_eq!(signer(&world, Subject::Ca), (Stage::Settled, "corp-1".into()));
    bring(&mut world, &[(Subject::Ca, "corp-1")]);
    let soon = world.now + 30 * DAY;
    change(&mut world, Subject::Ca, |own| own.ends = soon);
    world.settle();
    assert_eq!(says(&world).unwrap().0, "Rotated", "the cluster has it: that it ends is said elsewhere");
}
