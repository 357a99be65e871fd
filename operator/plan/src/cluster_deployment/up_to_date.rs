//! Whether the cluster is as its spec wants it. What can be edited, and is not rolled out by anything, is named here
//! with the machines that do not have it, for as long as they do not.

use std::collections::BTreeMap;

use crds::Reason;
use crds::conditions::Statement;
use crds::machine::AppliedSettings;
use crds::names::condition;
use crds::step::Role;

use super::state::{ClusterMachine, ClusterState};
use crate::message::cut;
use crate::settings::{self, Difference};

pub(super) fn statement(state: &ClusterState<'_>) -> Statement {
    let wanted = state.deployment.spec.kubernetes_version;
    let stated = |status: Option<bool>, reason: Reason, message: String| {
        Statement::new(condition::UP_TO_DATE, status, reason, cut(message))
    };
    if state.installed.is_none() {
        return stated(Some(false), Reason::NotInstalled, NOT_INSTALLED.into());
    }
    let mut other = state.live.iter().filter_map(|member| {
        let seen = member.machine.status.as_ref()?.kubernetes_version.as_ref()?;
        (seen.parse() != Ok(wanted)).then(|| format!("{} has {seen}, {wanted} is wanted", member.title()))
    });
    if let Some(message) = other.next() {
        return stated(Some(false), Reason::OtherVersion, message);
    }
    let differences = differences(state);
    let named = |kind: fn(&Difference) -> Option<&String>| {
        let fields = differences.iter().filter_map(|(difference, machines)| {
            let field = kind(difference)?;
            Some(match machines.as_slice() {
                [] => field.clone(),
                machines => format!("{field} ({})", machines.join(", ")),
            })
        });
        fields.collect::<Vec<_>>()
    };
    let differ = named(|difference| match difference {
        Difference::Differs(field) => Some(field),
        Difference::Unknown(_) => None,
    });
    if !differ.is_empty() {
        let message = format!("changed, and not rolled out: {}", differ.join("; "));
        return stated(Some(false), Reason::SettingsNotRolledOut, message);
    }
    let unknown = named(|difference| match difference {
        Difference::Unknown(field) => Some(field),
        Difference::Differs(_) => None,
    });
    if !unknown.is_empty() {
        let message = format!("not known whether it is rolled out: {}", unknown.join("; "));
        return stated(None, Reason::SettingsNotKnown, message);
    }
    stated(Some(true), Reason::UpToDate, format!("every machine has what is wanted, Kubernetes {wanted} among it"))
}

/// The fields that differ, in order, each with its machines; manifests are the cluster's.
fn differences<'a>(state: &ClusterState<'a>) -> BTreeMap<Difference, Vec<&'a str>> {
    let mut fields: BTreeMap<Difference, Vec<&'a str>> = BTreeMap::new();
    for member in state.live.iter().filter(|member| member.is_provisioned()) {
        let status = member.machine.status.as_ref();
        let applied = status.and_then(|status| status.applied.as_ref());
        let of_machine = settings::differences(state.deployment, member.machine, applied);
        for difference in of_machine.into_iter().chain(of_etcd_client(state, member, applied)) {
            fields.entry(difference).or_default().push(member.name());
        }
    }
    for difference in of_manifests(state) {
        fields.entry(difference).or_default();
    }
    fields
}

/// Whether a control plane speaks to an external etcd with the certificates that the Secret has by now. While the Secret
/// cannot be read, that is a problem of its own.
fn of_etcd_client(
    state: &ClusterState<'_>,
    member: &ClusterMachine<'_>,
    applied: Option<&AppliedSettings>,
) -> Option<Difference> {
    const FIELD: &str = "content of etcd.secretRef";
    let wanted = state.observed.etcd_client?.as_ref().ok()?;
    if member.machine.spec.role != Role::ControlPlane {
        return None;
    }
    match applied.and_then(|applied| applied.etcd_client.as_ref()) {
        Some(applied) => (applied != wanted).then(|| Difference::Differs(FIELD.to_owned())),
        None => Some(Difference::Unknown(FIELD.to_owned())),
    }
}

fn of_manifests(state: &ClusterState<'_>) -> Vec<Difference> {
    let applied = applied(state).unwrap_or_default();
    let wanted = &state.observed.manifests;
    let spec = &state.deployment.spec;
    let addons = spec.addon_manifests();
    let compare = |field: &str, is_named: bool, applied: &Option<String>, wanted: &Option<String>| {
        match (applied, wanted) {
            (Some(applied), Some(wanted)) => (applied != wanted).then(|| Difference::Differs(field.to_owned())),
            // Nothing is wanted, and nothing can be missing.
            (None, _) if !is_named => None,
            (None, _) | (_, None) => Some(Difference::Unknown(field.to_owned())),
        }
    };
    let network = spec.networking.plugin.manifests_ref.is_some();
    let addons = compare("addons.manifestsRef", addons.is_some(), &applied.addons, &wanted.addons);
    let plugin = "networking.plugin.manifestsRef";
    let network = compare(plugin, network, &applied.network, &wanted.network);
    addons.into_iter().chain(network).collect()
}

/// The manifests that were applied to the cluster.
pub(super) fn applied(state: &ClusterState<'_>) -> Option<crds::cluster_deployment::AppliedManifests> {
    let members = state.live.iter().chain(&state.leaving);
    let control_planes = members.filter(|member| member.machine.spec.role == Role::ControlPlane);
    let hosts: Vec<&str> = control_planes.filter_map(ClusterMachine::host_name).collect();
    settings::applied_manifests(state.deployment, &hosts, state.observed.runs)
}

/// Whether a ConfigMap or Secret is named whose content is compared: it is not followed.
pub(super) fn compares_content(state: &ClusterState<'_>) -> bool {
    let spec = &state.deployment.spec;
    let addons = spec.addon_manifests();
    let named = [addons, spec.networking.plugin.manifests_ref.as_ref(), spec.etcd.secret_ref.as_ref()];
    state.installed.is_some() && named.iter().any(Option::is_some)
}

pub(super) const NOT_INSTALLED: &str = "the cluster is not installed yet";
