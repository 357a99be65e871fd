//! What is of the past in a cluster that is built anew.
//!
//! From the moment when the condition `Rebuilding` is written, machines older than that moment are of the past. The
//! moment is written on each of them before anything is done, and a status that is lost is made from that again: once
//! they are all gone, the cluster is one that was never installed. So everything may be cut off, and forgotten, at any
//! point.

use crate::cluster_deployment::observed::Observed;
use crds::Machine;
use crds::ObjectExt;
use crds::cluster_deployment::RecoveryStrategy;
use crds::conditions;
use crds::names::{annotation, condition};
use jiff::Timestamp;

/// When the machines of a cluster that is being rebuilt began to be of the past: as the cluster says, or, where its
/// status was lost, one of its Machines. What is written on a Machine begins nothing by itself.
pub fn begun(observed: &Observed<'_>) -> Option<Timestamp> {
    let deployment = observed.deployment;
    let conditions = deployment.status.as_ref().map(|status| &status.conditions);
    let told = conditions.and_then(|conditions| conditions::find(conditions, condition::REBUILDING));
    let told = told.filter(|told| told.status == "True");
    let told = told.map(|told| told.last_transition_time.0);
    told.or_else(|| marked(observed))
}

/// The time that is written on the Machines of a rebuild that has begun: where one is wanted, on all that were there
/// then, and while the API of the old cluster is not known to answer, or once they are being deleted.
fn marked(observed: &Observed<'_>) -> Option<Timestamp> {
    let since = observed.machines.iter().filter_map(|machine| lost_since(machine)).max()?;
    let mut old = observed.machines.iter().filter(|machine| is_old(machine, since));
    let all = old.clone().all(|machine| lost_since(machine).is_some());
    let deletes = old.any(|machine| machine.is_deleting());
    let seen = observed.cluster.and_then(|cluster| cluster.status.as_ref());
    let answers = seen.is_some_and(|seen| seen.unreachable_since.is_none());
    let strategy = observed.deployment.spec.recovery.strategy;
    let wanted = [RecoveryStrategy::Rebuild, RecoveryStrategy::RestoreLatest].contains(&strategy);
    (wanted && all && (deletes || !answers)).then_some(since)
}

/// Since when a Machine counts as lost, as is written on it.
pub fn lost_since(machine: &Machine) -> Option<Timestamp> {
    // The operator writes both at once.
    machine.annotation(annotation::FORCE_REMOVE)?;
    machine.annotation(annotation::LOST_SINCE)?.parse().ok()
}

/// Whether a Machine is one of those that a rebuild forgets.
pub fn is_of_the_past(observed: &Observed<'_>, machine: &Machine) -> bool {
    begun(observed).is_some_and(|since| is_old(machine, since))
}

/// An install that is not younger than this is of the past: the machines that it was of are forgotten.
pub fn anew_since(observed: &Observed<'_>) -> Option<Timestamp> {
    let since = begun(observed)?;
    observed.machines.iter().all(|machine| !is_old(machine, since)).then_some(since)
}

/// Whether a Machine is not younger than that moment.
pub fn is_old(machine: &Machine, since: Timestamp) -> bool {
    let made = machine.created_at();
    made.is_none_or(|made| made.0 <= since)
}
