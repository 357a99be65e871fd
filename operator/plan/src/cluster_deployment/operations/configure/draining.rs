//! Workers whose Nodes are drained before they are configured: one before all others, then of each set as many at once
//! as may be out of service.

use crds::Reason;
use crds::machine::DrainReason;

use super::target;
use crate::cluster_deployment::action::Action;
use crate::cluster_deployment::drained_for::{drained, is_drained_for};
use crate::cluster_deployment::outdated_machine::Outdated;
use crate::cluster_deployment::proposal::{Area, Proposal, Severity};
use crate::cluster_deployment::request::Target;
use crate::cluster_deployment::rollout::canaries::Canaries;
use crate::cluster_deployment::room::{room, set_of};
use crate::cluster_deployment::state::ClusterState;
use crate::cluster_deployment::surge;
use crate::cluster_deployment::tried::Tried;
use crate::departure::is_healthy;
use crate::message::count;

/// A worker that is to have something that its Pods would not outlive.
pub(super) struct Draining<'o, 'a> {
    pub worker: &'o Outdated<'a>,
    /// The retry that it answers.
    pub retry: Option<String>,
    /// It was tried before.
    pub is_again: bool,
}

impl Draining<'_, '_> {
    fn has_begun(&self) -> bool {
        self.is_again || is_drained_for(&self.worker.machine, DrainReason::Configuration)
    }
}

/// Drains what may be drained, and configures what is.
pub(super) fn propose<'a>(
    state: &ClusterState<'a>,
    tried: &Tried<'a>,
    mut workers: Vec<Draining<'_, 'a>>,
) -> Option<Proposal> {
    workers.sort_by_key(|worker| !worker.has_begun());
    let mut room = room(state, |_| false);
    let mut begun = workers.iter().filter(|worker| worker.has_begun()).count();
    let steps = workers.first()?.worker.steps();
    let canaries = Canaries::look(state, tried, |worker| target::lacks(state, worker, &steps));
    let (mut proposal, mut ready): (Proposal, Vec<Target<'a>>) = (Proposal::default(), Vec::new());
    for due in workers.iter().filter(|other| other.worker.steps() == steps) {
        let (machine, has_begun) = (due.worker.machine, due.has_begun());
        let room = room.entry(set_of(&machine)).or_default();
        if !has_begun && (!is_healthy(machine.machine) || *room == 0 || begun >= canaries.most()) {
            continue;
        }
        if !has_begun {
            *room -= 1;
            begun += 1;
        }
        let progressing = |what: &str| progressing(format!("configuring {}: {what}", machine.title()));
        match drained(&machine, DrainReason::Configuration, &progressing) {
            Some(drains) => proposal = merged(proposal, drains),
            None => ready.push((machine, due.retry.clone())),
        }
    }
    if !ready.is_empty() {
        let run = tried.request(steps, &ready, "").run(state);
        let message =
            format!("configuring {}; {} to go", count(ready.len(), "drained worker"), workers.len() - ready.len());
        return Some(merged(progressing(message).and(Action::create(run)), proposal));
    }
    proposal.report.is_some().then_some(proposal).or_else(|| {
        let waits = || surge::waits(state).unwrap_or_else(|| "waits until one may be".to_owned());
        let (waits, until) = canaries.waits().unwrap_or_else(|| (waits(), None));
        let message = format!("{} to be drained and configured; {waits}", count(workers.len(), "worker"));
        Some(until.into_iter().fold(progressing(message), |proposal, until| proposal.at(state, until)))
    })
}

fn progressing(message: String) -> Proposal {
    Proposal::report(Area::Configuration, Reason::Configuring, message, Severity::Progressing)
}

/// The actions of both, and what is said of the first.
fn merged(mut first: Proposal, second: Proposal) -> Proposal {
    first.actions.extend(second.actions);
    first.report = first.report.or(second.report);
    first
}
