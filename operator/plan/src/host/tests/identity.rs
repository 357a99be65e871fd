//! A claimed Host is one machine, whatever its address is.

use crds::conditions;
use crds::host::HostPhase;
use crds::names::condition;

use super::{World, object, spare};
use crate::host::identity::another;

const CLAIM: &str = ", claimRef: {kind: Machine, name: m, uid: u}, claimEpoch: 1";
const FOUND: &str = "clean: false, leftovers: [kubelet], hostKey: ssh-ed25519 AAAA, facts: {machineId: 0123}";

fn claimed(more: &str) -> World {
    let mut host = spare("a", &format!("{CLAIM}{more}"));
    host.status = Some(object("{hostKeys: [ssh-ed25519 AAAA]}"));
    let mut world = World::new(vec![host]);
    world.finds.insert("a".into(), FOUND.into());
    world
}

#[test]
fn a_host_that_was_claimed_before_is_probed_once_and_keeps_which_machine_it_is() {
    let mut world = claimed("");
    world.settle();
    let host = &world.hosts["a"];
    let identity = host.spec.identity.clone().unwrap();
    assert_eq!(
        (identity.host_keys.join(", "), identity.machine_id.as_deref()),
        ("ssh-ed25519 AAAA".to_owned(), Some("0123"))
    );
    assert_eq!(host.status.as_ref().unwrap().cleaned_epoch, None);
    world.now += 100_000;
    world.settle();
    assert_eq!(world.probes.len(), 1);
    assert_eq!(world.shown("a").0, HostPhase::Claimed);
}

#[test]
fn a_first_key_is_not_believed_once_the_host_is_claimed() {
    let mut world = claimed("");
    world.hosts.get_mut("a").unwrap().status = None;
    world.settle();
    assert_eq!((world.probes.len(), &world.hosts["a"].spec.identity), (0, &None));
}

/// A run of the Machine's has ended on the Host as it is.
fn met(world: &mut World, failure: &str) {
    let generation = world.hosts["a"].metadata.generation.unwrap();
    world.now += 100;
    let mut run: crds::PlaybookRun = object(&format!(
        "{{apiVersion: clusterwright.dev/v1alpha1, kind: PlaybookRun, metadata: {{name: join-{}, namespace: fleet, annotations: {{clusterwright.dev/machines: '{{\"a\": {{\"uid\": \"u\", \"host_generation\": {generation}}}}}'}}}}, spec: {{clusterName: c, intent: Join, steps: [prepare], hosts: [a]}}, status: {{phase: Failed, hosts: [{{name: a{failure}}}]}}}}",
        world.now
    ));
    run.status.as_mut().unwrap().finished_at = Some(super::Time(super::at(world.now)));
    world.probes.push(run);
    world.settle();
}

const ANOTHER: &str =
    ", failure: {step: '', task: '', reason: MachineIdentityMismatch, message: its host key is ssh-ed25519 BBBB}";

#[test]
fn a_host_on_which_a_run_met_another_machine_says_so_and_what_to_do() {
    let mut world = claimed(", identity: {hostKeys: [ssh-ed25519 AAAA]}");
    met(&mut world, ANOTHER);
    let (phase, message, ready) = world.shown("a");
    assert_eq!((phase, ready), (HostPhase::Claimed, "False"), "{message}");
    for part in [
        "is not the one that was claimed",
        "ssh-ed25519 BBBB",
        "set them back",
        "kubectl -n fleet delete machines.clusterwright.dev m",
        "kubectl -n fleet patch hosts.clusterwright.dev a --type=merge -p '{\"spec\":{\"identity\":null}}'",
    ] {
        assert!(message.contains(part), "{part}: {message}");
    }
    assert!(another(&world.hosts["a"]).is_some());
    world.probes.clear();
    world.settle();
    assert_eq!(world.shown("a").2, "False", "it is remembered without the run");
}

#[test]
fn a_host_that_was_corrected_is_believed_until_a_run_meets_another_machine_again() {
    let mut world = claimed(", identity: {hostKeys: [ssh-ed25519 AAAA]}");
    met(&mut world, ANOTHER);
    world.change("a", |host| host.spec.address = "b.example".into());
    world.settle();
    assert_eq!(world.shown("a").2, "True");
    assert_eq!(another(&world.hosts["a"]), None);
    met(&mut world, ANOTHER);
    assert_eq!(world.shown("a").2, "False");
    met(&mut world, "");
    assert_eq!(world.shown("a").2, "True");
}

#[test]
fn hosts_with_one_machine_id_are_reported_and_not_refused() {
    let mut world = World::new(vec![spare("a", ""), spare("b", ""), spare("c", "")]);
    for (name, key) in [("a", "AAAA"), ("b", "BBBB"), ("c", "CCCC")] {
        let id = if name == "c" { "2" } else { "1" };
        let found = format!("clean: true, facts: {{machineId: '{id}'}}, hostKey: ssh-ed25519 {key}");
        world.finds.insert(name.into(), found);
    }
    world.settle();
    world.settle();
    let told = |name: &str| {
        let status = world.hosts[name].status.as_ref().unwrap();
        let found = conditions::find(&status.conditions, condition::MACHINE_ID_UNIQUE);
        found.map(|found| (found.status.clone(), found.message.clone()))
    };
    assert_eq!(told("c"), None);
    let (status, message) = told("a").unwrap();
    assert_eq!(status, "False");
    assert!(message.starts_with("Host b has the same /etc/machine-id"), "{message}");
    assert!(told("b").unwrap().1.starts_with("Host a has"));
    assert_eq!(world.shown("a").0, HostPhase::Available);
}
