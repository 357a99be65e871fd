//! One cluster: its objects, and what runs on its machines, whoever knows.

use std::collections::{BTreeMap, BTreeSet};

use crds::cluster_deployment::ClusterDeploymentStatus;
use crds::{Cluster, ClusterDeployment, ObjectExt};

/// A cluster, from its ClusterDeployment to its Nodes.
#[derive(Clone, Debug)]
pub struct SimulatedCluster {
    pub deployment: ClusterDeployment,
    /// The ClusterDeployment is deleted, and let go.
    pub gone: bool,
    /// Whether there is a Secret with its authorities.
    pub pki: bool,
    /// Whether there is a Secret with the administrator's kubeconfig.
    pub kubeconfig: bool,
    pub cluster: Option<Cluster>,
    /// Hosts of etcd's members.
    pub voters: BTreeSet<String>,
    pub nodes: BTreeSet<String>,
    pub deleted_nodes: Vec<String>,
    /// Nodes that take no new Pods.
    pub cordoned: BTreeSet<String>,
    /// Hosts that run an API server.
    pub(super) api_servers: BTreeSet<String>,
    /// An API server has been made for the etcd that there is.
    pub(super) serves: bool,
    /// How often it was begun; the last of them is the one that answers.
    pub inits: usize,
    /// The first control plane of each run, as it was when the run began.
    pub(super) first_of: BTreeMap<String, String>,
    /// Its API servers do not answer, until it is begun anew.
    pub api_lost: bool,
    /// The network between it and the operator is cut.
    pub cut: bool,
}

impl SimulatedCluster {
    pub(super) fn new(deployment: ClusterDeployment) -> Self {
        Self {
            deployment,
            gone: false,
            pki: false,
            kubeconfig: false,
            cluster: None,
            voters: BTreeSet::new(),
            nodes: BTreeSet::new(),
            deleted_nodes: Vec::new(),
            cordoned: BTreeSet::new(),
            api_servers: BTreeSet::new(),
            serves: false,
            inits: 0,
            first_of: BTreeMap::new(),
            api_lost: false,
            cut: false,
        }
    }

    pub fn name(&self) -> &str {
        self.deployment.name()
    }

    pub fn status(&self) -> Option<&ClusterDeploymentStatus> {
        self.deployment.status.as_ref()
    }

    pub(super) fn is_installed(&self) -> bool {
        self.status().is_some_and(|status| status.installed_at.is_some())
    }

    /// Whether it is not being deleted.
    pub(super) fn stays(&self) -> bool {
        !self.gone && !self.deployment.is_deleting()
    }

    /// The UID of the cluster that answers, or did.
    pub fn api_uid(&self) -> String {
        format!("{}-{}", self.name(), self.inits)
    }
}
