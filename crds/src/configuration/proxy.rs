//! Proxies on the way out.

use kube::KubeSchema;
use serde::{Deserialize, Serialize};

/// A proxy, and what is reached without it.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("has(self.httpProxy) || has(self.httpsProxy)")
    .message("give httpProxy, httpsProxy, or both"))]
pub struct Proxy {
    /// URL of the proxy for http, e.g. `http://proxy.example:3128`; no user or password in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 8, max = 256), regex(pattern = r"^https?://[A-Za-z0-9\[][-A-Za-z0-9.:\[\]]*/?$"))]
    pub http_proxy: Option<String>,
    /// URL of the proxy for https; no user or password in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 8, max = 256), regex(pattern = r"^https?://[A-Za-z0-9\[][-A-Za-z0-9.:\[\]]*/?$"))]
    pub https_proxy: Option<String>,
    /// Hosts, domains and CIDRs that are reached without the proxy; at most 64. The machine itself, the networks of
    /// Pods and Services, the cluster's domain and its endpoint are among them in any case.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(max = 64),
        inner(length(min = 1, max = 253), regex(pattern = r"^[.*A-Za-z0-9\[][-*A-Za-z0-9.:/\[\]]*$"))
    )]
    #[x_kube(merge_strategy = ListMerge::Set)]
    pub no_proxy: Vec<String>,
}
