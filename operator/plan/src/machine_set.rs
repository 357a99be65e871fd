//! MachineSet: keeps its count of Machines, and says what the pool lacks.

mod action;
mod available;
mod failed_hosts;
mod hold;
mod members;
mod observed;
mod scale_down;
mod status;
mod template_difference;
mod up_to_date;

use std::collections::{BTreeMap, BTreeSet};

use crds::ObjectExt;
use crds::machine::MachineSpec;
use crds::names::annotation;
use crds::references::controller_ref;
use crds::{KubernetesVersion, Machine, MachineSet, MachineSetStatus};
use failed_hosts::replace_failed_hosts;
use members::Members;
pub(crate) use members::labels_of;
use scale_down::scale_down;
use status::{Outcome, set_status};

use crate::host_pool::{automatic_pool, selector_of_set};
use crate::lifecycle::is_provisioned;
use crate::{Next, Plan, naming};
pub use action::Action;
use hold::hold;
pub use members::ordinal_of;
pub use observed::Observed;
pub use template_difference::template_difference;

/// Decides.
pub fn plan(observed: &Observed<'_>) -> Plan<Action, MachineSetStatus> {
    let members = Members::new(observed);
    let live = members.live();
    let wanted = observed.set.spec.count();
    let hold = hold(observed);
    let mut actions = Vec::new();
    let (mut waits, mut held, mut next) = (None, None, Next::OnChange);
    if hold.is_none() {
        actions = gather(observed, &members, wanted.saturating_sub(live.len()));
        let failed_hosts = replace_failed_hosts(observed, &members);
        let scale_down = scale_down(observed, &members.own, live.len().saturating_sub(wanted));
        next = failed_hosts.next.unwrap_or(next);
        waits = scale_down.waits.or(failed_hosts.message);
        held = scale_down.held;
        let go = scale_down.go.into_iter();
        actions.extend(go.map(|machine| Action::DeleteMachine(Box::new(machine.clone()))));
        if live.len() <= wanted {
            actions.extend(failed_hosts.actions);
        }
    }
    if hold.is_none() && actions.is_empty() {
        let follow = |machine: &&Machine| {
            set_version(observed.set, machine).or_else(|| set_node_metadata(observed.set, machine))
        };
        actions.extend(live.iter().chain(&members.requested).filter_map(follow));
    }
    actions.extend(create_pool(observed));
    let (available, grows) = available::count(&live, observed.set.spec.min_ready_seconds, observed.now);
    let next = next.or_sooner(grows);
    let outcome = Outcome { hold: hold.as_ref(), waits, held, available };
    let (status, waits_for) = set_status(observed, &members, &outcome);
    Plan { actions, status, next, waits_for }
}

/// The pool that says how many Hosts there are for what the set selects.
fn create_pool(observed: &Observed<'_>) -> Option<Action> {
    let selector = selector_of_set(observed.set).filter(|_| !observed.has_pool)?;
    Some(Action::CreateHostPool(Box::new(automatic_pool(observed.set.namespace(), selector))))
}

/// Takes over Machines that are offered and makes the rest, until none is lacking; and keeps its own in order.
fn gather(observed: &Observed<'_>, members: &Members<'_>, lack: usize) -> Vec<Action> {
    let mut ordinals: BTreeSet<u32> = members.own.iter().filter_map(|machine| ordinal_of(machine)).collect();
    let live = members.live();
    let taken = members.offered.iter().take(lack);
    let adopted: Vec<&Machine> = taken.copied().collect();
    ordinals.extend(adopted.iter().filter_map(|machine| ordinal_of(machine)));
    let mut actions: Vec<Action> =
        live.iter().chain(&adopted).filter_map(|machine| members::adopt(observed, machine, &mut ordinals)).collect();
    actions.extend(create(observed, lack - adopted.len(), &mut ordinals));
    actions
}

/// A Machine that is not provisioned yet follows its template; one that already has the version may say so. All others
/// have to be upgraded for it.
fn set_version(set: &MachineSet, machine: &Machine) -> Option<Action> {
    let version = set.spec.template.kubernetes_version?;
    let status = machine.status.as_ref();
    let seen = status.and_then(|status| status.kubernetes_version.as_ref());
    let may = !is_provisioned(machine) || seen.is_some_and(|seen| seen.parse() == Ok(version));
    // One that has none has its cluster's.
    let other = machine.spec.kubernetes_version.is_some_and(|wanted| wanted != version);
    (may && other).then(|| Action::SetVersion { machine: Box::new((*machine).clone()), version })
}

/// Labels, annotations and taints of a Machine follow its template: its Node is written in place.
fn set_node_metadata(set: &MachineSet, machine: &Machine) -> Option<Action> {
    let (template, spec) = (&set.spec.template, &machine.spec);
    let is_as_wanted =
        spec.labels == template.labels && spec.annotations == template.annotations && spec.taints == template.taints;
    (!is_as_wanted).then(|| Action::SetNodeMetadata {
        machine: Box::new(machine.clone()),
        labels: template.labels.clone(),
        annotations: template.annotations.clone(),
        taints: template.taints.clone(),
    })
}

fn create(observed: &Observed<'_>, count: usize, ordinals: &mut BTreeSet<u32>) -> Vec<Action> {
    let mut names: BTreeSet<String> =
        observed.machines.iter().filter_map(|machine| machine.metadata.name.clone()).collect();
    let mut actions = Vec::new();
    // Where nothing is a Node there is none.
    let version = observed.set.spec.template.kubernetes_version;
    let version = version.or(observed.deployment().map(|deployment| deployment.spec.kubernetes_version));
    let mut ordinal = 0;
    while actions.len() < count {
        if ordinals.insert(ordinal) {
            let machine = machine(observed.set, version, ordinal);
            // Two ordinals with one name would be one Machine: the second is passed over.
            if names.insert(machine.name().to_owned()) {
                actions.push(Action::CreateMachine(Box::new(machine)));
            }
        }
        ordinal += 1;
    }
    actions
}

fn machine(set: &MachineSet, version: Option<KubernetesVersion>, ordinal: u32) -> Machine {
    let uid = set.uid();
    let mut machine = Machine::new(&naming::machine(set.name(), uid, ordinal), machine_spec(set, version));
    machine.metadata.namespace = set.metadata.namespace.clone();
    machine.metadata.owner_references = controller_ref(set).map(|owner| vec![owner]);
    machine.metadata.labels = Some(labels_of(set));
    machine.metadata.annotations = Some(BTreeMap::from([(annotation::ORDINAL.into(), ordinal.to_string())]));
    machine.metadata.finalizers = Some(vec![crds::names::finalizer::MACHINE.into()]);
    machine
}

/// What a Machine of the set is like, as its template has it.
pub(crate) fn machine_spec(set: &MachineSet, version: Option<KubernetesVersion>) -> MachineSpec {
    let template = &set.spec.template;
    MachineSpec {
        cluster_name: set.spec.cluster_name.clone(),
        cluster_kind: set.spec.cluster_kind,
        role: set.spec.role,
        host_ref: None,
        host_selector: template.host_selector.clone(),
        hosts: template.hosts.clone(),
        spread_by: template.spread_by.clone(),
        kubernetes_version: version,
        labels: template.labels.clone(),
        annotations: template.annotations.clone(),
        taints: template.taints.clone(),
        drain_for: Vec::new(),
    }
}

#[cfg(test)]
mod tests;
