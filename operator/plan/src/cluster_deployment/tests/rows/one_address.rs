//! Two clusters, one address.

use super::super::ready;
use crate::testing::World;

fn held(host: &str, id: u8) -> String {
    format!(
        "controlPlane: {{replicas: 1, endpoint: {{host: {host}, provider: Keepalived, keepalived: {{virtualRouterID: {id}}}}}}}"
    )
}

/// The first one is in another namespace, and has the same pod network, which only matters within one.
#[test]
fn a_second_cluster_with_the_same_address_or_router_id_is_refused_and_told_whose_it_is_row_43() {
    let check = |first: &str, reason: &str, said: &[&str]| {
        let mut world = World::new(&held("10.0.0.200", 7), 2);
        world.deployment.metadata.creation_timestamp = Some(world.time());
        let mut other = World::new(first, 0).deployment.clone();
        other.metadata.name = Some("first".into());
        other.metadata.namespace = Some("elsewhere".into());
        other.metadata.uid = Some("first-uid".into());
        other.metadata.creation_timestamp = Some(serde_json::from_str("\"2020-01-01T00:00:00Z\"").unwrap());
        world.others = vec![other];
        world.settle();
        let (status, found, message) = ready(&world);
        assert_eq!((status.as_str(), found.as_str()), ("False", reason), "{message}");
        for said in said {
            assert!(message.contains(said), "{message}");
        }
        assert!(world.sets.is_empty() && world.machines.is_empty() && world.runs.is_empty());
        world.others.clear();
        world.settle();
        assert_eq!(ready(&world).0, "True");
    };
    check(
        &held("10.0.0.200", 8),
        "VIPInUse",
        &["spec.controlPlane.endpoint.host 10.0.0.200", "ClusterDeployment elsewhere/first"],
    );
    check(
        &held("10.0.0.201", 7),
        "RouterIDInUse",
        &["virtualRouterID 7 is that of ClusterDeployment elsewhere/first", "(1 is free)"],
    );
}
