//! An upgrade of Kubernetes: from which version to which, whether it has begun, and which machines are still due.

use std::cmp::Reverse;

use crds::KubernetesVersion;
use crds::machine::{AppliedSettings, DrainReason};
use crds::step::Role;
use jiff::{SignedDuration, Timestamp};

use super::drained_for;
use super::state::{ClusterMachine, ClusterState};
use super::wanted_upgrade::{Upgrade, version_of};
use crate::moment::after;
use crate::{components, settings};

/// The upgrade that is wanted; none: every machine has the version that is wanted, for all that is known.
pub(super) fn find<'a>(state: &ClusterState<'a>) -> Option<Upgrade<'a>> {
    state.installed.as_ref()?;
    let to = target(state);
    let mut due: Vec<ClusterMachine<'a>> = state.live.iter().copied().filter(|it| is_due(state, it, to)).collect();
    if due.iter().any(|machine| machine.machine.spec.role == Role::ControlPlane) {
        due.extend(state.of_role(Role::Etcd).filter(|machine| is_unknown(state, machine)));
    }
    let first = state.first_control_plane().map(|first| first.uid());
    let order = |role| match role {
        Role::Etcd => 0,
        Role::ControlPlane => 1,
        Role::Worker => 2,
    };
    let is_first = |machine: &ClusterMachine<'_>| (is_drained_for(machine), Some(machine.uid()) == first);
    due.sort_by_key(|machine| (order(machine.machine.spec.role), Reverse(is_first(machine))));
    let (_, lowest) = lowest(state)?;
    let has_begun = state.version_begun() == to;
    let wanted = state.deployment.spec.kubernetes_version;
    (!due.is_empty()).then_some(Upgrade { from: lowest, to, wanted, has_begun, due })
}

/// The version that machines are brought to now. One that has begun is finished first where a machine could not go
/// straight to what is wanted, and wherever the way to that is longer.
pub(super) fn target(state: &ClusterState<'_>) -> KubernetesVersion {
    let (wanted, begun) = (state.deployment.spec.kubernetes_version, state.version_begun());
    let Some((_, lowest)) = lowest(state) else { return wanted };
    let is_on_its_way = wanted.minor() > begun.minor() && !state.deployment.spec.upgrade_path.via.is_empty();
    let is_left = || state.live.iter().any(|machine| is_due(state, machine, begun));
    match (wanted.minor() > begun.minor() && lowest.minor() < begun.minor()) || (is_on_its_way && is_left()) {
        true => begun,
        false => components::version_after(state.deployment, begun),
    }
}

/// Of a running cluster, a machine with the lowest version, and that version.
pub(super) fn lowest<'a>(state: &ClusterState<'a>) -> Option<(ClusterMachine<'a>, KubernetesVersion)> {
    versions(state).min_by_key(|(_, version)| *version)
}

/// Of a running cluster, a machine with the highest version, and that version.
pub(super) fn highest<'a>(state: &ClusterState<'a>) -> Option<(ClusterMachine<'a>, KubernetesVersion)> {
    versions(state).max_by_key(|(_, version)| *version)
}

fn versions<'a>(state: &ClusterState<'a>) -> impl Iterator<Item = (ClusterMachine<'a>, KubernetesVersion)> {
    let provisioned = state.live.iter().filter(|machine| state.installed.is_some() && machine.is_provisioned());
    provisioned.filter_map(|machine| Some((*machine, version_of(machine)?)))
}

/// Whether every Node of a running cluster is known to have the version.
pub(super) fn is_everywhere(state: &ClusterState<'_>, version: KubernetesVersion) -> bool {
    let is_node = |machine: &&ClusterMachine<'_>| machine.is_provisioned() && machine.machine.spec.role != Role::Etcd;
    let mut nodes = state.live.iter().filter(is_node).peekable();
    state.installed.is_some() && nodes.peek().is_some() && nodes.all(|node| version_of(node) == Some(version))
}

/// Why no machine joins, and no setting is brought to one: the steps that do so would bring a kubelet that is newer
/// than the API servers.
pub(super) fn in_the_way(state: &ClusterState<'_>) -> Option<String> {
    let upgrade = state.upgrade.as_ref().filter(|upgrade| upgrade.has_begun)?;
    let first = upgrade.control_planes().next()?;
    Some(format!("waits for the control planes to be upgraded to {}, {} is next", upgrade.to, first.title()))
}

/// Whether the Node of a machine is kept drained for an upgrade.
pub(super) fn is_drained_for(machine: &ClusterMachine<'_>) -> bool {
    drained_for::is_drained_for(machine, DrainReason::Upgrade)
}

/// How long preflight's word holds: an upgrade that begins later is looked at anew.
const PREFLIGHT_HOLDS: SignedDuration = SignedDuration::from_hours(24);

/// Whether preflight of the version is so old that it says nothing any more.
pub(super) fn is_stale(state: &ClusterState<'_>, at: Timestamp) -> bool {
    after(at, PREFLIGHT_HOLDS) < state.observed.now
}

/// Whether all that the version needs lies ready on a machine, and preflight found nothing there of late that blocks
/// it.
pub(super) fn is_prefetched(
    state: &ClusterState<'_>,
    machine: &ClusterMachine<'_>,
    version: KubernetesVersion,
) -> bool {
    let is_ready = |applied: &AppliedSettings| {
        let is_recent = applied.prefetched_at.as_ref().is_some_and(|at| !is_stale(state, at.0));
        is_recent && applied.prefetched_version == Some(version.to_string())
    };
    recorded(machine).is_some_and(is_ready) || applied(state, machine).as_ref().is_some_and(is_ready)
}

/// A kubelet of another version, or one behind whose version something was left undone.
fn is_due(state: &ClusterState<'_>, machine: &ClusterMachine<'_>, to: KubernetesVersion) -> bool {
    let kubelet = version_of(machine).filter(|_| machine.machine.spec.role != Role::Etcd);
    let is_left = |applied: &AppliedSettings| {
        let brought = applied.kubernetes_version.as_ref();
        brought.is_some_and(|version| version.parse() != Ok(to))
    };
    let is_part = machine.is_provisioned() && machine.host.is_some();
    let lacks = || recorded(machine).is_some_and(is_left) && applied(state, machine).as_ref().is_some_and(is_left);
    is_part && (kubelet.is_some_and(|version| version != to) || lacks())
}

/// Whether nobody remembers for which version a machine of etcd was brought its program.
fn is_unknown(state: &ClusterState<'_>, machine: &ClusterMachine<'_>) -> bool {
    let is_known = |applied: &AppliedSettings| applied.kubernetes_version.is_some();
    let known = recorded(machine).is_some_and(is_known) || applied(state, machine).as_ref().is_some_and(is_known);
    machine.is_provisioned() && machine.host.is_some() && !known
}

/// What was brought to a machine, as its status remembers.
fn recorded<'a>(machine: &ClusterMachine<'a>) -> Option<&'a AppliedSettings> {
    machine.machine.status.as_ref()?.applied.as_ref()
}

/// The same, with what runs have brought of which the status does not tell yet.
fn applied(state: &ClusterState<'_>, machine: &ClusterMachine<'_>) -> Option<AppliedSettings> {
    settings::applied(machine.machine, machine.host_name()?, state.observed.runs)
}
