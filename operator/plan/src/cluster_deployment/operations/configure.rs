//! Brings machines, and what was applied to the cluster, to settings that were changed: control planes and machines of
//! etcd one after the other, then manifests, then workers, first one of them and then the others. It goes on only while
//! what it has touched is well: one machine that fails keeps all others as they are.

mod draining;
mod target;

use std::collections::BTreeMap;

use crds::machine::DrainReason;
use crds::step::{Intent, Role, Step};
use crds::{ObjectExt, Reason};

use crate::attempts::{self, RetryDecision};
use crate::cluster_deployment::action::Action;
use crate::cluster_deployment::drained_for::{drained, is_drained_for};
use crate::cluster_deployment::lane::{Lane, Needs};
use crate::cluster_deployment::proposal::{Area, Proposal, Round, Severity};
use crate::cluster_deployment::request::{BATCH, Target, describe};
use crate::cluster_deployment::retrying::Effort;
use crate::cluster_deployment::state::{ClusterMachine, ClusterState};
use crate::cluster_deployment::tried::{self, Tried};
use crate::cluster_deployment::{turn, upgrade};
use crate::departure::is_healthy;
use crate::message::count;
use crate::{provisioning, settings};

use draining::Draining;
use target::Outdated;

/// Whether a machine is drained, or to be drained, for what it is to have.
pub(super) fn is_drained_still(state: &ClusterState<'_>, machine: &ClusterMachine<'_>) -> bool {
    target::is_drained(state, machine)
}

/// Runs that are kept, the newest.
const KEEP: usize = 8;

pub(super) fn propose(state: &ClusterState<'_>, round: &Round) -> Proposal {
    if state.installed.is_none() || !round.allows(Lane::ControlPlane, Needs::Spec) {
        return Proposal::default();
    }
    match tried::runs(state, Intent::Configure).into_iter().find(|run| !attempts::is_over(run)) {
        Some(run) => progressing(describe(state, run)),
        None => next(state).unwrap_or_default(),
    }
}

/// The runs by which it is known how often something was tried.
pub(super) fn keeps(state: &ClusterState<'_>) -> Vec<String> {
    tried::kept(state, Intent::Configure, KEEP)
}

/// A digest of what is wanted.
fn key(state: &ClusterState<'_>) -> String {
    let manifests = &state.observed.manifests;
    let etcd_client = state.observed.etcd_client.and_then(|client| client.as_ref().ok());
    let wanted = provisioning::wanted(state.deployment);
    settings::digest(&(wanted, &manifests.addons, &manifests.network, etcd_client))
}

fn progressing(message: String) -> Proposal {
    Proposal::report(Area::Configuration, Reason::Configuring, message, Severity::Progressing)
}

/// What is due next, if anything is.
fn next(state: &ClusterState<'_>) -> Option<Proposal> {
    let tried = Tried::new(state, Intent::Configure, key(state));
    let is_in_vain = |outdated: &Outdated<'_>| tried.is_in_vain(state, &outdated.machine, &outdated.steps());
    let mut outdated = target::outdated(state);
    outdated.retain(|outdated| !is_in_vain(outdated));
    let is_worker = |outdated: &Outdated<'_>| outdated.machine.machine.spec.role == Role::Worker;
    let (workers, mut others): (Vec<_>, Vec<_>) = outdated.into_iter().partition(is_worker);
    others.extend(target::of_cluster(state).filter(|outdated| !is_in_vain(outdated)));
    // One that is drained for it already goes on.
    others.sort_by_key(|outdated| !is_drained_for(&outdated.machine, DrainReason::Configuration));
    let is_due = !others.is_empty() || !workers.is_empty();
    if let Some(waits) = is_due.then(|| upgrade::in_the_way(state)).flatten() {
        return Some(progressing(format!("changed settings are to be rolled out; {waits}")));
    }
    match others.first() {
        Some(first) => one(state, &tried, first, others.len() + workers.len() - 1),
        None => many(state, &tried, &workers),
    }
}

/// A control plane, a machine of etcd, or the one by which manifests are applied.
fn one(state: &ClusterState<'_>, tried: &Tried<'_>, outdated: &Outdated<'_>, more: usize) -> Option<Proposal> {
    if let Some(why) = why_not_now(state, outdated) {
        return Some(progressing(format!("{} is to be configured ({}); {why}", outdated.title(), outdated.fields())));
    }
    let decision = tried.decision(state, &outdated.machine, &outdated.steps());
    let retry = decision.retry();
    let drained = || {
        let progressing = |what: &str| progressing(format!("configuring {}: {what}", outdated.title()));
        let drains = outdated.drains().then_some(&outdated.machine);
        drains.and_then(|machine| drained(machine, DrainReason::Configuration, &progressing))
    };
    waits(state, outdated, decision).or_else(drained).or_else(|| {
        let more = match more {
            0 => String::new(),
            more => format!("; {} after it", count(more, "more change")),
        };
        let message = format!("configuring {} ({}){more}", outdated.title(), outdated.fields());
        let run = tried.request(outdated.steps(), &[(outdated.machine, retry)], "").run(state);
        Some(progressing(message).and(Action::create(run)))
    })
}

/// How an external etcd is reached is brought in any case: without it, the API server may not answer.
fn why_not_now(state: &ClusterState<'_>, outdated: &Outdated<'_>) -> Option<String> {
    match outdated.steps().contains(&Step::EtcdEndpoints) {
        true => turn::in_the_way(state),
        false => turn::why_not_now(state, None),
    }
}

/// Workers: one before all others, and while one has failed no other one.
fn many(state: &ClusterState<'_>, tried: &Tried<'_>, workers: &[Outdated<'_>]) -> Option<Proposal> {
    // Those that are tried again are the first.
    let mut due: BTreeMap<(bool, Vec<Step>), Vec<Target<'_>>> = BTreeMap::new();
    let (mut failed, mut sick, mut draining) = (None, None, Vec::new());
    for worker in workers {
        let machine = worker.machine;
        let busy = machine.host_name().and_then(|host| state.active_on(host));
        if let Some(run) = busy {
            sick = sick.or_else(|| Some(format!("waits for run {} on {} to end", run.name(), machine.title())));
            continue;
        }
        let decision = tried.decision(state, &machine, &worker.steps());
        let (is_again, retry) = (decision.is_again(), decision.retry());
        if let Some(proposal) = waits(state, worker, decision) {
            failed = failed.or(Some(proposal));
        } else if worker.drains() {
            draining.push(Draining { worker, retry, is_again });
        } else if is_healthy(machine.machine) {
            due.entry((!is_again, worker.steps())).or_default().push((machine, retry));
        } else {
            sick = sick.or_else(|| Some(format!("waits for {} to be well ({})", machine.title(), machine.says())));
        }
    }
    if failed.is_some() {
        return failed;
    }
    let Some(((_, steps), targets)) = due.first_key_value() else {
        return draining::propose(state, tried, draining).or(sick.map(progressing));
    };
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
    let run = tried.request(steps.clone(), batch, "").run(state);
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
