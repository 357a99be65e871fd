//! Time, and what it brings: runs that begin and end as their fates say, probes that answer, machines that are clean.

use std::collections::BTreeMap;

use crds::PlaybookRun;
use crds::playbook_run::{
    Fence, FrozenSettings, HostFailure, HostResult, PlaybookRunStatus, Progress, RunOutcome, RunPhase, StepPhase,
    StepStatus,
};
use crds::step::{Intent, Role, Step as RunStep};
use jiff::SignedDuration;

use super::api::written;
use super::{Fate, World};
use crate::{attempts, cluster_deployment, settings};

impl World {
    /// Time passes, runs that hold the lock begin and end, probes answer, and spare Hosts are found clean.
    pub(super) fn environment(&mut self) {
        self.now += SignedDuration::from_secs(700);
        // How a run ended is known to its Job.
        for run in self.runs.iter_mut().filter(|run| run.status.is_none()) {
            run.status = self.jobs.get(run.metadata.name.as_deref().unwrap()).cloned();
        }
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
        self.look_at_api();
        for host in &mut self.hosts {
            let name = host.metadata.name.clone().unwrap();
            if host.status.is_none() {
                host.status = Some(found_ready());
                written(&mut host.metadata);
            }
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
    pub(super) fn is_busy(&self) -> bool {
        self.runs.iter().any(|run| {
            let works = run.status.as_ref().and_then(|status| status.phase) == Some(RunPhase::Running);
            let may_begin = self.token_of(run) > 0 && !run.spec.paused;
            let is_probe = run.spec.intent == Intent::Probe;
            !attempts::is_over(run) && (works || may_begin || is_probe || run.spec.cancel)
        })
    }

    /// A run begins: every guard takes its fence, or refuses it.
    pub(super) fn begin(&mut self, index: usize, token: i64) {
        let run = &self.runs[index];
        let name = run.metadata.name.clone().unwrap();
        let fences = cluster_deployment::fencing::is_fence(run);
        if !fences && run.spec.hosts.iter().any(|host| self.role_of(host).is_none()) {
            return self.end(index, RunPhase::Failed, "HostNotInCluster", 0);
        }
        self.check_reset(run);
        self.check_install(run);
        self.check_held(run);
        let first = self.first_host();
        let work = (run.spec.intent, run.spec.hosts.len());
        self.begun_runs.insert(name.clone(), work);
        self.first_of.extend(first.map(|first| (name.clone(), first)));
        for host in &run.spec.hosts {
            let found = self.hosts.iter().find(|there| there.metadata.name.as_ref() == Some(host));
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
            settings: Some(FrozenSettings {
                addon_manifests: self.manifests.addons.clone().unwrap_or_default(),
                network_manifests: self.manifests.network.clone().unwrap_or_default(),
                ..settings::frozen(&self.deployment, &BTreeMap::new(), &BTreeMap::new())
            }),
            progress: Some(Progress { step: self.runs[index].spec.steps[0].name().into(), ..Progress::default() }),
            ..PlaybookRunStatus::default()
        });
    }

    pub(super) fn probe(&mut self, index: usize) {
        let hosts = self.runs[index].spec.hosts.clone();
        let result = |name: &String| HostResult {
            name: name.clone(),
            unreachable: self.silent.contains(name),
            fence: (!self.silent.contains(name)).then(|| {
                let highest = self.guards.get(name).map(|(highest, _)| *highest);
                let (epoch, token) = highest.unwrap_or_default();
                Fence { epoch, token }
            }),
            etcd: self.etcd_seen(name),
            ..HostResult::default()
        };
        let results = hosts.iter().map(result).collect();
        self.end(index, RunPhase::Succeeded, "Complete", 1);
        self.tell(index, |status| status.hosts = results);
    }

    /// The executor's own words, beside how it ended.
    fn tell(&mut self, index: usize, say: impl FnOnce(&mut PlaybookRunStatus)) {
        let run = &mut self.runs[index];
        let status = run.status.as_mut().unwrap();
        say(status);
        let remembered = (run.metadata.name.clone().unwrap(), status.clone());
        self.jobs.extend([remembered]);
    }

    /// Records how a run ended, with so many of its steps done.
    pub(super) fn end(&mut self, index: usize, phase: RunPhase, reason: &str, done: usize) {
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
                started_at: Some(finished.clone()),
                finished_at: None,
                changed: 0,
            })
            .collect();
        status.conditions =
            crds::conditions::state(&[], &crds::playbook_run::end(phase, reason, reason), None, &finished);
        let remembered = (run.metadata.name.clone().unwrap(), status.clone());
        self.jobs.extend([remembered]);
    }

    pub(super) fn next_fate(&mut self, host: &str) -> Fate {
        let fate = if self.fates.is_empty() { Fate::Well } else { self.fates.remove(0) };
        if self.is_dead(host) {
            return Fate::Unreachable;
        }
        if self.always_fails.iter().any(|name| name == host) {
            return Fate::Fails;
        }
        fate
    }

    pub(super) fn finish(&mut self, index: usize) {
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
            self.tell(index, |status| status.hosts = results.collect());
            return;
        }
        let refuses = self.refuses(&run);
        let fate = |fate| if refuses { Fate::Fails } else { fate };
        // What becomes of a preparation is of no consequence: fates are those of the runs after it.
        let prepares = run.spec.intent == Intent::Prepare;
        let mut next = |host: &String| {
            let is_spared = prepares && !self.always_fails.contains(host) && !self.is_dead(host);
            if is_spared { Fate::Well } else { fate(self.next_fate(host)) }
        };
        let fates: Vec<Fate> = run.spec.hosts.iter().map(&mut next).collect();
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
            self.etcd_after(&run, done);
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
                Fate::Well => HostResult { name: host.clone(), ok: 3, ..HostResult::default() },
                Fate::Unreachable => failed(host, step, "Unreachable"),
                _ => failed(host, step, "TaskFailed"),
            };
            if resets && *fate == Fate::Well {
                self.dirty.remove(host);
                self.begun_on.remove(host);
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
        self.etcd_after(&run, done);
        for result in &mut results {
            let well = result.failure.is_none();
            if well && !whole && !resets {
                *result = failed(&result.name, run.spec.steps[done].name(), "NotReached");
            } else if well
                && !resets
                && run.spec.intent != Intent::Prepare
                && self.role_of(&result.name).is_some_and(|role| role != Role::Etcd)
            {
                self.nodes.insert(result.name.clone());
            }
        }
        let (phase, reason) = match count {
            0 => (RunPhase::Succeeded, "Complete"),
            _ => (RunPhase::Failed, "TaskFailed"),
        };
        self.done.extend(run.spec.hosts.iter().map(|host| (host.clone(), done)));
        self.end(index, phase, reason, done);
        self.tell(index, |status| {
            status.retriable = (phase == RunPhase::Failed).then_some(true);
            status.outcome = Some(last_word(phase, reason, &results));
            status.hosts = results;
        });
    }

    pub(super) fn is_held(&self, host: &str) -> bool {
        self.hosts.iter().any(|there| there.metadata.name.as_deref() == Some(host) && there.spec.claim_ref.is_some())
    }

    pub(super) fn touch_hosts(&mut self, run: &PlaybookRun, resets: bool, done: usize) {
        for host in &run.spec.hosts {
            self.done.insert(host.clone(), done);
            if !resets {
                self.dirty.insert(host.clone());
            }
        }
    }

    pub(super) fn token_of(&self, run: &PlaybookRun) -> i64 {
        let operations = self.deployment.status.iter().flat_map(|status| &status.operations);
        let mut ours = operations.filter(|operation| Some(&operation.run) == run.metadata.name.as_ref());
        ours.next().map_or(0, |operation| operation.token)
    }

    pub(super) fn role_of(&self, host: &str) -> Option<Role> {
        let machine =
            self.machines.iter().find(|machine| machine.spec.host_ref.as_ref().is_some_and(|named| named.name == host));
        machine.map(|machine| machine.spec.role)
    }
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

/// What a probe makes of a spare Host that is well, but for how clean it is.
fn found_ready() -> crds::HostStatus {
    let text = "{conditions: [{type: Ready, status: 'True', reason: Available, message: '', lastTransitionTime: '2026-01-01T00:00:00Z'}]}";
    serde_yaml::from_str(text).unwrap()
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
