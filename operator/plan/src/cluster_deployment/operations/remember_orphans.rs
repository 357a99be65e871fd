//! Remembers machines that are removed without reaching them, while their cluster does not answer either. What still
//! stands for them there is written down before they go, and remembered until it is gone.

use std::collections::BTreeSet;

use crds::FormerRef;
use crds::Reason;
use crds::cluster_deployment::ForgottenMachine;
use crds::conditions::Statement;
use crds::host::Quarantine;
use crds::names::condition;
use crds::step::Role;

use super::remove_etcd_member::why_it_stays;
use crate::Next;
use crate::cluster::NodeSeen;
use crate::cluster_deployment::observed::LOOK_AGAIN_SECONDS;
use crate::cluster_deployment::proposal::{Proposal, Record, Round};
use crate::cluster_deployment::state::ClusterState;
use crate::departure;
use crate::forgotten::{recall, written_down};
use crate::message::{count, cut};

/// Entries that the status takes; more machines wait until there is room.
const MOST_TOLD: usize = 500;

pub(super) fn propose(state: &ClusterState<'_>, _: &Round) -> Proposal {
    let membership = state.membership();
    let mut machines = remembered(state);
    let known: BTreeSet<String> = machines.iter().map(|one| one.uid.clone()).collect();
    let new = state.leaving.iter().filter(|member| !known.contains(member.uid()));
    machines
        .extend(new.filter_map(|member| written_down(member, &membership, state.observed.runs, state.observed.now)));
    for one in &mut machines {
        one.etcd_member = one.etcd_member && !membership.is_out_of_etcd(one);
        one.node_ready = node(state, one).is_some_and(|node| node.ready == Some(true));
    }
    machines.retain(|one| is_there(state, one) || (state.installed.is_some() && is_owed(state, one)));
    machines.truncate(MOST_TOLD);
    let gone: Vec<&ForgottenMachine> = machines.iter().filter(|one| !is_there(state, one)).collect();
    let statement = gone.first().map(|first| owes(state, first, gone.len()));
    let proposal = Proposal {
        // Nodes that are to go are looked for.
        requeue: match statement {
            Some(_) => Next::after_seconds(LOOK_AGAIN_SECONDS),
            None => Next::OnChange,
        },
        records: vec![Record::Forgotten(machines.clone())],
        ..Proposal::default()
    };
    proposal.condition(condition::MACHINES_FORGOTTEN, statement)
}

/// What is still to be done for machines that are gone.
fn owes(state: &ClusterState<'_>, first: &ForgottenMachine, gone: usize) -> Statement {
    let title = departure::title_of_forgotten(first);
    let (reason, message) = match first.etcd_member {
        true => {
            let message = match why_it_stays(state, &state.membership(), first) {
                Some(why) => format!("{title} is to be taken out of etcd: {why}"),
                None => format!("{title} is taken out of etcd, then its Node is deleted"),
            };
            (Reason::EtcdMemberCleanupPending, message)
        }
        false => (Reason::NodeCleanupPending, format!("the Node of {title} is to be deleted, if there is one")),
    };
    let more = match gone {
        1 => String::new(),
        more => format!("; and {}", count(more - 1, "more machine")),
    };
    Statement::new(condition::MACHINES_FORGOTTEN, true, reason, cut(format!("{message}{more}")))
}

/// What the status says; where that was lost, what the Hosts say that were taken from forgotten machines.
fn remembered(state: &ClusterState<'_>) -> Vec<ForgottenMachine> {
    let status = state.deployment.status.as_ref();
    let mut remembered = status.map(|status| status.forgotten.clone()).unwrap_or_default();
    if status.is_some_and(|status| status.last_token.is_some()) {
        return remembered;
    }
    let is_ours = |quarantine: &Quarantine| quarantine.former() == Some(FormerRef::cluster(&state.name));
    recall(&mut remembered, state.observed.hosts, state.membership().etcd_role(), is_ours);
    remembered
}

/// Whether its Machine is still there, and says itself what it waits for.
fn is_there(state: &ClusterState<'_>, one: &ForgottenMachine) -> bool {
    state.leaving.iter().any(|member| member.uid() == one.uid)
}

/// Whether something in the cluster stands for it, or may.
fn is_owed(state: &ClusterState<'_>, one: &ForgottenMachine) -> bool {
    let mut machines = state.observed.machines.iter();
    let is_anothers = machines.any(|machine| {
        let named = machine.spec.host_ref.as_ref();
        named.is_some_and(|named| named.name == one.host)
    });
    let has_node = one.role != Role::Etcd && !is_anothers;
    let gone = || state.observed.forgotten_nodes.is_some() && node(state, one).is_none();
    one.etcd_member || (has_node && !gone())
}

fn node<'a>(state: &ClusterState<'a>, one: &ForgottenMachine) -> Option<&'a NodeSeen> {
    let nodes = state.observed.forgotten_nodes?;
    nodes.iter().find(|node| node.name == one.host)
}
