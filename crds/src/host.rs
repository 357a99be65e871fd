//! Host: a machine that can be reached by SSH. The spare pool is the Hosts that nobody has claimed.

use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::inputs::HostIdentity;
use crate::references::{ClaimRef, LocalRef};

mod quarantine;
mod status;

pub use quarantine::{Quarantine, QuarantineFence, QuarantineReason};
pub use status::{HostFacts, HostPhase, HostStatus};

/// CEL: an IP address that other machines can reach.
macro_rules! machine_ip {
    () => {
        "ip.isCanonical(self) && !ip(self).isUnspecified() && !ip(self).isLoopback() && !ip(self).isLinkLocalUnicast() && !ip(self).isLinkLocalMulticast() && !self.matches('^(22[4-9]|23[0-9]|24[0-9]|25[0-5])[.]') && !self.startsWith('ff')"
    };
}
/// CEL: an IP address that can be a machine's.
const IP_RULE: &str = concat!("isIP(self) && ", machine_ip!());
/// CEL: an IP address that can be a machine's, or a DNS name.
pub(crate) const ADDRESS_RULE: &str = concat!(
    "isIP(self) ? (",
    machine_ip!(),
    ") : (self.matches('^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?([.][a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?)*$') && !self.matches('^[0-9.]+$') && self != 'localhost')"
);
/// CEL, on the parent since it must also hold where `internalAddress` appears or goes: what the cluster uses stays. A
/// name is no address of a cluster's machine yet.
const CLUSTER_ADDRESS_RULE: &str = "!has(oldSelf.claimRef) || (!has(oldSelf.internalAddress) && !isIP(oldSelf.address)) || (has(self.internalAddress) ? self.internalAddress : self.address) == (has(oldSelf.internalAddress) ? oldSelf.internalAddress : oldSelf.address)";
/// What a wrong address gets.
pub(crate) const ADDRESS_MESSAGE: &str = "must be an IPv4 or IPv6 address in canonical form (not unspecified, loopback, link-local or multicast) or a lowercase DNS name other than localhost, without a port";

/// A machine that can be reached by SSH: the wish to use it, how to reach it, and who has claimed it.
#[derive(CustomResource, Serialize, Deserialize, Clone, Debug, PartialEq, KubeSchema)]
#[kube(
    group = "clusterwright.dev",
    version = "v1alpha1",
    kind = "Host",
    plural = "hosts",
    category = "clusterwright",
    namespaced,
    status = "HostStatus",
    derive = "PartialEq",
    doc = "A machine that can be reached by SSH. Hosts that nobody has claimed are the spare pool of their namespace.",
    printcolumn(name = "Address", type_ = "string", json_path = ".spec.address"),
    printcolumn(name = "Phase", type_ = "string", json_path = ".status.phase"),
    printcolumn(name = "Machine", type_ = "string", json_path = ".spec.claimRef.name"),
    printcolumn(name = "CPUs", type_ = "integer", json_path = ".status.facts.cpus", priority = "1"),
    printcolumn(name = "Memory-MiB", type_ = "integer", json_path = ".status.facts.memoryMiB", priority = "1"),
    printcolumn(name = "OS", type_ = "string", json_path = ".status.facts.osImage", priority = "1"),
    printcolumn(name = "Status", type_ = "string", json_path = ".status.message"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    validation = Rule::new("self.metadata.name.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$') && size(self.metadata.name) <= 63")
        .message("metadata.name: a Host's name becomes its node's name and its name in the inventory: an RFC 1123 label (a-z, 0-9, -) of at most 63 characters, without dots"),
    validation = Rule::new("!(self.metadata.name in ['localhost', 'all', 'ungrouped', 'etcd', 'kube-node', 'kube-control-plane', 'k8s-cluster', 'bastion'])")
        .message("metadata.name: this name has a meaning of its own in Ansible inventories: choose another"),
    selectable = ".spec.claimRef.uid"
)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("self.claimEpoch >= oldSelf.claimEpoch")
    .message("Forbidden: claimEpoch never goes down: a run's fence rests on it")
    .field_path(".claimEpoch"))]
#[x_kube(validation = Rule::new(CLUSTER_ADDRESS_RULE)
    .message("Forbidden: the address that the cluster uses (internalAddress, or address where there is none) does not change while a Machine has claimed the Host: the cluster, its certificates and etcd know the machine by it. If SSH reaches the same machine elsewhere now, change address and give internalAddress the value that the cluster uses. For another machine, delete the Machine that has claimed the Host (spec.claimRef.name), and then change the Host or make another one")
    .field_path(".internalAddress"))]
pub struct HostSpec {
    /// Where SSH answers: IPv4, IPv6 or DNS name, without a port. While a Machine has claimed the Host it does not
    /// change where it is what the cluster uses (without `internalAddress`).
    #[schemars(length(min = 1, max = 253))]
    #[x_kube(validation = Rule::new(ADDRESS_RULE).message(ADDRESS_MESSAGE))]
    pub address: String,
    /// The IP address that the cluster should use for this machine; it does not change while a Machine has claimed the
    /// Host. Default: `address`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 2, max = 45))]
    #[x_kube(validation = Rule::new(IP_RULE).message("must be an IP address in canonical form that other machines can reach"))]
    pub internal_address: Option<String>,
    /// How SSH gets in.
    pub ssh: Ssh,
    /// True: never claimed. Default false.
    #[serde(default)]
    pub unschedulable: bool,
    /// Who has claimed it; written by the operator, and kept by backups.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claim_ref: Option<ClaimRef>,
    /// How often it has been claimed: the first half of a run's fence. Written by the operator; never goes down.
    #[serde(default)]
    #[schemars(range(min = 0))]
    pub claim_epoch: i64,
    /// Which machine it is, since it was claimed: a run that meets another one changes nothing there
    /// (`MachineIdentityMismatch`). Written by the operator, and kept by backups. If the machine is the right one and
    /// has new keys, take the field off: it is written again from what is found then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub identity: Option<HostIdentity>,
    /// Why it is not to be claimed; written by the operator when a machine could not join or could not be cleaned, and
    /// kept by backups. Ends by the annotation `release`, once a probe has found the machine clean.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quarantine: Option<Quarantine>,
}

/// How SSH gets in.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq, Eq, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("self.hostKeyPolicy != 'Strict' || (has(self.hostKeys) && size(self.hostKeys) > 0)")
    .message("hostKeyPolicy Strict (the default) needs hostKeys: give the machine's public host keys (ssh-keyscan ADDRESS), or choose TrustOnFirstUse"))]
pub struct Ssh {
    /// Port, 1 to 65535. Default 22.
    #[serde(default = "default_port")]
    #[schemars(range(min = 1, max = 65535))]
    pub port: i32,
    /// User to log in as. Default `root`; another one needs sudo without a question, and `become: true`.
    #[serde(default = "default_user")]
    #[schemars(length(min = 1, max = 32), regex(pattern = r"^[a-z_][-a-z0-9_]*$"))]
    pub user: String,
    /// True: commands run through sudo. Default false.
    #[serde(default, rename = "become")]
    pub use_sudo: bool,
    /// Secret of type `kubernetes.io/ssh-auth` (key `ssh-privatekey`) or `kubernetes.io/basic-auth` (key `password`).
    pub credentials_ref: LocalRef,
    /// The machine's public host keys, `TYPE BASE64` as in `known_hosts`, without the host's name; at most 8.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(max = 8),
        inner(
            length(min = 20, max = 1400),
            regex(pattern = r"^(ssh-ed25519|ssh-rsa|ecdsa-sha2-nistp(256|384|521)) [A-Za-z0-9+/]+={0,3}( [^\n\r]*)?$")
        )
    )]
    #[x_kube(merge_strategy = ListMerge::Set)]
    pub host_keys: Vec<String>,
    /// `Strict` (default): only the keys given. `TrustOnFirstUse`: the first key seen is pinned in the status.
    #[serde(default)]
    pub host_key_policy: HostKeyPolicy,
    /// Another Host to go through (its own address, user, key).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bastion_ref: Option<LocalRef>,
}

fn default_port() -> i32 {
    22
}
fn default_user() -> String {
    "root".into()
}

/// Which host keys are believed.
#[derive(Serialize, Deserialize, Clone, Copy, Debug, Default, PartialEq, Eq, JsonSchema)]
pub enum HostKeyPolicy {
    /// Only the keys given.
    #[default]
    Strict,
    /// The first one seen, pinned in `status.hostKeys` from then on.
    TrustOnFirstUse,
}
