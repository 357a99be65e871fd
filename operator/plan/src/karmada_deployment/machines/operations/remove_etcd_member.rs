//! Takes a member that leaves, or whose Machine was forgotten, out of etcd, by a run on one that stays.

use crds::Reason;

use super::super::act::Act;
use super::super::on_all::retry;
use super::super::part_wanted::Basis;
use super::super::proposal::{Proposal, Round};
use super::super::state::PlaneState;
use crate::attempts::{self, RetryDecision};
use crate::cluster_machine::ClusterMachine;
use crate::departure::{self, Departure, EtcdMembership};
use crate::etcd_removal::{Leaver, in_order};
use crate::message::{count, quote};
use crate::moment::clock;

pub(super) fn propose(state: &PlaneState<'_>, _: &Basis<'_>, _: &Round) -> Proposal {
    let membership = state.membership();
    if state.installed.is_none() || membership.etcd_role().is_none() {
        return Proposal::default();
    }
    under_way(state, &membership).or_else(|| next(state, &membership)).unwrap_or_default()
}

fn leaving<'s, 'a>(
    state: &'s PlaneState<'a>,
    membership: &'s EtcdMembership<'a>,
) -> impl Iterator<Item = &'s ClusterMachine<'a>> {
    state.leaving.iter().filter(|machine| membership.is_of_etcd(machine.machine))
}

fn under_way(state: &PlaneState<'_>, membership: &EtcdMembership<'_>) -> Option<Proposal> {
    let forgotten = membership.forgotten();
    let leavers = leaving(state, membership).filter_map(|machine| Leaver::of_machine(&state.terms, machine));
    let mut leavers = leavers.chain(forgotten.iter().map(|one| Leaver::of_forgotten(&state.terms, one)));
    leavers.find_map(|leaver| {
        let run = leaver.under_way(membership)?;
        let message = format!("taking {} out of etcd: {}", leaver.title, state.describe(run));
        Some(Proposal::under_way(Reason::RemovingEtcdMember, message))
    })
}

/// Who was forgotten goes first.
fn next(state: &PlaneState<'_>, membership: &EtcdMembership<'_>) -> Option<Proposal> {
    let forgotten = in_order(membership).into_iter().find_map(|one| {
        let stays = membership.why_it_stays(one).is_some();
        let leaver = (!stays).then(|| Leaver::of_forgotten(&state.terms, one))?;
        take_out(state, membership, &leaver)
    });
    forgotten.or_else(|| {
        leaving(state, membership).find_map(|machine| {
            let waits = machine.deleting_reason().is_some_and(|reason| reason == Reason::LeavingEtcd);
            let departure = departure::decide(machine.machine, &state.machines, state.cluster, state.seen.runs);
            let goes = waits && departure == Departure::MayGo;
            let leaver = Leaver::of_machine(&state.terms, machine).filter(|_| goes)?;
            take_out(state, membership, &leaver)
        })
    })
}

fn take_out(state: &PlaneState<'_>, membership: &EtcdMembership<'_>, leaver: &Leaver<'_>) -> Option<Proposal> {
    let title = &leaver.title;
    let failed = |message: String| Proposal::stuck(Reason::EtcdMemberRemovalFailed, message);
    match leaver.retry_decision(&state.terms, membership, state.now) {
        RetryDecision::Now { attempt, retry, .. } => {
            if let Some(run) = state.under_way() {
                let message = format!("{title} is to be taken out of etcd: {}", state.describe(run));
                return Some(Proposal::under_way(Reason::RemovingEtcdMember, message));
            }
            let Some(by) = leaver.executor(membership, |machine| state.member(machine), attempt) else {
                let message =
                    format!("{title} is to be taken out of etcd, and no member that stays is known to be well");
                return Some(failed(message));
            };
            let message = format!("taking {title} out of etcd, by {}", by.title());
            let etcd = state.etcd_variables(&leaver.others(membership));
            let run = leaver.run(&state.asker(), (by, retry), etcd, attempt);
            Some(Proposal::under_way(Reason::RemovingEtcdMember, message).and(Act::create(run)))
        }
        RetryDecision::Later { at, cause, .. } => {
            let message = format!(
                "{title} could not be taken out of etcd ({}); tried again at {}",
                quote(cause.told()),
                clock(at)
            );
            Some(failed(message).at(state, at))
        }
        RetryDecision::Halted { failures, cause } => Some(failed(format!(
            "{title} could not be taken out of etcd after {} ({}); correct it, then {}",
            count(failures, "attempt"),
            attempts::why_halted(cause.as_ref()),
            retry(state)
        ))),
        RetryDecision::UnderWay { .. } | RetryDecision::Done { .. } => None,
    }
}
