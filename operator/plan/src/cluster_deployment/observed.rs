//! What the planner of ClusterDeployments looks at.

use crds::{
    Addon, Cluster, ClusterDeployment, EtcdBackup, EtcdBackupSchedule, EtcdRestore, Host, KarmadaDeployment, Machine,
    MachineSet, PlaybookRun, RemediationPolicy,
};
use jiff::Timestamp;

use crate::cluster::NodeSeen;
use crate::hooks::Library;
use crate::inputs::InputsProblem;
use crate::key_transfer::RestoringSeen;
use crate::rotation::Authorities;
use crate::rotation::own::OwnAuthorities;
use crate::settings::Manifests;

/// What ends without being seen here is looked for again after this.
pub(super) const LOOK_AGAIN_SECONDS: u64 = 30;

/// What was observed.
pub struct Observed<'a> {
    /// The time.
    pub now: Timestamp,
    /// When an operator took the metadata cluster up again after nobody had renewed the Lease for long; none: no such
    /// time is known.
    pub resumed_at: Option<Timestamp>,
    /// The ClusterDeployment, read from the API and not from a cache: its lock is decided here.
    pub deployment: &'a ClusterDeployment,
    /// MachineSets of the cluster, and those of other clusters that have a name that this one needs.
    pub sets: &'a [&'a MachineSet],
    /// Machines of the cluster.
    pub machines: &'a [&'a Machine],
    /// Hosts of the namespace.
    pub hosts: &'a [&'a Host],
    /// Runs of the cluster.
    pub runs: &'a [&'a PlaybookRun],
    /// The ConfigMap of `executor.customPlaybooksRef`, where hooks name it.
    pub library: Option<&'a Library>,
    /// ClusterDeployments of all namespaces that the operator watches; this one may be among them.
    pub deployments: &'a [&'a ClusterDeployment],
    /// RemediationPolicies of the namespace.
    pub policies: &'a [&'a RemediationPolicy],
    /// The Cluster object of the same name.
    pub cluster: Option<&'a Cluster>,
    /// The Addon that has the name of that of `spec.addons`.
    pub addon: Option<&'a Addon>,
    /// The Nodes of the machines in `status.forgotten`, as far as there are any; `None`: the cluster's API is not
    /// reached.
    pub forgotten_nodes: Option<&'a [NodeSeen]>,
    /// Restores of the cluster's etcd.
    pub restores: &'a [&'a EtcdRestore],
    /// Backups of the cluster, and of others of its name.
    pub backups: &'a [&'a EtcdBackup],
    /// The backup that the cluster is to begin with, and its keys.
    pub restoring: &'a RestoringSeen,
    /// KarmadaDeployments of the namespace.
    pub planes: &'a [&'a KarmadaDeployment],
    /// EtcdBackupSchedules of the namespace.
    pub schedules: &'a [&'a EtcdBackupSchedule],
    /// What the ConfigMaps with manifests hold.
    pub manifests: &'a Manifests,
    /// Digest of the certificates in the Secret of `etcd.secretRef`, or what is wrong with it; none: etcd is not
    /// external.
    pub etcd_client: Option<&'a Result<String, InputsProblem>>,
    /// Whether the Secret with the cluster's authorities is there.
    pub pki: bool,
    /// What is in there; empty: nothing, or it cannot be read.
    pub authorities: &'a Authorities,
    /// What the Secret of `certificates.caRef` holds, or what is wrong with it; none: the spec names none.
    pub own_authorities: Option<&'a Result<OwnAuthorities, InputsProblem>>,
    /// Whether the Secret with the administrator's kubeconfig is there.
    pub kubeconfig: bool,
    /// The cluster's authority that the kubeconfig was made with, as its Secret says; none: it says nothing.
    pub kubeconfig_authority: Option<&'a str>,
}
