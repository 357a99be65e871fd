//! The backup that the install of a plane on machines brings there.

use std::collections::BTreeMap;

use crds::karmada_deployment::{KarmadaRestoreStep as Step, KarmadaRestoredFrom};
use crds::{KarmadaDeployment, ObjectExt};
use serde_json::Value;

use super::super::restoring::record;
use crate::install_backup::{restore_id, restore_variables};

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
