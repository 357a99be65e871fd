//! Since when nobody of a cluster has answered, neither its API nor any of its machines, and whether that is long
//! enough.

use std::collections::BTreeSet;

use crds::Conditions;
use crds::ObjectExt;
use crds::Reason;
use crds::cluster_deployment::RecoveryStrategy;
use crds::conditions::Statement;
use crds::names::condition;
use jiff::{SignedDuration, Timestamp};

use super::asked::{Asked, asked, probe};
use super::lost::{EVERYTHING, machines, report};
use crate::Next;
use crate::cluster_deployment::operations::restore_from::no_backup;
use crate::cluster_deployment::proposal::{Proposal, Round};
use crate::cluster_deployment::request::BATCH;
use crate::cluster_deployment::restoring;
use crate::cluster_deployment::state::{ClusterMachine, ClusterState};
use crate::message::count;
use crate::moment::{after, day_and_clock};

/// How often machines are asked at most, and at least.
const PERIOD_SECONDS: (i64, i64) = (30, 300);

/// Asks the machines of a cluster whose API is silent, and counts how long nobody has answered.
pub(super) fn look(state: &ClusterState<'_>, api_since: Timestamp, round: &Round) -> (Vec<Statement>, Proposal) {
    let recovery = &state.deployment.spec.recovery;
    let lost_after = SignedDuration::from_secs(recovery.lost_after_seconds.into());
    let held: BTreeSet<&str> = machines(state).filter_map(ClusterMachine::host_name).collect();
    let asked = asked(state, api_since, &held);
    let silent = held.iter().all(|host| asked.last.get(host).is_some_and(|last| !last.answered));
    let answered = asked.last.values().any(|last| last.answered);
    let old = state.deployment.condition(condition::MACHINES_LOST);
    let was_lost = old.is_some_and(|old| old.status == "True");
    let since = old.map_or(state.observed.now, |old| old.last_transition_time.0);
    let at = after(since, lost_after);
    // Each machine was silent when it began, and still is at the end.
    let asked_late = asked.last.values().all(|last| last.at >= at);
    let is_lost = silent && (was_lost || (asked_late && state.observed.now >= at));

    let period = match was_lost || answered {
        true => PERIOD_SECONDS.1,
        false => (lost_after.as_secs() / 4).clamp(PERIOD_SECONDS.0, PERIOD_SECONDS.1),
    };
    // While the lock is closed, the machines are asked for what would open it: that is an answer, too.
    let may_ask = round.may_work() && round.lock_is_known() && !asked.under_way;
    let proposal = match may_ask {
        true => ask(state, api_since, &held, &asked, SignedDuration::from_secs(period)),
        false => Proposal::default(),
    };
    let who = format!("neither the API nor any of {} has answered", count(held.len(), "machine"));
    if is_lost {
        lost(state, proposal, &who, round.may_work())
    } else if silent || (old.is_some() && !answered) {
        let message = format!("{who} since {}; at {} they are taken for lost", day_and_clock(since), day_and_clock(at));
        let statement = Statement::new(condition::MACHINES_LOST, None, Reason::NoMachineResponds, message);
        (vec![statement], proposal.at(state, at))
    } else {
        (Vec::new(), proposal)
    }
}

/// Asks those whose last answer is older than the period.
fn ask(
    state: &ClusterState<'_>,
    api_since: Timestamp,
    held: &BTreeSet<&str>,
    asked: &Asked<'_>,
    period: SignedDuration,
) -> Proposal {
    let due_at = |host: &str| after(asked.last.get(host).map_or(api_since, |last| last.at), period);
    let now = state.observed.now;
    let due: Vec<&str> = held.iter().copied().filter(|host| due_at(host) <= now).collect();
    let next = held.iter().map(|host| due_at(host)).min();
    match next {
        _ if !due.is_empty() => {
            let batches = due.chunks(BATCH).enumerate();
            let probes = batches.map(|(index, batch)| probe(state, batch, api_since, asked.probes + index));
            Proposal::actions(probes.collect())
        }
        Some(next) => Proposal::default().at(state, next),
        None => Proposal::default(),
    }
}

fn lost(state: &ClusterState<'_>, proposal: Proposal, who: &str, may_work: bool) -> (Vec<Statement>, Proposal) {
    match state.deployment.spec.recovery.strategy {
        RecoveryStrategy::Rebuild if may_work => rebuild(
            proposal,
            format!("all machines are lost: {who}; the cluster is built anew, {}, on others", content(state)),
        ),
        RecoveryStrategy::RestoreLatest => match restoring::newest(state) {
            Some(backup) if may_work => {
                let backup = backup.name();
                let message = format!(
                    "all machines are lost: {who}; the cluster is built anew on others, with what EtcdBackup {backup} holds"
                );
                rebuild(proposal, message)
            }
            Some(_) => stay(proposal, Reason::AllMachinesLost, format!("all machines are lost: {who}")),
            None => {
                let message = format!("all machines are lost: {who}; {}", no_backup(state));
                stay(proposal, Reason::NoGoodBackup, message)
            }
        },
        RecoveryStrategy::Rebuild | RecoveryStrategy::None => {
            let content = content(state);
            let message = format!(
                "all machines are lost: {who}; bring one back, or set spec.recovery.strategy to Rebuild to have the cluster installed anew, {content}, on spare Hosts, or delete it"
            );
            stay(proposal, Reason::AllMachinesLost, message)
        }
    }
}

/// What a cluster that is installed anew begins with.
fn content(state: &ClusterState<'_>) -> &'static str {
    match state.membership().etcd_role() {
        Some(_) => "empty",
        None => "with what its external etcd holds",
    }
}

/// Written down first; what is removed follows from it.
fn rebuild(proposal: Proposal, message: String) -> (Vec<Statement>, Proposal) {
    let statement = |type_| Statement::new(type_, true, Reason::AllMachinesLost, message.clone());
    let conditions = vec![statement(condition::MACHINES_LOST), statement(condition::REBUILDING)];
    let proposal = Proposal {
        report: report(Reason::Rebuilding, message).report,
        blocks: EVERYTHING,
        requeue: Next::after_seconds(1),
        ..proposal
    };
    (conditions, proposal)
}

/// Nothing but to say so.
fn stay(proposal: Proposal, reason: Reason, message: String) -> (Vec<Statement>, Proposal) {
    let conditions = vec![Statement::new(condition::MACHINES_LOST, true, reason, message.clone())];
    (conditions, Proposal { report: report(reason, message).report, ..proposal })
}
