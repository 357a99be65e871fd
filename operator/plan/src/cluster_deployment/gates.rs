//! Readiness gates: conditions that other controllers set on the ClusterDeployment, and that Ready waits for.

use crds::Reason;
use crds::conditions;

use super::blocker::Blocker;
use super::state::ClusterState;

/// The first gate that is not open, by the word of its own controller.
pub(super) fn blocker(state: &ClusterState<'_>) -> Option<Blocker> {
    let status = state.deployment.status.as_ref();
    let there = status.map(|status| status.conditions.as_slice()).unwrap_or_default();
    state.deployment.spec.readiness_gates.iter().find_map(|gate| {
        let type_ = &gate.condition_type;
        let message = match conditions::find(there, type_) {
            Some(condition) if condition.status == "True" => return None,
            Some(condition) => format!(
                "waits for condition {type_} of spec.readinessGates, which is {} ({}): {}",
                condition.status, condition.reason, condition.message
            ),
            None => format!(
                "waits for condition {type_} of spec.readinessGates, which its controller has not set yet: is that controller running?"
            ),
        };
        Some(Blocker::new(Reason::WaitingForReadinessGate, message))
    })
}
