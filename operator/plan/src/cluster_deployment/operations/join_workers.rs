//! Joins workers: one Shared run for each batch of them that have their Hosts. One bad worker is tried again alone and
//! holds up nobody.

use std::collections::BTreeMap;

use crds::Conditions;
use crds::Reason;
use crds::names;
use crds::step::{Intent, Role, Step};
use jiff::{SignedDuration, Timestamp};

use crate::Next;
use crate::attempts::{Failure, RetryDecision};
use crate::claims::{HostRequest, Pool};
use crate::cluster_deployment::action::Action;
use crate::cluster_deployment::proposal::{Area, Proposal, Round, Severity};
use crate::cluster_deployment::request::{Attempt, BATCH, Request, Target, describe};
use crate::cluster_deployment::retrying::{failed_after, failed_to_join, next_attempt, retry};
use crate::cluster_deployment::state::{ClusterMachine, ClusterState};
use crate::hooks;
use crate::message::count;

const STEPS: [Step; 7] = [
    Step::BootstrapOs,
    Step::Preflight,
    Step::Prepare,
    Step::ContainerRuntime,
    Step::Node,
    Step::Network,
    Step::PostInstall,
];

/// How long a batch waits at most for machines that are about to have their Hosts.
const GATHER: SignedDuration = SignedDuration::from_secs(5);

/// Where the joins stand.
#[derive(Default)]
struct Joins<'a> {
    due: BTreeMap<Attempt, Vec<Target<'a>>>,
    /// Workers that are tried again later, and how often it was in vain.
    later: Vec<(ClusterMachine<'a>, usize, Timestamp, Failure)>,
    /// Workers for which a person must act.
    halted: Vec<(ClusterMachine<'a>, usize, Option<Failure>)>,
    /// Why those that are due do not begin.
    held: Option<String>,
}

pub(super) fn propose(state: &ClusterState<'_>, _: &Round) -> Proposal {
    if state.installed.is_none() {
        return Proposal::default();
    }
    let mut joins = look(state);
    let mut proposal = Proposal::default();
    let first = joins.due.get(&Attempt::FIRST);
    if first.is_some_and(|first| gathers(state, first)) {
        joins.due.remove(&Attempt::FIRST);
        proposal.requeue = Next::after_seconds(1);
    }
    joins.held = held(state, &joins);
    if joins.held.is_none() {
        for (attempt, targets) in &joins.due {
            let batches = targets.chunks(BATCH);
            let runs = batches.map(|batch| {
                Request::new(Intent::Join, STEPS.into(), batch, *attempt).around(hooks::around_join).run(state)
            });
            proposal.actions.extend(runs.map(Action::create));
        }
    }
    proposal.pending = !joins.later.is_empty() || !proposal.actions.is_empty();
    for (_, _, at, _) in &joins.later {
        proposal = proposal.at(state, *at);
    }
    proposal.report = report(state, &joins).report;
    proposal
}

fn look<'a>(state: &ClusterState<'a>) -> Joins<'a> {
    let mut joins = Joins::default();
    for worker in state.of_role(Role::Worker) {
        let Some(host) = worker.host_name() else { continue };
        if state.active_on(host).is_some() {
            continue;
        }
        match state.retry_decision(&worker) {
            RetryDecision::Now { attempt, retry, goes_on } => {
                let attempt = Attempt { number: attempt, resume: goes_on.is_some() };
                joins.due.entry(attempt).or_default().push((worker, retry));
            }
            RetryDecision::Later { at, failures, cause } => joins.later.push((worker, failures, at, cause)),
            RetryDecision::Halted { failures, cause } => joins.halted.push((worker, failures, cause)),
            RetryDecision::UnderWay { .. } | RetryDecision::Done { .. } => {}
        }
    }
    joins
}

/// Why those that are due do not begin. A cluster that was never reached yet is in the making.
fn held(state: &ClusterState<'_>, joins: &Joins<'_>) -> Option<String> {
    let status = state.observed.cluster?.status.as_ref()?;
    let due: usize = joins.due.values().map(Vec::len).sum();
    if due == 0 || status.cluster_uid.is_none() {
        return None;
    }
    let why = state.waits_for_api().or_else(|| state.waits_for_etcd())?;
    Some(format!("{} to join; {why}", count(due, "worker")))
}

fn report(state: &ClusterState<'_>, joins: &Joins<'_>) -> Proposal {
    let report = |reason, message, severity| Proposal::report(Area::Machines(Role::Worker), reason, message, severity);
    let under_way = state.active.iter().find(|run| run.spec.intent == Intent::Join).map(|run| describe(state, run));
    let of_all = |number: usize, what: &str| match number {
        1 => String::new(),
        number => format!("{number} of {} workers {what}; ", state.workers_wanted()),
    };
    if let Some((worker, failures, cause)) = joins.halted.first() {
        let title = worker.title();
        let mut message = match cause {
            Some(cause) => format!(
                "{}{}",
                of_all(joins.halted.len(), "could not join"),
                failed_after(state, &format!("{title} could not join"), *failures, cause)
            ),
            None => format!("the join of {title} was canceled; to go on, {}", retry(state)),
        };
        if let Some(run) = under_way {
            message = format!("{message}; {run}");
        }
        return report(Reason::JoinFailed, message, Severity::Stalled);
    }
    if let Some(run) = under_way {
        return report(Reason::Joining, run, Severity::Progressing);
    }
    if let Some(held) = &joins.held {
        return report(Reason::WaitingToJoin, held.clone(), Severity::Progressing);
    }
    if let Some((worker, failures, at, cause)) = joins.later.first() {
        let failed = failed_to_join(&worker.title(), cause);
        let message = format!(
            "{}{}",
            of_all(joins.later.len(), "are to be tried again"),
            next_attempt(state, &failed, *failures, cause, *at)
        );
        return report(Reason::JoinFailed, message, Severity::Failing);
    }
    Proposal::default()
}

/// Whether more machines are about to have their Hosts, so that one run may take them all. A batch waits for them only
/// so long, counted from its youngest claim.
fn gathers(state: &ClusterState<'_>, batch: &[Target<'_>]) -> bool {
    let youngest = batch.iter().filter_map(|(machine, _)| claimed_at(machine)).max();
    let waited = youngest.map_or(SignedDuration::ZERO, |youngest| state.observed.now.duration_since(youngest));
    if waited >= GATHER {
        return false;
    }
    let pool = Pool::new(state.observed.hosts);
    let about_to_claim = state.of_role(Role::Worker).any(|machine| {
        machine.host.is_none()
            && (machine.machine.spec.host_ref.is_some()
                || pool.offer(&HostRequest::from_machine(machine.machine)).free > 0)
    });
    let have = state.of_role(Role::Worker).count();
    let about_to_be_made = i32::try_from(have).unwrap_or(i32::MAX) < state.workers_wanted();
    about_to_claim || about_to_be_made
}

fn claimed_at(machine: &ClusterMachine<'_>) -> Option<Timestamp> {
    let claimed = machine.machine.condition(names::condition::HOST_CLAIMED)?;
    (claimed.status == "True").then_some(claimed.last_transition_time.0)
}
