//! Whom certificates of machines are for.

use super::super::super::component::Component;
use super::super::super::tests::world::plane;
use super::super::{Seat, api_server_leaf, serving_leaf};

#[test]
fn an_api_servers_certificate_is_for_its_own_machine_and_the_endpoint() {
    let object = plane("apiServer: {certSANs: [karmada.example.org], serviceSubnet: 10.96.0.0/12}");
    let leaf = |host, address| api_server_leaf(&object, &Seat { host, address, endpoint: "10.0.0.100" });
    let (one, other) = (leaf("h1", "10.0.0.7"), leaf("h2", "10.0.0.8"));
    let addresses: Vec<String> = one.addresses.iter().map(ToString::to_string).collect();
    assert_eq!(addresses, ["10.0.0.7", "10.0.0.100", "10.96.0.1", "127.0.0.1"]);
    for name in ["h1", "karmada.example.org", "kubernetes.default.svc.cluster.local", "localhost"] {
        assert!(one.dns_names.iter().any(|there| there == name), "{name}: {:?}", one.dns_names);
    }
    assert!(one.stem == "apiserver-h1" && other.stem == "apiserver-h2" && one.serves);
    assert!(!other.dns_names.contains(&"h1".to_owned()));
}

#[test]
fn what_the_api_server_asks_is_known_by_localhost_and_by_its_service_in_the_plane() {
    let leaf = serving_leaf(Component::Webhook);
    assert_eq!(leaf.dns_names, ["karmada-webhook.karmada-system.svc", "localhost"]);
    assert_eq!(leaf.addresses.iter().map(ToString::to_string).collect::<Vec<_>>(), ["127.0.0.1"]);
}
