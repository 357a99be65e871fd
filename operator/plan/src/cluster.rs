//! Cluster: says what is seen of a cluster through its API, and keeps its DNS and its Nodes in order.
//! Lost contact makes everything behind it unknown, never unhealthy.

mod action;
mod bounds;
mod certificates;
pub mod components;
mod contact;
pub mod dns;
pub mod field_owners;
pub(crate) mod kept;
mod membership;
mod names;
mod network_probe;
pub mod nodes;
mod observed;
mod orphan_nodes;
mod pace;
mod plane;
mod spread_dns;

use crds::conditions::{Statement, state};
use crds::{ClusterStatus, ObjectExt, Reason};

use crate::Plan;
use crate::message::cut;
pub use action::{Action, OrphanNode};
use contact::{forget, lost, made, refused, summary};
pub use dns::DnsSeen;
use names::names;
pub use nodes::{NetworkSeen, NodeSeen};
pub use observed::{Access, Contact, Observed, Seen};
use pace::next;
pub use plane::is_plane;

/// Decides.
pub fn plan(observed: &Observed<'_>) -> Plan<Action, ClusterStatus> {
    if observed.cluster.is_deleting() {
        return membership::leave(observed);
    }
    let old = observed.cluster.status.clone().unwrap_or_default();
    let (mut status, statements, mut actions) = match &observed.contact {
        Contact::Refused { reason, message } => (forget(&old), refused(*reason, message), Vec::new()),
        Contact::Lost { access, reason, message } => lost(observed, &old, access, *reason, message),
        Contact::Made { access, seen } => match (&old.cluster_uid, &seen.cluster_uid) {
            (Some(known), Some(found)) if *known != bounds::uid(found) => {
                let message = format!(
                    "the kubeconfig reaches another cluster: UID of kube-system {found}, known as {known}; make a new Cluster object for another cluster"
                );
                (forget(&old), refused(Reason::ClusterIdentityChanged, &message), Vec::new())
            }
            _ => made(observed, &old, access, seen),
        },
    };
    actions.extend(membership::finalizer(observed));
    let generation = observed.cluster.metadata.generation;
    let ready = summary(&statements);
    let waits_for = (ready.status != Some(true)).then(|| ready.message.clone());
    status.message = Some(cut(ready.message.clone()));
    bounds::keep(&mut status);
    status.observed_generation = generation;
    let statements = std::iter::once(ready).chain(statements);
    let statements: Vec<Statement> =
        statements.map(|statement| Statement { message: cut(statement.message), ..statement }).collect();
    status.conditions = state(&old.conditions, &statements, generation, &observed.now);
    Plan { actions, next: next(observed, &status), status, waits_for }
}

#[cfg(test)]
mod tests;
