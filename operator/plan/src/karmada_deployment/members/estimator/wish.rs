//! Who is to have an estimator, and by which name.

use crds::KarmadaDeployment;

use super::super::super::names::estimator_prefix;
use super::super::target::{Target, Wish};

/// The ServiceAccount of an estimator in its member, the Secret with its token, and its ClusterRole.
pub const ACCOUNT: &str = "karmada-scheduler-estimator";
/// The most characters of a Service's name.
const LONGEST_NAME: usize = 63;

/// Name of its objects on the host: the scheduler looks for a Service of this name.
pub(in super::super) fn name(object: &KarmadaDeployment, member: &str) -> String {
    format!("{}-{member}", estimator_prefix(object))
}

/// Whether a member is to have one, whatever its name.
pub(in super::super) fn is_wished(object: &KarmadaDeployment, target: &Target) -> bool {
    let own = target.named.as_ref().and_then(|named| named.estimator);
    object.spec.estimator.is_some() && target.wish != Wish::Leave && own.is_none_or(|own| own.enabled)
}

/// Whether the Service may have its name.
pub(in super::super) fn has_legal_name(object: &KarmadaDeployment, target: &Target) -> bool {
    name(object, &target.name).len() <= LONGEST_NAME
}

/// Whether a member is to have one, and may.
pub(in super::super) fn is_wanted(object: &KarmadaDeployment, target: &Target) -> bool {
    is_wished(object, target) && has_legal_name(object, target)
}
