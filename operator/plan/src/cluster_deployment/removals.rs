//! Removals: whether healthy machines may be taken away, as the status tells it to whoever would.

use crds::conditions;
use crds::names::condition;
use crds::{ClusterDeployment, Machine};

/// Reason of `RemovalsHeld`.
pub(super) const TOO_MANY_UNHEALTHY: &str = "TooManyUnhealthy";

/// Why no healthy machine is taken away, as it was told last.
pub fn held(deployment: &ClusterDeployment) -> Option<&str> {
    let status = deployment.status.as_ref()?;
    let held = conditions::find(&status.conditions, condition::REMOVALS_HELD)?;
    (held.status == "True").then_some(held.message.as_str())
}

/// Whether it would be missed: it is part of the cluster, and not known to be sick.
pub fn is_in_service(machine: &Machine) -> bool {
    let status = machine.status.as_ref();
    let conditions = status
        .map(|status| status.conditions.as_slice())
        .unwrap_or_default();
    let ready = conditions::find(conditions, condition::READY);
    let is_sick = ready.is_none_or(|ready| ready.status == "False");
    status.is_some_and(|status| status.provisioned_at.is_some()) && !is_sick
}
