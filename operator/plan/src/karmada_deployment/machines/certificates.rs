//! The certificates of a plane on machines that are others than those of one in Pods.

use crds::KarmadaDeployment;

use super::super::component::Component;
use super::super::leaves::{LeafWanted, first_address, server};
use super::super::names::PLANE_NAMESPACE;
use crate::rotation::Subject;

/// What the certificate of an API server is for, beside what the spec says.
#[derive(Clone, Copy, Debug)]
pub struct Seat<'a> {
    /// Name of the Host.
    pub host: &'a str,
    /// The machine's address.
    pub address: &'a str,
    /// Host of the plane's endpoint.
    pub endpoint: &'a str,
}

/// The certificate of the API server of one machine: no other machine's follows from it.
pub fn api_server_leaf(object: &KarmadaDeployment, seat: &Seat<'_>) -> LeafWanted {
    let spec = &object.spec;
    let own = ["kubernetes", "kubernetes.default", "kubernetes.default.svc"].map(str::to_owned);
    let mut names: Vec<String> = own.into();
    names.push(format!("kubernetes.default.svc.{}", spec.host_dns_domain));
    names.extend(first_address(&spec.api_server.service_subnet));
    names.extend([seat.host, seat.address, seat.endpoint].map(str::to_owned));
    names.extend(spec.api_server.cert_sans.iter().cloned());
    server(&format!("apiserver-{}", seat.host), Subject::Ca, "kube-apiserver", names)
}

/// The certificate of what the API server asks, one for all machines: for `localhost`, where it asks, and for the
/// Service in the plane, whose name it verifies.
pub fn serving_leaf(component: Component) -> LeafWanted {
    let suffix = component.suffix();
    let service = format!("{}.{PLANE_NAMESPACE}.svc", component.name());
    server(suffix, Subject::Ca, &format!("system:karmada:{suffix}"), vec![service])
}
