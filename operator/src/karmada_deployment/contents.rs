//! Entries of a Secret, as a planner takes them.

use plan::karmada_deployment::Files;

use crate::pki::material::Data;

/// The entries of a Secret.
pub(super) fn files(data: Data) -> Files {
    Files(data.into_iter().map(|(name, content)| (name, content.0)).collect())
}
