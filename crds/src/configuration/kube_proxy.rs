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

/// With which rules of the kernel kube-proxy works, if there is one. Its mode `ipvs` is deprecated from Kubernetes
/// 1.35 on.
#[derive(Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum KubeProxyMode {
    /// Those of iptables: the more Services there are, the longer a packet and an update take.
    Iptables,
    /// Those of nftables, which take the same time however many Services there are. Needs kernel 5.13, and serves node
    /// ports on a Node's own address alone.
    Nftables,
    /// kube-proxy is not installed: the network plugin, which is given as manifests, serves Services. Chosen when the
    /// cluster is made, and kept.
    #[serde(rename = "None")]
    None,
}

/// CEL: whether a spec, `self` or `oldSelf`, is without kube-proxy.
macro_rules! is_none {
    ($spec:literal) => {
        concat!(
            "(has(",
            $spec,
            ".configuration) && has(",
            $spec,
            ".configuration.kubeProxy) && has(",
            $spec,
            ".configuration.kubeProxy.mode) && ",
            $spec,
            ".configuration.kubeProxy.mode == 'None')"
        )
    };
}

/// CEL: without kube-proxy it is the plugin that serves Services, and `bridge` does not.
pub(crate) const PLUGIN_RULE: &str = concat!("!", is_none!("self"), " || self.networking.plugin.name != 'bridge'");
pub(crate) const PLUGIN_MESSAGE: &str = "configuration.kubeProxy.mode: None needs a network plugin that serves Services, and bridge does not: give it as networking.plugin {name: manifests, manifestsRef}, or choose iptables or nftables";
/// CEL: a cluster has kube-proxy for as long as it is there, or never.
pub(crate) const TO_NONE_RULE: &str = concat!("!", is_none!("self"), " || ", is_none!("oldSelf"));
pub(crate) const TO_NONE_MESSAGE: &str = "configuration.kubeProxy.mode: None is chosen when a cluster is made, and this one has kube-proxy: choose iptables or nftables, or make a new cluster";
pub(crate) const FROM_NONE_RULE: &str = concat!(is_none!("self"), " || !", is_none!("oldSelf"));
pub(crate) const FROM_NONE_MESSAGE: &str = "configuration.kubeProxy.mode: this cluster was made with None and has no kube-proxy: give None again, or make a new cluster";
