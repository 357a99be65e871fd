//! The variables of an endpoint that the control planes hold themselves.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::ops::RangeInclusive;

use crds::Host;
use crds::networking::{API_SERVER_PORT, Endpoint, EndpointProvider};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::host::address_in_cluster;

/// What keepalived and haproxy must know, with the addresses of these control planes; nothing where another holds the
/// endpoint.
pub fn of_endpoint(
    endpoint: Option<&Endpoint>,
    control_planes: &[&str],
    hosts: &BTreeMap<String, Host>,
) -> BTreeMap<String, Value> {
    let Some(endpoint) = endpoint.filter(|endpoint| endpoint.provider == EndpointProvider::Keepalived) else {
        return BTreeMap::new();
    };
    let own = endpoint.keepalived.clone().unwrap_or_default();
    BTreeMap::from([
        ("keepalived_virtual_ip".into(), json!(endpoint.host)),
        ("keepalived_router_id".into(), json!(router_id(endpoint))),
        ("keepalived_interface".into(), json!(own.interface.unwrap_or_default())),
        ("kube_apiserver_backends".into(), backends(control_planes)),
        ("endpoint_neighbours".into(), neighbours(endpoint, hosts)),
    ])
}

/// The API servers, as `host:port`.
pub fn backends(control_planes: &[&str]) -> Value {
    backends_at(control_planes, API_SERVER_PORT)
}

/// The same of API servers that listen at this port.
pub(super) fn backends_at(control_planes: &[&str], port: i32) -> Value {
    control_planes
        .iter()
        .map(|address| match address.contains(':') {
            true => json!(format!("[{address}]:{port}")),
            false => json!(format!("{address}:{port}")),
        })
        .collect()
}

/// Names of Hosts near the endpoint's address, by their own: one of them may hold it, and is named then. Near is the
/// same /24, which keeps them few.
pub fn neighbours(endpoint: &Endpoint, hosts: &BTreeMap<String, Host>) -> Value {
    let network = |address: &str| Some(address.parse::<Ipv4Addr>().ok()?.octets()[..3].to_vec());
    let wanted = network(&endpoint.host);
    let near = hosts.iter().filter_map(|(name, host)| {
        let address = address_in_cluster(host);
        let is_near = wanted.is_some() && network(address) == wanted;
        is_near.then(|| (address.to_owned(), json!(name)))
    });
    Value::Object(near.collect())
}

/// VRRP router ids.
pub(crate) const ROUTER_IDS: RangeInclusive<i32> = 1..=255;

/// The VRRP router id of an endpoint that control planes hold: the one given, or else it follows from the address,
/// another one for each of 254 neighbouring addresses.
pub(crate) fn router_id(endpoint: &Endpoint) -> i32 {
    let given = endpoint.keepalived.as_ref().and_then(|own| own.virtual_router_id);
    given.unwrap_or_else(|| {
        let (network, last) = endpoint.host.rsplit_once('.').unwrap_or(("", &endpoint.host));
        let first = Sha256::digest(network).first().copied().unwrap_or_default();
        let last: u8 = last.parse().unwrap_or_default();
        (i32::from(first) + i32::from(last)) % 255 + 1
    })
}

#[cfg(test)]
mod tests {
    use crds::networking::Endpoint;
    use serde_json::json;

    use std::collections::BTreeMap;

    use super::{neighbours, of_endpoint};

    fn endpoint(text: &str) -> Endpoint {
        serde_yaml::from_str(text).unwrap()
    }

    #[test]
    fn what_is_not_said_of_keepalived_follows_from_the_address() {
        let of = |text: &str| of_endpoint(Some(&endpoint(text)), &["10.0.0.1", "fd00::2"], &BTreeMap::new());
        let vars = of("{host: 10.0.0.9, provider: Keepalived}");
        assert_eq!(json!(vars["keepalived_virtual_ip"]), json!("10.0.0.9"));
        assert_eq!(vars["kube_apiserver_backends"], json!(["10.0.0.1:6443", "[fd00::2]:6443"]));
        assert_eq!(vars["keepalived_interface"], json!(""));
        let id = vars["keepalived_router_id"].as_i64().unwrap();
        assert!((1..=255).contains(&id));
        assert_eq!(of("{host: 10.0.0.9, provider: Keepalived}")["keepalived_router_id"], json!(id));
        assert_ne!(of("{host: 10.0.0.10, provider: Keepalived}")["keepalived_router_id"], json!(id));
        let said =
            of("{host: 10.0.0.9, port: 8443, provider: Keepalived, keepalived: {virtualRouterID: 7, interface: eth1}}");
        assert_eq!(said["keepalived_router_id"], json!(7));
        assert_eq!(said["keepalived_interface"], json!("eth1"));
        assert!(of("{host: 10.0.0.9}").is_empty(), "somebody else holds it");
    }

    #[test]
    fn hosts_near_the_endpoint_are_known_by_their_addresses() {
        let host = |name: &str, address: &str| {
            let yaml = format!(
                "{{apiVersion: clusterwright.dev/v1alpha1, kind: Host, metadata: {{name: {name}}}, spec: {{{address}, ssh: {{credentialsRef: {{name: c}}}}}}}}"
            );
            (name.to_owned(), serde_yaml::from_str(&yaml).unwrap())
        };
        let hosts = BTreeMap::from([
            host("near", "address: 10.0.0.7"),
            host("inside", "address: node-1.example, internalAddress: 10.0.0.8"),
            host("far", "address: 10.0.1.7"),
            host("named", "address: node-2.example"),
        ]);
        let of = |address: &str| neighbours(&endpoint(&format!("{{host: {address}, provider: Keepalived}}")), &hosts);
        assert_eq!(of("10.0.0.9"), json!({"10.0.0.7": "near", "10.0.0.8": "inside"}));
        assert_eq!(of("api.example"), json!({}));
    }
}
