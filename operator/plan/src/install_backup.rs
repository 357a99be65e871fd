//! What the install of a cluster, or of a plane, must know that brings a backup to machines which have no etcd yet.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::naming::short_hash;

/// The variable that the steps of a restore read.
pub(crate) const VARIABLE: &str = "etcd_restore";
/// Characters that name its directories on the machines.
const ID: usize = 8;

/// Names the directories of the restore on the machines, by the UID of what begins with the backup at this location.
pub(crate) fn restore_id(uid: &str, location: &str) -> String {
    short_hash(&[uid, location], ID)
}

/// The variables of the install.
pub(crate) fn restore_variables(id: &str, sha256: &str) -> BTreeMap<String, Value> {
    let vars = json!({ "id": id, "sha256": sha256, "new_cluster": true });
    BTreeMap::from([(VARIABLE.to_owned(), vars)])
}
