//! Runs: they begin when the lock lets them, and do to the machines what their steps say, unless their fate is another.

use crds::ObjectExt;
use crds::PlaybookRun;
use crds::cluster_deployment::EtcdTopology;
use crds::playbook_run::{
    Fence, HostFailure, HostResult, PlaybookRunStatus, Progress, RunOutcome, RunPhase, StepPhase, StepStatus,
};
use crds::step::{Intent, Role, Step};
use plan::attempts;

use super::namespace::Namespace;

/// What becomes of a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Fate {
    /// It does what it is to do.
    Well,
    /// It fails on its first host, after so many steps.
    Fails(usize),
    /// Contact with it is lost, after so many steps.
    Lost(usize),
    /// Its executor never came up.
    NotStarted,
}

impl Namespace {
    /// Runs begin and end.
    pub fn executors(&mut self) {
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
    }

    pub fn token_of(&self, run: &PlaybookRun) -> i64 {
        let cluster = run.spec.cluster_name.as_deref().unwrap_or_default();
        let status = self.deployment_of(cluster).and_then(|found| found.status.as_ref());
        let operations = status.map(|status| status.operations.as_slice()).unwrap_or_default();
        let ours = operations.iter().find(|operation| Some(&operation.run) == run.metadata.name.as_ref());
        ours.map_or(0, |operation| operation.token)
    }

    /// Every guard takes its fence, or refuses it.
    fn begin(&mut self, index: usize, token: i64) {
        let run = self.runs[index].clone();
        let name = run.name().to_owned();
        self.check_begin(&run);
        for host in &run.spec.hosts {
            let found = self.hosts.iter().find(|there| there.metadata.name.as_ref() == Some(host));
            let fence = (found.map_or(0, |host| host.spec.claim_epoch), token);
            let machine = self.metal.get_mut(host).unwrap();
            if !machine.alive {
                continue;
            }
            let (highest, holder) = &machine.fence;
            assert!(
                fence > *highest || (fence == *highest && *holder == name),
                "the guard of {host} has {highest:?} of {holder} and refuses {fence:?} of {name}"
            );
            machine.fence = (fence, name.clone());
        }
        let now = self.time();
        self.runs[index].status = Some(PlaybookRunStatus {
            phase: Some(RunPhase::Running),
            started_at: Some(now),
            token,
            progress: Some(Progress { step: run.spec.steps[0].name().into(), ..Progress::default() }),
            ..PlaybookRunStatus::default()
        });
    }

    fn probe(&mut self, index: usize) {
        let hosts = self.runs[index].spec.hosts.clone();
        let result = |name: &String| {
            let machine = &self.metal[name];
            let (epoch, token) = machine.fence.0;
            HostResult {
                name: name.clone(),
                unreachable: !machine.alive,
                clean: machine.alive.then_some(!machine.dirty),
                fence: machine.alive.then_some(Fence { epoch, token }),
                failure: (!machine.alive).then(|| failure("probe-host", "Unreachable")),
                ..HostResult::default()
            }
        };
        let results = hosts.iter().map(result).collect();
        self.end(index, RunPhase::Succeeded, "Complete", 1);
        self.runs[index].status.as_mut().unwrap().hosts = results;
    }

    fn finish(&mut self, index: usize) {
        let run = self.runs[index].clone();
        let all = run.spec.steps.len();
        let before = match run.spec.resume {
            true => run.spec.hosts.iter().map(|host| self.metal[host].done).min().unwrap_or_default(),
            false => 0,
        };
        let before = before.min(all - 1);
        if run.spec.cancel || run.spec.paused {
            let (reason, done) = match run.spec.cancel {
                true => ("Canceled", before),
                false => ("Paused", (before + 1).min(all - 1)),
            };
            self.touch(&run, done);
            self.end(index, RunPhase::Canceled, reason, done);
            let results = run.spec.hosts.iter().map(|host| failed(host, "", reason));
            self.runs[index].status.as_mut().unwrap().hosts = results.collect();
            return;
        }
        let fate = match self.fates.is_empty() {
            true => Fate::Well,
            false => self.fates.remove(0),
        };
        let cut = match fate {
            Fate::Lost(done) => Some((RunPhase::Unknown, "ContactLost", done)),
            Fate::NotStarted => Some((RunPhase::Failed, "NotStarted", 0)),
            Fate::Well | Fate::Fails(_) => None,
        };
        if let Some((phase, reason, done)) = cut {
            let done = done.max(before).min(all - 1);
            if reason != "NotStarted" {
                self.touch(&run, done);
            }
            self.end(index, phase, reason, done);
            return;
        }
        let mut results: Vec<HostResult> = Vec::new();
        for (number, host) in run.spec.hosts.iter().enumerate() {
            let machine = &self.metal[host];
            let at = match fate {
                Fate::Fails(done) if number == 0 => Some(done.max(before).min(all - 1)),
                _ if machine.broken => Some(before),
                _ if asks_etcd(&run) && self.refuses(&run) => Some(0),
                _ => None,
            };
            results.push(match at {
                _ if !machine.alive => failed(host, run.spec.steps[before].name(), "Unreachable"),
                Some(done) => failed(host, run.spec.steps[done].name(), "TaskFailed"),
                None => HostResult { name: host.clone(), ok: 3, ..HostResult::default() },
            });
        }
        let stops = run.spec.intent == Intent::Install;
        let count = results.iter().filter(|result| result.failure.is_some()).count();
        let whole = count == 0 || (count < results.len() && !stops);
        let place = |result: &HostResult| {
            let step = &result.failure.as_ref()?.step;
            run.spec.steps.iter().position(|known| known.name() == step)
        };
        let done = match whole {
            true => all,
            false => results.iter().filter_map(place).max().unwrap_or_default(),
        };
        for result in &mut results {
            let host = result.name.clone();
            if result.failure.is_some() {
                let reached = place(result).unwrap_or_default();
                if self.metal[&host].alive {
                    self.touch_one(&run, &host, reached);
                }
            } else if whole {
                self.works_on(&run, &host);
                result.clean = run.spec.steps.contains(&Step::Reset).then_some(true);
            } else {
                self.touch_one(&run, &host, done);
                *result = failed(&host, run.spec.steps[done].name(), "NotReached");
            }
        }
        let (phase, reason) = match count {
            0 => (RunPhase::Succeeded, "Complete"),
            _ => (RunPhase::Failed, "TaskFailed"),
        };
        self.end(index, phase, reason, done);
        let status = self.runs[index].status.as_mut().unwrap();
        status.retriable = (phase == RunPhase::Failed).then_some(true);
        status.outcome = Some(last_word(phase, reason, &results));
        status.hosts = results;
    }

    /// A run that did not come to its end leaves something behind.
    fn touch(&mut self, run: &PlaybookRun, done: usize) {
        for host in &run.spec.hosts {
            if self.metal[host].alive {
                self.touch_one(run, host, done);
            }
        }
    }

    fn touch_one(&mut self, run: &PlaybookRun, host: &str, done: usize) {
        let machine = self.metal.get_mut(host).unwrap();
        machine.done = done;
        if [Intent::Install, Intent::Join].contains(&run.spec.intent) {
            machine.dirty = true;
        }
    }

    /// All steps of a run are done on a host.
    fn works_on(&mut self, run: &PlaybookRun, host: &str) {
        let cluster = run.spec.cluster_name.clone().unwrap_or_default();
        let topology = self.deployment(&cluster).spec.etcd.topology;
        let role = self.role_of(host);
        let machine = self.metal.get_mut(host).unwrap();
        machine.done = run.spec.steps.len();
        for step in &run.spec.steps {
            match step {
                Step::Reset => {
                    self.check_reset(&cluster, host);
                    self.metal.get_mut(host).unwrap().wipe();
                }
                Step::RestartServices | Step::Reboot => self.metal.get_mut(host).unwrap().sick = false,
                Step::Etcd => {
                    self.metal.get_mut(host).unwrap().dirty = true;
                    let of_etcd = match topology {
                        EtcdTopology::Stacked => role == Some(Role::ControlPlane),
                        EtcdTopology::Dedicated => role == Some(Role::Etcd),
                        EtcdTopology::External => false,
                    };
                    let has_data = self.metal[host].data;
                    if of_etcd && !(has_data && self.towns[&cluster].members.contains(host)) {
                        self.check_member_may_join(&cluster, host);
                        self.town(&cluster).members.insert(host.into());
                        self.metal.get_mut(host).unwrap().data = true;
                    }
                }
                Step::ControlPlane => {
                    self.kubelet_starts(&cluster, host);
                    self.town(&cluster).planes.insert(host.into());
                }
                Step::Node => self.kubelet_starts(&cluster, host),
                Step::RemoveEtcdMember => {
                    let leaves = run.spec.vars.get("etcd_member_remove");
                    let leaves = leaves.and_then(|leaves| leaves["name"].as_str()).unwrap_or_default();
                    let leaves = leaves.to_owned();
                    self.check_member_may_leave(&cluster, &leaves);
                    let town = self.town(&cluster);
                    town.members.remove(&leaves);
                    town.planes.remove(&leaves);
                }
                Step::RecoverEtcd => {
                    self.check_recovery(&cluster);
                    self.town(&cluster).members = [host.to_owned()].into();
                }
                Step::BootstrapOs
                | Step::Preflight
                | Step::Prepare
                | Step::ContainerRuntime
                | Step::Network
                | Step::Addons
                | Step::LoadBalancer
                | Step::PostInstall
                | Step::EtcdEndpoints
                | Step::Fence
                | Step::ProbeHost
                | Step::ProbeEtcd
                | Step::Custom(_) => {}
            }
        }
        if run.spec.steps.contains(&Step::Reset) {
            let town = self.town(&cluster);
            town.planes.remove(host);
        }
    }

    fn kubelet_starts(&mut self, cluster: &str, host: &str) {
        let machine = self.metal.get_mut(host).unwrap();
        (machine.dirty, machine.kubelet) = (true, Some(cluster.to_owned()));
        let town = self.town(cluster);
        town.nodes.insert(host.into());
        town.cordoned.remove(host);
    }

    /// Machines that have got their power back register their Nodes again, whoever has forgotten them.
    pub fn kubelets(&mut self) {
        for (host, machine) in self.metal.clone() {
            let Some(cluster) = machine.kubelet.filter(|_| machine.alive && machine.boots) else {
                continue;
            };
            let metal = self.metal.clone();
            let town = self.town(&cluster);
            if town.works(&metal) {
                let is_new = town.nodes.insert(host.clone());
                let machine = self.metal.get_mut(&host).unwrap();
                machine.boots = false;
                machine.returned |= is_new;
            }
        }
    }

    /// What a step finds out for itself: a member without whom etcd would not decide is not taken out, and none goes on
    /// alone while there is a majority.
    fn refuses(&self, run: &PlaybookRun) -> bool {
        let cluster = run.spec.cluster_name.as_deref().unwrap_or_default();
        let Some(town) = self.towns.get(cluster) else {
            return false;
        };
        let leaves = run.spec.vars.get("etcd_member_remove");
        let leaves = leaves.and_then(|leaves| leaves["name"].as_str());
        let Some(leaves) = leaves else {
            return town.has_quorum(&self.metal);
        };
        let is_member = town.members.contains(leaves);
        !town.has_quorum(&self.metal) || (is_member && !town.has_quorum_without(leaves, &self.metal))
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
        let done = steps.iter().take(done).map(|step| StepStatus {
            name: *step,
            phase: StepPhase::Succeeded,
            started_at: Some(finished.clone()),
            finished_at: None,
            changed: 0,
        });
        status.steps = done.collect();
        let end = crds::playbook_run::end(phase, reason, reason);
        status.conditions = crds::conditions::state(&[], &end, None, &finished);
    }

    pub fn role_of(&self, host: &str) -> Option<Role> {
        let on = |machine: &&crds::Machine| machine.spec.host_ref.as_ref().is_some_and(|named| named.name == host);
        self.machines.iter().find(on).map(|machine| machine.spec.role)
    }
}

fn asks_etcd(run: &PlaybookRun) -> bool {
    let steps = [Step::RemoveEtcdMember, Step::RecoverEtcd];
    run.spec.steps.iter().any(|step| steps.contains(step))
}

/// What the executor says last: every host that is not done has a failure.
fn last_word(phase: RunPhase, reason: &str, results: &[HostResult]) -> RunOutcome {
    let failed = results.iter().filter(|result| result.failure.is_some()).count();
    let count = |count: usize| i32::try_from(count).unwrap();
    RunOutcome {
        phase,
        retriable: phase == RunPhase::Failed,
        reason: reason.into(),
        message: String::new(),
        step: None,
        hosts_ok: count(results.len() - failed),
        hosts_failed: count(failed),
        digest: String::new(),
    }
}

fn failure(step: &str, reason: &str) -> HostFailure {
    HostFailure { step: step.into(), task: "write sysctl".into(), reason: reason.into(), message: "no".into() }
}

fn failed(host: &str, step: &str, reason: &str) -> HostResult {
    HostResult {
        name: host.to_owned(),
        unreachable: reason == "Unreachable",
        failure: Some(failure(step, reason)),
        ..HostResult::default()
    }
}
