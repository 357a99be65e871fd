//! A small world for the planners to work on: what the API, the executor, the probes and the garbage collector would do.

use std::collections::BTreeSet;

use crds::cluster_deployment::LockMode;
use crds::names::label;
use crds::playbook_run::{HostFailure, HostResult, PlaybookRunSpec, PlaybookRunStatus, RunPhase};
use crds::step::{Intent, Role, Step as RunStep};
use crds::{Cluster, ClusterDeployment, Host, Machine, MachineSet, PlaybookRun};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};

use crate::cluster::NodeSeen;
use crate::settles::settles;
use crate::{attempts, cluster_deployment, machine, machine_set};

/// What becomes of one host in a run, or of the run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Fate {
    Well,
    Fails,
    Unreachable,
    /// Contact with the whole run is lost.
    Lost,
    /// A person cancels the whole run.
    Canceled,
}

/// Anything that is written.
#[derive(Clone, Debug)]
pub enum Write {
    Deployment(cluster_deployment::Step),
    Set(machine_set::Step),
    Machine(String, machine::Step),
    DeploymentStatus(Box<crds::ClusterDeploymentStatus>),
    SetStatus(String, Box<crds::MachineSetStatus>),
    MachineStatus(String, Box<crds::MachineStatus>),
}

pub struct World {
    now: Timestamp,
    made: u64,
    pub deployment: ClusterDeployment,
    pub gone: bool,
    pub sets: Vec<MachineSet>,
    pub machines: Vec<Machine>,
    pub hosts: Vec<Host>,
    pub runs: Vec<PlaybookRun>,
    pub pki: bool,
    pub kubeconfig: bool,
    pub cluster: Option<Cluster>,
    /// Fates of hosts in the order in which runs end; when they are used up, all is well.
    pub fates: Vec<Fate>,
    pub always_fails: Vec<String>,
    /// Hosts with something of a cluster on them.
    pub dirty: BTreeSet<String>,
    pub nodes: BTreeSet<String>,
    pub deleted_nodes: Vec<String>,
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
            made: 0,
            deployment,
            gone: false,
            sets: Vec::new(),
            machines: Vec::new(),
            hosts: hosts.collect(),
            runs: Vec::new(),
            pki: false,
            kubeconfig: false,
            cluster: None,
            fates: Vec::new(),
            always_fails: Vec::new(),
            dirty: BTreeSet::new(),
            nodes: BTreeSet::new(),
            deleted_nodes: Vec::new(),
        }
    }

    /// Another spec, as a person would apply it.
    pub fn respec(&mut self, spec: &str) {
        self.deployment.spec = deployment(spec).spec;
        self.touch();
    }

    /// The spec was changed.
    pub fn touch(&mut self) {
        self.deployment.metadata.generation = self
            .deployment
            .metadata
            .generation
            .map(|generation| generation + 1);
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

    fn stamp(&mut self, metadata: &mut ObjectMeta) {
        self.made += 1;
        metadata.uid = Some(format!("uid-{}", self.made));
        metadata.generation = Some(1);
        metadata.creation_timestamp = Some(self.time());
    }

    fn writes(&self) -> Vec<Write> {
        let mut writes = Vec::new();
        let (sets, machines): (Vec<_>, Vec<_>) = (self.sets.iter().collect(), self.machines.iter().collect());
        let (hosts, runs): (Vec<_>, Vec<_>) = (self.hosts.iter().collect(), self.runs.iter().collect());
        if !self.gone {
            let plan = cluster_deployment::plan(&cluster_deployment::Observed {
                now: self.now,
                deployment: &self.deployment,
                sets: &sets,
                machines: &machines,
                hosts: &hosts,
                runs: &runs,
                deployments: &[&self.deployment],
                cluster: self.cluster.as_ref(),
                pki: self.pki,
                kubeconfig: self.kubeconfig,
            });
            writes.extend(plan.steps.into_iter().map(Write::Deployment));
            if self.deployment.status.as_ref() != Some(&plan.status) {
                writes.push(Write::DeploymentStatus(Box::new(plan.status)));
            }
        }
        let deployment = (!self.gone).then_some(&self.deployment);
        for set in &self.sets {
            let of_set: Vec<&Machine> = self
                .machines
                .iter()
                .filter(|machine| owned(machine, set))
                .collect();
            let plan = machine_set::plan(&machine_set::Observed {
                now: self.now,
                set,
                deployment,
                machines: &of_set,
                hosts: &hosts,
            });
            writes.extend(plan.steps.into_iter().map(Write::Set));
            if set.status.as_ref() != Some(&plan.status) {
                writes.push(Write::SetStatus(
                    set.metadata.name.clone().unwrap(),
                    Box::new(plan.status),
                ));
            }
        }
        let installed = deployment.and_then(|deployment| deployment.status.as_ref()?.installed_at.as_ref());
        let nodes: Option<Vec<NodeSeen>> =
            installed.map(|_| self.nodes.iter().map(|name| node(name)).collect());
        for machine in &self.machines {
            let plan = machine::plan(&machine::Observed {
                now: self.now,
                machine,
                deployment,
                machines: &machines,
                hosts: &hosts,
                runs: &runs,
                nodes: nodes.as_deref(),
            });
            let name = machine.metadata.name.clone().unwrap();
            writes.extend(
                plan.steps
                    .into_iter()
                    .map(|step| Write::Machine(name.clone(), step)),
            );
            if machine.status.as_ref() != Some(&plan.status) {
                writes.push(Write::MachineStatus(name, Box::new(plan.status)));
            }
        }
        writes
    }

    fn apply(&mut self, write: &Write) {
        match write.clone() {
            Write::Deployment(step) => self.apply_to_deployment(step),
            Write::Set(machine_set::Step::CreateMachine(machine)) => {
                let mut machine = *machine;
                if self
                    .machines
                    .iter()
                    .all(|other| other.metadata.name != machine.metadata.name)
                {
                    self.stamp(&mut machine.metadata);
                    self.machines.push(machine);
                }
            }
            Write::Set(machine_set::Step::DeleteMachine(machine)) => self.mark_deleted(&machine),
            Write::Set(machine_set::Step::SetVersion { machine, version }) => {
                let name = machine.metadata.name.unwrap_or_default();
                if let Some(machine) = self.machine(&name) {
                    machine.spec.kubernetes_version = version;
                }
            }
            Write::Machine(name, step) => self.apply_to_machine(&name, step),
            Write::DeploymentStatus(status) => self.deployment.status = Some(*status),
            Write::SetStatus(name, status) => {
                if let Some(set) = self
                    .sets
                    .iter_mut()
                    .find(|set| set.metadata.name.as_ref() == Some(&name))
                {
                    set.status = Some(*status);
                }
            }
            Write::MachineStatus(name, status) => {
                if let Some(machine) = self.machine(&name) {
                    machine.status = Some(*status);
                }
            }
        }
    }

    fn machine(&mut self, name: &str) -> Option<&mut Machine> {
        self.machines
            .iter_mut()
            .find(|machine| machine.metadata.name.as_deref() == Some(name))
    }

    fn mark_deleted(&mut self, deleted: &Machine) {
        let now = self.time();
        let uid = deleted.metadata.uid.clone();
        if let Some(machine) = self
            .machines
            .iter_mut()
            .find(|machine| machine.metadata.uid == uid)
        {
            machine.metadata.deletion_timestamp.get_or_insert(now);
        }
    }

    fn apply_to_deployment(&mut self, step: cluster_deployment::Step) {
        use cluster_deployment::Step;
        match step {
            Step::AddFinalizer => {
                self.deployment.metadata.finalizers =
                    Some(vec![crds::names::finalizer::CLUSTER_DEPLOYMENT.into()]);
            }
            Step::MakePki => self.pki = true,
            Step::MakeKubeconfig { .. } => {
                assert!(self.pki, "a kubeconfig needs keys");
                self.kubeconfig = true;
            }
            Step::ApplyCluster(cluster) => self.cluster = Some(*cluster),
            Step::ApplyMachineSet { name, object } => {
                let found = self
                    .sets
                    .iter()
                    .position(|set| set.metadata.name.as_ref() == Some(&name));
                let mut set: MachineSet = serde_json::from_value(object).unwrap();
                match found {
                    Some(index) => {
                        set.metadata.uid = self.sets[index].metadata.uid.clone();
                        set.metadata.generation = self.sets[index]
                            .metadata
                            .generation
                            .map(|generation| generation + 1);
                        set.status = self.sets[index].status.clone();
                        self.sets[index] = set;
                    }
                    None => {
                        self.stamp(&mut set.metadata);
                        self.sets.push(set);
                    }
                }
            }
            Step::DeleteMachineSet(set) => {
                self.sets.retain(|other| other.metadata.uid != set.metadata.uid);
                let orphans: Vec<Machine> = self
                    .machines
                    .iter()
                    .filter(|machine| owned(machine, &set))
                    .cloned()
                    .collect();
                orphans.iter().for_each(|machine| self.mark_deleted(machine));
            }
            Step::DeleteMachine(machine) => self.mark_deleted(&machine),
            Step::CreateRun(run) => {
                let mut run = *run;
                if self
                    .runs
                    .iter()
                    .all(|other| other.metadata.name != run.metadata.name)
                {
                    self.stamp(&mut run.metadata);
                    self.runs.push(run);
                }
            }
            Step::CancelRun(run) => {
                let uid = run.metadata.uid.clone();
                if let Some(run) = self.runs.iter_mut().find(|run| run.metadata.uid == uid) {
                    run.spec.cancel = true;
                }
            }
            Step::HoldRun { run, paused } => {
                let uid = run.metadata.uid.clone();
                if let Some(run) = self.runs.iter_mut().find(|run| run.metadata.uid == uid) {
                    run.spec.paused = paused;
                }
            }
            Step::DeleteRun(run) => self.runs.retain(|other| other.metadata.uid != run.metadata.uid),
            Step::RemoveFinalizer => {
                self.gone = true;
                // The garbage collector.
                self.sets.clear();
                self.cluster = None;
            }
        }
    }

    fn apply_to_machine(&mut self, name: &str, step: machine::Step) {
        use machine::Step;
        match step {
            Step::AddFinalizer => {
                if let Some(machine) = self.machine(name) {
                    machine.metadata.finalizers = Some(vec![crds::names::finalizer::MACHINE.into()]);
                }
            }
            Step::Claim {
                host,
                claim,
                epoch,
                finalizers,
            } => {
                if let Some(live) = self.unchanged(&host) {
                    live.spec.claim_ref = Some(claim);
                    live.spec.claim_epoch = epoch;
                    live.metadata.finalizers = Some(finalizers);
                    written(&mut live.metadata);
                }
            }
            Step::SetHost(host) => {
                // As in one pass: what follows a refused claim is not carried out.
                let uid = self
                    .machine(name)
                    .and_then(|machine| machine.metadata.uid.clone());
                let held = self.hosts.iter().any(|candidate| {
                    candidate.metadata.name.as_ref() == Some(&host.name)
                        && candidate.spec.claim_ref.as_ref().map(|claim| claim.uid.clone()) == uid
                });
                if let Some(machine) = self.machine(name).filter(|_| held) {
                    machine.spec.host_ref.get_or_insert(host);
                }
            }
            Step::DeleteNode { node, .. } => {
                self.nodes.remove(&node);
                self.deleted_nodes.push(node);
            }
            Step::Release { host, finalizers } => {
                if let Some(live) = self.unchanged(&host) {
                    live.spec.claim_ref = None;
                    live.metadata.finalizers = Some(finalizers);
                    written(&mut live.metadata);
                }
            }
            Step::RemoveFinalizer => self
                .machines
                .retain(|machine| machine.metadata.name.as_deref() != Some(name)),
        }
    }

    /// The Host, if nobody has written it since it was read.
    fn unchanged(&mut self, read: &Host) -> Option<&mut Host> {
        self.hosts.iter_mut().find(|host| {
            host.metadata.name == read.metadata.name
                && host.metadata.resource_version == read.metadata.resource_version
        })
    }

    /// Time passes, runs that hold the lock end, canceled ones end, and spare Hosts are probed.
    fn environment(&mut self) {
        self.now += SignedDuration::from_secs(700);
        let held: Vec<String> = self
            .deployment
            .status
            .iter()
            .flat_map(|status| status.operations.iter().map(|operation| operation.run.clone()))
            .collect();
        for index in 0..self.runs.len() {
            let run = &self.runs[index];
            if attempts::is_over(run) {
                continue;
            }
            if held.contains(run.metadata.name.as_ref().unwrap()) {
                self.finish(index);
            } else if run.spec.cancel {
                self.runs[index].status = Some(PlaybookRunStatus {
                    phase: Some(RunPhase::Canceled),
                    ..PlaybookRunStatus::default()
                });
            }
        }
        for host in &mut self.hosts {
            let name = host.metadata.name.clone().unwrap();
            let status = host.status.as_mut().unwrap();
            if host.spec.claim_ref.is_none()
                && !self.dirty.contains(&name)
                && status.cleaned_epoch != Some(host.spec.claim_epoch)
            {
                status.cleaned_epoch = Some(host.spec.claim_epoch);
                written(&mut host.metadata);
            }
        }
    }

    fn finish(&mut self, index: usize) {
        let run = self.runs[index].clone();
        let resets = run.spec.steps.contains(&RunStep::Reset);
        let mut status = PlaybookRunStatus {
            token: 1,
            started_at: Some(self.time()),
            finished_at: Some(self.time()),
            phase: Some(RunPhase::Succeeded),
            ..PlaybookRunStatus::default()
        };
        status.token = self.token_of(&run);
        if run.spec.cancel {
            status.phase = Some(RunPhase::Canceled);
        }
        let mut failed = 0;
        for host in &run.spec.hosts {
            let fate = if run.spec.cancel || self.fates.is_empty() {
                Fate::Well
            } else {
                self.fates.remove(0)
            };
            let fate = if self.always_fails.contains(host) {
                Fate::Fails
            } else {
                fate
            };
            let mut result = HostResult {
                name: host.clone(),
                ok: 3,
                ..HostResult::default()
            };
            match fate {
                Fate::Lost => status.phase = Some(RunPhase::Unknown),
                Fate::Canceled => status.phase = Some(RunPhase::Canceled),
                Fate::Well => {}
                Fate::Fails | Fate::Unreachable => {
                    failed += 1;
                    result.unreachable = fate == Fate::Unreachable;
                    result.failure = Some(HostFailure {
                        step: "prepare".into(),
                        task: "write sysctl".into(),
                        reason: if result.unreachable {
                            "Unreachable"
                        } else {
                            "TaskFailed"
                        }
                        .into(),
                        message: "no".into(),
                    });
                }
            }
            let whole = !run.spec.cancel && fate == Fate::Well && status.phase == Some(RunPhase::Succeeded);
            if resets {
                if whole {
                    self.dirty.remove(host);
                    result.clean = Some(true);
                }
            } else {
                self.dirty.insert(host.clone());
                if whole && self.role_of(host).is_some_and(|role| role != Role::Etcd) {
                    self.nodes.insert(host.clone());
                }
            }
            status.hosts.push(result);
        }
        let all_failed = failed == run.spec.hosts.len();
        if status.phase == Some(RunPhase::Succeeded)
            && failed > 0
            && (all_failed || run.spec.intent == Intent::Install)
        {
            status.phase = Some(RunPhase::Failed);
        }
        self.runs[index].status = Some(status);
    }

    fn token_of(&self, run: &PlaybookRun) -> i64 {
        let operations = self
            .deployment
            .status
            .iter()
            .flat_map(|status| &status.operations);
        let mut ours = operations.filter(|operation| Some(&operation.run) == run.metadata.name.as_ref());
        ours.next().map_or(0, |operation| operation.token)
    }

    fn role_of(&self, host: &str) -> Option<Role> {
        let machine = self.machines.iter().find(|machine| {
            machine
                .spec
                .host_ref
                .as_ref()
                .is_some_and(|named| named.name == host)
        });
        machine.map(|machine| machine.spec.role)
    }

    /// What must be so at every turn.
    fn check(&self) {
        for machine in &self.machines {
            let uid = machine.metadata.uid.as_ref();
            let held = self
                .hosts
                .iter()
                .filter(|host| host.spec.claim_ref.as_ref().map(|claim| &claim.uid) == uid);
            assert!(held.count() <= 1, "a Machine holds two Hosts");
        }
        let active: Vec<&PlaybookRun> = self.runs.iter().filter(|run| !attempts::is_over(run)).collect();
        for (index, run) in active.iter().enumerate() {
            for other in &active[index + 1..] {
                let both = run.spec.hosts.iter().find(|host| other.spec.hosts.contains(host));
                assert_eq!(both, None, "two runs for one host");
            }
        }
        let operations = self
            .deployment
            .status
            .as_ref()
            .map(|status| status.operations.as_slice())
            .unwrap_or_default();
        for (index, one) in operations.iter().enumerate() {
            for other in &operations[index + 1..] {
                assert!(one.mode == LockMode::Shared && other.mode == LockMode::Shared);
                assert!(one.hosts.iter().all(|host| !other.hosts.contains(host)));
            }
        }
        let installs = self.runs.iter().filter(|run| {
            run.spec.intent == Intent::Install
                && run.status.as_ref().and_then(|status| status.phase) == Some(RunPhase::Succeeded)
        });
        assert!(installs.count() <= 1, "a cluster is installed once");
        for host in self.hosts.iter().filter(|host| host.spec.claim_ref.is_some()) {
            assert!(
                host.metadata
                    .finalizers
                    .as_ref()
                    .is_some_and(|finalizers| !finalizers.is_empty())
            );
        }
    }
}

fn written(metadata: &mut ObjectMeta) {
    let version: u64 = metadata
        .resource_version
        .as_ref()
        .and_then(|version| version.parse().ok())
        .unwrap_or_default();
    metadata.resource_version = Some((version + 1).to_string());
}

fn owned(machine: &Machine, set: &MachineSet) -> bool {
    let labels = machine.metadata.labels.as_ref();
    labels.and_then(|labels| labels.get(label::MACHINE_SET)) == set.metadata.name.as_ref()
}

fn node(name: &str) -> NodeSeen {
    NodeSeen {
        name: name.to_owned(),
        ready: Some(true),
        kubelet_version: "1.35.4".into(),
        ..NodeSeen::default()
    }
}

fn deployment(spec: &str) -> ClusterDeployment {
    let yaml = format!(
        "{{apiVersion: clusterwright.dev/v1alpha1, kind: ClusterDeployment, metadata: {{name: a, namespace: fleet}}, spec: {{kubernetesVersion: 1.35.4, artifacts: {{url: 'http://bundle'}}, {spec}}}}}"
    );
    serde_yaml::from_str(&yaml).unwrap()
}
