//! MachineSet: keeps its count of Machines, and says what the pool lacks.

mod available;
mod failed_hosts;
mod members;
mod shrinking;
mod status;

use std::collections::{BTreeMap, BTreeSet};

use crds::ObjectExt;
use crds::Reason;
use crds::machine::MachineSpec;
use crds::machine_set::MachineSetMode;
use crds::names::annotation;
use crds::references::controller_ref;
use crds::{ClusterDeployment, Host, Machine, MachineSet, MachineSetStatus, PlaybookRun};
use jiff::Timestamp;
use members::{Members, labels_of};

use crate::{Next, Plan, naming};

/// What was observed.
pub struct Observed<'a> {
    /// The time.
    pub now: Timestamp,
    /// The set.
    pub set: &'a MachineSet,
    /// The cluster that it is of.
    pub deployment: Option<&'a ClusterDeployment>,
    /// Machines of the cluster, read from the API and not from a cache where something is made or deleted for them.
    pub machines: &'a [&'a Machine],
    /// Hosts of the namespace.
    pub hosts: &'a [&'a Host],
    /// Runs of the cluster.
    pub runs: &'a [&'a PlaybookRun],
}

/// One thing to do.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// Make this Machine, once.
    CreateMachine(Box<Machine>),
    /// Give this Machine the metadata that it has here, which makes it the set's own, if nobody has written it since.
    Adopt(Box<Machine>),
    /// Write on the Machine why its Host is not to be claimed again, if nobody has written it since it was read.
    QuarantineHost {
        /// The Machine.
        machine: Box<Machine>,
        /// Its Host.
        host: String,
        /// Reason and message, as JSON.
        quarantine: String,
    },
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
    reason: Reason,
    message: String,
}

/// Decides.
pub fn plan(observed: &Observed<'_>) -> Plan<Step, MachineSetStatus> {
    let members = Members::of(observed);
    let live = members.live();
    let wanted = usize::try_from(observed.set.spec.replicas).unwrap_or_default();
    let hold = hold(observed);
    let mut steps = Vec::new();
    let (mut waits, mut held, mut next) = (None, None, Next::OnChange);
    if hold.is_none() {
        steps = gather(observed, &members, wanted.saturating_sub(live.len()));
        let failed_hosts = failed_hosts::of(observed, &members.own);
        let shrinking = shrinking::of(observed, &members.own, live.len().saturating_sub(wanted));
        next = failed_hosts.next.unwrap_or(next);
        waits = shrinking.waits.or(failed_hosts.message);
        held = shrinking.held;
        let go = shrinking.go.into_iter();
        steps.extend(go.map(|machine| Step::DeleteMachine(Box::new(machine.clone()))));
        if live.len() <= wanted {
            steps.extend(failed_hosts.steps);
        }
    }
    if hold.is_none() && steps.is_empty() {
        steps.extend(
            live.iter()
                .filter_map(|machine| set_version(observed.set, machine)),
        );
    }
    let (available, grows) = available::count(&live, observed.set.spec.min_ready_seconds, observed.now);
    let next = next.or_sooner(grows);
    let (status, waits_for) = status::of(observed, &members, hold.as_ref(), waits, held, available);
    Plan {
        steps,
        status,
        next,
        waits_for,
    }
}

/// Takes over Machines that are offered and makes the rest, until none is lacking; and keeps its own in order.
fn gather(observed: &Observed<'_>, members: &Members<'_>, lack: usize) -> Vec<Step> {
    let mut ordinals: BTreeSet<u32> = members
        .own
        .iter()
        .filter_map(|machine| ordinal_of(machine))
        .collect();
    let live = members.live();
    let taken = members.offered.iter().take(lack);
    let adopted: Vec<&Machine> = taken.copied().collect();
    ordinals.extend(adopted.iter().filter_map(|machine| ordinal_of(machine)));
    let mut steps: Vec<Step> = live
        .iter()
        .chain(&adopted)
        .filter_map(|machine| members::adopt(observed, machine, &mut ordinals))
        .collect();
    steps.extend(create(observed, lack - adopted.len(), &mut ordinals));
    steps
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
    !machine.is_deleting()
}

fn hold(observed: &Observed<'_>) -> Option<Hold> {
    let set = observed.set;
    let because = |reason, message: String| Some(Hold { reason, message });
    if set.is_deleting() {
        return because(Reason::Deleting, "the set is being deleted".into());
    }
    if set.spec.mode == MachineSetMode::Manual {
        return because(
            Reason::Manual,
            "its Machines are made and deleted by a platform".into(),
        );
    }
    let cluster = &set.spec.cluster_name;
    let Some(deployment) = observed.deployment else {
        let message =
            format!("there is no ClusterDeployment {cluster} in this namespace: make it, or delete the set");
        return because(Reason::ClusterNotFound, message);
    };
    if deployment.is_deleting() {
        return because(
            Reason::ClusterDeleting,
            format!("cluster {cluster} is being deleted"),
        );
    }
    if deployment.spec.paused {
        return because(Reason::Paused, format!("cluster {cluster} is paused"));
    }
    None
}

fn create(observed: &Observed<'_>, count: usize, ordinals: &mut BTreeSet<u32>) -> Vec<Step> {
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
            if names.insert(machine.name().to_owned()) {
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
    let set_name = set.name();
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
    let uid = set.uid();
    let mut machine = Machine::new(&naming::machine(set_name, uid, ordinal), spec);
    machine.metadata.namespace = set.metadata.namespace.clone();
    machine.metadata.owner_references = controller_ref(set).map(|owner| vec![owner]);
    machine.metadata.labels = Some(labels_of(set));
    machine.metadata.annotations = Some(BTreeMap::from([(
        annotation::ORDINAL.into(),
        ordinal.to_string(),
    )]));
    machine.metadata.finalizers = Some(vec![crds::names::finalizer::MACHINE.into()]);
    machine
}

#[cfg(test)]
mod tests;
