//! The variables of all hosts of a cluster's run, under kubespray's names.

use std::collections::{BTreeMap, BTreeSet};

use crds::ObjectExt;
use crds::Reason;
use crds::cluster_deployment::{Etcd, EtcdTopology};
use crds::names::annotation;
use crds::networking::{API_SERVER_PORT, NetworkPluginName};
use crds::step::{Intent, Role};
use crds::{ClusterDeployment, Host, Machine, PlaybookRun};
use serde_json::{Value, json};

use super::artifacts;
use super::endpoint::of_endpoint;
use super::host::address_in_cluster;
use super::manifests;
use super::observed::ClusterSeen;
use super::problem::InputsProblem;
use super::registries;
use crate::catalogue;
use crate::certificates::RenewalPolicy;
use crate::components;
use crate::configuration::files;
use crate::lifecycle::{is_installed, is_provisioned};

pub(super) fn of_cluster(
    cluster: &ClusterSeen<'_>,
    hosts: &BTreeMap<String, Host>,
    run: &PlaybookRun,
) -> Result<BTreeMap<String, Value>, InputsProblem> {
    let spec = &cluster.deployment.spec;
    // Cleaning or probing a machine needs nothing from the artifact source.
    let intent = run.spec.intent;
    let provisions = intent.spec().effect.needs_wanted();
    if provisions {
        can_provision(cluster.deployment, hosts, run)?;
    }
    let layout = layout(cluster, hosts, run);
    if provisions && is_installed(cluster.deployment) && layout.endpoint.is_none() {
        let message = format!(
            "no control plane of cluster {} is known to be part of it, and without one there is no endpoint: waits until a              Machine of that role has status.provisionedAt",
            cluster.deployment.name()
        );
        return Err(InputsProblem::waits(Reason::ControlPlaneMissing, message));
    }
    let mut vars = cluster_variables(cluster.deployment, intent);
    vars.extend(control_plane_variables(cluster, &layout));
    vars.extend(artifacts::variables(spec.artifacts.as_ref(), &cluster.artifacts));
    if provisions && spec.bundle_url().is_none() {
        vars.extend(artifacts::of_upstream(&cluster.artifacts));
    }
    let packages = artifacts::packages(spec.artifacts.as_ref(), &cluster.artifacts)?;
    vars.insert("artifacts_packages_key".to_owned(), packages);
    let mirrors = &spec.container_runtime.registry_mirrors;
    let mirrors = mirrors.iter().map(|mirror| registries::variable(mirror, &cluster.registries)).collect();
    vars.insert("containerd_registries_mirrors".to_owned(), mirrors);
    vars.extend(match spec.etcd.topology {
        EtcdTopology::External => external_etcd(&spec.etcd),
        EtcdTopology::Stacked | EtcdTopology::Dedicated => etcd_variables(&layout.etcd),
    });
    let addresses: Vec<&str> = layout.control_planes.iter().map(|seat| seat.address).collect();
    vars.extend(of_endpoint(spec.control_plane.endpoint.as_ref(), &addresses, hosts));
    let facts = manifests::facts(cluster.deployment, &vars);
    let network = manifests::render("networking.plugin.manifestsRef", &cluster.network_manifests, &facts)?;
    vars.insert("network_manifests".to_owned(), network);
    vars.insert("addon_images".to_owned(), spec.addon_manifests().is_some().into());
    vars.extend(files::variables(&cluster.configuration_files));
    Ok(vars)
}

fn can_provision(
    deployment: &ClusterDeployment,
    hosts: &BTreeMap<String, Host>,
    run: &PlaybookRun,
) -> Result<(), InputsProblem> {
    if let Some(missing) = catalogue::missing(deployment, components::version_of(deployment, run.spec.intent)) {
        let message = format!("ClusterDeployment {}: {missing}", deployment.name());
        return Err(InputsProblem::waits(Reason::ArtifactSourceMissing, message));
    }
    only_ipv4(hosts, run)
}

/// Refuses machines that know each other by IPv6.
pub(super) fn only_ipv4(hosts: &BTreeMap<String, Host>, run: &PlaybookRun) -> Result<(), InputsProblem> {
    let mut of_run = run.spec.hosts.iter().filter_map(|name| hosts.get(name));
    match of_run.find(|host| is_ipv6(address_in_cluster(host))) {
        Some(host) => {
            let message = format!(
                "Host {}: address {} is IPv6, and the machines of a cluster know each other by IPv4: give the Host an IPv4 \
                 internalAddress (SSH may go on using IPv6)",
                host.name(),
                address_in_cluster(host)
            );
            Err(InputsProblem::waits(Reason::AddressNotIPv4, message))
        }
        None => Ok(()),
    }
}

/// The control planes and etcd members that a run counts on, and the endpoint.
struct Layout<'a> {
    control_planes: Vec<Seat<'a>>,
    etcd: Vec<Seat<'a>>,
    /// The Host on which the cluster begins, or began.
    first: Option<&'a str>,
    endpoint: Option<(&'a str, i32)>,
}

fn layout<'a>(cluster: &'a ClusterSeen<'_>, hosts: &'a BTreeMap<String, Host>, run: &PlaybookRun) -> Layout<'a> {
    let spec = &cluster.deployment.spec;
    let status = cluster.deployment.status.as_ref();
    let initialized = is_installed(cluster.deployment);
    // Of a cluster that stands: who is part of it and stays, and who is about to be.
    let part = |machine: &Machine| !initialized || stands(machine);
    let counted = |machine: &Machine| {
        let host = machine.spec.host_ref.as_ref();
        part(machine) || host.is_some_and(|host| run.spec.hosts.contains(&host.name))
    };
    let control_planes = machines_in_order(&cluster.machines, Role::ControlPlane, hosts, counted);
    let etcd = match spec.etcd.topology {
        EtcdTopology::Stacked => control_planes.clone(),
        EtcdTopology::Dedicated => machines_in_order(&cluster.machines, Role::Etcd, hosts, counted),
        EtcdTopology::External => Vec::new(),
    };
    let chosen = status.and_then(|status| status.first_control_plane.as_deref());
    let chosen = chosen.and_then(|first| host_of(cluster, first, part));
    // In a cluster that stands nobody begins one: any of its machines will do, and none may be left.
    let standing = machines_in_order(&cluster.machines, Role::ControlPlane, hosts, part);
    let first = match initialized {
        true => chosen.or(standing.first().map(|seat| seat.host)),
        false => chosen,
    };
    let first_address = first.and_then(|first| hosts.get(first)).map(address_in_cluster);
    let address = first_address.or(control_planes.first().map(|seat| seat.address));
    let endpoint = match &spec.control_plane.endpoint {
        Some(endpoint) => Some((endpoint.host.as_str(), endpoint.port)),
        None => address.map(|address| (address, API_SERVER_PORT)),
    };
    Layout { control_planes, etcd, first, endpoint }
}

/// Variables that follow from the spec alone.
fn cluster_variables(deployment: &ClusterDeployment, intent: Intent) -> BTreeMap<String, Value> {
    let spec = &deployment.spec;
    let (name, uid) = (deployment.name(), deployment.uid());
    let topology = format!("{:?}", spec.etcd.topology).to_lowercase();
    let token = format!("{name}-{}", uid.get(..8).unwrap_or(uid));
    let preflight = spec.preflight.clone().unwrap_or_default();
    let renewal = RenewalPolicy::from(&deployment.spec.certificates);
    let always = [
        ("kube_version", json!(components::version_of(deployment, intent))),
        ("cluster_name", json!(name)),
        ("cluster_identity", json!(uid)),
        ("dns_domain", json!(spec.networking.dns_domain)),
        ("kube_pods_subnet", json!(spec.networking.pod_cidr)),
        ("kube_service_addresses", json!(spec.networking.service_cidr)),
        ("kube_network_plugin", json!(plugin(spec.networking.plugin.name))),
        ("container_manager", json!("containerd")),
        ("certificate_validity_seconds", json!(renewal.validity.as_secs())),
        ("certificate_renew_before_seconds", json!(renewal.refresh_before().as_secs())),
        ("etcd_topology", json!(topology)),
        ("etcd_cluster_token", json!(token)),
        ("preflight_ignore", json!(preflight.ignore)),
        ("allow_unsupported_distribution_setup", json!(preflight.allow_unsupported_distribution)),
    ];
    let provisions = intent.spec().effect.needs_wanted();
    let components = components::variable(deployment, intent).filter(|_| provisions);
    let kube_proxy = spec.configuration.as_ref().and_then(|configuration| configuration.kube_proxy.as_ref());
    let has_kube_proxy = spec.has_kube_proxy();
    let sometimes = [
        ("components", components),
        ("artifacts_url", spec.bundle_url().map(|url| json!(url))),
        ("kube_proxy_configuration", kube_proxy.filter(|_| has_kube_proxy).map(|kube_proxy| json!(kube_proxy))),
        ("kube_proxy_remove", (!has_kube_proxy).then_some(json!(true))),
    ];
    named(always.into_iter().chain(present(sometimes)))
}

/// Variables of the cluster's control plane as it is, or is about to be.
fn control_plane_variables(cluster: &ClusterSeen<'_>, layout: &Layout<'_>) -> BTreeMap<String, Value> {
    let spec = &cluster.deployment.spec;
    let initialized = is_installed(cluster.deployment);
    let etcd_state = if initialized { "existing" } else { "new" };
    let mut names: BTreeSet<&str> = spec.control_plane.cert_sans.iter().map(String::as_str).collect();
    names.extend(layout.endpoint.map(|(host, _)| host));
    names.extend(layout.control_planes.iter().map(|seat| seat.address));
    let always = [
        ("supplementary_addresses_in_ssl_keys", json!(names)),
        ("control_plane_initialized", json!(initialized)),
        ("etcd_initial_cluster_state", json!(etcd_state)),
    ];
    let endpoint = layout.endpoint;
    let sometimes = [
        ("kube_apiserver_endpoint", endpoint.map(|(host, port)| json!({ "host": host, "port": port }))),
        ("kube_ca_cert_hash", cluster.ca_cert_hash.as_ref().map(|hash| json!(hash))),
        ("kube_control_plane_first", layout.first.map(|first| json!(first))),
    ];
    named(always.into_iter().chain(present(sometimes)))
}

fn present<const N: usize>(vars: [(&str, Option<Value>); N]) -> impl Iterator<Item = (&str, Value)> {
    vars.into_iter().filter_map(|(name, value)| Some((name, value?)))
}

fn named<'a>(vars: impl Iterator<Item = (&'a str, Value)>) -> BTreeMap<String, Value> {
    vars.map(|(name, value)| (name.to_owned(), value)).collect()
}

fn is_ipv6(address: &str) -> bool {
    address.parse::<std::net::Ipv6Addr>().is_ok()
}

/// What a run must know of etcd, with these members: Host and address of each.
pub fn of_etcd(members: &[(String, String)]) -> BTreeMap<String, Value> {
    let seats = members.iter().map(|(host, address)| Seat { host, address });
    let seats: Vec<Seat<'_>> = seats.collect();
    etcd_variables(&seats)
}

pub(super) fn etcd_variables(seats: &[Seat<'_>]) -> BTreeMap<String, Value> {
    let endpoints = seats.iter().map(|seat| json!(url(seat.address, 2379)));
    BTreeMap::from([
        ("etcd_members".to_owned(), seats.iter().map(member).collect()),
        ("etcd_client_endpoints".to_owned(), endpoints.collect()),
    ])
}

/// What a run must know of an etcd that others run: it has no members of ours.
fn external_etcd(etcd: &Etcd) -> BTreeMap<String, Value> {
    BTreeMap::from([
        ("etcd_members".to_owned(), json!([])),
        ("etcd_client_endpoints".to_owned(), json!(etcd.endpoints)),
        ("etcd_prefix".to_owned(), json!(etcd.prefix())),
    ])
}

/// A machine that has its Host.
#[derive(Clone, Copy)]
pub(super) struct Seat<'a> {
    host: &'a str,
    pub(super) address: &'a str,
}

/// Machines of a role that have their Host, by ordinal, then by name: an order that growing does not change.
pub(super) fn machines_in_order<'a>(
    machines: &'a [Machine],
    role: Role,
    hosts: &'a BTreeMap<String, Host>,
    counted: impl Fn(&Machine) -> bool,
) -> Vec<Seat<'a>> {
    let mut machines: Vec<&Machine> =
        machines.iter().filter(|machine| machine.spec.role == role && counted(machine)).collect();
    machines.sort_by_key(|machine| (ordinal(machine), machine.metadata.name.clone()));
    let seat = |machine: &'a Machine| {
        let host = machine.spec.host_ref.as_ref()?.name.as_str();
        Some(Seat { host, address: address_in_cluster(hosts.get(host)?) })
    };
    machines.into_iter().filter_map(seat).collect()
}

fn ordinal(machine: &Machine) -> u32 {
    let ordinal = machine.annotation(annotation::ORDINAL);
    ordinal.and_then(|text| text.parse().ok()).unwrap_or(u32::MAX)
}

/// Whether the machine is part of its cluster, and stays.
pub(super) fn stands(machine: &Machine) -> bool {
    !machine.is_deleting() && is_provisioned(machine)
}

/// The Host of a Machine of this name, or the Host itself of this name.
fn host_of<'a>(cluster: &'a ClusterSeen<'_>, name: &str, counted: impl Fn(&Machine) -> bool) -> Option<&'a str> {
    let host = |machine: &'a Machine| machine.spec.host_ref.as_ref().map(|host| host.name.as_str());
    let machines = || cluster.machines.iter().filter(|machine| counted(machine));
    let by_machine = machines().find(|machine| machine.metadata.name.as_deref() == Some(name));
    by_machine.or_else(|| machines().find(|machine| host(machine) == Some(name))).and_then(host)
}

fn member(seat: &Seat<'_>) -> Value {
    json!({
        "name": seat.host,
        "host": seat.host,
        "peer_url": url(seat.address, 2380),
        "client_url": url(seat.address, 2379),
    })
}

fn url(address: &str, port: u16) -> String {
    if address.contains(':') { format!("https://[{address}]:{port}") } else { format!("https://{address}:{port}") }
}

/// The network plugin, as variables name it.
pub(crate) fn plugin(name: NetworkPluginName) -> &'static str {
    match name {
        NetworkPluginName::Bridge => "bridge",
        NetworkPluginName::Manifests => "manifests",
    }
}
