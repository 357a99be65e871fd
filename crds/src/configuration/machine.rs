//! The configuration of a machine's operating system.

use std::collections::BTreeMap;

use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// CEL: a sysctl's name as `sysctl` prints it.
const SYSCTLS_RULE: &str =
    "self.all(k, size(k) <= 128 && k.matches('^(fs|kernel|net|user|vm)([.][a-zA-Z0-9][-_a-zA-Z0-9]*)+$'))";
const SYSCTLS_MESSAGE: &str =
    "a sysctl's name is as `sysctl -a` prints it, below fs, kernel, net, user or vm: net.core.somaxconn";

/// CEL: none that a cluster's machine depends on: Clusterwright, the kubelet or kube-proxy sets them.
const OURS_RULE: &str = "self.all(k, !['net.ipv4.ip_forward', 'net.bridge.', 'vm.overcommit_memory', 'vm.panic_on_oom', 'kernel.panic', 'kernel.keys.root_max', 'kernel.modules_disabled', 'kernel.core_pattern'].exists(p, k.startsWith(p)) && !k.matches('^net[.]ipv4[.](conf|neigh)[.].*[.](forwarding|proxy_arp|proxy_delay)$'))";
const OURS_MESSAGE: &str = "the cluster depends on net.ipv4.ip_forward, forwarding, proxy_arp and proxy_delay of IPv4's interfaces, net.bridge.*, vm.overcommit_memory, vm.panic_on_oom, kernel.panic*, kernel.keys.root_max*; and kernel.modules_disabled and kernel.core_pattern cannot be set here: leave them out";

/// The configuration of the machines' operating system.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct MachineSettings {
    /// Kernel parameters, name to value, now and at each boot; at most 64. One that is taken back has the value again
    /// that it had before.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = 64))]
    #[x_kube(validation = Rule::new(SYSCTLS_RULE).message(SYSCTLS_MESSAGE))]
    #[x_kube(validation = Rule::new(OURS_RULE).message(OURS_MESSAGE))]
    pub sysctls: BTreeMap<String, SysctlValue>,
    /// Kernel modules that are loaded, now and at each boot, beside those that a node needs; at most 64. One that is
    /// taken back stays loaded until the next boot.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64), inner(length(min = 1, max = 56), regex(pattern = r"^[a-zA-Z0-9][-_a-zA-Z0-9]*$")))]
    #[x_kube(merge_strategy = ListMerge::Set)]
    pub kernel_modules: Vec<String>,
    /// Certificates of authorities, PEM, one each, that machines trust beside those of their distribution, e.g. that of a
    /// mirror; at most 16, of at most 8192 characters. An edit restarts containerd, which reads them when it starts;
    /// containers go on.
    #[serde(default, rename = "trustedCAs", skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(max = 16),
        inner(
            length(max = 8192),
            regex(pattern = r"^-----BEGIN CERTIFICATE-----\n([A-Za-z0-9+/=]{1,76}\n)+-----END CERTIFICATE-----\n?$")
        )
    )]
    pub trusted_cas: Vec<String>,
}

/// A value of a sysctl: numbers or a word, several separated by one space.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, JsonSchema)]
#[serde(transparent)]
pub struct SysctlValue(
    #[schemars(length(min = 1, max = 64), regex(pattern = r"^[-_.a-zA-Z0-9]+( [-_.a-zA-Z0-9]+)*$"))] pub String,
);
