//! A small world for the planners to work on: what the API, the executor, the probes and the garbage collector would
//! do.

mod api;
mod etcd;
mod executor;
mod members;
mod mishap;
mod passes;
mod pods;
mod promises;

use std::collections::{BTreeMap, BTreeSet};

use crds::names::label;
use crds::playbook_run::{PlaybookRunSpec, RunPhase};
use crds::step::{Intent, Step as RunStep};
use crds::{Cluster, ClusterDeployment, Host, Machine, MachineSet, PlaybookRun};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};

pub use mishap::{Kind, Mishap};

use crate::settles::settles;
use crate::{cluster_deployment, machine, machine_set};

/// What becomes of one host in a run, or of the run; the number is how many steps are done by then.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Fate {
    Well,
    Fails,
    FailsAfter(usize),
    Unreachable,
    /// Contact with the whole run is lost.
    Lost(usize),
    /// The whole run's time is over.
    Deadline(usize),
    /// The executor never came up.
    NotStarted,
    /// A person cancels the whole run.
    Canceled,
}

/// Anything that is written; Machines by their UIDs.
#[derive(Clone, Debug)]
pub enum Write {
    Deployment(cluster_deployment::Action),
    Set(machine_set::Action),
    Machine(String, Box<machine::Action>),
    DeploymentStatus(Box<crds::ClusterDeploymentStatus>),
    SetStatus(String, Box<crds::MachineSetStatus>),
    MachineStatus(String, Box<crds::MachineStatus>),
}

#[derive(Clone)]
pub struct World {
    now: Timestamp,
    /// How far the API's clock is behind the operator's.
    pub api_behind: SignedDuration,
    made: u64,
    pub deployment: ClusterDeployment,
    pub gone: bool,
    pub sets: Vec<MachineSet>,
    pub machines: Vec<Machine>,
    pub hosts: Vec<Host>,
    pub runs: Vec<PlaybookRun>,
    pub pki: bool,
    pub kubeconfig: bool,
    /// What the ConfigMaps with manifests hold.
    pub manifests: crate::settings::Manifests,
    pub cluster: Option<Cluster>,
    /// Fates of hosts in the order in which runs end; when they are used up, all is well.
    pub fates: Vec<Fate>,
    pub always_fails: Vec<String>,
    /// Hosts that do not answer to probes.
    pub silent: BTreeSet<String>,
    /// The highest fence of every machine, and the run that it is of.
    pub guards: BTreeMap<String, ((i64, i64), String)>,
    /// Steps done on each machine by the last run that worked there.
    done: BTreeMap<String, usize>,
    /// RemediationPolicies.
    pub policies: Vec<crds::RemediationPolicy>,
    /// The ConfigMap of custom playbooks.
    pub library: Option<crate::hooks::Library>,
    /// Other ClusterDeployments of the namespace.
    pub others: Vec<ClusterDeployment>,
    /// Hosts with something of a cluster on them.
    pub dirty: BTreeSet<String>,
    pub nodes: BTreeSet<String>,
    pub deleted_nodes: Vec<String>,
    /// Hosts of etcd's members.
    pub voters: BTreeSet<String>,
    /// How often a cluster was begun; the last of them is the one that answers.
    pub inits: usize,
    /// Hosts on which one was begun, and which were not cleaned since.
    pub begun_on: BTreeSet<String>,
    /// The first control plane of each run, as it was when the run began.
    first_of: BTreeMap<String, String>,
    /// An API server has been made for the etcd that there is.
    serves: bool,
    /// Every run that began, with how many Hosts.
    pub begun_runs: BTreeMap<String, (Intent, usize)>,
    /// What the Jobs of runs remember of how they ended.
    jobs: BTreeMap<String, crds::PlaybookRunStatus>,
    /// How many writes there were.
    pub written: usize,
    /// The cluster's API does not answer.
    pub api_lost: bool,
    /// Nodes whose kubelet is silent.
    pub silent_nodes: BTreeSet<String>,
    /// Ready nodes whose Pods do not reach others.
    pub cut_off_nodes: BTreeSet<String>,
    /// Nodes that take no new Pods.
    pub cordoned: BTreeSet<String>,
    /// Pods by node: how many are left to be moved.
    pub pods: BTreeMap<String, usize>,
    /// Nodes whose Pods a PodDisruptionBudget holds.
    pub held_pods: BTreeSet<String>,
    /// Nodes from which Pods were evicted, in order.
    pub evictions: Vec<String>,
}

impl World {
    pub fn new(spec: &str, hosts: usize) -> Self {
        let mut deployment = deployment(spec);
        deployment.metadata.uid = Some("cd-uid".into());
        deployment.metadata.generation = Some(1);
        let hosts = (1..=hosts).map(|number| {
            let yaml = format!(
                "{{apiVersion: clusterwright.dev/v1alpha1, kind: Host, metadata: {{name: h{number}, uid: host-{number}, resourceVersion: '0'}}, spec: {{address: 10.0.0.{number}, ssh: {{credentialsRef: {{name: key}}}}}}, status: {{cleanedEpoch: 0, conditions: [{{type: Ready, status: 'True', reason: Available, message: '', lastTransitionTime: '2026-01-01T00:00:00Z'}}]}}}}"
            );
            serde_yaml::from_str(&yaml).unwrap()
        });
        Self {
            now: "2026-01-01T00:00:00Z".parse().unwrap(),
            api_behind: SignedDuration::ZERO,
            made: 0,
            deployment,
            gone: false,
            sets: Vec::new(),
            machines: Vec::new(),
            hosts: hosts.collect(),
            runs: Vec::new(),
            pki: false,
            kubeconfig: false,
            manifests: crate::settings::Manifests { addons: Some("none".into()), network: Some("none".into()) },
            cluster: None,
            fates: Vec::new(),
            always_fails: Vec::new(),
            silent: BTreeSet::new(),
            guards: BTreeMap::new(),
            done: BTreeMap::new(),
            policies: Vec::new(),
            library: None,
            others: Vec::new(),
            dirty: BTreeSet::new(),
            nodes: BTreeSet::new(),
            deleted_nodes: Vec::new(),
            voters: BTreeSet::new(),
            inits: 0,
            begun_on: BTreeSet::new(),
            first_of: BTreeMap::new(),
            serves: false,
            begun_runs: BTreeMap::new(),
            jobs: BTreeMap::new(),
            written: 0,
            api_lost: false,
            silent_nodes: BTreeSet::new(),
            cut_off_nodes: BTreeSet::new(),
            cordoned: BTreeSet::new(),
            pods: BTreeMap::new(),
            held_pods: BTreeSet::new(),
            evictions: Vec::new(),
        }
    }

    /// Another spec, as a person would apply it.
    pub fn respec(&mut self, spec: &str) {
        self.deployment.spec = deployment(spec).spec;
        self.touch();
    }

    /// The spec was changed.
    pub fn touch(&mut self) {
        self.deployment.metadata.generation = self.deployment.metadata.generation.map(|generation| generation + 1);
    }

    pub fn delete(&mut self) {
        self.deployment.metadata.deletion_timestamp = Some(self.time());
        self.touch();
    }

    pub fn delete_machine(&mut self, index: usize) {
        let now = self.time();
        if let Some(machine) = self.machines.get_mut(index) {
            machine.metadata.deletion_timestamp.get_or_insert(now);
        }
    }

    pub fn custom_run(&mut self, name: &str, hosts: &[&str]) {
        let spec = PlaybookRunSpec {
            cluster_name: Some("a".into()),
            intent: Intent::Custom,
            steps: vec![RunStep::Prepare],
            hosts: hosts.iter().map(|host| (*host).to_owned()).collect(),
            vars: Default::default(),
            playbooks_ref: None,
            playbook_vars: Default::default(),
            timeout_seconds: 3600,
            resume: false,
            paused: false,
            cancel: false,
        };
        let mut run = PlaybookRun::new(name, spec);
        self.stamp(&mut run.metadata);
        self.runs.push(run);
    }

    pub fn time(&self) -> Time {
        Time(self.now)
    }

    /// Until nothing is written any more.
    pub fn settle(&mut self) {
        settles(
            self,
            200,
            |world| {
                world.environment();
                for _ in 0..9 {
                    let writes = world.writes();
                    if !writes.is_empty() || !world.is_busy() {
                        return writes;
                    }
                    world.environment();
                }
                world.writes()
            },
            World::apply,
            World::check,
        );
    }

    /// A number of turns, whatever is left to do.
    pub fn run_for(&mut self, turns: usize) {
        for _ in 0..turns {
            self.environment();
            for write in self.writes() {
                self.apply(&write);
                self.check();
            }
        }
    }

    /// The operator is killed after one write, or a few, each time, and begins anew.
    pub fn run_write_by_write(&mut self, turns: usize) {
        for turn in 0..turns {
            self.environment();
            for write in self.writes().into_iter().take(1 + turn % 5) {
                self.apply(&write);
                self.check();
            }
        }
    }

    /// Whether a run works now.
    pub fn works(&self) -> bool {
        self.runs.iter().any(|run| run.status.as_ref().and_then(|status| status.phase) == Some(RunPhase::Running))
    }

    /// What the planners write at this very moment: nothing else goes on meanwhile.
    pub fn write_statuses(&mut self) {
        for write in self.writes() {
            self.apply(&write);
            self.check();
        }
    }

    /// The status is gone, as from a backup without it.
    pub fn lose_status(&mut self) {
        self.deployment.status = None;
    }

    fn stamp(&mut self, metadata: &mut ObjectMeta) {
        self.made += 1;
        metadata.uid = Some(format!("uid-{}", self.made));
        metadata.generation = Some(1);
        metadata.creation_timestamp = Some(Time(self.now - self.api_behind));
    }

    fn writes(&self) -> Vec<Write> {
        self.passes(self).into_iter().flatten().collect()
    }
}

fn owned(machine: &Machine, set: &MachineSet) -> bool {
    let labels = machine.metadata.labels.as_ref();
    labels.and_then(|labels| labels.get(label::MACHINE_SET)) == set.metadata.name.as_ref()
}

fn deployment(spec: &str) -> ClusterDeployment {
    let yaml = format!(
        "{{apiVersion: clusterwright.dev/v1alpha1, kind: ClusterDeployment, metadata: {{name: a, namespace: fleet}}, spec: {{kubernetesVersion: 1.35.4, artifacts: {{url: 'http://bundle'}}, {spec}}}}}"
    );
    serde_yaml::from_str(&yaml).unwrap()
}
