//! A cluster that is a member of Karmada control planes leaves them before it is deleted: later nobody could take the
//! plane's rights and its agent away, and the plane would go on counting on it.

use crds::ObjectExt;

use super::observed::Observed;
use crate::karmada_membership::{membership, waits_for as waits_for_member};

/// The first plane of the namespace that the cluster is still a member of, and what it says of that; none: it is no
/// member.
pub(super) fn waits_for(observed: &Observed<'_>) -> Option<String> {
    let deployment = observed.deployment;
    let planes = observed.planes.iter().copied();
    membership(planes, deployment.namespace(), deployment.name()).map(waits_for_member)
}
