//! kube-proxy's configuration, under the names of KubeProxyConfiguration.

use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// kube-proxy's configuration. An edit has its Pods made anew, a tenth of them at once.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct KubeProxySettings {
    /// With which rules of the kernel Services are reached. On a cluster that runs, connections through Services may
    /// break for a moment, Node by Node. Default `iptables`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<KubeProxyMode>,
}

/// With which rules of the kernel kube-proxy works. Its mode `ipvs` is deprecated from Kubernetes 1.35 on.
#[derive(Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum KubeProxyMode {
    /// Those of iptables: the more Services there are, the longer a packet and an update take.
    Iptables,
    /// Those of nftables, which take the same time however many Services there are. Needs kernel 5.13, and serves node
    /// ports on a Node's own address alone.
    Nftables,
}
