//! A plane on machines that begins with a backup: its install brings the data to all members of etcd, each of which
//! starts with it.

use crds::Reason;
use crds::karmada_deployment::KarmadaRestoreStep as Step;

use super::super::machines::Machines;
use super::super::observed::Observed;
use super::super::restoring::{Restoring, restoring};
use super::gate;
use super::record::differences;
use crate::addon::Problem;

/// Whether it is not known yet that the plane may begin as it is asked to: no machine is made, and no Host taken.
pub(in super::super) fn holds_machines(observed: &Observed<'_>) -> bool {
    match restoring(observed.object, &observed.facts.versions) {
        None => false,
        Some(Restoring::Keys(_)) => true,
        Some(Restoring::Under(record, step)) => step == Step::Data && differences(observed.object, record).is_some(),
    }
}

/// Why the machines do not have their data yet; none: etcd stands on all of them.
pub(super) fn data(machines: &Machines<'_>) -> Option<Problem> {
    if machines.are_installed() {
        return None;
    }
    Some(match machines.problem() {
        // What is in the way keeps its own reason.
        Some(problem) if problem.reason != Reason::Installing => problem.clone(),
        Some(problem) => gate::restoring(problem.message.clone()),
        None => gate::restoring("making the plane's machines".to_owned()),
    })
}
