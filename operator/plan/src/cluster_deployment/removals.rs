//! Removals: whether healthy machines may be taken away, as the status tells it to whoever would.

use crate::lifecycle::is_provisioned;
use crds::Conditions;
use crds::names::condition;
use crds::{ClusterDeployment, Machine};

/// Why no healthy machine is taken away, as it was told last.
pub fn held(deployment: &ClusterDeployment) -> Option<&str> {
    let held = deployment.condition(condition::REMOVALS_HELD)?;
    (held.status == "True").then_some(held.message.as_str())
}

/// Whether it would be missed: it is part of the cluster, and not known to be sick.
pub fn is_in_service(machine: &Machine) -> bool {
    let ready = machine.condition(condition::READY);
    let is_sick = ready.is_none_or(|ready| ready.status == "False");
    is_provisioned(machine) && !is_sick
}
