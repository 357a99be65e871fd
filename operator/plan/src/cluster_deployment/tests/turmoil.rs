//! Machines that die and return, counts that change, Machines that are deleted, Hosts that others take, and statuses
//! that are lost, in any order and whatever becomes of runs: at every turn what must be so is so, and in the end it
//! settles.

use crds::cluster_deployment::RecoveryStrategy;
use crds::references::ClaimRef;
use proptest::prelude::*;

use super::fates;
use crate::testing::{Kind, World};

/// One thing that happens.
#[derive(Clone, Debug)]
enum Event {
    Dies(usize),
    Returns(usize),
    Sickens(usize),
    Taken(usize),
    Deleted(usize),
    HostRequest(usize, i32),
    Forgets(usize),
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        (1usize..10).prop_map(Event::Dies),
        (1usize..10).prop_map(Event::Returns),
        (1usize..10).prop_map(Event::Sickens),
        (1usize..10).prop_map(Event::Taken),
        (0usize..9).prop_map(Event::Deleted),
        (0usize..2, 0i32..4).prop_map(|(planes, workers)| Event::HostRequest(planes, workers)),
        (0usize..Kind::ALL.len()).prop_map(Event::Forgets),
    ]
}

fn spec(planes: usize, workers: i32) -> String {
    format!(
        "controlPlane: {{replicas: {}, endpoint: {{host: 10.0.0.100}}}}, workers: [{{name: general, replicas: {workers}}}]",
        [1, 3][planes]
    )
}

fn happens(world: &mut World, event: &Event) {
    match event {
        Event::Dies(host) => world.kill(&format!("h{host}")),
        Event::Returns(host) => world.revive(&format!("h{host}")),
        Event::Sickens(host) => drop(world.silent_nodes.insert(format!("h{host}"))),
        Event::Taken(host) => world.take_host(&format!("h{host}")),
        Event::Deleted(index) => world.delete_machine(*index),
        Event::HostRequest(planes, workers) => {
            let recovery = world.deployment.spec.recovery.clone();
            world.respec(&spec(*planes, *workers));
            world.deployment.spec.recovery = recovery;
        }
        Event::Forgets(kind) => world.lose(Kind::ALL[*kind]),
    }
}

fn claim() -> ClaimRef {
    ClaimRef { kind: "Machine".into(), name: "another".into(), uid: "of-another-cluster".into() }
}

impl World {
    /// Another cluster claims a Host that is free.
    fn take_host(&mut self, name: &str) {
        let mut hosts = self.hosts.iter_mut();
        let free = hosts.find(|host| host.metadata.name.as_deref() == Some(name) && host.spec.claim_ref.is_none());
        if let Some(host) = free {
            host.spec.claim_ref = Some(claim());
            host.spec.claim_epoch += 1;
            host.metadata.finalizers = Some(vec![crds::names::finalizer::HOST.into()]);
            host.metadata.resource_version = Some("taken".into());
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn whatever_dies_leaves_and_is_forgotten_the_invariants_hold_and_it_settles(
        planes in 0usize..2,
        workers in 0i32..3,
        rebuild in any::<bool>(),
        fates in fates(),
        story in proptest::collection::vec((event(), 0usize..6), 0..10),
    ) {
        let mut world = World::new(&spec(planes, workers), 9);
        if rebuild {
            world.deployment.spec.recovery.strategy = RecoveryStrategy::Rebuild;
        }
        world.fates = fates;
        for (event, turns) in &story {
            happens(&mut world, event);
            world.run_for(*turns);
        }
        for host in 1..10 {
            world.revive(&format!("h{host}"));
        }
        world.fates.clear();
        world.settle();
        let taken = |host: &&crds::Host| host.spec.claim_ref.as_ref() == Some(&claim());
        let held = world.hosts.iter().filter(|host| host.spec.claim_ref.is_some() && !taken(host)).count();
        prop_assert!(held <= world.machines.len(), "{held} Hosts are claimed for {} Machines", world.machines.len());
    }
}
