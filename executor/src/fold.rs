//! Folds the events of a run into its status: progress, steps, hosts, and at the end the outcome.
//! Pure: time comes with the events, and nothing that stands in one can make it panic or grow beyond what the
//! schema allows.

mod backup;
mod budget;
mod certificates;
mod components;
mod ending;
mod etcd;
mod host;
mod parts;
mod sentence;
mod staged;
mod text;

use std::collections::{BTreeMap, BTreeSet};

use crds::Component;
use crds::etcd_backup::BackupContent;
use crds::etcd_restore::StagedBackup;
use crds::inputs::{Group, RunInputs};
use crds::playbook_run::{Fence, FenceOwner, HostResult, Progress, RunOutcome, StepPhase, StepStatus};
use crds::step::{Effect, Step};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use k8s_openapi::jiff::Timestamp;
use serde::Serialize;

use crate::custom;
use crate::event::{Event, TaskResult, TaskStatus, What};
use crate::redact::Redactor;
use crate::role::{is_critical, role_of};
use crate::sanitize::clean;
use crate::unreachable::Unreachable;
use host::Host;
use sentence::Purpose;
use staged::Staging;
use text::{TASK_LIMIT, task_name};

/// The executor's part of the run's status.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Snapshot {
    /// Where it is.
    pub progress: Progress,
    /// Where each step is.
    pub steps: Vec<StepStatus>,
    /// The result of each host.
    pub hosts: Vec<HostResult>,
    /// The components that the machines found in the artifact bundle.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub components: Vec<Component>,
    /// The backup that the run made, once it is whole in its storage.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub backup: Option<BackupContent>,
    /// The backup that the run brought to the machines, once it is whole on all of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub staged: Option<StagedBackup>,
    /// The outcome, once the run has ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outcome: Option<RunOutcome>,
}

/// How `ansible-playbook` ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// By itself, with this exit code; none: killed by a signal.
    Exited(Option<i32>),
    /// Stopped because it was asked to.
    Canceled,
    /// Stopped by the deadline.
    DeadlineExceeded,
    /// Stopped before this step, because the run is to pause.
    Paused(Step),
}

/// The state of a run as far as its events tell.
#[derive(Clone, Debug)]
pub struct Fold {
    purpose: Purpose,
    digest: String,
    steps: Vec<StepStatus>,
    /// Only probes are played: what they say is no failure.
    compares: bool,
    /// Steps that have no probe: a user's own.
    unproven: BTreeSet<Step>,
    hosts: BTreeMap<String, Host>,
    components: Vec<Component>,
    /// Where the backup goes that is wanted, if one is.
    backup_location: Option<String>,
    /// The backup that was made.
    backup: Option<BackupContent>,
    /// The backup that is to be staged, if one is.
    staging: Option<Staging>,
    /// Index of the step that runs, and whether its probe does.
    current: Option<(usize, bool)>,
    progress: Progress,
    /// All tasks were played to their end.
    ended: bool,
    last_seen: Option<Time>,
    /// Results so far: the order in which hosts failed.
    results: u64,
    outcome: Option<RunOutcome>,
    /// Why a run without hosts has failed.
    failure: Option<RunFailure>,
}

/// The failure of a run that has no host to tell of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunFailure {
    /// CamelCase.
    pub reason: String,
    /// One sentence.
    pub message: String,
    /// Another attempt may help.
    pub retriable: bool,
}

impl Fold {
    /// Nothing has happened yet.
    pub fn new(model: &RunInputs, digest: &str) -> Self {
        let steps = model.steps.iter().map(|step| StepStatus {
            name: *step,
            phase: StepPhase::Pending,
            started_at: None,
            finished_at: None,
            changed: 0,
        });
        let unproven = |step: &&Step| step.custom().is_some() && !custom::has_probe(model, step);
        let host = |name: &str, groups: &[Group]| Host::new(name, role_of(groups), is_critical(model, groups));
        let hosts = model.hosts.iter().map(|(name, inputs)| (name.clone(), host(name, &inputs.groups)));
        Self {
            purpose: Purpose::new(model.intent, &model.steps),
            digest: digest.to_owned(),
            steps: steps.collect(),
            compares: model.intent.spec().effect == Effect::Compares,
            unproven: model.steps.iter().filter(unproven).copied().collect(),
            hosts: hosts.collect(),
            components: Vec::new(),
            backup_location: model.backup.as_ref().map(|backup| backup.location.clone()),
            backup: None,
            staging: model.staging.as_ref().map(|staging| Staging::new(&staging.location)),
            current: None,
            progress: Progress::default(),
            ended: false,
            last_seen: None,
            results: 0,
            outcome: None,
            failure: None,
        }
    }

    /// The run has failed, and has no host to tell of it.
    pub fn failed(&mut self, failure: RunFailure) {
        self.failure = Some(RunFailure { message: clean(&failure.message, text::MESSAGE_LIMIT), ..failure });
    }

    /// Applies a line of the plugin, with its secrets redacted; true when it was an event.
    pub fn line(&mut self, line: &[u8], redactor: &Redactor) -> bool {
        let Some(mut event) = Event::parse(line) else {
            return false;
        };
        event.redact(redactor);
        self.apply(&event);
        true
    }

    /// Applies an event.
    pub fn apply(&mut self, event: &Event) {
        let at = time(event.at);
        match &event.what {
            What::Playbook { step, probe, tasks } => self.playbook(step, *probe, *tasks, at.clone()),
            What::Play => self.hosts.values_mut().for_each(Host::next_play),
            What::Task { name } => {
                self.progress.task = task_name(name);
                self.progress.done = self.progress.done.saturating_add(1);
                self.fit_total();
            }
            What::Result(result) => self.result(result),
            // The step before the one that waits is over.
            What::Gate { .. } => self.close_step(at.clone()),
            What::BackupProgress { bytes } if self.backup_location.is_some() => {
                self.progress.bytes = Some((*bytes).max(0));
            }
            What::Backup(content) if self.backup_location.as_ref() == Some(&content.location) => {
                self.backup = Some(backup::cleaned(content));
            }
            What::StagingProgress { host, bytes } if self.hosts.contains_key(host) => {
                if let Some(staging) = &mut self.staging {
                    self.progress.bytes = Some(staging.sent(host, *bytes));
                }
            }
            What::Staged(staged) => {
                if let Some(staging) = &mut self.staging {
                    staging.take(staged);
                }
            }
            What::StagingProgress { .. } => {}
            // Another run's.
            What::BackupProgress { .. } | What::Backup(_) => {}
            What::Stats(stats) => {
                for (name, counts) in stats {
                    if let Some(host) = self.hosts.get_mut(name) {
                        host.settle(*counts);
                    }
                }
                self.close_step(at.clone());
                self.ended = true;
            }
        }
        self.last_seen = at.or(self.last_seen.take());
    }

    /// The key that was seen first on a host.
    pub fn host_key(&mut self, host: &str, key: &str) {
        if let Some(host) = self.hosts.get_mut(host) {
            host.result.host_key = Some(clean(key, 1400));
        }
    }

    /// Why nothing can be done on a host, as found before Ansible starts.
    pub fn blocked(&mut self, host: &str, why: Unreachable) {
        if let Some(host) = self.hosts.get_mut(host) {
            host.blocked = Some(why);
        }
    }

    /// Whether it was reported that the backup lies ready; true where none is to be staged.
    pub fn is_staged(&self) -> bool {
        self.staging.as_ref().is_none_or(|staging| staging.staged().is_some())
    }

    /// Passes over the first steps, which are done already.
    pub fn begin_at(&mut self, step: usize) {
        // What an earlier run staged counts only where it is not staged again.
        let again = self.steps.iter().skip(step).any(|status| status.name == Step::StageBackup);
        if let Some(staging) = self.staging.as_mut().filter(|_| again) {
            staging.forget();
        }
        for status in self.steps.iter_mut().take(step) {
            status.phase = StepPhase::Succeeded;
        }
        // Then there is nothing to play.
        self.ended = step >= self.steps.len();
        self.progress = Progress {
            step: self.steps.get(step).map_or("", |step| step.name.name()).to_owned(),
            ..Progress::default()
        };
    }

    /// Shows a task on all hosts that precedes the steps.
    pub fn prepare(&mut self, task: &str) {
        self.progress = Progress {
            step: self.steps.first().map_or("", |step| step.name.name()).to_owned(),
            task: clean(task, TASK_LIMIT),
            ..Progress::default()
        };
    }

    /// The highest fence that a host's guard knows, and whose it is.
    pub fn fence(&mut self, host: &str, (fence, owner): (Fence, Option<FenceOwner>)) {
        if let Some(host) = self.hosts.get_mut(host) {
            host.result.fence = Some(fence);
            host.result.fence_owner = owner;
        }
    }

    /// Whether a host's guard reports, after a stop, that no process of this run is left there.
    pub fn quiet(&mut self, host: &str, quiet: bool) {
        if let Some(host) = self.hosts.get_mut(host) {
            host.result.quiet = Some(quiet);
        }
    }

    /// Hosts on which nothing can be done.
    pub fn blocked_hosts(&self) -> impl Iterator<Item = &str> {
        let blocked = self.hosts.iter().filter(|(_, host)| host.blocked.is_some());
        blocked.map(|(name, _)| name.as_str())
    }

    /// The status after the events so far.
    pub fn snapshot(&self) -> Snapshot {
        let hosts = self.hosts.values().map(|host| host.result.clone()).collect();
        Snapshot {
            progress: self.progress.clone(),
            steps: self.steps.clone(),
            hosts: budget::fit(hosts),
            components: self.components.clone(),
            backup: self.backup.clone(),
            staged: self.staging.as_ref().and_then(Staging::staged).cloned(),
            outcome: self.outcome.clone(),
        }
    }

    fn playbook(&mut self, step: &str, probe: bool, tasks: i64, at: Option<Time>) {
        let Some(index) = self.steps.iter().position(|status| status.name.name() == step) else {
            return;
        };
        let tasks = i32::try_from(tasks.clamp(0, 1_000_000)).unwrap_or_default();
        if self.current.is_none_or(|(current, _)| current != index) {
            self.close_step(at.clone());
            if let Some(status) = self.steps.get_mut(index) {
                status.phase = StepPhase::Running;
                status.started_at = at;
            }
            self.progress = Progress { step: step.to_owned(), total: tasks, ..Progress::default() };
        } else if self.progress.total > 0 {
            self.progress.total = self.progress.total.saturating_add(tasks);
        }
        self.current = Some((index, probe));
    }

    fn result(&mut self, result: &TaskResult) {
        let current = self.current.and_then(|(index, _)| self.steps.get(index)).map(|step| step.name);
        let probe = self.current.is_some_and(|(_, probe)| probe);
        let Some(host) = self.hosts.get_mut(&result.host) else {
            return;
        };
        self.results += 1;
        for found in result.finding.iter().flat_map(components::found) {
            Component::merge(&mut self.components, &found);
        }
        match current.filter(|_| self.compares && result.status == TaskStatus::Failed && !result.ignored) {
            Some(step) => host.differ(result, step),
            None => host.take(result, current.as_ref().map_or("", Step::name), probe, self.results),
        }
        if result.changed
            && result.status == TaskStatus::Ok
            && !probe
            && let Some((index, _)) = self.current
            && let Some(status) = self.steps.get_mut(index)
        {
            status.changed = status.changed.saturating_add(1);
        }
    }

    /// The step that runs has ended: well, if its probe was played, where it has one, and a host is still in; and if
    /// the backup that it makes or stages is there.
    fn close_step(&mut self, at: Option<Time>) {
        let Some((index, probed)) = self.current.take() else {
            return;
        };
        let step = self.steps.get(index).map(|step| step.name);
        let proven = probed || step.is_some_and(|step| self.unproven.contains(&step));
        let made = self.backup.is_some() || self.backup_location.is_none() || step != Some(Step::BackupEtcd);
        let staged = self.is_staged() || step != Some(Step::StageBackup);
        let in_play = self.hosts.is_empty() || self.hosts.values().any(|host| host.result.failure.is_none());
        let well = proven && made && staged && in_play && self.failure.is_none();
        let critical = self.hosts.values().any(|host| host.critical && host.result.failure.is_some());
        if let Some(status) = self.steps.get_mut(index) {
            status.phase = if well && !critical { StepPhase::Succeeded } else { StepPhase::Failed };
            status.finished_at = at;
        }
    }

    fn fit_total(&mut self) {
        if self.progress.total > 0 {
            self.progress.total = self.progress.total.max(self.progress.done);
        }
    }
}

/// Whole seconds, if it is a time that a person could live in.
fn time(at: f64) -> Option<Time> {
    // A foreign number: `as` saturates, and the range is checked by jiff.
    Timestamp::from_second(at as i64).ok().filter(|_| at > 0.0 && at < 1e11).map(Time)
}

#[cfg(test)]
mod tests;
