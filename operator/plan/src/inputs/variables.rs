//! The variables of all hosts of a cluster's run, under kubespray's names.

use std::collections::{BTreeMap, BTreeSet};

use crds::ObjectExt;
use crds::Reason;
use crds::cluster_deployment::EtcdTopology;
use crds::names::annotation;
use crds::networking::{API_SERVER_PORT, NetworkPluginName};
use crds::step::{Effect, Role};
use crds::{Host, Machine, PlaybookRun};
use serde_json::{Value, json};

use super::endpoint::of_endpoint;
use super::host::address_in_cluster;
use super::manifests;
use super::{ClusterSeen, InputsProblem, artifacts};
use crate::components;

pub(super) fn of_cluster(
    cluster: &ClusterSeen<'_>,
    hosts: &BTreeMap<String, Host>,
    run: &PlaybookRun,
) -> Result<BTreeMap<String, Value>, InputsProblem> {
    let deployment = cluster.deployment;
    let spec = &deployment.spec;
    let status = deployment.status.clone().unwrap_or_default();
    let name = deployment.name().to_owned();
    // Cleaning or probing a machine needs nothing from there.
    let needs_none = run.spec.intent.spec().effect != Effect::Provisions;
    if spec.artifacts.is_none() && !needs_none {
        let message = format!(
            "ClusterDeployment {name}: artifacts.url is missing: give the URL of the artifact bundle"
        );
        return Err(InputsProblem::waits(Reason::ArtifactSourceMissing, message));
    }
    let of_run = run.spec.hosts.iter().filter_map(|name| hosts.get(name));
    if let Some(host) = of_run
        .filter(|_| !needs_none)
        .find(|host| is_ipv6(address_in_cluster(host)))
    {
        let message = format!(
            "Host {}: address {} is IPv6, and the machines of a cluster know each other by IPv4: give the Host an IPv4 \
             internalAddress (SSH may go on using IPv6)",
            host.name(),
            address_in_cluster(host)
        );
        return Err(InputsProblem::waits(Reason::AddressNotIPv4, message));
    }
    let initialized = status.installed_at.is_some();
    // Of a cluster that stands: who is part of it and stays, and who is about to be.
    let part = |machine: &Machine| !initialized || stands(machine);
    let counted = |machine: &Machine| {
        let host = machine.spec.host_ref.as_ref();
        part(machine) || host.is_some_and(|host| run.spec.hosts.contains(&host.name))
    };
    let control_planes = machines_in_order(cluster, Role::ControlPlane, hosts, counted);
    let etcd = match spec.etcd.topology {
        EtcdTopology::Stacked => control_planes.clone(),
        EtcdTopology::Dedicated => machines_in_order(cluster, Role::Etcd, hosts, counted),
        EtcdTopology::External => Vec::new(),
    };
    let chosen = status.first_control_plane.as_deref();
    let chosen = chosen.and_then(|first| host_of(cluster, first, part));
    // In a cluster that stands nobody begins one: any of its machines will do, and none may be left.
    let standing = machines_in_order(cluster, Role::ControlPlane, hosts, part);
    let first = match initialized {
        true => chosen.or(standing.first().map(|seat| seat.host)),
        false => chosen,
    };
    let first_address = first.and_then(|first| hosts.get(first)).map(address_in_cluster);
    let endpoint = match (
        &spec.control_plane.endpoint,
        first_address.or(control_planes.first().map(|seat| seat.address)),
    ) {
        (Some(endpoint), _) => Some((endpoint.host.as_str(), endpoint.port)),
        (None, Some(address)) => Some((address, API_SERVER_PORT)),
        (None, None) => None,
    };
    let mut vars: BTreeMap<String, Value> = BTreeMap::new();
    let mut set = |name: &str, value: Value| vars.insert(name.to_owned(), value);
    set("kube_version", json!(components::version(deployment)));
    let components = components::variable(deployment);
    if let Some(components) = components.filter(|_| !needs_none) {
        set("components", components);
    }
    set("cluster_name", json!(name));
    set("dns_domain", json!(spec.networking.dns_domain));
    set("kube_pods_subnet", json!(spec.networking.pod_cidr));
    set("kube_service_addresses", json!(spec.networking.service_cidr));
    set("kube_network_plugin", json!(plugin(spec.networking.plugin.name)));
    set("container_manager", json!("containerd"));
    if let Some((host, port)) = endpoint {
        set("kube_apiserver_endpoint", json!({ "host": host, "port": port }));
    }
    let mut names: BTreeSet<&str> = spec.control_plane.cert_sans.iter().map(String::as_str).collect();
    names.extend(endpoint.map(|(host, _)| host));
    names.extend(control_planes.iter().map(|seat| seat.address));
    set("supplementary_addresses_in_ssl_keys", json!(names));
    if let Some(hash) = &cluster.ca_cert_hash {
        set("kube_ca_cert_hash", json!(hash));
    }
    if let Some(first) = first {
        set("kube_control_plane_first", json!(first));
    }
    set("control_plane_initialized", json!(initialized));
    set(
        "etcd_topology",
        json!(format!("{:?}", spec.etcd.topology).to_lowercase()),
    );
    set(
        "etcd_initial_cluster_state",
        json!(if initialized { "existing" } else { "new" }),
    );
    let uid = deployment.uid();
    set(
        "etcd_cluster_token",
        json!(format!("{name}-{}", uid.get(..8).unwrap_or(uid))),
    );
    set(
        "containerd_registries_mirrors",
        spec.container_runtime
            .registry_mirrors
            .iter()
            .map(mirror)
            .collect(),
    );
    if let Some(artifacts) = &spec.artifacts {
        set("artifacts_url", json!(artifacts.url.trim_end_matches('/')));
    }
    let index = spec
        .artifacts
        .as_ref()
        .and_then(|artifacts| artifacts.index_sha256.as_deref());
    let of_source = artifacts::variables(index, &cluster.artifacts);
    let preflight = spec.preflight.clone().unwrap_or_default();
    set("preflight_ignore", json!(preflight.ignore));
    set(
        "allow_unsupported_distribution_setup",
        json!(preflight.allow_unsupported_distribution),
    );
    vars.extend(of_source);
    vars.extend(etcd_variables(&etcd));
    let addresses: Vec<&str> = control_planes.iter().map(|seat| seat.address).collect();
    vars.extend(of_endpoint(
        spec.control_plane.endpoint.as_ref(),
        &addresses,
        hosts,
    ));
    let facts = manifests::facts(deployment, &vars);
    for (name, field, data) in [
        ("addon_manifests", "addons.manifestsRef", &cluster.addon_manifests),
        (
            "network_manifests",
            "networking.plugin.manifestsRef",
            &cluster.network_manifests,
        ),
    ] {
        vars.insert(name.to_owned(), manifests::render(field, data, &facts)?);
    }
    Ok(vars)
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

fn etcd_variables(seats: &[Seat<'_>]) -> BTreeMap<String, Value> {
    let endpoints = seats.iter().map(|seat| json!(url(seat.address, 2379)));
    BTreeMap::from([
        ("etcd_members".to_owned(), seats.iter().map(member).collect()),
        ("etcd_client_endpoints".to_owned(), endpoints.collect()),
    ])
}

/// A machine that has its Host.
#[derive(Clone, Copy)]
struct Seat<'a> {
    host: &'a str,
    address: &'a str,
}

/// Machines of a role that have their Host, by ordinal, then by name: an order that growing does not change.
fn machines_in_order<'a>(
    cluster: &'a ClusterSeen<'_>,
    role: Role,
    hosts: &'a BTreeMap<String, Host>,
    counted: impl Fn(&Machine) -> bool,
) -> Vec<Seat<'a>> {
    let mut machines: Vec<&Machine> = cluster
        .machines
        .iter()
        .filter(|machine| machine.spec.role == role && counted(machine))
        .collect();
    machines.sort_by_key(|machine| (ordinal(machine), machine.metadata.name.clone()));
    let seat = |machine: &'a Machine| {
        let host = machine.spec.host_ref.as_ref()?.name.as_str();
        Some(Seat {
            host,
            address: address_in_cluster(hosts.get(host)?),
        })
    };
    machines.into_iter().filter_map(seat).collect()
}

fn ordinal(machine: &Machine) -> u32 {
    let annotations = machine.metadata.annotations.as_ref();
    let ordinal = annotations.and_then(|annotations| annotations.get(annotation::ORDINAL));
    ordinal.and_then(|text| text.parse().ok()).unwrap_or(u32::MAX)
}

/// Whether the machine is part of its cluster, and stays.
fn stands(machine: &Machine) -> bool {
    let status = machine.status.as_ref();
    !machine.is_deleting() && status.is_some_and(|status| status.provisioned_at.is_some())
}

/// The Host of a Machine of this name, or the Host itself of this name.
fn host_of<'a>(
    cluster: &'a ClusterSeen<'_>,
    name: &str,
    counted: impl Fn(&Machine) -> bool,
) -> Option<&'a str> {
    let host = |machine: &'a Machine| machine.spec.host_ref.as_ref().map(|host| host.name.as_str());
    let machines = || cluster.machines.iter().filter(|machine| counted(machine));
    let by_machine = machines().find(|machine| machine.metadata.name.as_deref() == Some(name));
    by_machine
        .or_else(|| machines().find(|machine| host(machine) == Some(name)))
        .and_then(host)
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
    if address.contains(':') {
        format!("https://[{address}]:{port}")
    } else {
        format!("https://{address}:{port}")
    }
}

fn plugin(name: NetworkPluginName) -> &'static str {
    match name {
        NetworkPluginName::Bridge => "bridge",
        NetworkPluginName::Manifests => "manifests",
    }
}

fn mirror(mirror: &crds::cluster_deployment::RegistryMirror) -> Value {
    let host = |endpoint: &String| json!({ "host": endpoint, "capabilities": ["pull", "resolve"] });
    json!({ "prefix": mirror.prefix, "mirrors": mirror.endpoints.iter().map(host).collect::<Vec<_>>() })
}
