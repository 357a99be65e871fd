//! A small world for the planners to work on: what the API, the executor, the probes and the garbage collector would do.

use std::collections::{BTreeMap, BTreeSet};

use crds::cluster_deployment::LockMode;
use crds::names::label;
use crds::playbook_run::{
    Fence, HostFailure, HostResult, PlaybookRunSpec, PlaybookRunStatus, Progress, RunPhase, StepPhase,
    StepStatus,
};
use crds::step::{Intent, Role, Step as RunStep};
use crds::{Cluster, ClusterDeployment, Host, Machine, MachineSet, PlaybookRun};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};

use crate::cluster::NodeSeen;
use crate::settles::settles;
use crate::{attempts, cluster_deployment, machine, machine_set};

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
    /// Hosts that do not answer to probes.
    pub silent: BTreeSet<String>,
    /// The highest fence of every machine, and the run that it is of.
    pub guards: BTreeMap<String, ((i64, i64), String)>,
    /// Steps done on each machine by the last run that worked there.
    done: BTreeMap<String, usize>,
    /// Other ClusterDeployments of the namespace.
    pub others: Vec<ClusterDeployment>,
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
            silent: BTreeSet::new(),
            guards: BTreeMap::new(),
            done: BTreeMap::new(),
            others: Vec::new(),
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

    /// Whether a run works now.
    pub fn works(&self) -> bool {
        self.runs
            .iter()
            .any(|run| run.status.as_ref().and_then(|status| status.phase) == Some(RunPhase::Running))
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
                deployments: &self.others.iter().collect::<Vec<_>>(),
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

    /// Time passes, runs that hold the lock begin and end, probes answer, and spare Hosts are found clean.
    fn environment(&mut self) {
        self.now += SignedDuration::from_secs(700);
        for index in 0..self.runs.len() {
            let run = &self.runs[index];
            if attempts::is_over(run) {
                continue;
            }
            let works = run.status.as_ref().and_then(|status| status.phase) == Some(RunPhase::Running);
            let token = self.token_of(run);
            if run.spec.intent == Intent::Probe {
                self.probe(index);
            } else if works {
                self.finish(index);
            } else if run.spec.cancel {
                self.end(index, RunPhase::Canceled, "Canceled", 0);
            } else if token > 0 && !run.spec.paused {
                self.begin(index, token);
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

    /// Whether something is going on that needs no further word of a planner.
    fn is_busy(&self) -> bool {
        self.runs.iter().any(|run| {
            let works = run.status.as_ref().and_then(|status| status.phase) == Some(RunPhase::Running);
            let may_begin = self.token_of(run) > 0 && !run.spec.paused;
            let is_probe = run.spec.intent == Intent::Probe;
            !attempts::is_over(run) && (works || may_begin || is_probe || run.spec.cancel)
        })
    }

    /// A run begins: every guard takes its fence, or refuses it.
    fn begin(&mut self, index: usize, token: i64) {
        let run = &self.runs[index];
        let name = run.metadata.name.clone().unwrap();
        if run.spec.hosts.iter().any(|host| self.role_of(host).is_none()) {
            return self.end(index, RunPhase::Failed, "HostNotInCluster", 0);
        }
        for host in &run.spec.hosts {
            let found = self
                .hosts
                .iter()
                .find(|there| there.metadata.name.as_ref() == Some(host));
            let fence = (found.map_or(0, |host| host.spec.claim_epoch), token);
            if let Some((highest, holder)) = self.guards.get(host) {
                assert!(
                    fence > *highest || (fence == *highest && *holder == name),
                    "the guard of {host} has {highest:?} of {holder} and refuses {fence:?} of {name}"
                );
            }
            self.guards.insert(host.clone(), (fence, name.clone()));
        }
        self.runs[index].status = Some(PlaybookRunStatus {
            phase: Some(RunPhase::Running),
            started_at: Some(self.time()),
            token,
            progress: Some(Progress {
                step: self.runs[index].spec.steps[0].name().into(),
                ..Progress::default()
            }),
            ..PlaybookRunStatus::default()
        });
    }

    fn probe(&mut self, index: usize) {
        let hosts = self.runs[index].spec.hosts.clone();
        let result = |name: &String| HostResult {
            name: name.clone(),
            unreachable: self.silent.contains(name),
            fence: (!self.silent.contains(name)).then(|| {
                let highest = self.guards.get(name).map(|(highest, _)| *highest);
                let (epoch, token) = highest.unwrap_or_default();
                Fence { epoch, token }
            }),
            ..HostResult::default()
        };
        let results = hosts.iter().map(result).collect();
        self.end(index, RunPhase::Succeeded, "Complete", 1);
        self.runs[index].status.as_mut().unwrap().hosts = results;
    }

    /// Records how a run ended, with so many of its steps done.
    fn end(&mut self, index: usize, phase: RunPhase, reason: &str, done: usize) {
        let finished = self.time();
        let run = &mut self.runs[index];
        let steps = run.spec.steps.clone();
        let status = run.status.get_or_insert_default();
        status.phase = Some(phase);
        status.finished_at = Some(finished.clone());
        let next = steps.get(done).map_or("", |step| step.name());
        status.message = Some(match reason {
            "Paused" => format!("paused before step {next}"),
            reason => format!("{reason} in step {next}"),
        });
        status.steps = steps
            .iter()
            .take(done)
            .map(|step| StepStatus {
                name: *step,
                phase: StepPhase::Succeeded,
                started_at: None,
                finished_at: None,
                changed: 0,
            })
            .collect();
        status.conditions = crds::conditions::state(
            &[],
            &[crds::conditions::Statement::new("Complete", true, reason, "")],
            None,
            &finished,
        );
    }

    fn next_fate(&mut self, host: &str) -> Fate {
        let fate = if self.fates.is_empty() {
            Fate::Well
        } else {
            self.fates.remove(0)
        };
        if self.always_fails.iter().any(|name| name == host) {
            return Fate::Fails;
        }
        fate
    }

    fn finish(&mut self, index: usize) {
        let run = self.runs[index].clone();
        let resets = run.spec.steps.contains(&RunStep::Reset);
        let all = run.spec.steps.len();
        // What a resumed run passes over is done.
        let before = match run.spec.resume {
            true => run
                .spec
                .hosts
                .iter()
                .map(|host| self.done.get(host).copied().unwrap_or_default())
                .min()
                .unwrap_or_default(),
            false => 0,
        };
        if run.spec.intent == Intent::Custom && !run.spec.hosts.iter().all(|host| self.is_held(host)) {
            // Its controller looks before it starts anything.
            self.end(index, RunPhase::Failed, "HostNotHeld", 0);
            return;
        }
        if run.spec.cancel || run.spec.paused {
            let (reason, done) = match run.spec.cancel {
                true => ("Canceled", before),
                false => ("Paused", (before + 1).min(all - 1)),
            };
            self.touch_hosts(&run, resets, done);
            self.end(index, RunPhase::Canceled, reason, done);
            let results = run.spec.hosts.iter().map(|host| failed(host, "", reason));
            self.runs[index].status.as_mut().unwrap().hosts = results.collect();
            return;
        }
        let fates: Vec<Fate> = run.spec.hosts.iter().map(|host| self.next_fate(host)).collect();
        let cut = fates.iter().find_map(|fate| match fate {
            Fate::Lost(done) => Some((RunPhase::Unknown, "ContactLost", *done)),
            Fate::Deadline(done) => Some((RunPhase::DeadlineExceeded, "DeadlineExceeded", *done)),
            Fate::NotStarted => Some((RunPhase::Failed, "NotStarted", 0)),
            Fate::Canceled => Some((RunPhase::Canceled, "Canceled", 1)),
            Fate::Well | Fate::Fails | Fate::FailsAfter(_) | Fate::Unreachable => None,
        });
        if let Some((phase, reason, done)) = cut {
            let done = done.max(before).min(all - 1);
            self.touch_hosts(&run, resets, done);
            self.end(index, phase, reason, done);
            return;
        }
        let mut results = Vec::new();
        for (host, fate) in run.spec.hosts.iter().zip(&fates) {
            let done = match fate {
                Fate::FailsAfter(done) => (*done).max(before).min(all - 1),
                Fate::Unreachable => before.min(all - 1),
                _ => before.max(2).min(all - 1),
            };
            let step = run.spec.steps[done].name();
            let mut result = match fate {
                Fate::Well => HostResult {
                    name: host.clone(),
                    ok: 3,
                    ..HostResult::default()
                },
                Fate::Unreachable => failed(host, step, "Unreachable"),
                _ => failed(host, step, "TaskFailed"),
            };
            if resets && *fate == Fate::Well {
                self.dirty.remove(host);
                result.clean = Some(true);
            } else if !resets {
                self.dirty.insert(host.clone());
            }
            results.push(result);
        }
        let count = results.iter().filter(|result| result.failure.is_some()).count();
        let stops = run.spec.intent == Intent::Install;
        let whole = count == 0 || (count < results.len() && !stops);
        let done = match whole {
            true => all,
            false => results
                .iter()
                .filter_map(|result| result.failure.as_ref())
                .filter_map(|failure| run.spec.steps.iter().position(|step| step.name() == failure.step))
                .max()
                .unwrap_or_default(),
        };
        for result in &mut results {
            let well = result.failure.is_none();
            if well && !whole && !resets {
                *result = failed(&result.name, run.spec.steps[done].name(), "NotReached");
            } else if well && !resets && self.role_of(&result.name).is_some_and(|role| role != Role::Etcd) {
                self.nodes.insert(result.name.clone());
            }
        }
        let (phase, reason) = match whole {
            true => (RunPhase::Succeeded, "Complete"),
            false => (RunPhase::Failed, "TaskFailed"),
        };
        self.done
            .extend(run.spec.hosts.iter().map(|host| (host.clone(), done)));
        self.end(index, phase, reason, done);
        let status = self.runs[index].status.as_mut().unwrap();
        status.retriable = (phase == RunPhase::Failed).then_some(true);
        status.hosts = results;
    }

    fn is_held(&self, host: &str) -> bool {
        self.hosts
            .iter()
            .any(|there| there.metadata.name.as_deref() == Some(host) && there.spec.claim_ref.is_some())
    }

    fn touch_hosts(&mut self, run: &PlaybookRun, resets: bool, done: usize) {
        for host in &run.spec.hosts {
            self.done.insert(host.clone(), done);
            if !resets {
                self.dirty.insert(host.clone());
            }
        }
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
        let active: Vec<&PlaybookRun> = self
            .runs
            .iter()
            .filter(|run| !attempts::is_over(run) && run.spec.intent != Intent::Probe)
            .collect();
        let works = |run: &PlaybookRun| run.status.as_ref().is_some_and(|status| status.token > 0);
        let ours = |run: &PlaybookRun| !attempts::marks(run).is_empty();
        for (index, run) in active.iter().enumerate() {
            let beside = |other: &&&PlaybookRun| works(run) && works(other) || ours(run) && ours(other);
            for other in active[index + 1..].iter().filter(beside) {
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

fn failed(host: &str, step: &str, reason: &str) -> HostResult {
    HostResult {
        name: host.to_owned(),
        unreachable: reason == "Unreachable",
        failure: Some(HostFailure {
            step: step.into(),
            task: "write sysctl".into(),
            reason: reason.into(),
            message: "no".into(),
        }),
        ..HostResult::default()
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
