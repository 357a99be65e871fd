//! MachineSet: keeps its count of Machines, and says what the pool lacks.

mod status;

use std::collections::{BTreeMap, BTreeSet};

use crds::machine::MachineSpec;
use crds::machine_set::{DeletionOrder, MachineSetMode};
use crds::names::{annotation, label};
use crds::references::controller_ref;
use crds::step::Role;
use crds::{ClusterDeployment, Host, Machine, MachineSet, MachineSetStatus};
use jiff::Timestamp;

use crate::{Next, Plan, naming};

/// What was observed.
pub struct Observed<'a> {
    /// The time.
    pub now: Timestamp,
    /// The set.
    pub set: &'a MachineSet,
    /// The cluster that it is of.
    pub deployment: Option<&'a ClusterDeployment>,
    /// Its Machines: those that carry its label, read from the API and not from a cache.
    pub machines: &'a [&'a Machine],
    /// Hosts of the namespace.
    pub hosts: &'a [&'a Host],
}

/// One thing to do.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// Make this Machine, once.
    CreateMachine(Box<Machine>),
    /// Delete this very Machine.
    DeleteMachine(Box<Machine>),
    /// Wish this version of a Machine that nothing of another version is on.
    SetVersion {
        /// The Machine.
        machine: Box<Machine>,
        /// The version.
        version: String,
    },
}

/// Why a set neither makes nor deletes Machines now.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Hold {
    reason: &'static str,
    message: String,
}

/// Decides.
pub fn plan(observed: &Observed<'_>) -> Plan<Step, MachineSetStatus> {
    let live: Vec<&Machine> = observed
        .machines
        .iter()
        .copied()
        .filter(|machine| is_live(machine))
        .collect();
    let wanted = usize::try_from(observed.set.spec.replicas).unwrap_or_default();
    let hold = hold(observed, live.len(), wanted);
    let mut steps = match &hold {
        Some(_) => Vec::new(),
        None if live.len() < wanted => create(observed, wanted - live.len()),
        None => leaving(observed, &live, live.len() - wanted)
            .into_iter()
            .map(|machine| Step::DeleteMachine(Box::new(machine.clone())))
            .collect(),
    };
    if hold.is_none() && steps.is_empty() {
        steps.extend(
            live.iter()
                .filter_map(|machine| set_version(observed.set, machine)),
        );
    }
    let (status, waits_for) = status::of(observed, &live, hold.as_ref());
    Plan {
        steps,
        status,
        next: Next::OnChange,
        waits_for,
    }
}

/// A Machine that is not provisioned yet follows its template; one that already has the version may say so. All others
/// have to be upgraded for it.
fn set_version(set: &MachineSet, machine: &Machine) -> Option<Step> {
    let version = set.spec.template.kubernetes_version.as_ref()?;
    let status = machine.status.as_ref();
    let provisioned = status.is_some_and(|status| status.provisioned_at.is_some());
    let seen = status.and_then(|status| status.kubernetes_version.as_ref());
    let may = !provisioned || seen == Some(version);
    (may && machine.spec.kubernetes_version != *version).then(|| Step::SetVersion {
        machine: Box::new((*machine).clone()),
        version: version.clone(),
    })
}

fn is_live(machine: &Machine) -> bool {
    machine.metadata.deletion_timestamp.is_none()
}

fn hold(observed: &Observed<'_>, live: usize, wanted: usize) -> Option<Hold> {
    let set = observed.set;
    let because = |reason, message: String| Some(Hold { reason, message });
    if set.metadata.deletion_timestamp.is_some() {
        return because("Deleting", "the set is being deleted".into());
    }
    if set.spec.mode == MachineSetMode::Manual {
        return because("Manual", "its Machines are made and deleted by a platform".into());
    }
    let cluster = &set.spec.cluster_name;
    let Some(deployment) = observed.deployment else {
        let message =
            format!("there is no ClusterDeployment {cluster} in this namespace: make it, or delete the set");
        return because("ClusterNotFound", message);
    };
    if deployment.metadata.deletion_timestamp.is_some() {
        return because("ClusterDeleting", format!("cluster {cluster} is being deleted"));
    }
    if deployment.spec.paused {
        return because("Paused", format!("cluster {cluster} is paused"));
    }
    let installed = deployment
        .status
        .as_ref()
        .is_some_and(|status| status.installed_at.is_some());
    if set.spec.role != Role::Worker && installed && live != wanted {
        let message = format!(
            "has {live} of {wanted}: changing the {} machines of a running cluster is not there yet",
            set.spec.role.name()
        );
        return because("NotImplemented", message);
    }
    None
}

fn create(observed: &Observed<'_>, count: usize) -> Vec<Step> {
    let mut ordinals: BTreeSet<u32> = observed
        .machines
        .iter()
        .filter_map(|machine| ordinal_of(machine))
        .collect();
    let mut names: BTreeSet<String> = observed
        .machines
        .iter()
        .filter_map(|machine| machine.metadata.name.clone())
        .collect();
    let version = observed.set.spec.template.kubernetes_version.as_ref();
    let version = version.or(observed
        .deployment
        .map(|deployment| &deployment.spec.kubernetes_version));
    let version = version.map(String::as_str).unwrap_or_default();
    let mut steps = Vec::new();
    let mut ordinal = 0;
    while steps.len() < count {
        if ordinals.insert(ordinal) {
            let machine = machine(observed.set, version, ordinal);
            // Two ordinals with one name would be one Machine: the second is passed over.
            if names.insert(machine.metadata.name.clone().unwrap_or_default()) {
                steps.push(Step::CreateMachine(Box::new(machine)));
            }
        }
        ordinal += 1;
    }
    steps
}

/// The ordinal of a Machine in its set.
pub fn ordinal_of(machine: &Machine) -> Option<u32> {
    machine
        .metadata
        .annotations
        .as_ref()?
        .get(annotation::ORDINAL)?
        .parse()
        .ok()
}

fn machine(set: &MachineSet, version: &str, ordinal: u32) -> Machine {
    let set_name = set.metadata.name.as_deref().unwrap_or_default();
    let template = &set.spec.template;
    let spec = MachineSpec {
        cluster_name: set.spec.cluster_name.clone(),
        role: set.spec.role,
        host_ref: None,
        host_selector: template.host_selector.clone(),
        hosts: template.hosts.clone(),
        spread_by: template.spread_by.clone(),
        kubernetes_version: version.into(),
        labels: template.labels.clone(),
        taints: template.taints.clone(),
    };
    let uid = set.metadata.uid.as_deref().unwrap_or_default();
    let mut machine = Machine::new(&naming::machine(set_name, uid, ordinal), spec);
    machine.metadata.namespace = set.metadata.namespace.clone();
    machine.metadata.owner_references = controller_ref(set).map(|owner| vec![owner]);
    machine.metadata.labels = Some(BTreeMap::from([
        (label::CLUSTER.into(), set.spec.cluster_name.clone()),
        (label::MACHINE_SET.into(), set_name.into()),
        (label::ROLE.into(), set.spec.role.name().into()),
    ]));
    machine.metadata.annotations = Some(BTreeMap::from([(
        annotation::ORDINAL.into(),
        ordinal.to_string(),
    )]));
    machine.metadata.finalizers = Some(vec![crds::names::finalizer::MACHINE.into()]);
    machine
}

/// Who goes first: Machines without a Host, then those that are not Ready, then by the set's order.
fn leaving<'a>(observed: &Observed<'_>, live: &[&'a Machine], count: usize) -> Vec<&'a Machine> {
    let newest_first = observed.set.spec.deletion.order == DeletionOrder::Newest;
    let mut machines = live.to_vec();
    machines.sort_by_key(|machine| {
        let age = (
            machine.metadata.creation_timestamp.clone(),
            ordinal_of(machine),
            machine.metadata.name.clone(),
        );
        (machine.spec.host_ref.is_some(), is_ready(machine), age)
    });
    if newest_first {
        // Stable within each class: only the age turns round.
        machines.reverse();
        machines.sort_by_key(|machine| (machine.spec.host_ref.is_some(), is_ready(machine)));
    }
    machines.truncate(count);
    machines
}

fn is_ready(machine: &Machine) -> bool {
    let status = machine.status.as_ref();
    status.is_some_and(|status| crds::conditions::is_true(&status.conditions, crds::names::condition::READY))
}

#[cfg(test)]
mod tests;
