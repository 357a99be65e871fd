//! What differs, and what brings it to where it is wanted.

use crds::step::{Role, Step};

use crate::cluster_deployment::outdated;
use crate::cluster_deployment::outdated_machine::Outdated;
use crate::cluster_deployment::state::{ClusterMachine, ClusterState};
use crate::departure::is_healthy;
use crate::settings::{self, Difference};

/// The machines on which something is due: control planes first, then machines of etcd, then workers.
pub(super) fn outdated<'a>(state: &ClusterState<'a>) -> Vec<Outdated<'a>> {
    let roles = [Role::ControlPlane, Role::Etcd, Role::Worker];
    let machines = roles.into_iter().flat_map(|role| state.of_role(role));
    let machines = machines.filter(|machine| machine.is_provisioned() && machine.host.is_some());
    machines.filter_map(|machine| differs(state, machine)).collect()
}

fn differs<'a>(state: &ClusterState<'a>, machine: ClusterMachine<'a>) -> Option<Outdated<'a>> {
    let recorded = machine.machine.status.as_ref().and_then(|status| status.applied.as_ref());
    let due = |applied| -> Vec<Difference> {
        let differences = outdated::of_machine(state, &machine, applied).into_iter();
        differences.filter(|difference| difference.due().is_some()).collect()
    };
    if due(recorded).is_empty() {
        return None;
    }
    // A run may have brought it that the status does not tell of yet.
    let applied = settings::applied(machine.machine, machine.host_name()?, state.observed.runs);
    let due = due(applied.as_ref());
    (!due.is_empty()).then_some(Outdated { machine, due })
}

/// Whether a machine is to have something that Pods would not outlive.
pub(super) fn is_drained(state: &ClusterState<'_>, machine: &ClusterMachine<'_>) -> bool {
    differs(state, *machine).is_some_and(|outdated| outdated.drains())
}

/// The manifests that differ, and the control plane by which they are applied.
pub(super) fn of_cluster<'a>(state: &ClusterState<'a>) -> Option<Outdated<'a>> {
    by_control_plane(state, outdated::of_cluster(state))
}

/// Whether CoreDNS differs, and the control plane by which it is set right.
pub(super) fn of_dns<'a>(state: &ClusterState<'a>) -> Option<Outdated<'a>> {
    by_control_plane(state, outdated::of_dns(state).into_iter().collect())
}

fn by_control_plane<'a>(state: &ClusterState<'a>, mut due: Vec<Difference>) -> Option<Outdated<'a>> {
    due.retain(|difference| difference.due().is_some());
    let is_able = |machine: &ClusterMachine<'a>| machine.host.is_some() && is_healthy(machine.machine);
    let first = state.first_control_plane().filter(is_able);
    let machine = first.or_else(|| state.of_role(Role::ControlPlane).find(is_able))?;
    (!due.is_empty()).then_some(Outdated { machine, due })
}

/// Whether a machine has yet to be brought what one of these steps brings.
pub(super) fn lacks(state: &ClusterState<'_>, machine: &ClusterMachine<'_>, steps: &[Step]) -> bool {
    let outdated = differs(state, *machine);
    outdated.is_some_and(|outdated| outdated.steps().iter().any(|step| steps.contains(step)))
}
