//! Brings machines, and what was applied to the cluster, to settings that were changed: control planes and machines of
//! etcd one after the other, then manifests, then workers, first one of them and then the others, and at last CoreDNS,
//! whose image they have by then. It goes on only while what it has touched is well: one machine that fails keeps all
//! others as they are.

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
use crate::cluster_deployment::outdated_machine::Outdated;
use crate::cluster_deployment::proposal::{Area, Proposal, Round, Severity};
use crate::cluster_deployment::request::{BATCH, Target, describe};
use crate::cluster_deployment::retrying::Effort;
use crate::cluster_deployment::rollout::canaries::Canaries;
use crate::cluster_deployment::rollout::gate::{Begun, gate};
use crate::cluster_deployment::state::{ClusterMachine, ClusterState};
use crate::cluster_deployment::tried::{self, Tried};
use crate::cluster_deployment::{turn, upgrade};
use crate::configuration;
use crate::departure::is_healthy;
use crate::message::count;
use crate::settings::{self, REGISTRIES};

use draining::Draining;

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
    let wanted = state.terms.wanted.clone();
    let authorities = state.observed.authorities.digests(state.deployment.spec.etcd.topology);
    settings::digest(&(wanted, &manifests.network, etcd_client, files(state), authorities))
}

/// A digest of the files that the configuration refers to, and of what mirrors refer to; none where there is none, so
/// that attempts of before count.
fn files(state: &ClusterState<'_>) -> Option<String> {
    let manifests = &state.observed.manifests;
    let mut contents = manifests.files.clone()?;
    let registries = manifests.registries.iter().flatten();
    contents.extend(registries.map(|(prefix, digest)| (format!("{REGISTRIES}/{prefix}"), digest.clone())));
    configuration::files::digest(&contents)
}

fn progressing(message: String) -> Proposal {
    Proposal::report(Area::Configuration, Reason::Configuring, message, Severity::Progressing)
}

/// The machines on which something is due, and at last the one by which manifests are applied, or CoreDNS is set right,
/// if they are due. What a run has brought in vain is not.
pub(in crate::cluster_deployment) fn due<'a>(state: &ClusterState<'a>) -> Vec<Outdated<'a>> {
    if state.installed.is_none() {
        return Vec::new();
    }
    let tried = Tried::new(state, Intent::Configure, key(state));
    let mut due = target::outdated(state);
    due.extend(target::of_cluster(state));
    due.extend(target::of_dns(state));
    due.retain(|outdated| !is_in_vain(state, &tried, outdated));
    due
}

fn is_in_vain(state: &ClusterState<'_>, tried: &Tried<'_>, outdated: &Outdated<'_>) -> bool {
    tried.is_in_vain(state, &outdated.machine, &outdated.steps())
}

/// What is due next, if anything is.
fn next(state: &ClusterState<'_>) -> Option<Proposal> {
    if let Some(waits) = (!state.outdated.is_empty()).then(|| upgrade::in_the_way(state)).flatten() {
        return Some(progressing(format!("changed settings are to be rolled out; {waits}")));
    }
    let tried = Tried::new(state, Intent::Configure, key(state));
    let (due, closed) = open(state, &tried);
    let is_worker = |outdated: &Outdated<'_>| outdated.machine.machine.spec.role == Role::Worker;
    let is_dns = |outdated: &Outdated<'_>| outdated.steps() == [Step::Coredns];
    let (workers, others): (Vec<_>, Vec<_>) = due.into_iter().partition(is_worker);
    let (dns, mut others): (Vec<_>, Vec<_>) = others.into_iter().partition(is_dns);
    // One that is drained for it already goes on.
    others.sort_by_key(|outdated| !is_drained_for(&outdated.machine, DrainReason::Configuration));
    match (others.first(), workers.first(), dns.first()) {
        (Some(first), _, _) => one(state, &tried, first, others.len() + workers.len() + dns.len() - 1),
        (None, Some(_), _) => many(state, &tried, &workers),
        // It may be started on any of them.
        (None, None, Some(dns)) => one(state, &tried, dns, 0),
        (None, None, None) => closed,
    }
}

/// What is due, without what may not begin now, and what is said of that.
fn open<'a>(state: &ClusterState<'a>, tried: &Tried<'_>) -> (Vec<Outdated<'a>>, Option<Proposal>) {
    let (mut due, mut closed) = (Vec::new(), None);
    for outdated in state.outdated.iter().cloned() {
        let is_closed = || {
            let is_tried = tried.decision(state, &outdated.machine, &outdated.steps()).is_again();
            let is_drained = is_drained_for(&outdated.machine, DrainReason::Configuration);
            let what = format!("{} is to be configured ({})", outdated.title(), outdated.fields());
            gate(state, Begun::new(is_tried, is_drained), Area::Configuration, &what)
        };
        let is_disruptive = outdated.effects().any(|(_, restarts)| restarts);
        match is_disruptive.then(is_closed).flatten() {
            Some(waits) => {
                // An upgrade waits for the same, and says so.
                closed = closed.or(state.upgrade.is_none().then_some(waits));
                due.extend(outdated.undisruptive().filter(|rest| !is_in_vain(state, tried, rest)));
            }
            None => due.push(outdated),
        }
    }
    (due, closed)
}

/// A control plane, a machine of etcd, or the one by which manifests are applied or CoreDNS is set right.
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
    if let Some(why) = state.waits_for_api().or_else(|| state.waits_for_etcd()) {
        return Some(progressing(format!("{} to be configured; {why}", count(workers.len(), "more worker"))));
    }
    let Some(((_, steps), targets)) = due.first_key_value() else {
        return draining::propose(state, tried, draining).or(sick.map(progressing));
    };
    let canaries = Canaries::look(state, tried, |worker| target::lacks(state, worker, steps));
    if let Some((waits, until)) = canaries.waits() {
        let proposal = progressing(format!("{} to be configured; {waits}", count(workers.len(), "more worker")));
        return Some(until.into_iter().fold(proposal, |proposal, until| proposal.at(state, until)));
    }
    let batch = &targets[..targets.len().min(canaries.most()).min(BATCH)];
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
