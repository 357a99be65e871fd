//! All planners together, on a namespace of machines that die, become unhealthy and come back while people change their
//! minds: after every write what must never be is looked for, and in the end it comes to rest as specified.

mod events;
mod requests;
mod set_back;

use crds::step::Role;
use proptest::prelude::*;

use crate::testing::World;
use events::Event;

/// A person applies a cluster that replaces what is sick.
fn apply_cluster(world: &mut World, name: &str, planes: usize, workers: usize) {
    let number = world.clusters.len() + 1;
    let spec = format!(
        "controlPlane: {{replicas: {planes}, endpoint: {{host: 10.0.1.{number}, port: 6443}}}}, \
         networking: {{podCIDR: 10.{number}0.0.0/16}}, \
         workers: [{{name: general, replicas: {workers}}}], \
         machineRemoval: {{drainTimeoutSeconds: 60, forceRemoveAfterSeconds: 600}}, \
         remediation: {{unhealthyAfterSeconds: 120, neverStartedAfterSeconds: 7200, waitSeconds: 60, maxUnhealthy: '40%', cooldownSeconds: 60}}"
    );
    world.add_cluster(name, &spec);
}

/// A cluster of its own, with enough Hosts for it and some more, to which these events happen.
fn play(planes: usize, workers: usize, hosts: usize, events: &[Event]) -> World {
    let mut world = World::fleet(hosts);
    apply_cluster(&mut world, "a", planes, workers);
    world.settle();
    for event in events {
        event.happens(&mut world);
    }
    world.heal_all();
    world.settle();
    world.check_end();
    world
}

#[test]
fn a_fleet_without_trouble_is_as_wished() {
    let world = play(1, 3, 5, &[]);
    assert_eq!(world.ready_nodes("a"), 4);
}

#[test]
fn workers_that_die_are_replaced_while_there_are_hosts() {
    let world = play(1, 3, 6, &[Event::Dies(2), Event::Time(60), Event::Dies(3), Event::Time(60)]);
    assert_eq!(world.ready_nodes("a"), 4);
}

#[test]
fn a_control_plane_grows_and_shrinks() {
    let world = play(1, 1, 6, &[Event::Planes(3), Event::Time(90), Event::Planes(1), Event::Time(90)]);
    assert_eq!(world.ready_nodes("a"), 2);
}

/// Machine and Host of those of a role.
fn of_role(world: &World, role: Role) -> Vec<(String, String)> {
    let machines = world.machines.iter();
    machines
        .filter(|machine| machine.spec.role == role)
        .filter_map(|machine| {
            let host = machine.spec.host_ref.as_ref()?.name.clone();
            Some((machine.metadata.name.clone()?, host))
        })
        .collect()
}

fn forget(world: &mut World, name: &str) {
    let machine = world.machine(name).unwrap().clone();
    world.mark_deleted(&machine);
    world.force_remove(name);
}

fn stands() -> (World, Vec<(String, String)>) {
    let mut world = World::fleet(7);
    apply_cluster(&mut world, "a", 3, 1);
    world.settle();
    let planes = of_role(&world, Role::ControlPlane);
    assert_eq!(planes.len(), 3);
    (world, planes)
}

#[test]
fn a_control_plane_that_is_forgotten_while_the_api_is_away_leaves_etcd_when_it_answers() {
    for dies in [false, true] {
        let (mut world, planes) = stands();
        let (machine, host) = &planes[0];
        if dies {
            world.kill(host);
        }
        world.cut = true;
        world.run_for(4);
        forget(&mut world, machine);
        world.run_for(30);
        assert!(world.machine(machine).is_none(), "it is forgotten");
        assert!(world.voters.contains(host) && world.nodes.contains(host));
        world.cut = false;
        world.settle();
        let cluster = world.clusters[0].clone();
        assert!(!cluster.voters.contains(host) && !cluster.nodes.contains(host), "{cluster:?}");
        world.check_end();
        assert_eq!(world.ready_nodes("a"), 4);
    }
}

#[test]
fn a_status_that_is_lost_is_made_up_for_by_the_hosts_of_those_that_were_forgotten() {
    let (mut world, planes) = stands();
    let (machine, host) = &planes[0];
    world.kill(host);
    world.cut = true;
    world.run_for(4);
    forget(&mut world, machine);
    world.run_for(30);
    assert!(world.machine(machine).is_none(), "it is forgotten");
    world.lose_status();
    world.cut = false;
    world.settle();
    world.check_end();
    assert!(!world.voters.contains(host));
}

#[test]
fn a_majority_that_is_forgotten_still_waits_for_a_persons_word() {
    let (mut world, planes) = stands();
    for (machine, host) in &planes[..2] {
        world.kill(host);
        forget(&mut world, machine);
    }
    world.run_for(60);
    assert_eq!(world.voters.len(), 3, "nothing is done unasked");
    world.approve_next("a");
    world.settle();
    let left: Vec<&String> = planes[..2].iter().map(|(_, host)| host).collect();
    let cluster = world.clusters[0].clone();
    assert!(left.iter().all(|host| !cluster.voters.contains(*host) && !cluster.nodes.contains(*host)), "{cluster:?}");
    world.check_end();
    assert_eq!(world.ready_nodes("a"), 4);
}

#[test]
fn a_forgotten_machine_that_gets_its_power_back_takes_no_pods() {
    let (mut world, planes) = stands();
    let (machine, host) = &planes[0];
    world.kill(host);
    forget(&mut world, machine);
    world.settle();
    assert!(!world.nodes.contains(host));
    world.boot(host);
    world.register_nodes();
    assert!(world.nodes.contains(host), "its kubelet registers it again");
    world.run_for(1);
    assert!(!world.nodes.contains(host));
    world.settle();
    world.check_end();
}

#[test]
fn while_many_are_sick_a_set_that_is_not_wished_any_more_keeps_those_that_are_well() {
    let mut world = World::fleet(5);
    apply_cluster(&mut world, "a", 1, 4);
    world.settle();
    let workers = of_role(&world, Role::Worker);
    for (_, host) in &workers[..3] {
        world.sick_nodes.insert(host.clone());
    }
    world.run_for(4);
    world.change_spec("a", |spec| spec.workers.clear());
    world.run_for(20);
    let well = world.machine(&workers[3].0).unwrap();
    assert_eq!(well.metadata.deletion_timestamp, None);
    world.heal_all();
    world.settle();
    world.check_end();
    assert_eq!(world.ready_nodes("a"), 1, "it goes when the others are well");
}

#[test]
fn two_clusters_share_a_pool_that_is_too_small() {
    let mut world = World::fleet(5);
    apply_cluster(&mut world, "a", 1, 2);
    apply_cluster(&mut world, "b", 1, 2);
    world.settle();
    let nodes = world.ready_nodes("a") + world.ready_nodes("b");
    assert_eq!(nodes, 5, "each Host serves one of them");
    world.scale_workers("a", 0);
    world.settle();
    world.check_end();
    assert_eq!((world.ready_nodes("a"), world.ready_nodes("b")), (1, 3));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 16, max_shrink_iters: 60, ..ProptestConfig::default() })]

    #[test]
    fn workers_come_and_go_whatever_happens(story in prop::collection::vec(events::of_workers(), 1..14)) {
        play(1, 2, 7, &story);
    }

    #[test]
    fn control_planes_change_one_at_a_time_and_never_below_quorum(story in prop::collection::vec(events::of_all(), 1..14)) {
        play(3, 2, 9, &story);
    }

    #[test]
    fn two_clusters_never_share_a_host(
        story in prop::collection::vec((prop::bool::ANY, events::of_workers()), 1..14),
    ) {
        let mut world = World::fleet(6);
        apply_cluster(&mut world, "a", 1, 2);
        apply_cluster(&mut world, "b", 1, 2);
        for (first, event) in &story {
            world.select(if *first { "a" } else { "b" });
            event.happens(&mut world);
        }
        world.heal_all();
        world.settle();
    }
}
