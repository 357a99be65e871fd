//! Prepares workers while the control plane is installed, so that little is left to do when they join. Nothing depends
//! on it: a join plays all of its steps, and what is wrong with a machine on which this failed is in its join's report.

use crds::step::{Intent, Role, Step};
use crds::{ObjectExt, PlaybookRun};

use crate::Next;
use crate::cluster_deployment::action::Action;
use crate::cluster_deployment::gathering::gathers;
use crate::cluster_deployment::proposal::{Proposal, Round};
use crate::cluster_deployment::request::{Attempt, BATCH, Request, Target};
use crate::cluster_deployment::state::{ClusterMachine, ClusterState};
use crate::{hooks, provisioning};

/// What a join begins with, as far as it needs no cluster.
pub(super) const STEPS: [Step; 4] = [Step::BootstrapOs, Step::Preflight, Step::Prepare, Step::ContainerRuntime];

pub(super) fn propose(state: &ClusterState<'_>, round: &Round) -> Proposal {
    // Hooks that come before a join come before anything else.
    if !is_being_installed(state, round) || hooks::come_before_join(state.deployment) {
        return Proposal::default();
    }
    let due: Vec<Target<'_>> =
        state.of_role(Role::Worker).filter(|worker| is_due(state, worker)).map(|worker| (worker, None)).collect();
    if due.is_empty() {
        return Proposal::default();
    }
    if gathers(state, &due) {
        return Proposal { requeue: Next::after_seconds(1), ..Proposal::default() };
    }
    let runs = due.chunks(BATCH).map(|batch| Request::new(Intent::Prepare, STEPS.into(), batch, Attempt::FIRST));
    Proposal::actions(runs.map(|request| Action::create(request.run(state))).collect())
}

/// Whether an install of ours works: which version it brings is decided with its lock.
fn is_being_installed(state: &ClusterState<'_>, round: &Round) -> bool {
    let holds_lock = |run: &PlaybookRun| round.lock.operations.iter().any(|held| held.run == run.name());
    state.installed.is_none() && state.install_under_way().is_some_and(holds_lock)
}

/// A machine is prepared once: whatever came of it, the rest is for its join.
fn is_due(state: &ClusterState<'_>, worker: &ClusterMachine<'_>) -> bool {
    let is_free = worker.host_name().is_some_and(|host| state.active_on(host).is_none());
    is_free && !provisioning::was_touched(worker.machine, state.observed.runs)
}
