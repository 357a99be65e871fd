//! Authorities and keys are rotated: everybody believes everybody in each moment, and reads what anybody wrote, which
//! the world checks after every write; and nobody has the former one in the end.

use crds::names::{annotation, condition};
use crds::step::{Intent, Role, Step};
use crds::{Conditions, ObjectExt};
use proptest::prelude::*;

use super::{fates, ready};
use crate::rotation::{STORED, Stage, Subject};
use crate::settings::applied;
use crate::testing::World;

const WIDE: &str = "controlPlane: {replicas: 3, endpoint: {host: 10.9.9.9}}, workers: [{name: general, replicas: 3}], executor: {historyLimit: 2}";

fn built(spec: &str, hosts: usize) -> World {
    let mut world = World::new(spec, hosts);
    world.settle();
    assert_eq!(ready(&world).0, "True", "{:?}", ready(&world));
    world
}

fn ask(world: &mut World, value: &str) {
    let annotations = world.deployment.metadata.annotations.get_or_insert_default();
    annotations.insert(annotation::ROTATE.into(), value.into());
}

fn says(world: &World) -> Option<(String, String)> {
    let status = world.deployment.status.clone().unwrap();
    let found = status.conditions.iter().find(|found| found.type_ == condition::AUTHORITIES_ROTATED)?;
    Some((found.reason.clone(), found.message.clone()))
}

fn reason(world: &World) -> String {
    says(world).map(|(reason, _)| reason).unwrap_or_default()
}

/// Does what the message says, if it asks for an approval.
fn approve(world: &mut World) {
    let message = says(world).map(|(_, message)| message).unwrap_or_default();
    let Some((_, value)) = message.rsplit_once("clusterwright.dev/approve=") else { return };
    let annotations = world.deployment.metadata.annotations.get_or_insert_default();
    annotations.insert(annotation::APPROVE.into(), value.into());
    world.settle();
}

/// What each run brought, and to whom.
fn brought(world: &World) -> Vec<(String, String)> {
    let runs = world.runs.iter().filter(|run| run.spec.intent == Intent::Configure);
    let steps = |steps: &[Step]| steps.iter().map(Step::name).collect::<Vec<_>>().join(" ");
    runs.map(|run| (steps(&run.spec.steps), run.spec.hosts.join(" "))).collect()
}

fn is_rotated(world: &World, subject: Subject, number: i64) {
    assert_eq!(reason(world), "Rotated", "{:?}\n{}", says(world), world.report());
    let ring = &world.authorities.rings[&subject];
    assert_eq!((ring.stage, ring.signer.clone()), (Stage::Settled, format!("{}-{number}", subject.name())));
    for machine in &world.machines {
        let applied = machine.status.clone().unwrap().applied.unwrap();
        let of_it = applied.authorities.iter().filter(|(name, _)| name.split('/').next() == Some(subject.name()));
        for (name, has) in of_it {
            assert_eq!(*has, ring.digest(), "{name} of {}", machine.name());
        }
    }
}

#[test]
fn a_ca_is_trusted_then_read_by_pods_then_signs_and_the_former_one_goes_when_a_person_says_so() {
    let mut world = built(WIDE, 6);
    world.deployment.spec.executor.as_mut().unwrap().history_limit = 100;
    world.touch();
    world.pods = (1..=6).map(|number| (format!("h{number}"), 2)).collect();
    ask(&mut world, "ca.1");
    world.settle();
    let (reason, message) = says(&world).unwrap();
    assert_eq!(reason, "WaitingForApproval", "{message}\n{}", world.report());
    assert!(message.contains("kubectl -n fleet annotate") && message.contains("approve=rotate."), "{message}");
    let status = world.deployment.status.clone().unwrap();
    assert!(status.message.clone().unwrap().contains("rotation of ca is prepared"), "{:?}", status.message);
    assert_eq!(ready(&world).0, "True", "the cluster works on");
    let runs = brought(&world);
    let expected = ["certificate-authorities", "restart-pods", "certificate-authorities"];
    let mut steps: Vec<&str> = runs.iter().map(|(steps, _)| steps.as_str()).collect();
    steps.dedup();
    assert_eq!(steps, expected, "{runs:?}");
    assert!(runs[..3].iter().all(|(_, hosts)| !hosts.contains(' ')), "control planes one by one: {runs:?}");
    let (planes, workers): (Vec<_>, Vec<_>) = world.pods.iter().partition(|(host, _)| host.as_str() <= "h3");
    let drained = workers.iter().all(|(_, left)| **left == 0) && planes.iter().all(|(_, left)| **left == 2);
    assert!(drained, "workers are drained before their Pods are started anew: {:?}", world.pods);

    approve(&mut world);
    is_rotated(&world, Subject::Ca, 1);
    assert_eq!(brought(&world).len() - runs.len(), 5, "three control planes, one worker and the others");
}

#[test]
fn a_key_of_secrets_decrypts_everywhere_before_it_encrypts_and_the_former_one_goes_when_all_are_seen_rewritten() {
    let mut world = built(WIDE, 6);
    world.deployment.spec.executor.as_mut().unwrap().history_limit = 100;
    world.touch();
    ask(&mut world, "encryption-key.1");
    let mut messages = Vec::new();
    for _ in 0..400 {
        world.run_for(1);
        messages.extend(says(&world).map(|(_, message)| message));
    }
    world.settle();
    is_rotated(&world, Subject::EncryptionKey, 1);
    messages.dedup();
    for expected in [
        "the next one decrypts: 1 of 3",
        "the next one encrypts: 1 of 3",
        "all Secrets are rewritten: 1 of 3",
        "the former one goes: 2 of 3",
    ] {
        assert!(messages.iter().any(|message| message.contains(expected)), "{expected}: {messages:#?}");
    }
    let mut runs: Vec<(String, String)> = brought(&world);
    runs.dedup();
    let rewritten: Vec<&(String, String)> = runs.iter().filter(|(steps, _)| steps == "rewrite-secrets").collect();
    assert_eq!(rewritten.len(), 3, "each control plane, one by one: {runs:?}");
    assert!(runs.iter().all(|(_, hosts)| hosts.as_str() < "h4"), "workers have nothing of it: {runs:?}");
}

#[test]
fn secrets_are_seen_rewritten_once_more_after_etcd_was_set_back_to_what_it_had_before() {
    let mut world = built(WIDE, 6);
    ask(&mut world, "encryption-key.1");
    let proved = |world: &World| {
        let has = |machine: &crds::Machine| machine.status.as_ref()?.applied.as_ref()?.authorities.get(STORED).cloned();
        world.machines.iter().filter(|machine| has(machine).is_some()).count()
    };
    while proved(&world) == 0 {
        world.run_for(1);
    }
    let machine = world.machines.iter().find(|machine| machine.spec.role == Role::ControlPlane).unwrap().clone();
    let host = machine.spec.host_ref.clone().unwrap().name;
    let run = world.runs.iter().find(|run| run.spec.steps.contains(&Step::RewriteSecrets)).unwrap();
    let brought =
        |runs: &[&crds::PlaybookRun]| applied(&machine, &host, runs).unwrap().authorities.contains_key(STORED);
    assert!(brought(&[run]));
    for step in [Step::ReleaseControlPlane, Step::RecoverEtcd, Step::EtcdEndpoints] {
        let mut back = run.clone();
        back.spec.steps = vec![step];
        let status = back.status.as_mut().unwrap();
        status.token += 1000;
        status.steps[0].name = step;
        assert!(!brought(&[run, &back]), "{}", step.name());
    }
}

#[test]
fn each_of_them_is_rotated_in_each_topology() {
    let stacked = "controlPlane: {replicas: 3, endpoint: {host: 10.9.9.9}}, workers: [{name: general, replicas: 1}]";
    let dedicated = "controlPlane: {replicas: 1}, etcd: {topology: Dedicated, replicas: 3}, workers: [{name: general, replicas: 1}]";
    for spec in [stacked, dedicated] {
        for subject in Subject::ALL {
            let mut world = built(spec, 5);
            for number in [1, 2] {
                ask(&mut world, &format!("{}.{number}", subject.name()));
                world.settle();
                approve(&mut world);
                is_rotated(&world, subject, number);
            }
            assert_eq!(ready(&world).0, "True");
        }
    }
}

#[test]
fn what_is_no_request_and_what_was_done_already_is_said_with_what_to_write() {
    let mut world = built("controlPlane: {replicas: 1}, workers: []", 1);
    for value in ["", "ca", "kubelet.1", "ca.0"] {
        ask(&mut world, value);
        world.settle();
        let (reason, message) = says(&world).unwrap();
        assert_eq!(reason, "RotationRefused", "{value}: {message}");
        assert!(message.contains("ca, etcd-ca, front-proxy-ca, service-account-key, encryption-key"), "{message}");
        assert!(message.contains("clusterwright.dev/rotate=ca.1"), "{message}");
    }
    ask(&mut world, "front-proxy-ca.2");
    world.settle();
    is_rotated(&world, Subject::FrontProxyCa, 2);
    ask(&mut world, "front-proxy-ca.1");
    world.settle();
    let (reason, message) = says(&world).unwrap();
    assert_eq!(reason, "RotationRefused", "{message}");
    assert!(message.contains("with 2 already") && message.contains("rotate=front-proxy-ca.3"), "{message}");
    world.deployment.metadata.annotations.as_mut().unwrap().clear();
    world.settle();
    assert_eq!(says(&world), None);
}

#[test]
fn the_authority_of_an_external_etcd_is_its_owners() {
    let mut world = World::new(
        "controlPlane: {replicas: 1}, etcd: {topology: External, endpoints: ['https://10.7.7.7:2379'], secretRef: {name: e}}, workers: []",
        1,
    );
    world.etcd_client = Some(Ok("client".into()));
    world.settle();
    ask(&mut world, "etcd-ca.1");
    world.settle();
    let (reason, message) = says(&world).unwrap();
    assert_eq!(reason, "RotationRefused");
    assert!(message.contains("etcd.secretRef"), "{message}");
    ask(&mut world, "front-proxy-ca.1");
    world.settle();
    is_rotated(&world, Subject::FrontProxyCa, 1);
}

#[test]
fn a_machine_that_is_not_reached_keeps_the_former_one_trusted() {
    let mut world = built(WIDE, 7);
    world.always_fails = vec!["h5".into()];
    ask(&mut world, "ca.1");
    world.settle();
    assert_eq!(world.authorities.rings[&Subject::Ca].stage, Stage::Trust, "{:?}", says(&world));
    let (_, message) = says(&world).unwrap();
    assert!(message.contains("of 6 machines have it"), "{message}");
    world.always_fails.clear();
    let index = world.machines.iter().position(|machine| machine.spec.host_ref.as_ref().unwrap().name == "h5").unwrap();
    world.delete_machine(index);
    world.settle();
    approve(&mut world);
    is_rotated(&world, Subject::Ca, 1);
}

#[test]
fn machines_that_join_in_the_middle_have_all_of_it_in_the_end() {
    let mut world = built(WIDE, 9);
    ask(&mut world, "ca.1");
    for turns in [20, 40, 60] {
        world.run_for(turns);
        let more = world.deployment.spec.workers[0].replicas.unwrap_or_default() + 1;
        world.scale_workers("a", more);
    }
    world.settle();
    approve(&mut world);
    is_rotated(&world, Subject::Ca, 1);
    assert_eq!(world.machines.len(), 9);
}

#[test]
fn a_rotation_waits_for_an_upgrade_and_an_upgrade_for_a_rotation() {
    let mut world = built(WIDE, 6);
    ask(&mut world, "ca.1");
    world.settle();
    assert_eq!(reason(&world), "WaitingForApproval");
    world.deployment.spec.kubernetes_version = "1.36.0".parse().unwrap();
    world.touch();
    world.settle();
    assert!(world.runs.iter().all(|run| run.spec.intent != Intent::Upgrade), "{}", world.report());
    ask(&mut world, "front-proxy-ca.1");
    world.settle();
    approve(&mut world);
    assert_eq!(world.authorities.rings[&Subject::Ca].signer, "ca-1");
    is_rotated(&world, Subject::FrontProxyCa, 1);
    assert_eq!(world.deployment.status.clone().unwrap().kubernetes_version.as_deref(), Some("1.36.0"));
}

#[test]
fn keys_that_were_replaced_by_hand_are_brought_to_nobody() {
    let mut world = built(WIDE, 7);
    let ring = world.authorities.rings.get_mut(&Subject::Ca).unwrap();
    (ring.signer, ring.trusted) = ("mine".into(), ["mine".to_owned()].into());
    let before = world.runs.len();
    world.scale_workers("a", 4);
    world.settle();
    let (reason, message) = says(&world).unwrap();
    assert_eq!(reason, "AuthorityReplaced", "{message}");
    assert!(message.contains("put the former one back"), "{message}");
    assert_eq!(world.runs.len(), before, "{}", world.report());
    let ring = world.authorities.rings.get_mut(&Subject::Ca).unwrap();
    (ring.signer, ring.trusted) = ("ca-0".into(), ["ca-0".to_owned()].into());
    world.settle();
    assert_eq!(says(&world), None);
    assert_eq!(world.machines.iter().filter(|machine| machine.condition("Ready").is_some()).count(), 7);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn whatever_fails_dies_or_is_forgotten_in_a_rotation_everybody_believes_everybody(
        subject in 0usize..Subject::ALL.len(),
        fates in fates(),
        story in proptest::collection::vec((0usize..4, 1usize..7, 0usize..12), 0..6),
    ) {
        let mut world = built(WIDE, 8);
        let subject = Subject::ALL[subject];
        ask(&mut world, &format!("{}.1", subject.name()));
        world.fates = fates;
        for (what, host, turns) in story {
            let host = format!("h{host}");
            match what {
                0 => world.kill(&host),
                1 => world.revive(&host),
                2 => world.scale_workers("a", i32::try_from(turns % 5).unwrap()),
                _ => drop(world.silent_nodes.insert(host)),
            }
            world.run_for(turns);
        }
        for host in 1..9 {
            world.revive(&format!("h{host}"));
        }
        world.fates.clear();
        world.settle();
        approve(&mut world);
        let ring = &world.authorities.rings[&subject];
        prop_assert!(ring.stage == Stage::Settled || ready(&world).0 != "True" || reason(&world) == "RotatingAuthorities", "{ring:?}");
    }
}
