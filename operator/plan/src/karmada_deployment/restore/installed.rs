//! The backup that a run brings to the machines of a plane: its install, or one that lays it ready there.

use std::collections::BTreeMap;

use crds::karmada_deployment::{KarmadaRestoreStep as Step, KarmadaRestoredFrom};
use crds::{EtcdRestore, KarmadaDeployment, ObjectExt};
use serde_json::Value;

use super::super::restoring::{record, under_way_on_machines};
use crate::install_backup::{restore_id, restore_variables};

/// The backup that the install brings to the machines; none: they begin empty, or have it.
pub fn installed_from(object: &KarmadaDeployment) -> Option<&KarmadaRestoredFrom> {
    record(object).filter(|record| record.step == Some(Step::Data))
}

/// The backup that this EtcdRestore sets the plane back to on its machines; none: it is of another one, over, or in
/// Pods.
pub(crate) fn set_back_by<'a>(object: &'a KarmadaDeployment, restore: &EtcdRestore) -> Option<&'a KarmadaRestoredFrom> {
    under_way_on_machines(object).filter(|record| record.restore_uid.as_deref() == Some(restore.uid()))
}

/// Names the directories of the restore on the machines.
pub(crate) fn id(object: &KarmadaDeployment, record: &KarmadaRestoredFrom) -> String {
    restore_id(object.uid(), &record.location)
}

/// What the install must know of it.
pub(in super::super) fn variables(object: &KarmadaDeployment, record: &KarmadaRestoredFrom) -> BTreeMap<String, Value> {
    restore_variables(&id(object, record), &record.sha256)
}
