//! The report on an etcd that has lost its majority.

use crds::Reason;
use crds::step::Role;

use crate::cluster_deployment::lane::Lane;
use crate::cluster_deployment::proposal::{Area, Proposal, Severity};

pub(super) fn lost(role: Role, reason: Reason, message: String) -> Proposal {
    of_loss(Proposal::report(Area::Machines(role), reason, message, Severity::Lost))
}

/// The same, while etcd is lost: nothing else of the control plane begins, and no worker joins.
pub(super) fn of_loss(mut proposal: Proposal) -> Proposal {
    if let Some(report) = &mut proposal.report {
        report.severity = Severity::Lost;
    }
    Proposal { blocks: &[Lane::Workers], ..proposal }
}
