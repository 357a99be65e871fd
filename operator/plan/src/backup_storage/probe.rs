//! The Job that looks at a storage.

use crds::backup::StorageInputs;
use crds::names::label;
use crds::references::controller_ref;
use crds::{BackupStorage, ObjectExt};
use k8s_openapi::api::batch::v1::Job;

use crate::inputs::StorageSeen;
use crate::naming::short_hash;
use crate::storage_job::{Beside, StorageJob, storage_job};

/// How long a look may take, the start of its Pod included.
const DEADLINE_SECONDS: i64 = 180;

/// A name that follows from the last look: everyone who sees the same makes the same.
pub(super) fn name(storage: &BackupStorage) -> String {
    let last = storage.status.as_ref().and_then(|status| status.probed_at.as_ref());
    let last = last.map(|time| time.0.to_string()).unwrap_or_default();
    let hash = short_hash(&[storage.uid(), &storage.generation().to_string(), &last], 8);
    format!("storage-{}-{hash}", storage.name())
}

/// The Job.
pub(super) fn job(storage: &BackupStorage, seen: &StorageSeen, inputs: &StorageInputs, image: &str) -> Job {
    storage_job(&StorageJob {
        name: name(storage),
        label: (label::STORAGE, storage.name()),
        owner: controller_ref(storage),
        storage,
        seen,
        inputs,
        image,
        command: "storage",
        arguments: Vec::new(),
        deadline_seconds: DEADLINE_SECONDS,
        beside: Beside::default(),
    })
}
