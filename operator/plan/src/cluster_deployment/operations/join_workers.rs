//! Joins workers: one Shared run for each batch of them that have their Hosts. One bad worker is tried again alone and
//! holds up nobody.

use std::collections::BTreeMap;

use crds::Reason;
use crds::step::{Intent, Role, Step};
use jiff::Timestamp;

use super::prepare_workers;
use crate::Next;
use crate::attempts::{self, Failure, Outcome, RetryDecision};
use crate::cluster_deployment::action::Action;
use crate::cluster_deployment::gathering::gathers;
use crate::cluster_deployment::proposal::{Area, Proposal, Round, Severity};
use crate::cluster_deployment::request::{Attempt, BATCH, Request, Target, brings_machines, describe};
use crate::cluster_deployment::retrying::{failed_after, failed_to_join, goes_on, next_attempt, retry};
use crate::cluster_deployment::state::{ClusterMachine, ClusterState};
use crate::cluster_deployment::upgrade;
use crate::hooks;
use crate::message::count;

/// After those of the preparation.
const STEPS: [Step; 3] = [Step::Node, Step::Network, Step::PostInstall];

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
    let mut joins = look(state);
    if !state.accepts_workers() {
        return tried_before(state, &joins);
    }
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
                Request::new(Intent::Join, [&prepare_workers::STEPS[..], &STEPS].concat(), batch, *attempt)
                    .around(hooks::around_join)
                    .run(state)
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

/// What there is to tell while no worker may join: between two attempts of the install beside which some were tried.
fn tried_before(state: &ClusterState<'_>, joins: &Joins<'_>) -> Proposal {
    match (joins.later.as_slice(), joins.halted.as_slice()) {
        ([], []) => due_again(state, joins, "once the control plane is installed").unwrap_or_default(),
        _ => report(state, joins),
    }
}

/// What came of the last attempt of a worker whose next one is due: it may have ended long before it was seen.
fn due_again(state: &ClusterState<'_>, joins: &Joins<'_>, when: &str) -> Option<Proposal> {
    let tried = joins.due.iter().filter(|(attempt, _)| **attempt != Attempt::FIRST);
    let (worker, cause) = tried.flat_map(|(_, targets)| targets).find_map(|(worker, _)| {
        let last = attempts::tried(state.observed.runs, &[Intent::Join], worker.uid()).pop()?;
        match last.outcome {
            Outcome::Failed(cause) => Some((worker, cause)),
            Outcome::UnderWay | Outcome::Succeeded | Outcome::Canceled | Outcome::Held => None,
        }
    })?;
    let failed = failed_to_join(&worker.title(), &cause);
    let message = format!("{failed} ({}): {}; {} {when}", cause.reason, cause.message, goes_on(&cause));
    Some(Proposal::report(Area::Machines(Role::Worker), Reason::JoinFailed, message, Severity::Failing))
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
    let why = upgrade::in_the_way(state).or_else(|| state.waits_for_api()).or_else(|| state.waits_for_etcd())?;
    Some(format!("{} to join; {why}", count(due, "worker")))
}

fn report(state: &ClusterState<'_>, joins: &Joins<'_>) -> Proposal {
    let report = |reason, message, severity| Proposal::report(Area::Machines(Role::Worker), reason, message, severity);
    let under_way = state.active.iter().find(|run| brings_machines(run)).map(|run| describe(state, run));
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
    due_again(state, joins, "now").unwrap_or_default()
}
