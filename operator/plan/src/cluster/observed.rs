//! What the planner of Clusters looks at.

use std::sync::Arc;

use super::dns::DnsSeen;
use super::nodes::NodeSeen;
use crds::cluster::ComponentHealth;
use crds::{Cluster, ClusterDeployment, Host, KarmadaDeployment, Machine, Reason};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

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
    /// The KarmadaDeployments of the namespace.
    pub planes: &'a [Arc<KarmadaDeployment>],
    /// When an operator took the metadata cluster up again after nobody had renewed the Lease for long; none: no such
    /// time is known.
    pub resumed_at: Option<Timestamp>,
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
    /// The API does not answer, or accepts no login.
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
    /// Size of etcd's database in bytes; `None`: the API server does not say.
    pub etcd_size: Option<i64>,
    /// Its DNS; `None`: not read, or not kubeadm's.
    pub dns: Option<DnsSeen>,
}
