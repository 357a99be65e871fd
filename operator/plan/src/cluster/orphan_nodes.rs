//! Orphan nodes: Nodes of machines that were removed without reaching them. Such a machine may get its power back: its
//! kubelet goes on, or registers its Node again. It is cordoned at once, and deleted once its member is out of etcd.
//!
//! A Node is taken for such a machine's by evidence alone: no Machine of the cluster stands for its name, and either
//! the ClusterDeployment remembers a forgotten machine of that name, or the Host of that name is quarantined and was
//! taken from a machine of this very cluster. Where there is the Host, the Node must have its address, too.

use std::net::IpAddr;
use std::sync::Arc;

use crds::step::Role;
use crds::{FormerRef, Host, ObjectExt};

use super::action::{Action, OrphanNode};
use super::nodes::NodeSeen;
use super::observed::Observed;
use crate::{inputs, store};

/// Why a Node is a forgotten machine's.
struct Evidence<'a> {
    machine: &'a str,
    host: Option<&'a Arc<Host>>,
    /// It may still be a member of etcd.
    etcd_member: bool,
}

pub(super) fn clean_up(observed: &Observed<'_>, nodes: &[NodeSeen]) -> Vec<Action> {
    // What an older store remembers of a machine may have been made good since: its Node serves.
    let is_believed = |deployment| store::is_believed(deployment, observed.resumed_at);
    let goes_on = observed.deployment.is_none_or(|deployment| !deployment.is_deleting() && is_believed(deployment));
    let nodes = nodes.iter().filter(|_| goes_on);
    nodes.flat_map(|node| actions(observed, node)).collect()
}

fn actions(observed: &Observed<'_>, node: &NodeSeen) -> Vec<Action> {
    let Some(evidence) = evidence(observed, node) else {
        return Vec::new();
    };
    let paused = observed.deployment.is_some_and(|deployment| deployment.spec.paused);
    let waits = if paused {
        Some("it is cordoned, and deleted when the cluster is paused no more")
    } else if evidence.etcd_member {
        Some("it is cordoned, and deleted when it is out of etcd")
    } else {
        None
    };
    let cordon = (!node.unschedulable).then(|| Action::CordonOrphan(orphan(observed, node, &evidence, waits)));
    let delete = waits.is_none().then(|| {
        let done = Some("it is cordoned and deleted");
        Action::DeleteOrphan(orphan(observed, node, &evidence, done))
    });
    cordon.into_iter().chain(delete).collect()
}

fn orphan(observed: &Observed<'_>, node: &NodeSeen, evidence: &Evidence<'_>, done: Option<&str>) -> OrphanNode {
    let cluster = observed.cluster.name();
    let (name, machine) = (&node.name, evidence.machine);
    let tells = |done: &str| {
        format!(
            "Node {name} of cluster {cluster} is that of Machine {machine}, which was removed without reaching it: {done}; clean the machine before it is used again"
        )
    };
    OrphanNode { name: name.clone(), uid: node.uid.clone(), host: evidence.host.cloned(), tells: done.map(tells) }
}

fn evidence<'a>(observed: &Observed<'a>, node: &NodeSeen) -> Option<Evidence<'a>> {
    let mut machines = observed.machines.iter();
    let is_anyones = machines.any(|machine| {
        let named = machine.spec.host_ref.as_ref();
        named.is_some_and(|named| named.name == node.name)
    });
    if is_anyones {
        return None;
    }
    let mut hosts = observed.hosts.iter();
    let host = hosts.find(|host| host.metadata.name.as_ref() == Some(&node.name));
    if host.is_some_and(|host| !may_be(host, node)) {
        return None;
    }
    let status = observed.deployment.and_then(|deployment| deployment.status.as_ref());
    let mut remembered = status.into_iter().flat_map(|status| &status.forgotten);
    if let Some(one) = remembered.find(|one| one.host == node.name && one.role != Role::Etcd) {
        return Some(Evidence { machine: &one.machine, host, etcd_member: one.etcd_member });
    }
    let host = host?;
    let quarantine = host.spec.quarantine.as_ref()?;
    let was_here = quarantine.former() == observed.cluster.metadata.name.as_deref().map(FormerRef::cluster);
    let was_node = quarantine.role.is_some_and(|role| role != Role::Etcd);
    // A status that was lost has yet to say what its cluster owes.
    let is_lost = observed.deployment.is_some_and(|_| status.is_none_or(|status| status.last_token.is_none()));
    (was_here && was_node && host.spec.claim_ref.is_none()).then_some(Evidence {
        machine: &quarantine.machine,
        host: Some(host),
        etcd_member: is_lost && quarantine.role != Some(Role::Worker),
    })
}

/// Whether the Node may be this Host's: it has its address, or the Host is known by a name only.
fn may_be(host: &Host, node: &NodeSeen) -> bool {
    let address = inputs::address_in_cluster(host);
    address.parse::<IpAddr>().is_err() || node.addresses.iter().any(|there| there == address)
}
