//! A plane on machines and a backup. One that begins with it has the data brought to all members of etcd by its
//! install, each of which starts with it. One that is set back has it laid ready by a run, and swapped by another one.

use crds::Reason;
use crds::karmada_deployment::KarmadaRestoreStep as Step;

use super::super::machines::Machines;
use super::super::observed::Observed;
use super::super::restoring::{Restoring, is_turned, restoring};
use super::gate;
use super::record::differences;
use crate::addon::Problem;

/// Whether the plane may not begin as it is asked to, or it is not known yet: no machine is made, no Host taken, and
/// nothing swapped.
pub(in super::super) fn holds_machines(observed: &Observed<'_>) -> bool {
    match restoring(observed.object, &observed.facts.versions) {
        None => false,
        Some(Restoring::Keys(_)) => true,
        Some(Restoring::Under(record, step)) => {
            step <= Step::Data && !is_turned(record) && differences(observed.object, record).is_some()
        }
    }
}

/// Why the machines do not have their data yet; none: etcd stands on all of them.
pub(super) fn data(machines: &Machines<'_>) -> Option<Problem> {
    if machines.are_installed() {
        return None;
    }
    problem(machines).or_else(|| Some(gate::restoring("making the plane's machines".to_owned())))
}

/// What goes on with the machines, or is in the way.
pub(super) fn problem(machines: &Machines<'_>) -> Option<Problem> {
    let problem = machines.problem()?;
    // What is in the way keeps its own reason.
    Some(match problem.reason == Reason::Installing {
        true => gate::restoring(problem.message.clone()),
        false => problem.clone(),
    })
}
