//! What is said and written down until it is settled which backup the cluster begins with.

use crds::Reason;
use crds::cluster_deployment::RestoredFrom;

use crate::Next;
use crate::cluster_deployment::lane::Lane;
use crate::cluster_deployment::proposal::{Area, Proposal, Record, Severity};
use crate::message::cut;

/// What waits until it is known that the cluster may begin so: no Machine is made, and none is claimed for one.
const BLOCKS: &[Lane] = &[Lane::Install, Lane::Workers];

/// Written down first: what is done next is done by what is written.
pub(super) fn settle(settled: RestoredFrom) -> Proposal {
    let message = format!("begins with backup {} of cluster {}", settled.backup, settled.cluster);
    Proposal {
        records: vec![record(settled)],
        requeue: Next::after_seconds(1),
        pending: true,
        ..waits(Reason::Installing, message, Severity::Progressing)
    }
}

pub(super) fn record(restored: RestoredFrom) -> Record {
    Record::RestoredFrom(Box::new(restored))
}

pub(super) fn waits(reason: Reason, message: String, severity: Severity) -> Proposal {
    Proposal { blocks: BLOCKS, ..Proposal::report(Area::Install, reason, cut(message), severity) }
}
