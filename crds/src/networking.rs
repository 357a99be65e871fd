//! Addresses: CIDRs, the API server's endpoint, the network plugin.

use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::references::LocalRef;

/// The cluster's networks. Fixed once the cluster exists.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq, Eq, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("!isCIDR(self.podCIDR) || !isCIDR(self.serviceCIDR) || (!cidr(self.podCIDR).containsCIDR(cidr(self.serviceCIDR)) && !cidr(self.serviceCIDR).containsCIDR(cidr(self.podCIDR)))")
    .message(Message::Expression("'CIDROverlap: podCIDR ' + self.podCIDR + ' and serviceCIDR ' + self.serviceCIDR + ' overlap; choose two networks without a common address'".into())))]
pub struct Networking {
    /// Addresses of Pods; each node takes a /24 of it. IPv4, /8 to /22, no host bits. Default `10.244.0.0/16`.
    #[serde(rename = "podCIDR", default = "default_pod_cidr")]
    #[schemars(length(min = 9, max = 18))]
    #[x_kube(validation = Rule::new("isCIDR(self) && cidr(self).ip().family() == 4 && cidr(self).masked() == cidr(self) && cidr(self).prefixLength() >= 8 && cidr(self).prefixLength() <= 22")
        .message(Message::Expression("'podCIDR ' + self + ' must be an IPv4 network from /8 to /22 without host bits, e.g. 10.244.0.0/16'".into())))]
    pub pod_cidr: String,
    /// Addresses of Services. IPv4, /12 to /24, no host bits. Default `10.96.0.0/16`.
    #[serde(rename = "serviceCIDR", default = "default_service_cidr")]
    #[schemars(length(min = 9, max = 18))]
    #[x_kube(validation = Rule::new("isCIDR(self) && cidr(self).ip().family() == 4 && cidr(self).masked() == cidr(self) && cidr(self).prefixLength() >= 12 && cidr(self).prefixLength() <= 24")
        .message(Message::Expression("'serviceCIDR ' + self + ' must be an IPv4 network from /12 to /24 without host bits, e.g. 10.96.0.0/16'".into())))]
    pub service_cidr: String,
    /// The cluster's DNS domain. Default `cluster.local`.
    #[serde(default = "default_dns_domain")]
    #[schemars(
        length(min = 1, max = 180),
        regex(pattern = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$")
    )]
    pub dns_domain: String,
    /// The network plugin. Default: `bridge`.
    #[serde(default)]
    pub plugin: NetworkPlugin,
}

impl Default for Networking {
    fn default() -> Self {
        Self {
            pod_cidr: default_pod_cidr(),
            service_cidr: default_service_cidr(),
            dns_domain: default_dns_domain(),
            plugin: NetworkPlugin::default(),
        }
    }
}

fn default_pod_cidr() -> String {
    "10.244.0.0/16".into()
}
fn default_service_cidr() -> String {
    "10.96.0.0/16".into()
}
fn default_dns_domain() -> String {
    "cluster.local".into()
}

/// The kinds of network plugin.
#[derive(Serialize, Deserialize, Clone, Copy, Debug, Default, PartialEq, Eq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum NetworkPluginName {
    /// Built in: all machines on one L2 network, no agent.
    #[default]
    Bridge,
    /// Any CNI plugin, given as manifests.
    Manifests,
}

/// The network plugin of a cluster.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("(self.name == 'manifests') == has(self.manifestsRef)")
    .message("manifestsRef names the ConfigMap of manifests and goes with name: manifests, and only with it"))]
pub struct NetworkPlugin {
    /// `bridge` or `manifests`. Default `bridge`.
    #[serde(default)]
    pub name: NetworkPluginName,
    /// With `manifests`: a ConfigMap whose values are YAML manifests, rendered with the cluster's facts
    /// (docs/playbooks.md) and applied in the order of their keys.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub manifests_ref: Option<LocalRef>,
}

/// Who answers at the endpoint.
#[derive(Serialize, Deserialize, Clone, Copy, Debug, Default, PartialEq, Eq, JsonSchema)]
pub enum EndpointProvider {
    /// Something outside (a load balancer, DNS) that forwards to the control planes; not ours to set up.
    #[default]
    External,
    /// keepalived and haproxy on the control planes: one of them holds `host`, a free address of the machines' network.
    Keepalived,
}

/// How the control planes agree on who holds the endpoint's address.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Keepalived {
    /// VRRP's virtual router id, 1 to 255, of this cluster alone in its network. Default: follows from `host`.
    #[serde(default, rename = "virtualRouterID", skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 255))]
    pub virtual_router_id: Option<i32>,
    /// Network interface that holds the address on every control plane. Default: the one with the machine's own
    /// address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 15), regex(pattern = r"^[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$"))]
    pub interface: Option<String>,
}

/// Where clients and kubelets reach the API server.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq, Eq, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("!has(self.provider) || self.provider != 'Keepalived' || (isIP(self.host) && ip(self.host).family() == 4)")
    .message("endpoint.host: with provider Keepalived it is a free IPv4 address of the machines' network, which the control planes hold")
    .field_path(".host"))]
#[x_kube(validation = Rule::new("!isIP(self.host) || ip(self.host).family() == 4")
    .message("endpoint.host: a cluster's machines and networks are IPv4, so its endpoint is an IPv4 address or a DNS name")
    .field_path(".host"))]
#[x_kube(validation = Rule::new("!has(self.keepalived) || (has(self.provider) && self.provider == 'Keepalived')")
    .message("endpoint.keepalived goes with provider Keepalived")
    .field_path(".keepalived"))]
pub struct Endpoint {
    /// IPv4 address or DNS name.
    #[schemars(length(min = 1, max = 253))]
    #[x_kube(validation = Rule::new(crate::host::ADDRESS_RULE).message(crate::host::ADDRESS_MESSAGE))]
    pub host: String,
    /// Port, 1 to 65535. Default 6443.
    #[serde(default = "default_port")]
    #[schemars(range(min = 1, max = 65535))]
    pub port: i32,
    /// Default `External`.
    #[serde(default)]
    pub provider: EndpointProvider,
    /// With `Keepalived`: what else it is to know. Absent: all of it follows from the rest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keepalived: Option<Keepalived>,
}

/// Where an API server listens on its own machine.
pub const API_SERVER_PORT: i32 = 6443;

/// Where the API server of a Karmada control plane listens on its own machine.
pub const PLANE_API_SERVER_PORT: i32 = 5443;

fn default_port() -> i32 {
    API_SERVER_PORT
}
