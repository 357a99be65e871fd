//! Events about a changed status.

use crds::Conditions;
use crds::Reason;
use crds::cluster_deployment::Repair;
use crds::names::condition;
use crds::remediation_policy::RemediationAction;
use crds::{ClusterDeployment, ClusterDeploymentStatus};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use plan::transitions::transitions;

use crate::context::Context;

/// Reports what is new of the conditions.
pub(super) async fn conditions(ctx: &Context, deployment: &ClusterDeployment, conditions: &[Condition]) {
    let old = deployment.conditions();
    let types: &[&str] = match deployment.metadata.deletion_timestamp {
        Some(_) => &[condition::DELETING, condition::ON_HOLD],
        None => &[
            condition::READY,
            condition::ON_HOLD,
            condition::REPLICAS_REVERTED,
            condition::REMEDIATION,
            condition::MACHINES_FORGOTTEN,
            condition::FORMER_MACHINES,
            condition::REMOVALS_HELD,
            condition::BACKED_UP,
            condition::CERTIFICATES_VALID,
            condition::DRIFTED,
        ],
    };
    let first_look = deployment.condition(condition::REMEDIATION).is_none();
    for transition in transitions(old, conditions, types) {
        let is_first_of_drift = transition.reason == Reason::NotCompared;
        if first_look && transition.reason == Reason::NothingToRepair || is_first_of_drift {
            continue;
        }
        ctx.events.transition(deployment, &transition).await;
    }
}

/// A Machine that is replaced goes with its status: its replacement is reported on the cluster.
pub(super) async fn replacements(ctx: &Context, deployment: &ClusterDeployment, status: &ClusterDeploymentStatus) {
    let replaces = |repair: &&Repair| repair.action == Some(RemediationAction::Replace);
    let before = deployment.status.iter().flat_map(|status| &status.repairs);
    let before: Vec<&str> = before.filter(replaces).map(|repair| repair.machine.as_str()).collect();
    for repair in status.repairs.iter().filter(replaces) {
        if !before.contains(&repair.machine.as_str()) {
            let note = format!("{}: {}", repair.machine, repair.message);
            ctx.events.normal(deployment, &repair.reason, &note).await;
        }
    }
}
