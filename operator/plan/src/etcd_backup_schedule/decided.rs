//! What is decided about one cluster of a schedule.

use crds::EtcdBackup;

use super::cluster::Cluster;
use super::retention::Removal;

/// What is decided about one cluster.
pub(super) struct Decided<'a> {
    pub cluster: Cluster<'a>,
    /// The backup that begins now.
    pub begins: Option<EtcdBackup>,
    pub removal: Removal<'a>,
}
