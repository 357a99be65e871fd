//! One cluster: its objects, and what runs on its machines, whoever knows.

use std::collections::{BTreeMap, BTreeSet};

use crds::cluster_deployment::ClusterDeploymentStatus;
use crds::{Addon, Cluster, ClusterDeployment, ObjectExt};

use crate::cluster::NodeSeen;
use crate::rotation::Authorities;

/// A cluster, from its ClusterDeployment to its Nodes.
#[derive(Clone, Debug)]
pub struct SimulatedCluster {
    pub deployment: ClusterDeployment,
    /// The ClusterDeployment is deleted, and let go.
    pub gone: bool,
    /// Whether there is a Secret with its authorities.
    pub pki: bool,
    /// What is in there.
    pub authorities: Authorities,
    /// The server that the administrator's kubeconfig names, if there is a Secret with one.
    pub kubeconfig: Option<String>,
    /// The authority that it was made with.
    pub kubeconfig_authority: Option<String>,
    pub cluster: Option<Cluster>,
    /// The Addon that its `spec.addons` became.
    pub addon: Option<Addon>,
    /// Hosts of etcd's members.
    pub voters: BTreeSet<String>,
    pub nodes: BTreeSet<String>,
    /// Labels, annotations and taints of the Nodes, with their owners.
    pub node_metadata: BTreeMap<String, NodeSeen>,
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
    /// What etcd's members hold.
    pub data: EtcdData,
}

/// What etcd's members hold.
#[derive(Clone, Debug, PartialEq)]
pub struct EtcdData {
    pub version: String,
    pub size: i64,
    pub in_use: i64,
    pub quota: i64,
    /// etcd has the alarm NOSPACE.
    pub is_full: bool,
    /// Hosts whose member holds something else than the others.
    pub differ: BTreeSet<String>,
}

impl EtcdData {
    fn new() -> Self {
        let (version, differ) = ("3.6.16".to_owned(), BTreeSet::new());
        Self { version, size: 64 << 20, in_use: 60 << 20, quota: 8 << 30, is_full: false, differ }
    }
}

impl SimulatedCluster {
    pub(super) fn new(deployment: ClusterDeployment) -> Self {
        Self {
            deployment,
            gone: false,
            pki: false,
            authorities: Authorities::default(),
            kubeconfig: None,
            kubeconfig_authority: None,
            cluster: None,
            addon: None,
            voters: BTreeSet::new(),
            nodes: BTreeSet::new(),
            node_metadata: BTreeMap::new(),
            deleted_nodes: Vec::new(),
            cordoned: BTreeSet::new(),
            api_servers: BTreeSet::new(),
            serves: false,
            inits: 0,
            first_of: BTreeMap::new(),
            api_lost: false,
            cut: false,
            data: EtcdData::new(),
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
