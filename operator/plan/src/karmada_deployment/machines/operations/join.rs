//! Joins the next machine to a plane that stands, by a run on itself alone: its member of etcd as a learner first. The
//! parts follow in their stages.

use crds::Reason;
use crds::step::{Intent, Role};

use super::super::act::Act;
use super::super::on_all::retry;
use super::super::order::{EtcdStart, steps_to_join};
use super::super::part_wanted::Basis;
use super::super::proposal::{Proposal, Round};
use super::super::state::PlaneState;
use super::install::{decision, etcd_part, variables};
use crate::attempts::{self, RetryDecision};
use crate::cluster_machine::ClusterMachine;
use crate::departure;
use crate::message::{count, quote};
use crate::moment::clock;
use crate::provisioning;
use crate::run_request::{Attempt, RunRequest};

pub(super) fn propose(state: &PlaneState<'_>, basis: &Basis<'_>, _: &Round) -> Proposal {
    if state.installed.is_none() {
        return Proposal::default();
    }
    let Some((next, others)) = next(state) else { return Proposal::default() };
    let title = next.title();
    let more = match others {
        0 => String::new(),
        others => format!("; {} more after it, one at a time", count(others, "machine")),
    };
    let joining = |message: String| Proposal::under_way(Reason::Joining, message);
    if let Some(run) = state.under_way() {
        return joining(format!("{}{more}", state.describe(run)));
    }
    match decision(state, &next) {
        // Its Machine is about to say so.
        RetryDecision::Done { .. } | RetryDecision::UnderWay { .. } => joining(format!("{title} has joined")),
        RetryDecision::Now { attempt, retry, goes_on } => match waits_for(state) {
            Some(why) => Proposal::stuck(Reason::WaitingToJoin, format!("{title} is to join; {why}")),
            None => {
                let attempt = Attempt { number: attempt, resume: goes_on.is_some() };
                let run = run(state, basis, next, retry, attempt);
                joining(format!("joining {title}{more}")).and(Act::create(run))
            }
        },
        RetryDecision::Later { at, cause, .. } => {
            let message = format!("{title} failed to join ({}); tried again at {}", quote(cause.told()), clock(at));
            Proposal::stuck(Reason::JoinFailed, message).at(state, at)
        }
        RetryDecision::Halted { failures, cause } => {
            let message = format!(
                "{title} could not join after {} ({}); correct it, then {}; or delete Machine {}, and another one is made",
                count(failures, "attempt"),
                attempts::why_halted(cause.as_ref()),
                retry(state),
                next.name()
            );
            Proposal::stuck(Reason::JoinFailed, message)
        }
    }
}

/// The machine that joins next, and how many more there are: etcd's before others, one that was begun before all.
fn next<'a>(state: &PlaneState<'a>) -> Option<(ClusterMachine<'a>, usize)> {
    let waits = |machine: &&ClusterMachine<'a>| machine.host.is_some() && !machine.is_provisioned();
    let mut waiting: Vec<ClusterMachine<'a>> = state.live.iter().filter(waits).copied().collect();
    waiting.sort_by_key(|machine| {
        let begun = provisioning::was_touched(machine.machine, state.seen.runs);
        (!begun, machine.machine.spec.role != Role::Etcd)
    });
    Some((*waiting.first()?, waiting.len() - 1))
}

/// Why no machine joins now.
fn waits_for(state: &PlaneState<'_>) -> Option<String> {
    let membership = state.membership();
    if let Some(leaves) = membership.leaving_in_the_way() {
        return Some(leaves);
    }
    if let Some(forgotten) = membership.forgotten().first() {
        let title = departure::title_of_forgotten(forgotten);
        return Some(format!("waits for {title} to be taken out of etcd first"));
    }
    if let Some(run) = membership.run_in_the_way(None) {
        return Some(run);
    }
    let stays = |machine: &&ClusterMachine<'_>| machine.is_provisioned() && membership.is_of_etcd(machine.machine);
    let mut staying = state.live.iter().filter(stays);
    let sick = staying.find(|machine| !membership.is_healthy(machine.machine))?;
    Some(format!(
        "waits for {} to be well ({}), or for its Machine to be deleted: it is taken out before another one comes",
        sick.title(),
        sick.says()
    ))
}

fn run(
    state: &PlaneState<'_>,
    basis: &Basis<'_>,
    next: ClusterMachine<'_>,
    retry: Option<String>,
    attempt: Attempt,
) -> crds::PlaybookRun {
    let membership = state.membership();
    let mut members = membership.members();
    let etcd = match membership.is_of_etcd(next.machine) {
        true => {
            members.push(next.machine);
            EtcdStart::Empty
        }
        false => EtcdStart::NoMember,
    };
    let targets = [(next, retry)];
    state.request(RunRequest {
        vars: variables(state, basis, &members),
        parts: etcd_part(state, basis, &[next]).into_iter().collect(),
        ..RunRequest::new(Intent::Join, steps_to_join(etcd), &targets, attempt)
    })
}
