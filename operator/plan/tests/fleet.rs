//! All planners together, on a namespace of machines that die, fall ill and come back while people change their minds: at
//! every turn what must never be is looked for, and in the end it comes to rest as it is wished.

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
        let namespace = told(
            1,
            3,
            6,
            &[Event::Dies(2), Event::Time(60), Event::Dies(3), Event::Time(60)],
        );
        assert_eq!(namespace.ready_nodes("a"), 4);
    }

    #[test]
    fn a_control_plane_grows_and_shrinks() {
        let namespace = told(
            1,
            1,
            6,
            &[
                Event::Planes(3),
                Event::Time(90),
                Event::Planes(1),
                Event::Time(90),
            ],
        );
        assert_eq!(namespace.ready_nodes("a"), 2);
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
