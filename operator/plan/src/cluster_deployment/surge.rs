//! Surge: machines that join a set of workers before others of it are drained for a change, and leave when all are
//! brought.

use crds::placement::WorkerSet;
use crds::step::Role;
use crds::{MachineSet, ObjectExt, names};

use super::rotating;
use super::state::{ClusterMachine, ClusterState};
use crate::claims;
use crate::departure::is_healthy;
use crate::int_or_percent::{Rounded, int_or_percent};

/// How many machines more than its `replicas` a set of workers is to have now.
pub(super) fn wanted(state: &ClusterState<'_>, workers: &WorkerSet) -> i32 {
    let Some(set) = state.set(&names::worker_set(&state.name, &workers.name)) else { return 0 };
    let is_wanted = match set.spec.surge > 0 {
        true => is_drained_soon(state, set) || is_drained_later(state, set),
        false => is_drained_soon(state, set) && state.rollout.is_open(),
    };
    if is_wanted { most(workers, set) } else { 0 }
}

/// Whether no machine of the set is drained for a change before others are there in its place.
pub(super) fn keeps_capacity(state: &ClusterState<'_>, set: &MachineSet) -> bool {
    let described = state.deployment.workers_of(set.name());
    described.is_some_and(|workers| most(workers, set) > 0) && is_drained_soon(state, set)
}

/// What a set that is to keep its capacity waits for, while it has none to spare.
pub(super) fn waits(state: &ClusterState<'_>) -> Option<String> {
    let set = state.sets().find(|set| keeps_capacity(state, set) && spare(state, set) == 0)?;
    let says = set.status.as_ref().and_then(|status| status.message.as_deref()).unwrap_or("not looked at yet");
    let replicas = set.spec.replicas;
    Some(format!(
        "waits for more than the {replicas} replicas of MachineSet {} to be Ready (maxSurge): {says}",
        set.name()
    ))
}

/// How many of the set's machines take Pods, beyond its `replicas`.
fn spare(state: &ClusterState<'_>, set: &MachineSet) -> usize {
    let takes_pods = |worker: &ClusterMachine<'_>| {
        is_healthy(worker.machine) && worker.machine.spec.drain_for.is_empty() && is_of(set, worker)
    };
    let serving = state.of_role(Role::Worker).filter(takes_pods).count();
    serving.saturating_sub(state.capacity(set))
}

fn most(workers: &WorkerSet, set: &MachineSet) -> i32 {
    let replicas = usize::try_from(set.spec.replicas).unwrap_or_default();
    i32::try_from(int_or_percent(&workers.max_surge, replicas, Rounded::Up)).unwrap_or(i32::MAX)
}

/// Whether it is the workers' turn, and one of the set is to be drained.
fn is_drained_soon(state: &ClusterState<'_>, set: &MachineSet) -> bool {
    if let Some(upgrade) = &state.upgrade {
        let is_their_turn = upgrade.has_begun && upgrade.control_planes().next().is_none();
        return is_their_turn && upgrade.workers().any(|worker| is_of(set, worker) && upgrade.drains(worker));
    }
    let is_their_turn = state.outdated.iter().all(|outdated| outdated.machine.machine.spec.role == Role::Worker);
    is_their_turn && state.outdated.iter().any(|outdated| is_of(set, &outdated.machine) && outdated.drains())
}

/// Whether one of the set is to be drained after others, among them those that joined for it, have what goes before.
fn is_drained_later(state: &ClusterState<'_>, set: &MachineSet) -> bool {
    state.of_role(Role::Worker).any(|worker| is_of(set, &worker) && rotating::restarts_pods_later(state, &worker))
}

fn is_of(set: &MachineSet, worker: &ClusterMachine<'_>) -> bool {
    claims::set_of(worker.machine) == Some(set.name())
}
