//! Plays the hooks before a drain: a run of their own on each machine that waits for them, tried again until it goes
//! well, or the hook is taken out of the spec. One that was stopped from outside waits for a person's word.

use crds::Reason;
use crds::step::Intent;

use crate::attempts::RetryDecision;
use crate::cluster_deployment::action::Action;
use crate::cluster_deployment::proposal::{Proposal, Round};
use crate::cluster_deployment::request::{Attempt, Request};
use crate::cluster_deployment::state::ClusterState;
use crate::hooks;

pub(super) fn propose(state: &ClusterState<'_>, _: &Round) -> Proposal {
    let observed = state.observed;
    let leaving = state.leaving.iter().copied();
    let waiting =
        leaving.filter(|machine| machine.deleting_reason().is_some_and(|reason| reason == Reason::WaitingForHooks));
    waiting.fold(Proposal::default(), |proposal, machine| {
        let host = machine.host_name();
        if host.is_none_or(|host| state.active_on(host).is_some()) {
            return proposal;
        }
        let decision = hooks::retry_before_drain(machine.machine, state.deployment, observed.runs, observed.now);
        match decision {
            RetryDecision::Now { attempt, retry, .. } => {
                let (targets, attempt) = ([(machine, retry)], Attempt::from_start(attempt));
                let run = Request::new(Intent::Remove, Vec::new(), &targets, attempt)
                    .named([machine.uid(), "before-drain"])
                    .around(hooks::around_drain)
                    .run(state);
                match run.spec.steps.is_empty() {
                    true => proposal,
                    false => proposal.and(Action::create(run)),
                }
            }
            RetryDecision::Later { at, .. } => proposal.at(state, at),
            RetryDecision::UnderWay { .. } | RetryDecision::Done { .. } | RetryDecision::Halted { .. } => proposal,
        }
    })
}
