//! Platforms that request machines beside what clusters want: all at once, more than there are, while machines die.

use crds::machine_request::{RequestAnswer, RequestedMachineState};
use crds::{MachineRequest, ObjectExt};
use proptest::prelude::*;

use super::events::{self, Event};
use super::{World, apply_cluster};

/// A cluster of one control plane, without workers, and so many Hosts for others.
fn pool_of(hosts: usize) -> World {
    let mut world = World::fleet(hosts + 1);
    apply_cluster(&mut world, "a", 1, 0);
    world.settle();
    world
}

/// Until all deadlines are over, and what follows from that has happened: nobody writes while they are waited for.
fn end_all(world: &mut World) {
    world.settle();
    world.run_for(200);
    world.settle();
}

fn answered(world: &World, answer: RequestAnswer) -> Vec<&MachineRequest> {
    let is_it = |request: &&MachineRequest| request.status.as_ref().and_then(|status| status.answer) == Some(answer);
    world.requests.iter().filter(is_it).collect()
}

/// How many machines requests have delivered, and still have.
fn delivered(world: &World) -> usize {
    let machines = world.requests.iter().flat_map(|request| request.status.iter().flat_map(|status| &status.machines));
    machines.filter(|machine| machine.state == RequestedMachineState::Ready).count()
}

#[test]
fn fifty_requests_at_once_get_the_thirty_hosts_that_there_are_and_each_is_answered() {
    let mut world = pool_of(30);
    for number in 0..50 {
        world.request_machines(&format!("order-{number}"), "a", "general", "count: 1, deadlineSeconds: 7200");
    }
    end_all(&mut world);
    assert_eq!(world.ready_nodes("a"), 31, "{}", world.report());
    assert_eq!((answered(&world, RequestAnswer::Fulfilled).len(), delivered(&world)), (30, 30));
    let failed = answered(&world, RequestAnswer::Failed);
    assert_eq!(failed.len(), 20);
    for request in failed {
        let machines = &request.status.as_ref().unwrap().machines;
        let reasons: Vec<&str> = machines.iter().map(|machine| machine.reason.as_str()).collect();
        assert_eq!(reasons, ["NoHost"], "{}", request.name());
    }
    world.check_end();
    for number in 0..50 {
        world.delete_request(&format!("order-{number}"));
    }
    world.settle();
    assert_eq!((world.requests.len(), world.ready_nodes("a")), (0, 1), "{}", world.report());
    world.check_end();
}

#[test]
fn requests_for_several_machines_get_what_there_is_and_give_the_rest_back() {
    let mut world = pool_of(5);
    for number in 0..3 {
        world.request_machines(&format!("order-{number}"), "a", "general", "count: 3, deadlineSeconds: 7200");
    }
    end_all(&mut world);
    let counts = [RequestAnswer::Fulfilled, RequestAnswer::PartiallyFulfilled, RequestAnswer::Failed]
        .map(|answer| answered(&world, answer).len());
    assert_eq!((counts.iter().sum::<usize>(), delivered(&world)), (3, 5), "{}", world.report());
    world.check_end();
}

#[test]
fn what_a_request_keeps_is_taken_over_by_its_set_once_the_count_is_raised() {
    let mut world = pool_of(3);
    world.request_machines("order", "a", "general", "count: 2, onDelete: Keep");
    world.settle();
    world.delete_request("order");
    world.settle();
    assert_eq!((world.requests.len(), world.ready_nodes("a")), (0, 3));
    let names: Vec<String> = world.machines.iter().map(|machine| machine.name().to_owned()).collect();
    world.scale_workers("a", 2);
    world.settle();
    world.check_end();
    let now: Vec<String> = world.machines.iter().map(|machine| machine.name().to_owned()).collect();
    assert_eq!(now, names, "no Machine was made");
    assert!(world.machines.iter().all(|machine| machine.metadata.owner_references.is_some()));
    world.scale_workers("a", 0);
    world.settle();
    world.check_end();
    assert_eq!(world.ready_nodes("a"), 1);
}

#[test]
fn scaling_the_set_touches_no_machine_of_a_request_and_what_is_requested_does_not_count_for_it() {
    let mut world = pool_of(6);
    world.request_machines("order", "a", "general", "count: 2");
    world.settle();
    let requested: Vec<String> = world.machines[1..].iter().map(|machine| machine.name().to_owned()).collect();
    for (replicas, nodes) in [(3, 6), (0, 3)] {
        world.scale_workers("a", replicas);
        world.settle();
        world.check_end();
        assert_eq!(world.ready_nodes("a"), nodes);
        for name in &requested {
            assert!(world.machine(name).is_some(), "{name}");
        }
    }
}

#[test]
fn a_cluster_is_ready_while_a_request_waits_for_a_host() {
    let mut world = pool_of(1);
    world.request_machines("order", "a", "general", "count: 2, deadlineSeconds: 600000");
    world.run_for(60);
    let ready = crds::Conditions::condition(&world.deployment, "Ready").unwrap();
    assert_eq!(ready.status, "True", "{}", ready.message);
    assert_eq!(world.deployment.status.as_ref().unwrap().workers.as_ref().unwrap().summary, "1/1");
}

/// What a platform does.
#[derive(Clone, Debug)]
enum Order {
    Request(i32, bool),
    Cancel(usize),
    Delete(usize),
    Happens(Event),
}

fn orders() -> impl Strategy<Value = Order> {
    prop_oneof![
        3 => (1..4, prop::bool::ANY).prop_map(|(count, keep)| Order::Request(count, keep)),
        1 => (0_usize..8).prop_map(Order::Cancel),
        1 => (0_usize..8).prop_map(Order::Delete),
        4 => events::of_workers().prop_map(Order::Happens),
    ]
}

fn play(orders: &[Order]) {
    let mut world = World::fleet(8);
    apply_cluster(&mut world, "a", 1, 1);
    world.settle();
    for (number, order) in orders.iter().enumerate() {
        let name = |world: &World, index: &usize| world.requests.get(*index).map(|request| request.name().to_owned());
        match order {
            Order::Request(count, keep) => {
                let policy = if *keep { "Keep" } else { "Return" };
                let spec = format!("count: {count}, deadlineSeconds: 3600, onDelete: {policy}");
                world.request_machines(&format!("order-{number}"), "a", "general", &spec);
            }
            Order::Cancel(index) => {
                if let Some(request) =
                    world.requests.get_mut(*index).filter(|it| !crate::machine_request::is_answered(it))
                {
                    request.spec.cancel = true;
                }
            }
            Order::Delete(index) => {
                if let Some(name) = name(&world, index) {
                    world.delete_request(&name);
                }
            }
            Order::Happens(event) => event.happens(&mut world),
        }
        world.run_for(3);
    }
    world.heal_all();
    end_all(&mut world);
    for request in &world.requests {
        assert!(
            crate::machine_request::is_answered(request),
            "{}: {:?}\n{}",
            request.name(),
            request.status,
            world.report()
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 8, max_shrink_iters: 60, ..ProptestConfig::default() })]

    #[test]
    fn requests_are_answered_and_take_no_more_than_they_ask_for_whatever_happens(story in prop::collection::vec(orders(), 1..14)) {
        play(&story);
    }
}
