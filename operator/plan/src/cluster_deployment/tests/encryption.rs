//! `spec.encryption` is edited: what follows decrypts everywhere before it encrypts anywhere, and goes no other way
//! than a rotation. That every API server reads what any of them has stored is checked by the world after every write.

use std::collections::BTreeSet;

use crds::names::{annotation, condition};
use crds::step::{Intent, Step};
use crds::{ClusterDeployment, Conditions, ObjectExt, PlaybookRun};
use serde_json::json;

use super::ready;
use crate::encryption::Scheme;
use crate::rotation::{Stage, Subject};
use crate::testing::World;

const WIDE: &str = "controlPlane: {replicas: 3, endpoint: {host: 10.9.9.9}}, workers: [{name: general, replicas: 1}], executor: {historyLimit: 100}";

fn built() -> World {
    let mut world = World::new(WIDE, 4);
    world.settle();
    assert_eq!(ready(&world).0, "True", "{:?}", ready(&world));
    world
}

fn edit(world: &mut World, encryption: serde_json::Value) {
    world.deployment.spec.encryption = Some(serde_json::from_value(encryption).unwrap());
    world.touch();
}

fn kms(name: &str, endpoint: &str) -> serde_json::Value {
    json!({"provider": "KMSv2", "kms": {"name": name, "endpoint": endpoint}})
}

fn said(deployment: &ClusterDeployment) -> Option<(String, String)> {
    let found = deployment.condition(condition::AUTHORITIES_ROTATED)?;
    Some((found.reason.clone(), found.message.clone()))
}

/// Everything that is said until nothing changes any more.
fn messages(world: &mut World) -> Vec<String> {
    let mut messages = Vec::new();
    for _ in 0..500 {
        world.run_for(1);
        messages.extend(said(&world.deployment).map(|(_, message)| message));
    }
    world.settle();
    messages.dedup();
    messages
}

/// The runs that there are.
fn runs(world: &World) -> BTreeSet<String> {
    world.runs.iter().map(|run| run.name().to_owned()).collect()
}

/// The steps that other runs have played, and on which Hosts.
fn played(world: &World, before: &BTreeSet<String>) -> Vec<(String, String)> {
    let is_new = |run: &&PlaybookRun| run.spec.intent == Intent::Configure && !before.contains(run.name());
    let runs = world.runs.iter().filter(is_new);
    let steps = |steps: &[Step]| steps.iter().map(Step::name).collect::<Vec<_>>().join(" ");
    runs.map(|run| (steps(&run.spec.steps), run.spec.hosts.join(" "))).collect()
}

fn is_followed(world: &World) {
    let wanted = Scheme::wanted(world.deployment.spec.encryption.as_ref());
    let ring = &world.authorities.rings[&Subject::EncryptionKey];
    assert_eq!((ring.stage, &world.authorities.encryption.to), (Stage::Settled, &wanted), "{}", world.report());
    assert_eq!(said(&world.deployment), None, "{}", world.report());
    for machine in &world.machines {
        let applied = machine.status.clone().unwrap().applied.unwrap();
        let has = applied.authorities.get(Subject::EncryptionKey.name());
        assert!(has.is_none_or(|has| *has == ring.digest()), "{has:?} of {ring:?}");
        assert!(!applied.authorities.contains_key("kms-plugin"), "it may be asked again");
    }
}

#[test]
fn another_list_of_resources_decrypts_then_encrypts_and_all_of_them_are_written_anew() {
    let mut world = built();
    for resources in [json!(["secrets", "configmaps", "*.apps"]), json!(["secrets"])] {
        let before = runs(&world);
        edit(&mut world, json!({ "resources": resources }));
        let messages = messages(&mut world);
        for expected in [
            "change of encryption to ",
            "change of encryption: the next one decrypts: 1 of 3",
            "the next one encrypts: 1 of 3",
            "all objects of encrypted resources are rewritten: 1 of 3",
            "the former one goes: 2 of 3",
        ] {
            assert!(messages.iter().any(|message| message.contains(expected)), "{expected}: {messages:#?}");
        }
        is_followed(&world);
        let steps: Vec<String> = played(&world, &before).into_iter().map(|(steps, _)| steps).collect();
        let brought = ["certificate-authorities"; 3];
        let expected = [&brought[..], &brought[..], &["rewrite-secrets"; 3], &brought[..]].concat();
        assert_eq!(steps, expected);
        assert_eq!(ready(&world).0, "True");
    }
    let before = runs(&world);
    edit(&mut world, json!({}));
    world.settle();
    assert_eq!(played(&world, &before), [], "the default is what it says");
}

#[test]
fn a_plugin_must_answer_on_every_control_plane_before_an_api_server_is_touched() {
    let mut world = built();
    world.always_fails = vec!["h2".into()];
    let before = runs(&world);
    edit(&mut world, kms("vault", "unix:///run/kms/vault.sock"));
    world.settle();
    let (_, message) = said(&world.deployment).unwrap();
    assert!(message.contains("the KMS plug-in answers: on "), "{message}");
    assert!(played(&world, &before).iter().all(|(steps, _)| steps == "kms-plugin"), "{:?}", played(&world, &before));

    // It is taken back: nothing was brought to anybody.
    edit(&mut world, json!({}));
    world.always_fails.clear();
    world.settle();
    is_followed(&world);
    assert!(played(&world, &before).iter().all(|(steps, _)| steps == "kms-plugin"), "{:?}", played(&world, &before));

    let before = runs(&world);
    edit(&mut world, kms("vault", "unix:///run/kms/vault.sock"));
    let generation = world.deployment.metadata.generation.unwrap().to_string();
    let annotations = world.deployment.metadata.annotations.get_or_insert_default();
    annotations.insert(annotation::RETRY.into(), generation);
    world.settle();
    is_followed(&world);
    let steps: Vec<(String, String)> = played(&world, &before);
    assert_eq!(steps.iter().filter(|(steps, _)| steps == "kms-plugin").count(), 3, "once on each: {steps:?}");
    assert!(steps[..3].iter().all(|(steps, _)| steps == "kms-plugin"), "{steps:?}");
}

#[test]
fn what_was_prepared_on_some_is_taken_back_before_it_encrypts_and_carried_out_once_it_does() {
    let mut world = built();
    world.always_fails = vec!["h3".into()];
    edit(&mut world, json!({"resources": ["secrets", "configmaps"]}));
    world.settle();
    assert_eq!(world.authorities.rings[&Subject::EncryptionKey].stage, Stage::Trust);
    edit(&mut world, json!({"resources": ["secrets", "pods"]}));
    world.always_fails.clear();
    world.settle();
    is_followed(&world);
    assert_eq!(world.authorities.encryption.to.resources, ["pods", "secrets"]);

    edit(&mut world, json!({"resources": ["secrets", "configmaps"]}));
    while world.authorities.rings[&Subject::EncryptionKey].stage != Stage::Sign {
        world.run_for(1);
    }
    edit(&mut world, json!({}));
    let signer = world.authorities.rings[&Subject::EncryptionKey].signer.clone();
    let messages = messages(&mut world);
    is_followed(&world);
    let signed = &world.authorities.rings[&Subject::EncryptionKey].signer;
    assert!(signed.starts_with(&signer) && *signed != signer, "one after the other: {signed}: {messages:#?}");
}

#[test]
fn a_plugin_behind_another_socket_has_another_name_and_a_rotation_comes_after_an_edit() {
    let mut world = built();
    edit(&mut world, kms("vault", "unix:///run/kms/vault.sock"));
    world.settle();
    is_followed(&world);
    world.authorities.encryption.plugins = world.authorities.encryption.to.kms.clone().into_iter().collect();
    let before = runs(&world);
    edit(&mut world, kms("vault", "unix:///run/kms/other.sock"));
    world.settle();
    let (reason, message) = said(&world.deployment).unwrap();
    assert_eq!(reason, "RotationRefused");
    assert!(message.contains("unix:///run/kms/vault.sock") && message.contains("another name"), "{message}");
    assert_eq!(played(&world, &before), []);

    let annotations = world.deployment.metadata.annotations.get_or_insert_default();
    annotations.insert(annotation::ROTATE.into(), "encryption-key.1".into());
    edit(&mut world, json!({}));
    world.settle();
    assert_eq!(said(&world.deployment).unwrap().0, "Rotated");
    let ring = &world.authorities.rings[&Subject::EncryptionKey];
    assert_eq!((ring.stage, ring.signer.as_str()), (Stage::Settled, "encryption-key-1"));
}
