//! Promises of who holds an address: it is the first one, whoever looks, and the other is told whom it meets.

use crds::ClusterDeployment;

use super::{Rival, find};

fn cluster(title: &str, made: &str, endpoint: &str, status: &str) -> ClusterDeployment {
    let (namespace, name) = title.split_once('/').unwrap();
    let yaml = format!(
        "{{apiVersion: clusterwright.dev/v1alpha1, kind: ClusterDeployment, metadata: {{name: {name}, namespace: {namespace}, uid: {title}, creationTimestamp: '2026-01-01T00:00:{made}Z'}}, spec: {{kubernetesVersion: 1.35.4, controlPlane: {{replicas: 1, endpoint: {{{endpoint}}}}}}}, status: {{{status}}}}}"
    );
    serde_yaml::from_str(&yaml).unwrap()
}

const HELD: &str = "host: 10.0.0.9, provider: Keepalived";
const INSTALLED: &str = "installedAt: '2026-01-01T01:00:00Z', firstControlPlane: m";
const BEGUN: &str = "firstControlPlane: m";

/// Who is refused, as `loser by winner`, whoever of the two looks.
fn refused(one: &ClusterDeployment, other: &ClusterDeployment) -> Vec<String> {
    let all = [one, other];
    let told = |ours: &&ClusterDeployment| {
        let of = match find(ours, &all)? {
            Rival::Address(of) => of,
            Rival::RouterId { of, .. } => format!("the router id of {of}"),
        };
        Some(format!("{} by {of}", ours.metadata.uid.as_deref()?))
    };
    all.iter().filter_map(told).collect()
}

#[test]
fn of_two_clusters_that_claim_one_address_exactly_one_is_refused_row_43() {
    let check = |one: (&str, &str, &str), other: (&str, &str, &str), expected: &str| {
        let one = cluster(one.0, one.1, HELD, one.2);
        let other = cluster(other.0, other.1, HELD, other.2);
        assert_eq!(refused(&one, &other), [expected]);
        assert_eq!(refused(&other, &one), [expected]);
    };
    // By age, in one namespace and in two.
    check(("n/b", "01", ""), ("n/a", "02", ""), "n/a by n/b");
    check(("z/b", "01", ""), ("a/a", "02", ""), "a/a by z/b");
    // Of the same second: by namespace, then by name.
    check(("m/b", "01", ""), ("n/a", "01", ""), "n/a by m/b");
    check(("n/a", "01", ""), ("n/b", "01", ""), "n/b by n/a");
    // Who has begun keeps it, however old an object the other one is: a backup makes them anew in any order.
    check(("n/a", "01", ""), ("n/b", "02", INSTALLED), "n/a by n/b");
    check(("n/a", "01", ""), ("n/b", "02", BEGUN), "n/a by n/b");
    check(("n/a", "01", BEGUN), ("n/b", "02", INSTALLED), "n/a by n/b");
}

#[test]
fn clusters_that_stand_are_left_alone() {
    let one = cluster("n/a", "01", HELD, INSTALLED);
    let other = cluster("n/b", "02", HELD, INSTALLED);
    assert_eq!(refused(&one, &other), [""; 0]);
}

#[test]
fn an_address_that_others_answer_for_may_serve_two_and_none_that_control_planes_hold() {
    let check = |one: &str, other: &str, expected: &[&str]| {
        let one = cluster("n/a", "01", one, "");
        let other = cluster("n/b", "02", other, "");
        assert_eq!(refused(&one, &other), expected);
    };
    let external = "host: 10.0.0.9, port: 7443";
    check(external, "host: 10.0.0.9, port: 6443", &[]);
    check(external, HELD, &["n/b by n/a"]);
    check(HELD, external, &["n/b by n/a"]);
    check(HELD, "host: 10.0.0.10, provider: Keepalived", &[]);
}

#[test]
fn a_router_id_is_one_clusters_on_a_wire_and_a_free_one_is_named() {
    let with = |title: &str, made: &str, host: &str, id: i32| {
        let endpoint = format!("host: {host}, provider: Keepalived, keepalived: {{virtualRouterID: {id}}}");
        cluster(title, made, &endpoint, "")
    };
    let first = with("m/first", "01", "10.0.0.9", 1);
    let second = with("n/second", "02", "10.0.7.9", 1);
    assert_eq!(refused(&first, &second), ["n/second by the router id of m/first"]);
    let third = with("n/third", "03", "10.0.3.9", 2);
    let found = find(&second, &[&third, &second, &first]);
    let expected = Rival::RouterId { id: 1, of: "m/first".into(), free: Some(3) };
    assert_eq!(found, Some(expected));
    // Another one's own, or on another wire.
    assert_eq!(refused(&first, &third), [""; 0]);
    assert_eq!(refused(&first, &with("n/far", "02", "10.1.0.9", 1)), [""; 0]);
}

#[test]
fn ids_that_follow_from_addresses_of_one_network_never_meet() {
    let clusters: Vec<ClusterDeployment> = (1..255)
        .map(|last| {
            let endpoint = format!("host: 192.168.7.{last}, provider: Keepalived");
            cluster(&format!("n/c{last}"), "01", &endpoint, "")
        })
        .collect();
    let all: Vec<&ClusterDeployment> = clusters.iter().collect();
    for ours in &all {
        assert_eq!(find(ours, &all), None);
    }
}
