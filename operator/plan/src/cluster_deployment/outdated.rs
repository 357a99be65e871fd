//! Where machines, and what was applied to the cluster, differ from what is wanted now.

use crds::cluster_deployment::AppliedManifests;
use crds::machine::AppliedSettings;
use crds::step::{Role, Step};

use super::rotating;
use super::state::{ClusterMachine, ClusterState};
use crate::configuration::files;
use crate::settings::{self, Content, Difference, ETCD_CLIENT, NETWORK, REGISTRIES, REGISTRY_LOGIN};

/// What differs on a machine to which this was applied.
pub(super) fn of_machine(
    state: &ClusterState<'_>,
    member: &ClusterMachine<'_>,
    applied: Option<&AppliedSettings>,
) -> Vec<Difference> {
    let differences = settings::differences(&state.wanted, member.machine, applied);
    differences
        .into_iter()
        .chain(of_etcd_client(state, member, applied))
        .chain(of_files(state, member, applied))
        .chain(of_registries(state, member, applied))
        .chain(rotating::of_machine(state, member, applied))
        .collect()
}

/// Whether a control plane has other files than its configuration refers to by now. While a ConfigMap cannot be read,
/// that is a problem of its own.
fn of_files(
    state: &ClusterState<'_>,
    member: &ClusterMachine<'_>,
    applied: Option<&AppliedSettings>,
) -> Option<Difference> {
    let wanted = files::digest(state.observed.manifests.files.as_ref()?);
    if member.machine.spec.role != Role::ControlPlane {
        return None;
    }
    let has = applied.and_then(|applied| applied.configuration.get(files::NAME));
    // As with the parts: one that is remembered, and was never given any, has none.
    let is_known = has.is_some() || applied.is_some_and(|applied| applied.registry_mirrors.is_some());
    let field = "content of the ConfigMaps of configuration";
    let digest = wanted.as_deref().unwrap_or_default();
    let difference = Difference::new(field, Step::ControlPlaneConfiguration, is_known, digest);
    (has != wanted.as_ref()).then_some(difference)
}

/// Whether a machine knows its mirrors and logs in there as the objects say by now to which the spec refers.
fn of_registries(
    state: &ClusterState<'_>,
    member: &ClusterMachine<'_>,
    applied: Option<&AppliedSettings>,
) -> Option<Difference> {
    let wanted = files::digest(state.observed.manifests.registries.as_ref()?);
    if member.machine.spec.role == Role::Etcd {
        return None;
    }
    let has = applied.and_then(|applied| applied.configuration.get(REGISTRIES));
    let is_known = has.is_some() || applied.is_some_and(|applied| applied.registry_mirrors.is_some());
    let Content { title, step, is_disruptive, .. } = REGISTRY_LOGIN;
    let difference = Difference::new(title, step, is_known, wanted.as_deref().unwrap_or_default());
    (has != wanted.as_ref()).then_some(Difference { is_disruptive, ..difference })
}

/// Whether a control plane speaks to an external etcd with the certificates that the Secret has by now. While the
/// Secret cannot be read, that is a problem of its own.
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
    ETCD_CLIENT.difference(applied, wanted)
}

/// The manifests that differ, and what kube-proxy has.
pub(super) fn of_cluster(state: &ClusterState<'_>) -> Vec<Difference> {
    let applied = applied(state).unwrap_or_default();
    let wanted = &state.observed.manifests;
    let spec = &state.deployment.spec;
    let compare = |content: &Content, is_named: bool, applied: &Option<String>, wanted: &Option<String>| {
        match (applied, wanted) {
            // Nothing is wanted, and nothing can be missing.
            (None, _) if !is_named => None,
            (_, Some(wanted)) => content.difference(applied.as_ref(), wanted),
            // What is wanted could not be read.
            (_, None) => content.difference(None, ""),
        }
    };
    let is_named = spec.networking.plugin.manifests_ref.is_some();
    let network = compare(&NETWORK, is_named, &applied.network, &wanted.network);
    network.into_iter().chain(kube_proxy(state, &applied)).collect()
}

/// Whether kube-proxy is configured otherwise than is wanted. One that never was is as it is by itself.
fn kube_proxy(state: &ClusterState<'_>, applied: &AppliedManifests) -> Option<Difference> {
    let wanted = state.wanted.kube_proxy();
    // Where not even manifests are remembered, a status was lost.
    let is_known = applied.kube_proxy.is_some() || applied.network.is_some();
    let digest = wanted.map(String::as_str).unwrap_or_default();
    let difference = Difference::new("configuration.kubeProxy", Step::Addons, is_known, digest);
    (applied.kube_proxy.as_ref() != wanted).then_some(Difference { is_disruptive: true, ..difference })
}

/// How CoreDNS differs.
pub(super) fn of_dns(state: &ClusterState<'_>) -> Option<Difference> {
    settings::of_dns(&state.wanted, applied(state).as_ref())
}

/// The manifests that were applied to the cluster.
pub(super) fn applied(state: &ClusterState<'_>) -> Option<AppliedManifests> {
    let members = state.live.iter().chain(&state.leaving);
    let control_planes = members.filter(|member| member.machine.spec.role == Role::ControlPlane);
    let hosts: Vec<&str> = control_planes.filter_map(ClusterMachine::host_name).collect();
    settings::applied_manifests(state.deployment, &hosts, state.observed.runs)
}
