//! The machines of the past go without being reached, and what was seen of their cluster with them.

use crds::Conditions;
use crds::ObjectExt;
use crds::Reason;
use crds::conditions::Statement;
use crds::names::condition;
use crds::{Cluster, PlaybookRun};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};

use super::lost::{EVERYTHING, machines, report};
use crate::Next;
use crate::cluster_deployment::action::Action;
use crate::cluster_deployment::proposal::{Proposal, Record};
use crate::cluster_deployment::state::past::{is_old, lost_since};
use crate::cluster_deployment::state::{ClusterMachine, ClusterState};
use crate::machine::leaving;
use crate::message::count;

/// A rebuild that has begun: the old machines are forgotten, then the cluster is installed as a new one is.
pub(super) fn goes_on(state: &ClusterState<'_>, since: Timestamp, may_work: bool) -> (Vec<Statement>, Proposal) {
    let records = recorded(state, since).into_iter().collect();
    let old: Vec<&ClusterMachine<'_>> = machines(state).filter(|machine| is_old(machine.machine, since)).collect();
    if !old.is_empty() {
        return forget_machines(state, &old, since, may_work, records);
    }
    if state.installed.is_some() {
        return Default::default();
    }
    let mut proposal = Proposal { records, ..Proposal::default() };
    if let Some(seen) = old_cluster(state, since).filter(|_| may_work) {
        proposal.actions.push(Action::DeleteCluster(Box::new(seen.clone())));
        proposal.blocks = EVERYTHING;
        proposal.requeue = Next::after_seconds(1);
    }
    let message = "builds the cluster anew: it is installed on other machines";
    (vec![rebuilding(message)], proposal)
}

fn rebuilding(message: &str) -> Statement {
    Statement::new(condition::REBUILDING, true, Reason::Rebuilding, message)
}

fn forget_machines(
    state: &ClusterState<'_>,
    old: &[&ClusterMachine<'_>],
    since: Timestamp,
    may_work: bool,
    records: Vec<Record>,
) -> (Vec<Statement>, Proposal) {
    let is_touched =
        |machine: &&ClusterMachine<'_>| machine.deleted_at().is_some() || lost_since(machine.machine).is_some();
    if !old.iter().any(is_touched) && state.silent_since().is_none() {
        // Somebody answers after all, and nothing has been done yet.
        return Default::default();
    }
    let message = format!("builds the cluster anew: {} are forgotten", count(old.len(), "lost machine"));
    let mut proposal = Proposal { records, blocks: EVERYTHING, ..report(Reason::Rebuilding, message.clone()) };
    // Times are whole seconds: what is made in this one would be taken for old.
    if state.observed.now <= since {
        proposal.requeue = Next::after_seconds(1);
    } else if may_work {
        proposal.actions = forget(state, old, since);
    }
    (vec![rebuilding(&message)], proposal)
}

/// The condition, where it was lost with the status: it did not begin only now.
fn recorded(state: &ClusterState<'_>, since: Timestamp) -> Option<Record> {
    let known = state.deployment.condition(condition::REBUILDING);
    known.is_none_or(|known| known.status != "True").then(|| {
        Record::Condition(Condition {
            type_: condition::REBUILDING.into(),
            status: "True".into(),
            reason: Reason::Rebuilding.into(),
            message: "the cluster is being built anew".into(),
            observed_generation: None,
            last_transition_time: Time(since),
        })
    })
}

/// What was seen of the old cluster is not the new one's: its UID is another.
fn old_cluster<'a>(state: &ClusterState<'a>, since: Timestamp) -> Option<&'a Cluster> {
    let is_old = |made: &Time| made.0 <= since;
    let seen = state.observed.cluster?;
    let made = seen.created_at();
    made.is_some_and(is_old).then_some(seen)
}

/// Runs on the old machines end, and the machines are deleted, to be forgotten without reaching them. First it is
/// written on all of them that they are of the past, and what was seen of their cluster goes: while one of them is
/// there, it is known what the others were.
fn forget(state: &ClusterState<'_>, old: &[&ClusterMachine<'_>], since: Timestamp) -> Vec<Action> {
    let on_old = |run: &&&PlaybookRun| {
        let hosts = &run.spec.hosts;
        let named = |machine: &&&ClusterMachine<'_>| {
            machine.host_name().is_some_and(|host| hosts.iter().any(|there| there == host))
        };
        !run.spec.cancel && old.iter().any(|machine| named(&machine))
    };
    let cancel = state.active.iter().filter(on_old);
    let cancel = cancel.map(|run| Action::CancelRun(Box::new((*run).clone())));
    let unmarked = old.iter().filter(|machine| {
        let is_forgotten = leaving::is_forced(machine.machine);
        lost_since(machine.machine).is_none() || !is_forgotten
    });
    let forget = unmarked.map(|machine| Action::ForgetMachine { machine: Box::new(machine.machine.clone()), since });
    let cluster = old_cluster(state, since);
    let cluster = cluster.map(|seen| Action::DeleteCluster(Box::new(seen.clone())));
    let stay = old.iter().filter(|machine| machine.deleted_at().is_none());
    let delete = stay.map(|machine| Action::DeleteMachine(Box::new(machine.machine.clone())));
    cancel.chain(forget).chain(cluster).chain(delete).collect()
}
