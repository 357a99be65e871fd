//! All planners together, on a namespace of machines that die, fall ill and come back while people change their minds:
//! at every turn what must never be is looked for, and in the end it comes to rest as it is wished.

#[cfg(test)]
#[path = "fleet/api.rs"]
mod api;
#[cfg(test)]
#[path = "fleet/executor.rs"]
mod executor;
#[cfg(test)]
#[path = "fleet/metal.rs"]
mod metal;
#[cfg(test)]
#[path = "fleet/namespace.rs"]
mod namespace;
#[cfg(test)]
#[path = "fleet/promises.rs"]
mod promises;
#[cfg(test)]
#[path = "fleet/story.rs"]
mod story;

#[cfg(test)]
mod stories {
    use super::namespace::Namespace;
    use super::story::{self, Event};
    use crds::step::Role;
    use proptest::prelude::*;

    /// A cluster of its own in each story: enough Hosts for it, and some more.
    fn told(planes: usize, workers: usize, hosts: usize, story: &[Event]) -> Namespace {
        let mut namespace = Namespace::new(hosts);
        namespace.found("a", planes, workers);
        namespace.settle();
        for event in story {
            event.happens(&mut namespace);
        }
        namespace.all_is_well();
        namespace.settle();
        namespace.check_end();
        namespace
    }

    #[test]
    fn a_fleet_without_trouble_is_as_wished() {
        let namespace = told(1, 3, 5, &[]);
        assert_eq!(namespace.ready_nodes("a"), 4);
    }

    #[test]
    fn workers_that_die_are_replaced_while_there_are_hosts() {
        let namespace = told(1, 3, 6, &[Event::Dies(2), Event::Time(60), Event::Dies(3), Event::Time(60)]);
        assert_eq!(namespace.ready_nodes("a"), 4);
    }

    #[test]
    fn a_control_plane_grows_and_shrinks() {
        let namespace = told(1, 1, 6, &[Event::Planes(3), Event::Time(90), Event::Planes(1), Event::Time(90)]);
        assert_eq!(namespace.ready_nodes("a"), 2);
    }

    /// Machine and Host of those of a role.
    fn of_role(namespace: &Namespace, role: Role) -> Vec<(String, String)> {
        let machines = namespace.machines.iter();
        machines
            .filter(|machine| machine.spec.role == role)
            .filter_map(|machine| {
                let host = machine.spec.host_ref.as_ref()?.name.clone();
                Some((machine.metadata.name.clone()?, host))
            })
            .collect()
    }

    fn forget(namespace: &mut Namespace, name: &str) {
        let machine = namespace.machine(name).unwrap().clone();
        namespace.delete_machine(&machine);
        namespace.force_remove(name);
    }

    fn stands() -> (Namespace, Vec<(String, String)>) {
        let mut namespace = Namespace::new(7);
        namespace.found("a", 3, 1);
        namespace.settle();
        let planes = of_role(&namespace, Role::ControlPlane);
        assert_eq!(planes.len(), 3);
        (namespace, planes)
    }

    #[test]
    fn a_control_plane_that_is_forgotten_while_the_api_is_away_leaves_etcd_when_it_answers() {
        for dies in [false, true] {
            let (mut namespace, planes) = stands();
            let (machine, host) = &planes[0];
            namespace.metal.get_mut(host).unwrap().alive = !dies;
            namespace.town("a").cut = true;
            namespace.run_for(4);
            forget(&mut namespace, machine);
            namespace.run_for(30);
            assert!(namespace.machine(machine).is_none(), "it is forgotten");
            assert!(namespace.town("a").members.contains(host) && namespace.town("a").nodes.contains(host));
            namespace.town("a").cut = false;
            namespace.settle();
            let town = namespace.town("a").clone();
            assert!(!town.members.contains(host) && !town.nodes.contains(host), "{town:?}");
            namespace.check_end();
            assert_eq!(namespace.ready_nodes("a"), 4);
        }
    }

    #[test]
    fn a_status_that_is_lost_is_made_up_for_by_the_hosts_of_those_that_were_forgotten() {
        let (mut namespace, planes) = stands();
        let (machine, host) = &planes[0];
        namespace.metal.get_mut(host).unwrap().alive = false;
        namespace.town("a").cut = true;
        namespace.run_for(4);
        forget(&mut namespace, machine);
        namespace.run_for(30);
        assert!(namespace.machine(machine).is_none(), "it is forgotten");
        namespace.deployment("a").status = None;
        namespace.town("a").cut = false;
        namespace.settle();
        namespace.check_end();
        assert!(!namespace.town("a").members.contains(host));
    }

    #[test]
    fn a_majority_that_is_forgotten_still_waits_for_a_persons_word() {
        let (mut namespace, planes) = stands();
        for (machine, host) in &planes[..2] {
            namespace.metal.get_mut(host).unwrap().alive = false;
            forget(&mut namespace, machine);
        }
        namespace.run_for(60);
        assert_eq!(namespace.town("a").members.len(), 3, "nothing is done unasked");
        namespace.tell("a", crds::names::annotation::APPROVE);
        namespace.settle();
        let left: Vec<&String> = planes[..2].iter().map(|(_, host)| host).collect();
        let town = namespace.town("a").clone();
        assert!(left.iter().all(|host| !town.members.contains(*host) && !town.nodes.contains(*host)), "{town:?}");
        namespace.check_end();
        assert_eq!(namespace.ready_nodes("a"), 4);
    }

    #[test]
    fn a_forgotten_machine_that_gets_its_power_back_takes_no_pods() {
        let (mut namespace, planes) = stands();
        let (machine, host) = &planes[0];
        namespace.metal.get_mut(host).unwrap().alive = false;
        forget(&mut namespace, machine);
        namespace.settle();
        assert!(!namespace.town("a").nodes.contains(host));
        namespace.metal.get_mut(host).unwrap().boot();
        namespace.kubelets();
        assert!(namespace.town("a").nodes.contains(host), "its kubelet registers it again");
        namespace.run_for(1);
        assert!(!namespace.town("a").nodes.contains(host));
        namespace.settle();
        namespace.check_end();
    }

    #[test]
    fn while_many_are_sick_a_set_that_is_not_wished_any_more_keeps_those_that_are_well() {
        let mut namespace = Namespace::new(5);
        namespace.found("a", 1, 4);
        namespace.settle();
        let workers = of_role(&namespace, Role::Worker);
        for (_, host) in &workers[..3] {
            namespace.metal.get_mut(host).unwrap().sick = true;
        }
        namespace.run_for(4);
        namespace.host_request("a", |spec| spec.workers.clear());
        namespace.run_for(20);
        let well = namespace.machine(&workers[3].0).unwrap();
        assert_eq!(well.metadata.deletion_timestamp, None);
        namespace.all_is_well();
        namespace.settle();
        namespace.check_end();
        assert_eq!(namespace.ready_nodes("a"), 1, "it goes when the others are well");
    }

    #[test]
    fn two_clusters_share_a_pool_that_is_too_small() {
        let mut namespace = Namespace::new(5);
        namespace.found("a", 1, 2);
        namespace.found("b", 1, 2);
        namespace.settle();
        let nodes = namespace.ready_nodes("a") + namespace.ready_nodes("b");
        assert_eq!(nodes, 5, "each Host serves one of them");
        namespace.workers("a", 0);
        namespace.settle();
        namespace.check_end();
        assert_eq!((namespace.ready_nodes("a"), namespace.ready_nodes("b")), (1, 3));
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 16, max_shrink_iters: 60, ..ProptestConfig::default() })]

        #[test]
        fn workers_come_and_go_whatever_happens(story in prop::collection::vec(story::of_workers(), 1..14)) {
            told(1, 2, 7, &story);
        }

        #[test]
        fn control_planes_change_one_at_a_time_and_never_below_quorum(story in prop::collection::vec(story::of_all(), 1..14)) {
            told(3, 2, 9, &story);
        }

        #[test]
        fn two_clusters_never_share_a_host(
            story in prop::collection::vec((prop::bool::ANY, story::of_workers()), 1..14),
        ) {
            let mut namespace = Namespace::new(6);
            namespace.found("a", 1, 2);
            namespace.found("b", 1, 2);
            for (first, event) in &story {
                namespace.look_at(if *first { "a" } else { "b" });
                event.happens(&mut namespace);
            }
            namespace.all_is_well();
            namespace.settle();
        }
    }
}
