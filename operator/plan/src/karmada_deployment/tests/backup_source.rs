//! What a backup of a plane reads.

use super::super::backup_source::{etcd_endpoints, etcd_prefix, forwarding_host, has_etcd_on_machines};
use super::super::{HostFacts, leaves, names};
use super::world::plane;

#[test]
fn every_member_is_read_by_a_name_that_its_certificate_is_for() {
    for (more, members) in [("", 1), ("etcd: {local: {replicas: 3}}, hostNamespace: other", 3)] {
        let object = plane(more);
        let leaves = leaves(&object, &HostFacts::default());
        let server = leaves.iter().find(|leaf| leaf.stem == "etcd-server").unwrap();
        let endpoints = etcd_endpoints(&object);
        assert_eq!(endpoints.len(), members);
        for (ordinal, endpoint) in endpoints.iter().enumerate() {
            let host = endpoint.strip_prefix("https://").and_then(|rest| rest.strip_suffix(":2379")).unwrap();
            assert!(server.dns_names.iter().any(|name| name == host), "{host}: {:?}", server.dns_names);
            let service = names::full_host_name(&object, &names::etcd_peers(&object));
            assert_eq!(host, format!("k1-etcd-{ordinal}.{service}"));
        }
        assert_eq!((etcd_prefix(&object), forwarding_host(&object)), ("/registry", None));
    }
}

#[test]
fn an_etcd_on_another_host_is_reached_through_its_api_unless_it_is_external() {
    let remote = "hostClusterRef: {name: host-a}, apiServer: {serviceType: NodePort}";
    let external = "etcd: {external: {endpoints: ['https://10.0.0.5:2379'], secretRef: {name: e}, prefix: /k1}}";
    let object = plane(remote);
    assert_eq!(forwarding_host(&object), Some("host-a"));
    let object = plane(&format!("{remote}, {external}"));
    assert_eq!((forwarding_host(&object), etcd_prefix(&object)), (None, "/k1"));
    assert_eq!(etcd_endpoints(&object), ["https://10.0.0.5:2379"]);
}

#[test]
fn the_etcd_of_a_plane_on_machines_is_read_there_unless_it_is_external() {
    let binary = "mode: Binary, binary: {controlPlane: {replicas: 1}, artifacts: {url: 'https://bundle.example.com'}}";
    let external = "etcd: {external: {endpoints: ['https://10.0.0.5:2379'], secretRef: {name: e}, prefix: /k1}}";
    let own = plane(binary);
    assert_eq!((has_etcd_on_machines(&own), forwarding_host(&own)), (true, None));
    for others in [format!("{binary}, {external}"), external.to_owned(), String::new()] {
        let object = plane(&others);
        assert_eq!((has_etcd_on_machines(&object), forwarding_host(&object)), (false, None), "{others}");
    }
}
