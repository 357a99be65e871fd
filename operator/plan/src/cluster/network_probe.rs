//! Whom each machine asks, to find out whether its Pods reach those of other machines and the cluster's DNS. The
//! machines ask and report in their own Nodes' conditions; here they are only given the addresses, in an annotation of
//! the Node.

use std::net::Ipv4Addr;

use crds::ClusterDeployment;
use crds::ObjectExt;
use crds::names::annotation;
use crds::networking::NetworkPluginName;
use serde::Serialize;
use serde_json::json;

use super::action::Action;
use super::nodes::NodeSeen;
use super::observed::Observed;
use crate::lifecycle::is_installed;
use crate::naming::short_hash;

/// How many others a machine asks: the loss of one of them must not look like its own.
const PEERS: usize = 3;
const KUBELET_PORT: u16 = 10250;
/// kubeadm's place for the DNS in the Services' range.
const DNS_ORDINAL: u32 = 10;

/// The annotation's content.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Probe<'a> {
    /// The address that questions come from: of the machine's own Pods' range.
    #[serde(skip_serializing_if = "Option::is_none")]
    source: Option<String>,
    peers: Vec<Peer<'a>>,
    dns: String,
}

#[derive(Serialize)]
struct Peer<'a> {
    node: &'a str,
    address: String,
}

/// Writes the annotation where it differs.
pub(super) fn annotate(observed: &Observed<'_>, nodes: &[NodeSeen]) -> Vec<Action> {
    // Before the install is done there is no DNS to be missed.
    let stands = |deployment: &&ClusterDeployment| {
        !deployment.is_deleting() && !deployment.spec.paused && is_installed(deployment)
    };
    let ours = observed.deployment.filter(stands);
    let Some(deployment) = ours else {
        return Vec::new();
    };
    let Some(dns) = ordinal_of(&deployment.spec.networking.service_cidr, DNS_ORDINAL) else {
        return Vec::new();
    };
    // A ring in an order that has nothing to do with names, which often follow the racks. One that joins changes three
    // Nodes.
    let mut ring: Vec<(String, &NodeSeen)> = nodes
        .iter()
        .filter(|node| node.ready == Some(true))
        .map(|node| (short_hash(&[&node.name], 16), node))
        .collect();
    ring.sort_by(|(a, left), (b, right)| (a, &left.name).cmp(&(b, &right.name)));
    let of_node = |(place, (_, node)): (usize, &(String, &NodeSeen))| {
        let after = ring.iter().cycle().skip(place + 1).take(PEERS.min(ring.len() - 1));
        let probe = Probe {
            source: of_pods(deployment, node),
            peers: after.filter_map(|(_, peer)| peer_of(deployment, peer)).collect(),
            dns: format!("{dns}:53"),
        };
        let wanted = serde_json::to_string(&probe).unwrap_or_default();
        (node.network_probe != wanted).then(|| Action::PatchNode {
            name: node.name.clone(),
            patch: json!({ "metadata": { "annotations": { annotation::NETWORK_PROBE: wanted } } }),
        })
    };
    ring.iter().enumerate().filter_map(of_node).collect()
}

fn peer_of<'a>(deployment: &ClusterDeployment, node: &'a NodeSeen) -> Option<Peer<'a>> {
    let address = match deployment.spec.networking.plugin.name {
        NetworkPluginName::Bridge => of_pods(deployment, node)?,
        // Where its Pods are is the plugin's business.
        NetworkPluginName::Manifests => node.addresses.iter().find(|address| is_ip(address))?.clone(),
    };
    Some(Peer { node: &node.name, address: format!("{address}:{KUBELET_PORT}") })
}

/// The first address of the Node's Pods, which the machine itself has; none: another plugin decides on it.
fn of_pods(deployment: &ClusterDeployment, node: &NodeSeen) -> Option<String> {
    match deployment.spec.networking.plugin.name {
        NetworkPluginName::Bridge => ordinal_of(&node.pod_cidr, 1).map(|address| address.to_string()),
        NetworkPluginName::Manifests => None,
    }
}

fn is_ip(address: &str) -> bool {
    address.parse::<Ipv4Addr>().is_ok()
}

/// An address of the first IPv4 range.
fn ordinal_of(ranges: &str, ordinal: u32) -> Option<Ipv4Addr> {
    let mut first = ranges.split(',').filter_map(|range| range.trim().split_once('/')?.0.parse::<Ipv4Addr>().ok());
    Some(Ipv4Addr::from(u32::from(first.next()?).checked_add(ordinal)?))
}
