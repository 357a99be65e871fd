//! Brings machines, and what was applied to the cluster, to settings that were changed: control planes and machines of
//! etcd one after the other, then manifests, then workers, first one of them and then the others. It goes on only while
//! what it has touched is well: one machine that fails keeps all others as they are.

mod gate;
mod target;
mod tried;

use std::collections::BTreeMap;

use crds::step::{Intent, Role, Step};
use crds::{ObjectExt, PlaybookRun, Reason};

use crate::attempts::{self, RetryDecision};
use crate::cluster_deployment::action::Action;
use crate::cluster_deployment::lane::{Lane, Needs};
use crate::cluster_deployment::proposal::{Area, Proposal, Round, Severity};
use crate::cluster_deployment::request::{BATCH, Target, describe};
use crate::cluster_deployment::retrying::Effort;
use crate::cluster_deployment::state::ClusterState;
use crate::departure::is_healthy;
use crate::message::count;

use target::Outdated;
use tried::Tried;

/// Runs that are kept, the newest.
const KEEP: usize = 8;

pub(super) fn propose(state: &ClusterState<'_>, round: &Round) -> Proposal {
    if state.installed.is_none() || !round.allows(Lane::ControlPlane, Needs::Spec) {
        return Proposal::default();
    }
    match runs(state).into_iter().find(|run| !attempts::is_over(run)) {
        Some(run) => progressing(describe(state, run)),
        None => next(state).unwrap_or_default(),
    }
}

/// The runs by which it is known how often something was tried.
pub(super) fn keeps(state: &ClusterState<'_>) -> Vec<String> {
    runs(state).into_iter().take(KEEP).map(|run| run.name().to_owned()).collect()
}

/// Those of the cluster's own, the newest first.
fn runs<'a>(state: &ClusterState<'a>) -> Vec<&'a PlaybookRun> {
    state.newest_runs(|run| run.spec.intent == Intent::Configure && !attempts::targets(run).is_empty())
}

fn progressing(message: String) -> Proposal {
    Proposal::report(Area::Configuration, Reason::Configuring, message, Severity::Progressing)
}

/// What is due next, if anything is.
fn next(state: &ClusterState<'_>) -> Option<Proposal> {
    let tried = Tried::new(state, runs(state));
    let mut outdated = target::outdated(state);
    outdated.retain(|outdated| !tried.is_in_vain(state, outdated));
    let is_worker = |outdated: &Outdated<'_>| outdated.machine.machine.spec.role == Role::Worker;
    let (workers, mut others): (Vec<_>, Vec<_>) = outdated.into_iter().partition(is_worker);
    others.extend(target::of_cluster(state).filter(|outdated| !tried.is_in_vain(state, outdated)));
    match others.first() {
        Some(first) => one(state, &tried, first, others.len() + workers.len() - 1),
        None => many(state, &tried, &workers),
    }
}

/// A control plane, a machine of etcd, or the one by which manifests are applied.
fn one(state: &ClusterState<'_>, tried: &Tried<'_>, outdated: &Outdated<'_>, more: usize) -> Option<Proposal> {
    if let Some(why) = gate::why_not_now(state, outdated) {
        return Some(progressing(format!("{} is to be configured ({}); {why}", outdated.title(), outdated.fields())));
    }
    let decision = tried.decision(state, outdated);
    let retry = decision.retry();
    waits(state, outdated, decision).or_else(|| {
        let more = match more {
            0 => String::new(),
            more => format!("; {} after it", count(more, "more change")),
        };
        let message = format!("configuring {} ({}){more}", outdated.title(), outdated.fields());
        let run = tried.run(state, outdated.steps(), &[(outdated.machine, retry)]);
        Some(progressing(message).and(Action::create(run)))
    })
}

/// Workers: one before all others, and while one has failed no other one.
fn many(state: &ClusterState<'_>, tried: &Tried<'_>, workers: &[Outdated<'_>]) -> Option<Proposal> {
    // Those that are tried again are the first.
    let mut due: BTreeMap<(bool, Vec<Step>), Vec<Target<'_>>> = BTreeMap::new();
    let (mut failed, mut sick) = (None, None);
    for worker in workers {
        let machine = worker.machine;
        let decision = tried.decision(state, worker);
        let (is_again, retry) = (decision.is_again(), decision.retry());
        if let Some(proposal) = waits(state, worker, decision) {
            failed = failed.or(Some(proposal));
        } else if is_healthy(machine.machine) {
            due.entry((!is_again, worker.steps())).or_default().push((machine, retry));
        } else {
            sick = sick.or_else(|| Some(format!("waits for {} to be well ({})", machine.title(), machine.says())));
        }
    }
    if failed.is_some() {
        return failed;
    }
    let Some(((_, steps), targets)) = due.first_key_value() else { return sick.map(progressing) };
    let most = if target::proved(state, steps) { BATCH } else { 1 };
    let batch = &targets[..targets.len().min(most)];
    let what = match batch {
        [(first, _)] => first.title(),
        batch => count(batch.len(), "worker"),
    };
    let more = match workers.len() - batch.len() {
        0 => String::new(),
        left => format!("; {} after that", count(left, "more worker")),
    };
    let run = tried.run(state, steps.clone(), batch);
    Some(progressing(format!("configuring {what}{more}")).and(Action::create(run)))
}

/// Why nothing is done, if that is so: the machine has failed.
fn waits(state: &ClusterState<'_>, outdated: &Outdated<'_>, decision: RetryDecision) -> Option<Proposal> {
    let effort = Effort {
        area: Area::Configuration,
        failed: Reason::ConfigurationFailed,
        could_not: format!("{} could not be configured ({})", outdated.title(), outdated.fields()),
    };
    let mut proposal = effort.propose(state, decision, |_, _| None)?;
    if let Some(report) = &mut proposal.report {
        report.message.push_str("; all other machines stay as they are until then");
    }
    Some(proposal)
}
