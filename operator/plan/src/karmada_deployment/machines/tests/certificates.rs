//! Whom certificates of machines are for.

use super::super::super::seats::{Seat, Seats};
use super::super::super::tests::world::plane;
use super::super::leaves;
use super::stories::BINARY;

fn seats(names: &[&str]) -> Seats {
    let seat = |(number, name): (usize, &&str)| Seat {
        machine: format!("m-{name}"),
        host: (*name).to_owned(),
        address: format!("10.0.0.{}", number + 7),
        is_provisioned: true,
    };
    Seats { control_planes: names.iter().enumerate().map(seat).collect(), ..Seats::default() }
}

#[test]
fn an_api_servers_certificate_is_for_its_own_machine_and_the_endpoint() {
    let sans = "apiServer: {certSANs: [karmada.example.org], serviceSubnet: 10.96.0.0/12}";
    let object = plane(&format!("{BINARY}, {sans}"));
    let all = leaves(&object, &seats(&["h1", "h2"]));
    let find = |stem: &str| all.iter().find(|leaf| leaf.stem == stem).unwrap();
    let (one, other) = (find("apiserver-h1"), find("apiserver-h2"));
    let addresses: Vec<String> = one.addresses.iter().map(ToString::to_string).collect();
    assert_eq!(addresses, ["10.0.0.7", "10.0.0.100", "10.96.0.1", "127.0.0.1"]);
    for name in ["h1", "karmada.example.org", "kubernetes.default.svc.cluster.local", "localhost"] {
        assert!(one.dns_names.iter().any(|there| there == name), "{name}: {:?}", one.dns_names);
    }
    assert!(one.serves && !other.dns_names.contains(&"h1".to_owned()));
    // One that joins gives none of the others another certificate.
    let more = leaves(&object, &seats(&["h1", "h2", "h3"]));
    assert!(all.iter().all(|leaf| more.contains(leaf)));
    assert_eq!(more.len(), all.len() + 1);
}

#[test]
fn what_the_api_server_asks_is_known_by_localhost_and_by_its_service_in_the_plane() {
    let all = leaves(&plane(BINARY), &seats(&["h1"]));
    let leaf = all.iter().find(|leaf| leaf.stem == "webhook").unwrap();
    assert_eq!(leaf.dns_names, ["karmada-webhook.karmada-system.svc", "localhost"]);
    assert_eq!(leaf.addresses.iter().map(ToString::to_string).collect::<Vec<_>>(), ["127.0.0.1"]);
    assert!(all.iter().all(|leaf| !leaf.stem.starts_with("etcd-")), "members have theirs by their runs");
}
