//! Cluster: says what is seen of a cluster through its API, and puts what Machines want onto their Nodes.
//! Lost contact makes everything behind it unknown, never unhealthy.

mod bounds;
mod certificates;
pub mod components;
mod contact;
pub mod dns;
mod names;
mod network_probe;
pub mod nodes;
mod orphan_nodes;
mod pace;

use std::sync::Arc;

use crds::Reason;
use crds::cluster::ComponentHealth;
use crds::conditions::{Statement, state};
use crds::{Cluster, ClusterDeployment, ClusterStatus, Host, Machine};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use crate::Plan;
use crate::machine::leaving::drain::PodSeen;
use crate::sentence::cut;
use contact::{forget, lost, made, refused, summary};
pub use dns::DnsSeen;
use names::names;
pub use nodes::{NetworkSeen, NodeSeen};
use pace::next;

/// Everything that the decision looks at.
pub struct Observed<'a> {
    /// The Cluster.
    pub cluster: &'a Cluster,
    /// What came of the kubeconfig and of the probe.
    pub contact: Contact,
    /// The Machines of the cluster of this name.
    pub machines: &'a [Arc<Machine>],
    /// The ClusterDeployment of this name; none: an administrator's cluster.
    pub deployment: Option<&'a ClusterDeployment>,
    /// Hosts of the namespace that are quarantined.
    pub hosts: &'a [Arc<Host>],
    /// Now.
    pub now: Time,
    /// 0 to 1: spreads the probes of many clusters.
    pub chance: f64,
}

/// What came of the kubeconfig and of the probe.
#[derive(Clone)]
pub enum Contact {
    /// The kubeconfig is missing or not to be used: `SecretNotFound`, `KubeconfigRejected`.
    Refused {
        /// CamelCase.
        reason: Reason,
        /// A sentence.
        message: String,
    },
    /// The API does not answer, or lets nobody in.
    Lost {
        /// What the kubeconfig says.
        access: Access,
        /// CamelCase.
        reason: Reason,
        /// Half a sentence, the same each time: `connection refused`.
        message: String,
    },
    /// The API answers.
    Made {
        /// What the kubeconfig says.
        access: Access,
        /// What was seen.
        seen: Seen,
    },
}

/// What an accepted kubeconfig says.
#[derive(Clone)]
pub struct Access {
    /// Where the API is.
    pub server: String,
    /// When its certificates end, by name.
    pub certificates: Vec<(&'static str, Time)>,
}

/// What was seen through the API.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Seen {
    /// Version without `v`; `None`: could not be read.
    pub version: Option<String>,
    /// UID of kube-system; `None`: could not be read.
    pub cluster_uid: Option<String>,
    /// Health by component.
    pub components: Vec<ComponentHealth>,
    /// The Nodes; `None`: not read yet.
    pub nodes: Option<Vec<NodeSeen>>,
    /// Its DNS; `None`: not read, or not kubeadm's.
    pub dns: Option<DnsSeen>,
}

/// What to do.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// Merge this patch into a Node of the cluster.
    PatchNode {
        /// The Node.
        name: String,
        /// A JSON merge patch.
        patch: serde_json::Value,
    },
    /// Have the Pods of the cluster's DNS scheduled onto different machines.
    SpreadDns {
        /// A JSON merge patch of its Deployment.
        patch: serde_json::Value,
    },
    /// Evict a Pod of the cluster's DNS from a machine that has more of them than others.
    MoveDnsPod {
        /// The Pod.
        pod: PodSeen,
        /// What is done, for people.
        tells: String,
    },
    /// Keep new Pods from the Node of a machine that was forgotten.
    CordonOrphan(OrphanNode),
    /// Delete the Node of a machine that was forgotten.
    DeleteOrphan(OrphanNode),
}

/// The Node of a machine that was removed without reaching it, and that stands in the cluster all the same.
#[derive(Clone, Debug, PartialEq)]
pub struct OrphanNode {
    /// The Node.
    pub name: String,
    /// This very one.
    pub uid: String,
    /// The Host, if there still is one.
    pub host: Option<Arc<Host>>,
    /// What was seen, and is done, for people; none: another step tells it.
    pub tells: Option<String>,
}

/// Decides.
pub fn plan(observed: &Observed<'_>) -> Plan<Step, ClusterStatus> {
    let old = observed.cluster.status.clone().unwrap_or_default();
    let (mut status, statements, steps) = match &observed.contact {
        Contact::Refused { reason, message } => (forget(&old), refused(*reason, message), Vec::new()),
        Contact::Lost {
            access,
            reason,
            message,
        } => lost(observed, &old, access, *reason, message),
        Contact::Made { access, seen } => match (&old.cluster_uid, &seen.cluster_uid) {
            (Some(known), Some(found)) if *known != bounds::uid(found) => {
                let message = format!(
                    "the kubeconfig reaches another cluster: UID of kube-system {found}, known as {known}; make a new Cluster object for another cluster"
                );
                (
                    forget(&old),
                    refused(Reason::ClusterIdentityChanged, &message),
                    Vec::new(),
                )
            }
            _ => made(observed, &old, access, seen),
        },
    };
    let generation = observed.cluster.metadata.generation;
    let ready = summary(&statements);
    let waits_for = (ready.status != Some(true)).then(|| ready.message.clone());
    status.message = Some(cut(ready.message.clone()));
    bounds::keep(&mut status);
    status.observed_generation = generation;
    let statements = std::iter::once(ready).chain(statements);
    let statements: Vec<Statement> = statements
        .map(|statement| Statement {
            message: cut(statement.message),
            ..statement
        })
        .collect();
    status.conditions = state(&old.conditions, &statements, generation, &observed.now);
    Plan {
        steps,
        next: next(observed, &status),
        status,
        waits_for,
    }
}

#[cfg(test)]
mod tests;
