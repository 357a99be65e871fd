//! Approval that machines are repaired although more are unhealthy than `maxUnhealthy` allows. It is bound to this very
//! time: the value asked for is one that the object does not carry yet, and it stands in the status.

use crate::approval::{self, What};
use crate::cluster_deployment::state::ClusterState;

/// Times in one generation.
const TIMES: usize = 64;

/// The approval that is asked for, and whether it was given.
pub(super) struct Approval {
    /// `repair.<digest12>`.
    pub value: String,
    pub given: bool,
}

impl Approval {
    pub fn read(state: &ClusterState<'_>) -> Self {
        let metadata = &state.deployment.metadata;
        let status = state.deployment.status.as_ref();
        let offered = status.and_then(|status| status.repair_approval.clone());
        let is_given = |value: &String| approval::is_given(metadata, value);
        let given = offered.as_ref().is_some_and(is_given);
        let of_now = || (1..=TIMES).map(|time| approval::value(What::Repair, metadata, &[&time.to_string()]));
        // Once given it holds until fewer are sick; until then it is asked for the spec that there is.
        let stands = offered.filter(|offered| given || of_now().any(|value| value == *offered));
        let next = || of_now().find(|value| !is_given(value)).unwrap_or_default();
        Self { value: stands.unwrap_or_else(next), given }
    }
}
