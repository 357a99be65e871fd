//! The namespace: its objects, its clusters, and the machines.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;
use std::ops::{Deref, DerefMut};
use std::rc::Rc;

use crds::step::{Intent, Role, Step};
use crds::{
    ClusterDeployment, EtcdBackup, EtcdBackupSchedule, EtcdRestore, Host, KarmadaDeployment, KubernetesVersion,
    Machine, MachineRequest, MachineSet, PlaybookRun, PlaybookRunStatus, Reason, RemediationPolicy,
};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};

use super::authorities::MachineAuthorities;
use super::cluster::SimulatedCluster;
use super::fate::Fate;
use super::objects::{deployment, host};
use super::profile::Profile;
use super::set_back::{GuardMemory, SetBack};
use crate::cluster::NodeSeen;
use crate::hooks::Library;
use crate::inputs::InputsProblem;
use crate::key_transfer::RestoringSeen;
use crate::rotation::own::OwnAuthorities;
use crate::settings::Manifests;

/// A namespace. What is of one cluster is read and written through it: it stands for the cluster that was named last.
#[derive(Clone)]
pub struct World {
    pub(super) profile: Profile,
    pub now: Timestamp,
    /// When an operator took the metadata cluster up again.
    pub resumed_at: Option<Timestamp>,
    /// How far the API's clock is behind the operator's.
    pub api_behind: SignedDuration,
    made: u64,
    /// How many writes there were.
    pub written: usize,
    /// What was written, and what happened, last.
    pub(super) log: Vec<(Timestamp, Rc<dyn Debug>)>,

    pub clusters: Vec<SimulatedCluster>,
    /// The position of the cluster that it stands for.
    current: usize,
    pub sets: Vec<MachineSet>,
    pub requests: Vec<MachineRequest>,
    pub machines: Vec<Machine>,
    pub hosts: Vec<Host>,
    pub runs: Vec<PlaybookRun>,
    pub policies: Vec<RemediationPolicy>,
    pub restores: Vec<EtcdRestore>,
    pub schedules: Vec<EtcdBackupSchedule>,
    /// KarmadaDeployments, which nobody plays.
    pub planes: Vec<KarmadaDeployment>,
    pub backups: Vec<EtcdBackup>,
    /// The backup that a cluster is to begin with, and its keys.
    pub restoring: RestoringSeen,
    /// ClusterDeployments of other namespaces.
    pub others: Vec<ClusterDeployment>,
    /// The ConfigMap of custom playbooks.
    pub library: Option<Library>,
    /// What the ConfigMaps with manifests hold.
    pub manifests: Manifests,
    /// What the Secret of an external etcd's client holds.
    pub etcd_client: Option<Result<String, InputsProblem>>,
    /// What the Secret of `certificates.caRef` holds.
    pub own_authorities: Option<Result<OwnAuthorities, InputsProblem>>,

    /// What becomes of runs, in the order in which they end; when they are used up, all is well.
    pub fates: Vec<Fate>,
    /// Hosts on which runs fail.
    pub always_fails: Vec<String>,
    /// Hosts that do not accept SSH logins of runs, and why.
    pub denied: BTreeMap<String, Reason>,
    /// The highest fence that each machine's guard has seen, and the run that it is of.
    pub guards: BTreeMap<String, ((i64, i64), String)>,
    /// What each guard remembers beside that.
    pub(super) memories: BTreeMap<String, GuardMemory>,
    /// The store was set back.
    pub set_back: Option<SetBack>,
    /// Steps that the last run did on each machine.
    pub(super) done: BTreeMap<String, usize>,
    /// Every run that began, with how many Hosts.
    pub begun_runs: BTreeMap<String, (Intent, usize)>,
    /// How runs ended, as their Jobs remember it.
    pub(super) jobs: BTreeMap<String, PlaybookRunStatus>,

    /// Hosts that SSH does not reach.
    pub silent: BTreeSet<String>,
    /// Machines whose kubelet is silent. One that is silent altogether has no power.
    pub silent_nodes: BTreeSet<String>,
    /// Machines whose kubelet says that it is not Ready.
    pub sick_nodes: BTreeSet<String>,
    /// Ready nodes whose Pods do not reach others.
    pub cut_off_nodes: BTreeSet<String>,
    /// Machines with something of a cluster on them.
    pub dirty: BTreeSet<String>,
    /// Steps by which machines differ from what is wanted, and what a probe says of it.
    pub drifted: BTreeMap<String, BTreeMap<Step, String>>,
    /// Machines that differ whatever is played on them.
    pub stubborn: BTreeSet<String>,
    /// When the leaves end that each machine has.
    pub certificates: BTreeMap<String, Timestamp>,
    /// What machines have of the authorities of their clusters.
    pub(super) authorities: MachineAuthorities,
    /// When the world began.
    pub begun: Timestamp,
    /// Machines with the data of a member of etcd.
    pub(super) etcd_data: BTreeSet<String>,
    /// Machines on which a cluster was begun, and which were not cleaned since.
    pub(super) begun_on: BTreeSet<String>,
    /// The cluster that a machine's kubelet is of.
    pub(super) kubelets: BTreeMap<String, String>,
    /// The version of a machine's kubelet.
    pub(super) kubelet_versions: BTreeMap<String, KubernetesVersion>,
    /// The version of a machine's API server.
    pub(super) api_versions: BTreeMap<String, KubernetesVersion>,
    /// What the kubelet of a machine registers its Node with.
    pub(super) registrations: BTreeMap<String, NodeSeen>,
    /// Machines whose kubelet has started, and registers its Node once the API answers.
    pub(super) booting: BTreeSet<String>,
    /// Machines whose Node was registered again since they were made part of a cluster.
    pub(super) returned: BTreeSet<String>,

    /// Pods by node: how many are left to be moved.
    pub pods: BTreeMap<String, usize>,
    /// Nodes whose Pods a PodDisruptionBudget holds.
    pub held_pods: BTreeSet<String>,
    /// Nodes from which Pods were evicted, in order.
    pub evictions: Vec<String>,

    /// Clusters for which a person gives the next approval that they ask for.
    pub(super) approving: BTreeSet<String>,
    /// Whether a person gives every approval that is asked for: each is for one thing.
    pub(super) approves_all: bool,
}

impl World {
    /// One cluster, by the rest of its spec, and spare Hosts that are known to be clean.
    pub fn new(spec: &str, hosts: usize) -> Self {
        let mut world = Self::empty(Profile::CLUSTER, hosts);
        let mut deployment = deployment("a", spec);
        (deployment.metadata.uid, deployment.metadata.generation) = (Some("cd-uid".into()), Some(1));
        world.clusters.push(SimulatedCluster::new(deployment));
        world
    }

    /// A namespace without clusters, with Hosts that nobody has looked at.
    pub fn fleet(hosts: usize) -> Self {
        Self::empty(Profile::FLEET, hosts)
    }

    fn empty(profile: Profile, hosts: usize) -> Self {
        Self {
            profile,
            now: "2026-01-01T00:00:00Z".parse().unwrap(),
            resumed_at: None,
            api_behind: SignedDuration::ZERO,
            made: 0,
            written: 0,
            log: Vec::new(),
            clusters: Vec::new(),
            current: 0,
            sets: Vec::new(),
            requests: Vec::new(),
            machines: Vec::new(),
            hosts: (1..=hosts).map(|number| host(number, profile.observers)).collect(),
            runs: Vec::new(),
            policies: Vec::new(),
            restores: Vec::new(),
            schedules: Vec::new(),
            planes: Vec::new(),
            backups: Vec::new(),
            restoring: RestoringSeen::default(),
            others: Vec::new(),
            library: None,
            manifests: Manifests {
                network: Some("none".into()),
                files: Some(BTreeMap::new()),
                registries: Some(BTreeMap::new()),
            },
            etcd_client: None,
            own_authorities: None,
            fates: Vec::new(),
            always_fails: Vec::new(),
            denied: BTreeMap::new(),
            guards: BTreeMap::new(),
            memories: BTreeMap::new(),
            set_back: None,
            done: BTreeMap::new(),
            begun_runs: BTreeMap::new(),
            jobs: BTreeMap::new(),
            silent: BTreeSet::new(),
            silent_nodes: BTreeSet::new(),
            sick_nodes: BTreeSet::new(),
            cut_off_nodes: BTreeSet::new(),
            dirty: BTreeSet::new(),
            drifted: BTreeMap::new(),
            stubborn: BTreeSet::new(),
            certificates: BTreeMap::new(),
            authorities: MachineAuthorities::default(),
            begun: "2026-01-01T00:00:00Z".parse().unwrap(),
            etcd_data: BTreeSet::new(),
            begun_on: BTreeSet::new(),
            kubelets: BTreeMap::new(),
            kubelet_versions: BTreeMap::new(),
            api_versions: BTreeMap::new(),
            registrations: BTreeMap::new(),
            booting: BTreeSet::new(),
            returned: BTreeSet::new(),
            pods: BTreeMap::new(),
            held_pods: BTreeSet::new(),
            evictions: Vec::new(),
            approving: BTreeSet::new(),
            approves_all: false,
        }
    }

    /// A person applies a ClusterDeployment.
    pub fn add_cluster(&mut self, name: &str, spec: &str) {
        let mut deployment = deployment(name, spec);
        self.stamp(&mut deployment.metadata);
        self.current = self.clusters.len();
        self.clusters.push(SimulatedCluster::new(deployment));
    }

    /// The cluster of this name, which the world stands for from now on.
    pub fn select(&mut self, name: &str) -> &mut SimulatedCluster {
        self.current = self.clusters.iter().position(|cluster| cluster.name() == name).unwrap();
        &mut self.clusters[self.current]
    }

    pub fn find_cluster(&self, name: &str) -> Option<&SimulatedCluster> {
        self.clusters.iter().find(|cluster| cluster.name() == name)
    }

    /// The cluster of this name, which there is.
    pub(super) fn cluster_mut(&mut self, name: &str) -> &mut SimulatedCluster {
        self.clusters.iter_mut().find(|cluster| cluster.name() == name).unwrap()
    }

    /// The cluster of a run, which there is.
    pub(super) fn cluster_of(&self, run: &PlaybookRun) -> Option<&SimulatedCluster> {
        self.find_cluster(run.spec.cluster_name.as_deref()?)
    }

    pub fn time(&self) -> Time {
        Time(self.now)
    }

    /// What the API server writes on a new object.
    pub(super) fn stamp(&mut self, metadata: &mut ObjectMeta) {
        self.made += 1;
        metadata.namespace = Some("fleet".into());
        metadata.uid = Some(format!("uid-{}", self.made));
        metadata.generation = Some(1);
        metadata.resource_version = Some("0".into());
        metadata.creation_timestamp = Some(Time(self.now - self.api_behind));
    }

    pub fn machines_of(&self, cluster: &str) -> Vec<&Machine> {
        self.machines.iter().filter(|machine| machine.spec.cluster_name == cluster).collect()
    }

    /// The Machine that names this Host.
    pub fn machine_on(&self, host: &str) -> Option<&Machine> {
        self.machines.iter().find(|machine| machine.spec.host_ref.as_ref().is_some_and(|named| named.name == host))
    }

    pub fn role_of(&self, host: &str) -> Option<Role> {
        self.machine_on(host).map(|machine| machine.spec.role)
    }

    /// The Host of this name.
    pub(super) fn host(&self, name: &str) -> Option<&Host> {
        self.hosts.iter().find(|host| host.metadata.name.as_deref() == Some(name))
    }

    /// Whether anybody has claimed the Host.
    pub(super) fn is_held(&self, host: &str) -> bool {
        self.host(host).is_some_and(|host| host.spec.claim_ref.is_some())
    }
}

impl Deref for World {
    type Target = SimulatedCluster;

    fn deref(&self) -> &SimulatedCluster {
        &self.clusters[self.current]
    }
}

impl DerefMut for World {
    fn deref_mut(&mut self) -> &mut SimulatedCluster {
        &mut self.clusters[self.current]
    }
}
