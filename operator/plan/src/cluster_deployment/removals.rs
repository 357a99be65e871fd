//! Removals: whether healthy machines may be taken away, as the status tells it to whoever would.

use crds::Conditions;
use crds::Reason;
use crds::names::condition;
use crds::{ClusterDeployment, Machine};

/// Reason of `RemovalsHeld`.
pub(super) const TOO_MANY_UNHEALTHY: Reason = Reason::TooManyUnhealthy;

/// Why no healthy machine is taken away, as it was told last.
pub fn held(deployment: &ClusterDeployment) -> Option<&str> {
    let held = deployment.condition(condition::REMOVALS_HELD)?;
    (held.status == "True").then_some(held.message.as_str())
}

/// Whether it would be missed: it is part of the cluster, and not known to be sick.
pub fn is_in_service(machine: &Machine) -> bool {
    let ready = machine.condition(condition::READY);
    let is_sick = ready.is_none_or(|ready| ready.status == "False");
    let status = machine.status.as_ref();
    status.is_some_and(|status| status.provisioned_at.is_some()) && !is_sick
}
