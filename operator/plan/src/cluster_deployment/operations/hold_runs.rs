//! Holds runs while the cluster is paused: those that work are asked to hold before their next step, and asked again to
//! go on when it ends; what was held is told.

use crds::ObjectExt;
use crds::PlaybookRun;
use crds::Reason;
use crds::step::Intent;

use crate::attempts::{self, Outcome};
use crate::cluster_deployment::action::Action;
use crate::cluster_deployment::proposal::{Proposal, Round};
use crate::cluster_deployment::state::ClusterState;
use crate::lock::Lock;

/// Asks every run that holds the lock to do as the cluster does: the field is the cluster's, not a person's.
pub(super) fn propose(state: &ClusterState<'_>, round: &Round) -> Proposal {
    let lock = &round.lock;
    let paused = state.deployment.spec.paused;
    let holds = |run: &PlaybookRun| {
        let name = run.metadata.name.as_ref();
        lock.operations.iter().any(|held| Some(&held.run) == name)
    };
    let differs = |run: &&&PlaybookRun| run.spec.paused != paused && (!paused || holds(run));
    let runs = state.active.iter().filter(differs);
    let holds = runs.map(|run| Action::HoldRun { run: Box::new((*run).clone()), paused });
    Proposal::actions(holds.collect())
}

/// Where a paused cluster stands, as a reason and a clause.
pub(in crate::cluster_deployment) fn says(state: &ClusterState<'_>, lock: &Lock) -> (Reason, String) {
    let working: Vec<&PlaybookRun> = state
        .active
        .iter()
        .copied()
        .filter(|run| {
            let name = run.metadata.name.as_ref();
            lock.operations.iter().any(|held| Some(&held.run) == name)
        })
        .collect();
    if let Some(first) = working.first() {
        let more = match working.len() {
            1 => String::new(),
            more => format!(" (and those of {} more)", more - 1),
        };
        return (Reason::StepFinishing, format!("paused; {}{more} ends first", step_of(first)));
    }
    match held(state) {
        Some((run, place)) => (Reason::Held, format!("{place} of run {run}; goes on when spec.paused is false")),
        None => (Reason::SpecPaused, "paused; nothing more starts until spec.paused is false".into()),
    }
}

/// `step etcd of run a-install-x7k2m9-0`.
fn step_of(run: &PlaybookRun) -> String {
    let name = run.name();
    let progress = run.status.as_ref().and_then(|status| status.progress.as_ref());
    match progress.filter(|progress| !progress.step.is_empty()) {
        Some(progress) => format!("step {} of run {name}", progress.step),
        None => format!("run {name}, which has just begun,"),
    }
}

/// The newest run that was held, and that something still waits for: its name, and `paused before step etcd`.
fn held(state: &ClusterState<'_>) -> Option<(String, String)> {
    let last_of = |machine: &crds::Machine| {
        let uid = machine.uid();
        let provisioned = machine.status.as_ref()?.provisioned_at.is_some();
        let tried = attempts::tried(state.observed.runs, &[Intent::Install, Intent::Join], uid);
        let last = tried.into_iter().next_back()?;
        (!provisioned && last.outcome == Outcome::Held).then_some((last.ended, last.run))
    };
    let (_, name) = state.live.iter().filter_map(|member| last_of(member.machine)).max()?;
    let run = state.observed.runs.iter().find(|run| run.metadata.name.as_ref() == Some(&name))?;
    let said = run
        .status
        .as_ref()
        .filter(|status| status.end_reason().is_some_and(|reason| reason == Reason::Paused))
        .and_then(|status| status.message.clone());
    Some((name, said.unwrap_or_else(|| "paused in the middle".into())))
}
