//! What the status of whatever forms a cluster has of the comparisons of its machines with the store.

use crds::{ClusterDeploymentStatus, KarmadaDeploymentStatus, StoreComparison};

/// What it has.
#[derive(Clone, Copy, Debug, Default)]
pub struct Compared<'a> {
    /// The highest token that was given out; none: that is not known.
    pub last_token: Option<i64>,
    /// The comparisons, oldest first.
    pub comparisons: &'a [StoreComparison],
    /// Digests of what contradicts the store and was approved.
    pub approved: &'a [String],
}

impl<'a> From<&'a ClusterDeploymentStatus> for Compared<'a> {
    fn from(status: &'a ClusterDeploymentStatus) -> Self {
        let (comparisons, approved) = (&status.comparisons, &status.approved_contradictions);
        Self { last_token: status.last_token, comparisons, approved }
    }
}

impl<'a> From<&'a KarmadaDeploymentStatus> for Compared<'a> {
    fn from(status: &'a KarmadaDeploymentStatus) -> Self {
        let (comparisons, approved) = (&status.comparisons, &status.approved_contradictions);
        Self { last_token: status.last_token, comparisons, approved }
    }
}
