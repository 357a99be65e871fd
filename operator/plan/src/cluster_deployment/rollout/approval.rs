//! Approval of the plan. It is for the disruptive changes that were wanted when it was given, on every machine. So it
//! outlives edits that change none of them, and machines that are done or join meanwhile; another change needs another
//! one. Once nothing of it is left to be done it counts no more: the same change later is asked for again.

use std::collections::BTreeSet;

use crds::Reason;
use crds::cluster_deployment;

use super::Closed;
use crate::approval::{self, What};
use crate::cluster_deployment::state::ClusterState;

/// How often the same changes can be asked for before an approval of before counts again, while it is still written on
/// the object.
const TIMES: usize = 64;

/// Where the approval of the plan stands.
pub(super) struct Approval {
    /// `4k2m9x0c7d1e`.
    pub digest: String,
    /// What was approved, as far as that is not done.
    pub approved: Vec<String>,
    is_given: bool,
}

/// Of these changes.
pub(super) fn read(state: &ClusterState<'_>, wishes: &BTreeSet<String>) -> Approval {
    let metadata = &state.deployment.metadata;
    let told = state.deployment.status.as_ref().and_then(|status| status.plan.clone()).unwrap_or_default();
    let approved = if wishes.is_empty() { Vec::new() } else { told.approved };
    if !wishes.is_empty() && wishes.iter().all(|wish| approved.contains(wish)) {
        return Approval { digest: told.digest, approved, is_given: true };
    }
    let of_time = |time: usize| {
        let time = time.to_string();
        let acts: Vec<&str> = wishes.iter().map(String::as_str).chain([time.as_str()]).collect();
        approval::lasting_value(What::Plan, metadata, &acts)
    };
    // One that the object carries before it is asked for is of another time.
    let offered = What::Plan.value(&told.digest);
    let stands = (1..=TIMES).map(of_time).any(|value| value == offered);
    let next = || (1..=TIMES).map(of_time).find(|value| !approval::is_given(metadata, value));
    let value = if stands { offered } else { next().unwrap_or_default() };
    let is_given = stands && approval::is_given(metadata, &value);
    let digest = approval::digest_of(&value);
    let approved = if is_given { wishes.iter().cloned().collect() } else { approved };
    Approval { digest, approved, is_given }
}

impl Approval {
    /// What is waited for, where a person must approve and has not.
    pub fn missing(&self, state: &ClusterState<'_>) -> Option<Closed> {
        let is_asked = match state.deployment.spec.approval {
            cluster_deployment::Approval::Manual => !self.is_given,
            cluster_deployment::Approval::Automatic => false,
        };
        let command = || state.approve(&What::Plan.value(&self.digest));
        is_asked.then(|| Closed {
            reason: Reason::WaitingForApproval,
            why: format!("waits for approval of status.plan: {}", command()),
            passes: false,
            opens: None,
        })
    }
}
