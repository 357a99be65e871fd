//! Promises of who holds an address: it is the first one, whoever looks, and the other is told whom it meets.

use crds::networking::Endpoint;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use super::Standing::{Begun, Installed, Wished};
use super::{EndpointClaim, Rival, Standing, find};

/// An object with an endpoint.
struct Claimant {
    kind: &'static str,
    metadata: ObjectMeta,
    endpoint: Endpoint,
    standing: Standing,
}

impl Claimant {
    fn claim(&self) -> EndpointClaim<'_> {
        EndpointClaim { kind: self.kind, metadata: &self.metadata, standing: self.standing, endpoint: &self.endpoint }
    }
}

fn cluster(title: &str, made: &str, endpoint: &str, standing: Standing) -> Claimant {
    let (namespace, name) = title.split_once('/').unwrap();
    let metadata = format!(
        "{{name: {name}, namespace: {namespace}, uid: {title}, creationTimestamp: '2026-01-01T00:00:{made}Z'}}"
    );
    Claimant {
        kind: "ClusterDeployment",
        metadata: serde_yaml::from_str(&metadata).unwrap(),
        endpoint: serde_yaml::from_str(&format!("{{{endpoint}}}")).unwrap(),
        standing,
    }
}

const HELD: &str = "host: 10.0.0.9, provider: Keepalived";

/// Who is refused, as `loser by winner`, whoever of the two looks.
fn refused(one: &Claimant, other: &Claimant) -> Vec<String> {
    let all = [one.claim(), other.claim()];
    let told = |ours: &EndpointClaim<'_>| {
        let of = match find(ours, &all)? {
            Rival::Address { of: (_, of) } => of,
            Rival::RouterId { of: (_, of), .. } => format!("the router id of {of}"),
        };
        Some(format!("{} by {of}", ours.metadata.uid.as_deref()?))
    };
    all.iter().filter_map(told).collect()
}

#[test]
fn of_two_clusters_that_claim_one_address_exactly_one_is_refused_row_43() {
    let check = |one: (&str, &str, Standing), other: (&str, &str, Standing), expected: &str| {
        let one = cluster(one.0, one.1, HELD, one.2);
        let other = cluster(other.0, other.1, HELD, other.2);
        assert_eq!(refused(&one, &other), [expected]);
        assert_eq!(refused(&other, &one), [expected]);
    };
    // By age, in one namespace and in two.
    check(("n/b", "01", Wished), ("n/a", "02", Wished), "n/a by n/b");
    check(("z/b", "01", Wished), ("a/a", "02", Wished), "a/a by z/b");
    // Of the same second: by namespace, then by name.
    check(("m/b", "01", Wished), ("n/a", "01", Wished), "n/a by m/b");
    check(("n/a", "01", Wished), ("n/b", "01", Wished), "n/b by n/a");
    // Who has begun keeps it, however old an object the other one is: a backup makes them anew in any order.
    check(("n/a", "01", Wished), ("n/b", "02", Installed), "n/a by n/b");
    check(("n/a", "01", Wished), ("n/b", "02", Begun), "n/a by n/b");
    check(("n/a", "01", Begun), ("n/b", "02", Installed), "n/a by n/b");
}

#[test]
fn clusters_that_stand_are_left_alone() {
    let one = cluster("n/a", "01", HELD, Installed);
    let other = cluster("n/b", "02", HELD, Installed);
    assert_eq!(refused(&one, &other), [""; 0]);
}

#[test]
fn an_address_that_others_answer_for_may_serve_two_and_none_that_control_planes_hold() {
    let check = |one: &str, other: &str, expected: &[&str]| {
        let one = cluster("n/a", "01", one, Wished);
        let other = cluster("n/b", "02", other, Wished);
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
        cluster(title, made, &endpoint, Wished)
    };
    let first = with("m/first", "01", "10.0.0.9", 1);
    let second = with("n/second", "02", "10.0.7.9", 1);
    assert_eq!(refused(&first, &second), ["n/second by the router id of m/first"]);
    let third = with("n/third", "03", "10.0.3.9", 2);
    let found = find(&second.claim(), &[third.claim(), second.claim(), first.claim()]);
    let of = ("ClusterDeployment", "m/first".to_owned());
    let expected = Rival::RouterId { id: 1, of, free: Some(3) };
    assert_eq!(found, Some(expected));
    // Another one's own, or on another wire.
    assert_eq!(refused(&first, &third), [""; 0]);
    assert_eq!(refused(&first, &with("n/far", "02", "10.1.0.9", 1)), [""; 0]);
}

#[test]
fn ids_that_follow_from_addresses_of_one_network_never_meet() {
    let clusters: Vec<Claimant> = (1..255)
        .map(|last| {
            let endpoint = format!("host: 192.168.7.{last}, provider: Keepalived");
            cluster(&format!("n/c{last}"), "01", &endpoint, Wished)
        })
        .collect();
    let all: Vec<EndpointClaim<'_>> = clusters.iter().map(Claimant::claim).collect();
    for ours in &all {
        assert_eq!(find(ours, &all), None);
    }
}

#[test]
fn two_kinds_share_a_wire_and_the_message_names_the_kind_that_was_first() {
    let plane = Claimant { kind: "Plane", ..cluster("n/a", "01", HELD, Wished) };
    let other = cluster("n/b", "02", HELD, Wished);
    let found = find(&other.claim(), &[plane.claim(), other.claim()]);
    assert_eq!(found, Some(Rival::Address { of: ("Plane", "n/a".to_owned()) }));
    assert_eq!(find(&plane.claim(), &[plane.claim(), other.claim()]), None);
}
