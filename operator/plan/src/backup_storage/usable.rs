//! Whether requests can be made to the storage that something names.

use crds::names::condition;
use crds::{BackupStorage, Conditions, Reason};

/// Why none can be made.
pub(crate) struct Unusable {
    /// `StorageNotFound`, `StorageNotProbed` or `StorageUnreachable`.
    pub reason: Reason,
    /// Which storage, and what to do or what was found.
    pub message: String,
}

/// The BackupStorage of this name, if requests can be made to it; `None`: it is not there.
pub(crate) fn usable<'a>(name: &str, storage: Option<&'a BackupStorage>) -> Result<&'a BackupStorage, Unusable> {
    let Some(storage) = storage else {
        let message = format!("BackupStorage {name} is not there: make it");
        return Err(Unusable { reason: Reason::StorageNotFound, message });
    };
    match storage.condition(condition::REACHABLE) {
        None => {
            let message = format!("BackupStorage {name} is being probed");
            Err(Unusable { reason: Reason::StorageNotProbed, message })
        }
        Some(reachable) if reachable.status == "True" => Ok(storage),
        Some(reachable) => {
            let message = format!("BackupStorage {name} cannot be used: {}", reachable.message);
            Err(Unusable { reason: Reason::StorageUnreachable, message })
        }
    }
}
