//! Whether the cluster is as its spec wants it. What was edited is named here with the machines that do not have it,
//! for as long as they do not; so are Nodes that do not have their labels, annotations and taints yet.

use std::collections::BTreeMap;

use crds::Conditions;
use crds::Reason;
use crds::conditions::Statement;
use crds::machine::DrainReason;
use crds::names::condition;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;

use super::outdated;
use super::proposal::Report;
use super::state::{ClusterMachine, ClusterState};
use crate::configuration::files::FILES;
use crate::machine_set;
use crate::message::cut;
use crate::settings::Difference;

/// With what goes on to bring another version, and to roll out what was edited.
pub(super) fn statement(state: &ClusterState<'_>, upgrade: Option<&Report>, rollout: Option<&Report>) -> Statement {
    let wanted = state.deployment.spec.kubernetes_version;
    let stated = |status: Option<bool>, reason: Reason, message: String| {
        Statement::new(condition::UP_TO_DATE, status, reason, cut(message))
    };
    if state.installed.is_none() {
        return stated(Some(false), Reason::NotInstalled, NOT_INSTALLED.into());
    }
    if let Some(report) = upgrade {
        return stated(Some(false), report.reason, report.message.clone());
    }
    let mut other = state.live.iter().filter_map(|member| {
        let seen = member.machine.status.as_ref()?.kubernetes_version.as_ref()?;
        (seen.parse() != Ok(wanted)).then(|| format!("{} has {seen}, {wanted} is wanted", member.title()))
    });
    if let Some(message) = other.next() {
        return stated(Some(false), Reason::OtherVersion, message);
    }
    let differences = differences(state);
    let named = |is_known: bool| -> Vec<String> {
        let fields = differences.iter().filter(|((_, known), _)| *known == is_known);
        let fields = fields.map(|((field, _), machines)| match machines.as_slice() {
            [] => field.clone(),
            machines => format!("{field} ({})", machines.join(", ")),
        });
        fields.collect()
    };
    let differ = named(true);
    if !differ.is_empty() {
        let fields = differ.join("; ");
        return match rollout {
            Some(report) => stated(Some(false), report.reason, format!("changed: {fields}; {}", report.message)),
            None => {
                let message = format!("changed, and not rolled out: {fields}");
                stated(Some(false), Reason::SettingsNotRolledOut, message)
            }
        };
    }
    if let Some(message) = on_its_way(state) {
        let (reason, why) = match state.deployment.spec.paused {
            true => (Reason::Paused, "; the cluster is paused"),
            false => (Reason::UpdatingNode, ""),
        };
        return stated(Some(false), reason, format!("changed, and on its way to the Nodes: {message}{why}"));
    }
    if let Some(statement) = on_nodes(state) {
        return statement;
    }
    if let Some(member) = state.live.iter().find(|member| is_drained_yet(member)) {
        let message = format!("every machine has what is wanted; {} is to take Pods again", member.title());
        return stated(Some(false), Reason::UpdatingNode, message);
    }
    let unknown = named(false);
    if !unknown.is_empty() {
        let message = format!("not known whether it is rolled out: {}", unknown.join("; "));
        return stated(None, Reason::SettingsNotKnown, message);
    }
    stated(Some(true), Reason::UpToDate, format!("every machine has what is wanted, Kubernetes {wanted} among it"))
}

/// Whether the operator has drained its Node, for what is done by now, and it takes no Pods yet.
fn is_drained_yet(member: &ClusterMachine<'_>) -> bool {
    let machine = member.machine;
    let is_for_a_person = machine.spec.drain_for.contains(&DrainReason::Maintenance);
    !is_for_a_person && (!machine.spec.drain_for.is_empty() || machine.condition(condition::DRAINED).is_some())
}

/// Labels, annotations and taints that sets have yet to give to their Machines, each field with them.
fn on_its_way(state: &ClusterState<'_>) -> Option<String> {
    let mut fields: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for member in state.live.iter().filter(|member| member.is_provisioned()) {
        let differ = machine_set::template_difference(state.deployment, member.machine);
        for field in differ.into_iter().flatten() {
            fields.entry(field).or_default().push(member.name());
        }
    }
    let named = fields.iter().map(|(field, machines)| format!("{field} ({})", machines.join(", ")));
    let named: Vec<String> = named.collect();
    (!named.is_empty()).then(|| named.join("; "))
}

/// What Machines say of their Nodes, where these are not as wanted, or not known to be: first what is wrong.
fn on_nodes(state: &ClusterState<'_>) -> Option<Statement> {
    let said: Vec<(&str, &Condition)> = state
        .live
        .iter()
        .filter(|member| member.is_provisioned())
        .filter_map(|member| Some((member.name(), member.machine.condition(condition::UP_TO_DATE)?)))
        .filter(|(_, said)| Reason::among(&said.reason, &OF_NODES))
        .collect();
    let worst = |reason: &Reason| said.iter().any(|(_, said)| said.reason == *reason);
    let reason = OF_NODES.into_iter().find(worst)?;
    let of_reason: Vec<_> = said.iter().filter(|(_, said)| said.reason == reason).collect();
    let (name, first) = of_reason.first()?;
    let status = (first.status == "False").then_some(false);
    let message = format!("{} of {} machines; {name}: {}", of_reason.len(), state.live.len(), first.message);
    Some(Statement::new(condition::UP_TO_DATE, status, reason, cut(message)))
}

/// Reasons of Machines that are about their Nodes, the worst first.
const OF_NODES: [Reason; 6] = [
    Reason::NodeFieldConflict,
    Reason::NodeRefused,
    Reason::Paused,
    Reason::UpdatingNode,
    Reason::NodeNotFound,
    Reason::ClusterUnreachable,
];

/// The fields that differ, in order, and whether that is known, each with its machines; manifests are the cluster's.
fn differences<'a>(state: &ClusterState<'a>) -> BTreeMap<(String, bool), Vec<&'a str>> {
    let mut fields: BTreeMap<(String, bool), Vec<&'a str>> = BTreeMap::new();
    let key = |difference: Difference| (difference.field, difference.is_known);
    for member in state.live.iter().filter(|member| member.is_provisioned()) {
        let status = member.machine.status.as_ref();
        let applied = status.and_then(|status| status.applied.as_ref());
        for difference in outdated::of_machine(state, member, applied) {
            fields.entry(key(difference)).or_default().push(member.name());
        }
    }
    for difference in outdated::of_cluster(state).into_iter().chain(outdated::of_dns(state)) {
        fields.entry(key(difference)).or_default();
    }
    fields
}

/// Whether a ConfigMap or Secret is named whose content is compared: it is not followed.
pub(super) fn compares_content(state: &ClusterState<'_>) -> bool {
    let spec = &state.deployment.spec;
    let manifests = spec.networking.plugin.manifests_ref.as_ref();
    let named = [manifests, spec.etcd.secret_ref.as_ref(), spec.certificates.ca_ref.as_ref()];
    let files = FILES.iter().map(|file| file.reference(state.deployment));
    let mirrors = spec.container_runtime.registry_mirrors.iter();
    let of_mirrors = mirrors.flat_map(|mirror| [mirror.ca_ref.as_ref(), mirror.credentials_ref.as_ref()]);
    state.installed.is_some() && named.into_iter().chain(files).chain(of_mirrors).any(|reference| reference.is_some())
}

pub(super) const NOT_INSTALLED: &str = "the cluster is not installed yet";
