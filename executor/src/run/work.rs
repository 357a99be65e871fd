//! A run's work on the machines: the guards take them over, an interrupted run finds where to resume, Ansible plays,
//! and after a stop the guards end the processes that are left.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crds::Reason;
use crds::inputs::RunInputs;
use crds::playbook_run::RunOutcome;
use crds::step::Effect;
use serde_json::{Map, json};
use tokio::sync::watch;
use tokio::time::Instant;
use tracing::{info, warn};

use super::error::RunError;
use crate::cli::Run;
use crate::fold::{Ending, Fold, Snapshot};
use crate::guard;
use crate::guard::binary::Guards;
use crate::guard::machines::Machines;
use crate::inputs::Inputs;
use crate::play::{AnsibleRunner, Pauses, publish};
use crate::playbooks::{self, Playbook};
use crate::resume::{ResumeScan, probed};
use crate::ssh;
use crate::stop::{Stop, Stops};
use crate::unreachable::Unreachable;

/// A probe of a resumed run does not wait long for what is not there.
pub(super) const PROBE_SECONDS: u64 = 5;
/// How long the machines of a stopped run may take to end its processes. Its Pod is killed 120 s after it was
/// asked to end, and the last report needs the rest.
const TERMINATION: Duration = Duration::from_secs(95);

/// The signals that reach a run while it works, and those that it gives.
pub(super) struct RunSignals<'a> {
    pub stops: &'a mut Stops,
    /// Reports the outcome of a stopped run as far as it is known, before its processes are ended on the machines.
    pub report_early: &'a dyn Fn(&RunOutcome),
    pub shown: &'a watch::Sender<Snapshot>,
    pub pauses: Pauses,
}

/// The part that the guards have in a run.
pub(super) enum Guarding {
    /// Nothing: a run by hand has no fence.
    Nothing,
    /// Which fence they know.
    Read,
    /// To take the machines over.
    Take(Guards),
}

impl Guarding {
    pub(super) fn for_run(args: &Run, inputs: &Inputs) -> Result<Self, RunError> {
        if only_looks(&inputs.model) {
            return Ok(Guarding::Read);
        }
        let Some(run) = &args.run else {
            return Ok(Guarding::Nothing);
        };
        if args.token < 1 || inputs.model.cluster_name.is_none() {
            return Err(RunError::NotLocked { run: run.clone() });
        }
        let guards = Guards::read(&args.guard);
        Ok(Guarding::Take(guards.map_err(|source| RunError::Guard { file: args.guard.clone(), source })?))
    }

    /// Every command goes through the guard.
    pub(super) fn guards(&self) -> bool {
        matches!(self, Guarding::Take(_))
    }
}

/// Whether the run changes nothing, so that it needs no fence. Its intent is not enough: each step must be read-only,
/// too, or only its probe is played.
fn only_looks(model: &RunInputs) -> bool {
    let looks = model.intent.spec().effect == Effect::Looks;
    compares(model) || looks && model.steps.iter().all(|step| step.spec().read_only)
}

/// Whether only the probes of its steps are played.
fn compares(model: &RunInputs) -> bool {
    model.intent.spec().effect == Effect::Compares
}

/// A run that is ready to work on its machines.
pub(super) struct Work<'a> {
    pub runner: &'a AnsibleRunner<'a>,
    pub machines: &'a Machines<'a>,
    pub guarding: &'a Guarding,
    pub inventory: &'a Path,
    pub playbooks: &'a [Playbook],
}

pub(super) type Ended = (Ending, Option<Stop>);

impl Work<'_> {
    /// Acquires the machines, plays the steps, and terminates what a stop left running.
    pub(super) async fn run(&self, fold: &mut Fold, signals: &mut RunSignals<'_>) -> io::Result<Ended> {
        let (ending, stop) = match self.acquire(fold, signals).await {
            Some(stop) => (stop.ending(), Some(stop)),
            None => self.play(fold, signals).await?,
        };
        if stop.is_some() && ending != Ending::Exited(Some(0)) {
            (signals.report_early)(&fold.clone().end(ending));
            if self.guarding.guards() {
                self.terminate(fold, signals).await;
            }
        }
        Ok((ending, stop))
    }

    /// Acquires the machines. One that does not accept SSH logins, or that another run has, is not contacted again.
    async fn acquire(&self, fold: &mut Fold, signals: &mut RunSignals<'_>) -> Option<Stop> {
        let hosts = self.reachable(fold);
        let met: Vec<(String, Result<(), Unreachable>)> = match self.guarding {
            Guarding::Nothing => return None,
            Guarding::Read => {
                let fences = tokio::select! {
                    fences = self.machines.read(hosts) => fences,
                    stop = signals.stops.next() => return Some(stop),
                };
                // A probe goes on where only the guard gave no answer.
                let met = fences.into_iter().map(|(host, fence)| match fence {
                    Err(why) if !guard::answers(why.reason.as_str()) => (host, Err(why)),
                    fence => {
                        if let Ok(fence) = fence {
                            fold.fence(&host, fence);
                        }
                        (host, Ok(()))
                    }
                });
                met.collect()
            }
            Guarding::Take(program) => {
                fold.prepare("take the machines over from earlier runs");
                publish(fold.snapshot(), signals.shown);
                let begun = tokio::select! {
                    begun = self.machines.begin(program, hosts) => begun,
                    stop = signals.stops.next() => return Some(stop),
                };
                let met: Vec<(String, Result<(), Unreachable>)> = begun.into_iter().collect();
                let refused = tokio::select! {
                    refused = self.refused(&met, fold) => refused,
                    stop = signals.stops.next() => return Some(stop),
                };
                hold_back(met, &refused)
            }
        };
        for (host, result) in met {
            if let Err(why) = result {
                fold.blocked(&host, why);
            }
        }
        let blocked: Vec<String> = fold.blocked_hosts().map(str::to_owned).collect();
        for route in blocked.iter().filter_map(|host| self.machines.ssh.routes.get(host)) {
            self.runner.end_master(&route.control).await;
            if let Err(error) = ssh::block(route) {
                warn!(%error, "failed to block the way to a machine");
            }
        }
        None
    }

    /// The machines whose guards refused this run: it, or what it was made from, is older than they are. Which fence
    /// they know, and whose it is, goes into the result.
    async fn refused(&self, met: &[(String, Result<(), Unreachable>)], fold: &mut Fold) -> Vec<String> {
        let is_fenced = |result: &Result<(), Unreachable>| matches!(result, Err(why) if why.reason == Reason::Fenced);
        let refused = met.iter().filter(|(_, result)| is_fenced(result));
        let refused: Vec<String> = refused.map(|(host, _)| host.clone()).collect();
        for (host, known) in self.machines.read(refused.clone()).await {
            if let Ok(known) = known {
                fold.fence(&host, known);
            }
        }
        refused
    }

    /// Plays the steps, from the first that is not done when the run resumes another.
    async fn play(&self, fold: &mut Fold, signals: &mut RunSignals<'_>) -> io::Result<Ended> {
        let model = &self.machines.inputs.model;
        if compares(model) {
            return self.compare(fold, signals).await;
        }
        let mut first = 0;
        if model.resume && !probed(model).is_empty() {
            let probes = self.playbooks.iter().filter(|playbook| playbook.probe);
            let probes = probes.take(probed(model).len());
            let seconds = Map::from_iter([("clusterwright_probe_seconds".to_owned(), json!(PROBE_SECONDS))]);
            let text = playbooks::wrapper(probes, self.guarding.guards(), &seconds);
            let file = self.write("survey.yml", &text)?;
            let mut scan = ResumeScan::new(model, fold);
            let (ending, stop) =
                self.runner.play(self.inventory, &file, &mut scan, signals.shown, signals.stops).await?;
            if stop.is_some() {
                return Ok((stop.map_or(ending, Stop::ending), stop));
            }
            first = scan.done();
            // A step has to be played to report the blocked hosts as failed.
            if fold.blocked_hosts().next().is_some() {
                first = first.min(model.steps.len().saturating_sub(1));
            }
            fold.begin_at(first);
            info!(done = first, steps = model.steps.len(), "the probes say where the run goes on");
            if first == model.steps.len() {
                return Ok((Ending::Exited(Some(0)), None));
            }
        }
        let steps = model.steps.get(first..).unwrap_or_default();
        let playbooks = self.playbooks.iter().filter(|playbook| steps.contains(&playbook.step));
        let text = playbooks::wrapper(playbooks, self.guarding.guards(), &Map::new());
        let file = self.write("run.yml", &text)?;
        self.runner.play(self.inventory, &file, fold, signals.shown, signals.stops).await
    }

    /// Ends the processes of a stopped run by the guards. A further signal leaves them to the next run.
    async fn terminate(&self, fold: &mut Fold, signals: &mut RunSignals<'_>) {
        let hosts = self.reachable(fold);
        let until = signals.stops.stopped().unwrap_or_else(Instant::now) + TERMINATION;
        let ends = tokio::select! {
            ends = self.machines.end(hosts.clone(), until) => ends,
            () = signals.stops.again() => BTreeMap::new(),
        };
        for host in hosts {
            let quiet = ends.get(&host).is_some_and(Result::is_ok);
            fold.quiet(&host, quiet);
        }
    }

    fn reachable(&self, fold: &Fold) -> Vec<String> {
        let blocked: Vec<&str> = fold.blocked_hosts().collect();
        let hosts = self.machines.inputs.model.hosts.keys();
        hosts.filter(|host| !blocked.contains(&host.as_str())).cloned().collect()
    }

    /// Each in a directory of its own with nothing else in it.
    pub(super) fn write(&self, name: &str, text: &str) -> io::Result<PathBuf> {
        self.runner.workdir.write(Path::new("playbook").join(name), text.as_bytes())
    }
}

/// Once one machine has refused the run, it does nothing on the others either: what it was told of them may be as old.
fn hold_back(
    met: Vec<(String, Result<(), Unreachable>)>,
    refused: &[String],
) -> Vec<(String, Result<(), Unreachable>)> {
    let Some(first) = refused.first() else {
        return met;
    };
    let held_back = || Unreachable {
        reason: Reason::NotReached,
        message: format!("nothing was done: the guard of {first} refused this run as an older one"),
    };
    let hold = |(host, result): (String, Result<(), Unreachable>)| (host, result.and_then(|()| Err(held_back())));
    met.into_iter().map(hold).collect()
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use crds::step::{CustomStep, Intent, Step};

    use super::{Guarding, RunError};
    use crate::cli::{Cli, Command};
    use crate::inputs::Inputs;
    use crate::secrets::Secrets;

    /// How a run of these steps is guarded.
    fn guarding(intent: Intent, steps: &[Step], token: &str, cluster: Option<&str>) -> Result<Guarding, RunError> {
        let guard = tempfile::NamedTempFile::new().unwrap();
        let path = guard.path().to_str().unwrap();
        let Command::Run(args) =
            Cli::parse_from(["executor", "run", "--inputs", "x", "--run", "n/r", "--token", token, "--guard", path])
                .command
        else {
            panic!("no run");
        };
        let mut model = crate::example::model();
        (model.intent, model.steps) = (intent, steps.to_vec());
        model.cluster_name = cluster.map(str::to_owned);
        let inputs = Inputs { model, digest: String::new(), secrets: Secrets::default() };
        Guarding::for_run(&args, &inputs)
    }

    #[test]
    fn whatever_is_not_read_only_is_guarded_whatever_the_intent() {
        let custom = CustomStep::new("x").map(Step::Custom);
        for step in Step::ALL.into_iter().chain(custom) {
            for intent in Intent::ALL {
                let guarded = guarding(intent, &[Step::ProbeHost, step], "7", Some("a")).unwrap().guards();
                let plays_probes = intent == Intent::Compare;
                assert!(guarded || step.spec().read_only || plays_probes, "{intent:?} {step}");
            }
        }
        let looks = guarding(Intent::Probe, &[Step::ProbeHost], "0", None).unwrap();
        assert!(matches!(looks, Guarding::Read));
    }

    #[test]
    fn nothing_is_changed_without_the_lock_of_a_cluster() {
        for (token, cluster) in [("0", Some("a")), ("7", None)] {
            for intent in [Intent::Probe, Intent::Custom] {
                let refused = guarding(intent, &[Step::Reset], token, cluster).err().unwrap();
                assert_eq!(refused.reason(), "NotLocked", "{intent:?} {token} {cluster:?}");
            }
        }
    }
}
