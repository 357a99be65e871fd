//! Machines that differ from what is wanted of them, and are repaired.

use crds::ObjectExt;
use crds::drift::{DriftRepair, DriftSeen};
use crds::step::{Role, Step};
use jiff::Timestamp;

use super::drifted_machine::Drifted;
use super::state::{ClusterMachine, ClusterState};
use crate::{attempts, drift};

/// What comparisons have found on a machine, by its status and by runs that it does not tell of yet.
pub(super) fn seen(state: &ClusterState<'_>, machine: &ClusterMachine<'_>) -> Option<DriftSeen> {
    drift::shown(machine.machine, state.observed.runs)
}

/// When a run that may have changed a machine ended last.
pub(super) fn changed_at(state: &ClusterState<'_>, machine: &ClusterMachine<'_>) -> Option<Timestamp> {
    let host = machine.host_name()?;
    let runs = state.observed.runs.iter().copied();
    let changes = runs.filter(|run| attempts::is_over(run) && !run.spec.intent.changes_nothing());
    let of_host = changes.filter(|run| run.spec.hosts.iter().any(|named| named == host));
    of_host.filter_map(attempts::ended_at).max()
}

/// Whether a machine of the cluster has what is wanted, for all that is known, and nobody works on it.
pub(super) fn is_left_alone(state: &ClusterState<'_>, machine: &ClusterMachine<'_>) -> bool {
    let is_outdated = || state.outdated.iter().any(|outdated| outdated.machine.uid() == machine.uid());
    machine.is_provisioned() && machine.machine.spec.drain_for.is_empty() && !is_outdated()
}

/// The machines that are to be repaired now, control planes first, then machines of etcd, then workers. One is compared
/// again after each attempt.
pub(super) fn due<'a>(state: &ClusterState<'a>) -> Vec<Drifted<'a>> {
    let is_asked = drift::policy(state.deployment).repair == DriftRepair::Automatic;
    if !is_asked || state.installed.is_none() || state.upgrade.is_some() {
        return Vec::new();
    }
    let roles = [Role::ControlPlane, Role::Etcd, Role::Worker];
    roles.into_iter().flat_map(|role| state.of_role(role)).filter_map(|machine| drifted(state, machine)).collect()
}

fn drifted<'a>(state: &ClusterState<'a>, machine: ClusterMachine<'a>) -> Option<Drifted<'a>> {
    if !is_left_alone(state, &machine) {
        return None;
    }
    let seen = seen(state, &machine)?;
    let found = seen.steps();
    let is_old = changed_at(state, &machine).is_some_and(|changed| changed >= seen.checked_at.0);
    let repairs = drift::repairs(machine.machine, &seen, state.observed.runs);
    let is_over = repairs.len() >= state.terms.most;
    if found.is_empty() || is_old || is_over {
        return None;
    }
    let steps = Step::ALL.into_iter().filter(|step| found.contains(step)).collect();
    Some(Drifted { machine, steps, key: drift::repair_key(machine.machine, &seen), attempts: repairs.len() })
}

/// Names of the runs that repaired what machines still differ in.
pub(super) fn kept(state: &ClusterState<'_>) -> Vec<String> {
    let repairs = state.live.iter().flat_map(|machine| {
        let seen = seen(state, machine);
        seen.map(|seen| drift::repairs(machine.machine, &seen, state.observed.runs)).unwrap_or_default()
    });
    repairs.map(|run| run.name().to_owned()).collect()
}
