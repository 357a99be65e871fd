//! Resets machines that leave: they are cleaned, over and over until they are, the later the longer between.

use std::collections::BTreeMap;

use crds::ObjectExt;
use crds::PlaybookRun;
use crds::step::{Intent, Step};
use jiff::Timestamp;

use crate::attempts::{self, Failure, Outcome, RetryDecision};
use crate::cluster_deployment::action::Action;
use crate::cluster_deployment::proposal::{Proposal, Round};
use crate::cluster_deployment::request::{Attempt, BATCH, Request, Target};
use crate::cluster_deployment::state::{ClusterMachine, ClusterState};
use crate::hooks;
use crate::machine::leaving;
use crate::provisioning;

/// Where the resets stand.
#[derive(Default)]
pub(in crate::cluster_deployment) struct Resets<'a> {
    /// Runs to make.
    pub actions: Vec<Action>,
    /// Machines that could not be cleaned, and when it is tried again.
    pub later: Vec<(ClusterMachine<'a>, Timestamp, Failure)>,
}

pub(super) fn propose(state: &ClusterState<'_>, _: &Round) -> Proposal {
    let resets = look(state);
    let proposal = Proposal { pending: !resets.later.is_empty(), ..Proposal::actions(resets.actions) };
    resets.later.iter().fold(proposal, |proposal, (_, at, _)| proposal.at(state, *at))
}

/// Which machines are cleaned now, and which later.
pub(in crate::cluster_deployment) fn look<'a>(state: &ClusterState<'a>) -> Resets<'a> {
    let mut resets = Resets::default();
    // What did not answer last time is tried alone, so that it holds up no other.
    let mut due: BTreeMap<(i32, bool), Vec<Target<'a>>> = BTreeMap::new();
    // A machine that leaves has other runs, too: its hooks before the drain, and what takes it out of etcd.
    let cleans = |run: &&PlaybookRun| run.spec.steps.contains(&Step::Reset);
    let cleaning: Vec<&PlaybookRun> = state.observed.runs.iter().copied().filter(cleans).collect();
    // When all go, they go in their order.
    let ends = state.deployment.is_deleting();
    let first = state.first_role_to_leave().filter(|_| ends);
    for machine in state.leaving.iter().copied() {
        if first.is_some_and(|first| machine.machine.spec.role != first) {
            continue;
        }
        let Some(host) = machine.host_name() else { continue };
        let was_touched = provisioning::was_touched(machine.machine, state.observed.runs);
        if state.active_on(host).is_some() || !was_touched {
            continue;
        }
        let tried = attempts::tried(&cleaning, &[Intent::Reset, Intent::Remove], machine.uid());
        let retries = state.terms.asked_retries(machine.machine);
        let policy = state.terms.endless(retries);
        let policy = if ends { policy } else { policy.stopped_is_final() };
        match attempts::retry_decision(&tried, &policy, state.observed.now) {
            // What comes before the cleaning is not done yet.
            RetryDecision::Now { .. } if !leaving::waits_for_reset(machine.machine) => {}
            // One step: there is nothing to go on from.
            RetryDecision::Now { attempt, retry, .. } => {
                let silent = tried
                    .last()
                    .is_some_and(|last| matches!(&last.outcome, Outcome::Failed(failure) if failure.unreachable));
                due.entry((attempt, silent)).or_default().push((machine, retry));
            }
            RetryDecision::Later { at, cause, .. } => resets.later.push((machine, at, cause)),
            // The Machine says what a person must do.
            RetryDecision::Halted { .. } | RetryDecision::UnderWay { .. } | RetryDecision::Done { .. } => {}
        }
    }
    for ((attempt, _), targets) in due {
        let attempt = Attempt::from_start(attempt);
        let batches = targets.chunks(BATCH);
        let runs = batches.map(|batch| {
            Request::new(Intent::Reset, vec![Step::Reset], batch, attempt).around(hooks::around_reset).run(state)
        });
        resets.actions.extend(runs.map(Action::create));
    }
    resets
}
