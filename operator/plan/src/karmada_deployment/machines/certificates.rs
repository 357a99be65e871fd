//! The certificates of a plane on machines that are others than those of one in Pods.

use crds::KarmadaDeployment;

use super::super::component::Component;
use super::super::leaves::{LeafWanted, first_address, of_components, server, user};
use super::super::names::PLANE_NAMESPACE;
use super::super::seats::{Seat, Seats};
use crate::rotation::Subject;

/// All of them. They follow from the spec and from the machines: one that joins adds its own.
pub fn leaves(object: &KarmadaDeployment, seats: &Seats) -> Vec<LeafWanted> {
    let of_seats = seats.control_planes.iter().map(|seat| api_server_leaf(object, seat));
    of_seats.chain(of_components(object, serving_leaf)).collect()
}

/// What the names of the files of a machine's API server begin with.
pub(super) fn api_server_stem(host: &str) -> String {
    format!("apiserver-{host}")
}

/// The certificate of the API server of one machine: no other machine's follows from it.
fn api_server_leaf(object: &KarmadaDeployment, seat: &Seat) -> LeafWanted {
    let spec = &object.spec;
    let own = ["kubernetes", "kubernetes.default", "kubernetes.default.svc"].map(str::to_owned);
    let mut names: Vec<String> = own.into();
    names.push(format!("kubernetes.default.svc.{}", spec.host_dns_domain));
    names.extend(first_address(&spec.api_server.service_subnet));
    names.extend([seat.host.clone(), seat.address.clone()]);
    let endpoint = spec.binary.as_ref().and_then(|binary| binary.endpoint.as_ref());
    names.extend(endpoint.map(|endpoint| endpoint.host.clone()));
    names.extend(spec.api_server.cert_sans.iter().cloned());
    server(&api_server_stem(&seat.host), Subject::Ca, "kube-apiserver", names)
}

/// The certificate of what the API server asks, one for all machines: for `localhost`, where it asks, and for the
/// Service in the plane, whose name it verifies.
fn serving_leaf(component: Component) -> LeafWanted {
    let service = format!("{}.{PLANE_NAMESPACE}.svc", component.name());
    server(component.suffix(), Subject::Ca, &user(component), vec![service])
}
