//! The configuration of a machine's operating system.

use std::collections::BTreeMap;

use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Proxy;

/// CEL: a sysctl's name as `sysctl` prints it.
const SYSCTLS_RULE: &str =
    "self.all(k, size(k) <= 128 && k.matches('^(fs|kernel|net|user|vm)([.][a-zA-Z0-9][-_a-zA-Z0-9]*)+$'))";
const SYSCTLS_MESSAGE: &str =
    "a sysctl's name is as `sysctl -a` prints it, below fs, kernel, net, user or vm: net.core.somaxconn";

/// CEL: none that a cluster's machine depends on: Clusterwright, the kubelet or kube-proxy sets them.
const OURS_RULE: &str = "self.all(k, !['net.ipv4.ip_forward', 'net.bridge.', 'vm.overcommit_memory', 'vm.panic_on_oom', 'kernel.panic', 'kernel.keys.root_max', 'kernel.modules_disabled', 'kernel.core_pattern'].exists(p, k.startsWith(p)) && !k.matches('^net[.]ipv4[.](conf|neigh)[.].*[.](forwarding|proxy_arp|proxy_delay)$'))";
const OURS_MESSAGE: &str = "the cluster depends on net.ipv4.ip_forward, forwarding, proxy_arp and proxy_delay of IPv4's interfaces, net.bridge.*, vm.overcommit_memory, vm.panic_on_oom, kernel.panic*, kernel.keys.root_max*; and kernel.modules_disabled and kernel.core_pattern cannot be set here: leave them out";

/// CEL: a server of NTP, by name or address.
const TIME_SERVERS_RULE: &str = "self.all(s, isIP(s) || (s.matches('^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?([.][a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?)*$') && !s.matches('^[0-9.]+$')))";
const TIME_SERVERS_MESSAGE: &str =
    "a time server is an IP address or a lowercase DNS name, without port and options: ntp.example.org";

/// CEL: a server that is asked for names.
const DNS_SERVERS_RULE: &str = "self.all(s, isIP(s) && !ip(s).isUnspecified())";
const DNS_SERVERS_MESSAGE: &str = "a DNS server is an IP address, without port: 192.0.2.53";

/// CEL: a domain by which short names are completed.
const DOMAINS_RULE: &str =
    "self.all(d, d.matches('^[a-z0-9_]([-a-z0-9_]{0,61}[a-z0-9])?([.][a-z0-9_]([-a-z0-9_]{0,61}[a-z0-9])?)*$'))";
const DOMAINS_MESSAGE: &str = "a search domain is a lowercase DNS name, without a dot at its ends: example.org";

/// CEL: a line of `authorized_keys` without options: a type, its key, and a comment.
const KEYS_RULE: &str = "self.all(k, k.matches('^(ssh-ed25519 AAAAC3NzaC1lZDI1NTE5|ssh-rsa AAAAB3NzaC1yc2E|ecdsa-sha2-nistp(256|384|521) AAAAE2VjZHNhLXNoYTItbmlzdHA|sk-ssh-ed25519@openssh[.]com AAAAGnNrLXNzaC1lZDI1NTE5QG9wZW5zc2guY29t|sk-ecdsa-sha2-nistp256@openssh[.]com AAAAInNrLWVjZHNhLXNoYTItbmlzdHAyNTZAb3BlbnNzaC5jb2)[A-Za-z0-9+/]{20,}={0,2}( [ -~]*)?$'))";
const KEYS_MESSAGE: &str = "a key is one line of type, base64 and an optional comment, as `ssh-keygen -y` prints it, of type ssh-ed25519, ssh-rsa, ecdsa-sha2-nistp256, -384 or -521, sk-ssh-ed25519@openssh.com or sk-ecdsa-sha2-nistp256@openssh.com; it has no options before it";

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
    /// Certificates of authorities, PEM, one each, that machines trust beside those of their distribution, e.g. that of
    /// a mirror; at most 16, of at most 8192 characters. An edit restarts containerd, which reads them when it starts;
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
    /// The proxy through which a machine itself downloads: programs and images of the artifact bundle, and packages by
    /// apt, whose configuration has it as long as the machine is of the cluster, or by dnf, which is given it by the
    /// step alone. Users' shells and services do not get it; containerd has one of its own. Default: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proxy: Option<Proxy>,
    /// Servers of NTP, names or addresses, by which machines keep their clocks; at most 8. They take the place of those
    /// of systemd-timesyncd, and are beside those of chrony, whichever of the two runs on a machine; preflight and the
    /// step fail where neither does. Default: those of the distribution.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 8), inner(length(min = 1, max = 253)))]
    #[x_kube(merge_strategy = ListMerge::Set)]
    #[x_kube(validation = Rule::new(TIME_SERVERS_RULE).message(TIME_SERVERS_MESSAGE))]
    pub time_servers: Vec<String>,
    /// Addresses of the servers that machines ask for names, the first one first; at most 3. Through systemd-resolved,
    /// or in `/etc/resolv.conf` if no other program writes it; else preflight and the step fail. Pods that run keep
    /// what they began with, CoreDNS among them. Default: those that a machine has.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 3), inner(length(min = 2, max = 45)))]
    #[x_kube(validation = Rule::new(DNS_SERVERS_RULE).message(DNS_SERVERS_MESSAGE))]
    pub dns_servers: Vec<String>,
    /// Domains by which machines complete short names, the first one first; at most 8. Default: those that a machine
    /// has.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 8), inner(length(min = 1, max = 253)))]
    #[x_kube(validation = Rule::new(DOMAINS_RULE).message(DOMAINS_MESSAGE))]
    pub search_domains: Vec<String>,
    /// SSH public keys of administrators, lines of `authorized_keys` without options, which let them in as the user of
    /// `Host.spec.ssh`; at most 32. One that is taken back is taken out, unless a run logs in with it. Other keys there
    /// stay as they are.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32), inner(length(min = 1, max = 1024)))]
    #[x_kube(merge_strategy = ListMerge::Set)]
    #[x_kube(validation = Rule::new(KEYS_RULE).message(KEYS_MESSAGE))]
    pub authorized_keys: Vec<String>,
    /// How much of systemd's journal is kept. Default: as the distribution has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub journal: Option<JournalSettings>,
}

/// How much of systemd's journal is kept.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("has(self.maxUseMegabytes) || has(self.maxRetentionDays)")
    .message("give maxUseMegabytes, maxRetentionDays, or both"))]
pub struct JournalSettings {
    /// Space that it takes at most, in MiB, 16 to 1048576; in memory, where it is not kept on a disk. Default: a tenth
    /// of the file system, at most 4 GiB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 16, max = 1_048_576))]
    pub max_use_megabytes: Option<i32>,
    /// Days after which entries are deleted, 1 to 3650. Default: only for space.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 3650))]
    pub max_retention_days: Option<i32>,
}

/// A value of a sysctl: numbers or a word, several separated by one space.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, JsonSchema)]
#[serde(transparent)]
pub struct SysctlValue(
    #[schemars(length(min = 1, max = 64), regex(pattern = r"^[-_.a-zA-Z0-9]+( [-_.a-zA-Z0-9]+)*$"))] pub String,
);
