//! The API stamps objects by its own clock, which is not the operator's.

use jiff::SignedDuration;

use super::ready;
use crate::testing::World;

fn dedicated(replicas: i32) -> String {
    format!(
        "controlPlane: {{replicas: 1, endpoint: {{host: 10.0.0.100}}}}, etcd: {{topology: Dedicated, replicas: {replicas}}}"
    )
}

#[test]
fn nothing_is_waited_for_for_ever_where_the_apis_clock_is_not_the_operators() {
    for seconds in [-30, -1, 0, 1, 30] {
        let mut world = World::new(&dedicated(1), 4);
        world.api_behind = SignedDuration::from_secs(seconds);
        world.settle();
        // The API servers are told of etcd's new members, by runs that were made after the change.
        world.respec(&dedicated(3));
        world.settle();
        assert_eq!(ready(&world).0, "True", "{seconds} s behind: {}", ready(&world).1);
        // The lock is opened by the answers of probes that were made after it was lost.
        world.runs.clear();
        world.lose_status();
        world.settle();
        assert_eq!(ready(&world).0, "True", "{seconds} s behind: {}", ready(&world).1);
    }
}
