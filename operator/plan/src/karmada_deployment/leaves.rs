//! The certificates of a plane: who signs each, whose it is, and which names it is for.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr};

use crds::KarmadaDeployment;

use super::component::Component;
use super::endpoint::service_names;
use super::etcd::{MOST_MEMBERS, etcd_member_name};
use super::names::{PLANE_NAMESPACE, api_server_service, component_name, full_host_name, host_name};
use super::observed::HostFacts;
use crate::rotation::Subject;

/// The certificate with which estimators are asked. To the plane's API server it is a user without a right.
pub(super) const ESTIMATOR_CLIENT: &str = "scheduler-estimator-client";
const ESTIMATOR_USER: &str = "system:karmada:scheduler-estimator";

/// A certificate that is wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeafWanted {
    /// What the names of its files begin with: `.crt` and `.key` follow.
    pub stem: String,
    /// The authority that signs it.
    pub signer: Subject,
    /// Its common name.
    pub common_name: String,
    /// Its organization: the group of a client.
    pub organization: Option<&'static str>,
    /// DNS names that it is for, sorted.
    pub dns_names: Vec<String>,
    /// IP addresses that it is for, sorted.
    pub addresses: Vec<IpAddr>,
    /// True: for servers. False: for clients only.
    pub serves: bool,
}

/// The certificates of a plane in Pods. They follow from the spec and from what the host says of the API server's
/// Service: once that has another address, they are made anew.
pub(super) fn in_pods(object: &KarmadaDeployment, facts: &HostFacts) -> Vec<LeafWanted> {
    let spec = &object.spec;
    let mut leaves = vec![server("apiserver", Subject::Ca, "kube-apiserver", api_server_names(object, facts))];
    if spec.etcd.external.is_none() {
        let names = etcd_names(object);
        leaves.push(server("etcd-server", Subject::EtcdCa, "etcd", names.clone()));
        leaves.push(server("etcd-peer", Subject::EtcdCa, "etcd", names));
    }
    let serving = |component: Component| {
        let (suffix, user) = (component.suffix(), user(component));
        server(suffix, Subject::Ca, &user, serving_names(object, component))
    };
    leaves.extend(of_components(object, serving));
    leaves
}

/// What all planes have: the client by which the API server passes requests on, the one that asks estimators, and the
/// clients and servers of the components, `serving` of those that it asks.
pub(super) fn of_components(object: &KarmadaDeployment, serving: impl Fn(Component) -> LeafWanted) -> Vec<LeafWanted> {
    let spec = &object.spec;
    let mut leaves = vec![client("front-proxy-client", Subject::FrontProxyCa, "front-proxy-client", None)];
    if spec.estimator.is_some() {
        leaves.push(client(ESTIMATOR_CLIENT, Subject::Ca, ESTIMATOR_USER, None));
    }
    for component in Component::ALL.into_iter().filter(|component| component.replicas(spec).is_some()) {
        let suffix = component.suffix();
        if component.uses_etcd() && spec.etcd.external.is_none() {
            let common_name = format!("karmada-{suffix}-etcd-client");
            leaves.push(client(&format!("{suffix}-etcd-client"), Subject::EtcdCa, &common_name, None));
        }
        if component.has_kubeconfig() {
            let masters = Some("system:masters");
            leaves.push(client(&format!("{suffix}-client"), Subject::Ca, &user(component), masters));
        }
        if component.serves_plane() {
            leaves.push(serving(component));
        }
    }
    leaves
}

/// Whom the plane's API server takes a component for.
pub(super) fn user(component: Component) -> String {
    format!("system:karmada:{}", component.suffix())
}

impl Component {
    /// Whether it reads and writes etcd by itself.
    pub(super) const fn uses_etcd(self) -> bool {
        matches!(self, Self::ApiServer | Self::AggregatedApiServer | Self::Search)
    }

    /// Whether it is a client of the plane's API server.
    pub(super) const fn has_kubeconfig(self) -> bool {
        !matches!(self, Self::Etcd | Self::ApiServer | Self::Estimator)
    }

    /// Whether it asks the estimators of members.
    pub(super) const fn asks_estimators(self) -> bool {
        matches!(self, Self::Scheduler | Self::Descheduler)
    }

    /// Whether the plane's API server asks it.
    pub(super) const fn serves_plane(self) -> bool {
        matches!(self, Self::AggregatedApiServer | Self::Webhook | Self::Search | Self::MetricsAdapter)
    }
}

fn client(stem: &str, signer: Subject, common_name: &str, organization: Option<&'static str>) -> LeafWanted {
    let common_name = common_name.to_owned();
    let (dns_names, addresses) = (Vec::new(), Vec::new());
    LeafWanted { stem: stem.to_owned(), signer, common_name, organization, dns_names, addresses, serves: false }
}

pub(super) fn server(stem: &str, signer: Subject, common_name: &str, names: Vec<String>) -> LeafWanted {
    let own = [IpAddr::from(Ipv4Addr::LOCALHOST)];
    let addresses: BTreeSet<IpAddr> = names.iter().filter_map(|name| name.parse().ok()).chain(own).collect();
    let is_name = |name: &String| name.parse::<IpAddr>().is_err();
    let dns_names: BTreeSet<String> = names.into_iter().filter(is_name).chain(["localhost".to_owned()]).collect();
    LeafWanted {
        stem: stem.to_owned(),
        signer,
        common_name: common_name.to_owned(),
        organization: None,
        dns_names: dns_names.into_iter().collect(),
        addresses: addresses.into_iter().collect(),
        serves: true,
    }
}

/// That of an estimator, which is asked by the names of this Service: the scheduler builds one with a domain of its
/// own, whatever the host's is.
pub(super) fn estimator(object: &KarmadaDeployment, service: &str) -> LeafWanted {
    let short = host_name(object, service);
    let names = vec![format!("{short}.cluster.local"), full_host_name(object, service), short];
    server(Component::Estimator.suffix(), Subject::Ca, ESTIMATOR_USER, names)
}

/// The API server's: as Pods of the plane's own network would call it, as it is called on the host, and as it is
/// reached from outside.
fn api_server_names(object: &KarmadaDeployment, facts: &HostFacts) -> Vec<String> {
    let (spec, service) = (&object.spec, api_server_service(object));
    let own = ["kubernetes", "kubernetes.default", "kubernetes.default.svc"].map(str::to_owned);
    let mut names: Vec<String> = own.into();
    names.push(format!("kubernetes.default.svc.{}", spec.host_dns_domain));
    names.extend(first_address(&spec.api_server.service_subnet));
    names.extend([service.clone(), host_name(object, &service), full_host_name(object, &service)]);
    names.extend(service_names(facts));
    names.extend(spec.api_server.load_balancer_apiserver_ip.clone());
    names.extend(spec.api_server.cert_sans.iter().cloned());
    names
}

/// The first address of a network, which the Service `kubernetes` has.
pub(super) fn first_address(subnet: &str) -> Option<String> {
    let (address, length) = subnet.split_once('/')?;
    let (address, length): (Ipv4Addr, u32) = (address.parse().ok()?, length.parse().ok()?);
    let mask = u32::MAX.checked_shl(32_u32.checked_sub(length)?).unwrap_or_default();
    Some(Ipv4Addr::from((u32::from(address) & mask) + 1).to_string())
}

/// Of all members that there may ever be: a certificate that is made anew would roll those that there are.
fn etcd_names(object: &KarmadaDeployment) -> Vec<String> {
    let service = component_name(object, Component::Etcd);
    let members = (0..MOST_MEMBERS).map(|ordinal| etcd_member_name(object, ordinal));
    members.chain([host_name(object, &service), full_host_name(object, &service)]).collect()
}

/// The API server verifies a webhook by its name on the host, and an API by that of its Service in the plane.
fn serving_names(object: &KarmadaDeployment, component: Component) -> Vec<String> {
    let service = component_name(object, component);
    let (short, full) = (host_name(object, &service), full_host_name(object, &service));
    vec![short, full, format!("{}.{PLANE_NAMESPACE}.svc", component.name())]
}
