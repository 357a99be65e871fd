//! What the planner of storages looks at.

use crds::BackupStorage;
use jiff::Timestamp;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;

use crate::inputs::StorageSeen;

/// What was observed.
pub struct Observed<'a> {
    /// The time.
    pub now: Timestamp,
    /// The storage.
    pub storage: &'a BackupStorage,
    /// What its references lead to.
    pub seen: &'a StorageSeen,
    /// Image of the executor.
    pub image: &'a str,
    /// Jobs that look at it, or did.
    pub jobs: &'a [Job],
    /// Their Pods.
    pub pods: &'a [Pod],
}
