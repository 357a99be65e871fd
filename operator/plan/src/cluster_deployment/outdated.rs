//! Where machines, and what was applied to the cluster, differ from what is wanted now.

use crds::cluster_deployment::AppliedManifests;
use crds::machine::AppliedSettings;
use crds::step::{Role, Step};

use super::state::{ClusterMachine, ClusterState};
use crate::settings::{self, Difference};

/// What differs on a machine to which this was applied.
pub(super) fn of_machine(
    state: &ClusterState<'_>,
    member: &ClusterMachine<'_>,
    applied: Option<&AppliedSettings>,
) -> Vec<Difference> {
    let differences = settings::differences(&state.wanted, member.machine, applied);
    differences.into_iter().chain(of_etcd_client(state, member, applied)).collect()
}

/// Whether a control plane speaks to an external etcd with the certificates that the Secret has by now. While the Secret
/// cannot be read, that is a problem of its own.
fn of_etcd_client(
    state: &ClusterState<'_>,
    member: &ClusterMachine<'_>,
    applied: Option<&AppliedSettings>,
) -> Option<Difference> {
    let wanted = state.observed.etcd_client?.as_ref().ok()?;
    if member.machine.spec.role != Role::ControlPlane {
        return None;
    }
    let applied = applied.and_then(|applied| applied.etcd_client.as_ref());
    Difference::between("content of etcd.secretRef", Step::EtcdEndpoints, applied, wanted)
}

/// The manifests that differ.
pub(super) fn of_cluster(state: &ClusterState<'_>) -> Vec<Difference> {
    let applied = applied(state).unwrap_or_default();
    let wanted = &state.observed.manifests;
    let spec = &state.deployment.spec;
    let compare = |field: &str, step: Step, is_named: bool, applied: &Option<String>, wanted: &Option<String>| {
        match (applied, wanted) {
            // Nothing is wanted, and nothing can be missing.
            (None, _) if !is_named => None,
            (_, Some(wanted)) => Difference::between(field, step, applied.as_ref(), wanted),
            (_, None) => Some(Difference { field: field.to_owned(), is_known: false, step: Some(step), drains: false }),
        }
    };
    let is_named = spec.addon_manifests().is_some();
    let addons = compare("addons.manifestsRef", Step::Addons, is_named, &applied.addons, &wanted.addons);
    let is_named = spec.networking.plugin.manifests_ref.is_some();
    let plugin = "networking.plugin.manifestsRef";
    let network = compare(plugin, Step::Network, is_named, &applied.network, &wanted.network);
    addons.into_iter().chain(network).collect()
}

/// The manifests that were applied to the cluster.
pub(super) fn applied(state: &ClusterState<'_>) -> Option<AppliedManifests> {
    let members = state.live.iter().chain(&state.leaving);
    let control_planes = members.filter(|member| member.machine.spec.role == Role::ControlPlane);
    let hosts: Vec<&str> = control_planes.filter_map(ClusterMachine::host_name).collect();
    settings::applied_manifests(state.deployment, &hosts, state.observed.runs)
}
