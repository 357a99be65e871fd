//! Names and ports of the members of an etcd in Pods.

use crds::KarmadaDeployment;

use super::super::component::Component;
use super::super::names::{component_name, etcd_peers, full_host_name};

/// As many members as there may ever be: the certificates are for all of them, so that one more rolls no other.
pub(in super::super) const MOST_MEMBERS: i32 = 5;

/// etcd's ports: for clients, for its peers, and for who looks after it.
pub(in super::super) const ETCD_PORTS: [(&str, u16); 3] = [("client", 2379), ("peer", 2380), ("metrics", 2381)];

/// The port at which members are asked.
pub const ETCD_CLIENT_PORT: u16 = ETCD_PORTS[0].1;

/// DNS name of a member of etcd: each is named, since etcd looks its peers' names up.
pub(in super::super) fn etcd_member_name(object: &KarmadaDeployment, ordinal: i32) -> String {
    format!("{}-{ordinal}.{}", component_name(object, Component::Etcd), full_host_name(object, &etcd_peers(object)))
}

/// Name of the Pod, and of the member, with this ordinal.
pub(in super::super) fn pod_name(object: &KarmadaDeployment, ordinal: i32) -> String {
    format!("{}-{ordinal}", component_name(object, Component::Etcd))
}

/// What the names of the claims of its members' volumes begin with, unless it was set back to a backup.
pub(in super::super) const CLAIMS: &str = "data";

/// Name of the claim of its volume, where those of all members begin so.
pub(in super::super) fn claim_name(object: &KarmadaDeployment, claims: &str, ordinal: i32) -> String {
    format!("{claims}-{}", pod_name(object, ordinal))
}

/// Its URL for the other members.
pub(in super::super) fn peer_url(object: &KarmadaDeployment, ordinal: i32) -> String {
    format!("https://{}:{}", etcd_member_name(object, ordinal), ETCD_PORTS[1].1)
}

/// The initial cluster of nobody: a member without data ends at once by it, for want of its own name, and one with data
/// does not read it.
pub(in super::super) const NO_CLUSTER: &str = "none=https://127.0.0.1:2380";

/// The members with these ordinals, as etcd's flag has them.
pub(in super::super) fn initial_cluster(object: &KarmadaDeployment, members: impl IntoIterator<Item = i32>) -> String {
    let member = |ordinal| format!("{}={}", pod_name(object, ordinal), peer_url(object, ordinal));
    members.into_iter().map(member).collect::<Vec<_>>().join(",")
}
