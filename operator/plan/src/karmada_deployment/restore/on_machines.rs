//! A plane on machines that begins with a backup: its install brings the data to all members of etcd, each of which
//! starts with it.

use std::collections::BTreeMap;

use crds::karmada_deployment::{KarmadaRestoreStep as Step, KarmadaRestoredFrom};
use crds::{KarmadaDeployment, ObjectExt, Reason};
use serde_json::Value;

use super::super::machines::Machines;
use super::super::observed::Observed;
use super::super::restoring::{Restoring, record, restoring};
use super::gate;
use super::record::differences;
use crate::addon::Problem;
use crate::install_backup::{restore_id, restore_variables};

/// Whether it is not known yet that the plane may begin as it is asked to: no machine is made, and no Host taken.
pub(in super::super) fn holds_machines(observed: &Observed<'_>) -> bool {
    match restoring(observed.object, &observed.facts.versions) {
        None => false,
        Some(Restoring::Keys(_)) => true,
        Some(Restoring::Under(record, step)) => step == Step::Data && differences(observed.object, record).is_some(),
    }
}

/// The backup that the install brings to the machines; none: they begin empty, or have it.
pub fn installed_from(object: &KarmadaDeployment) -> Option<&KarmadaRestoredFrom> {
    record(object).filter(|record| record.step == Some(Step::Data))
}

/// Names the directories of the restore on the machines.
pub(crate) fn id(object: &KarmadaDeployment, record: &KarmadaRestoredFrom) -> String {
    restore_id(object.uid(), &record.location)
}

/// What the install must know of it.
pub(in super::super) fn variables(object: &KarmadaDeployment, record: &KarmadaRestoredFrom) -> BTreeMap<String, Value> {
    restore_variables(&id(object, record), &record.sha256)
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
