//! What is done about a sick Machine, or why nothing is: its ClusterDeployment decides, and the Machine shows it.

use crds::Conditions;
use crds::Reason;
use crds::cluster_deployment::Repair;
use crds::conditions::Statement;
use crds::names::condition;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;

use super::observed::Observed;
use crate::message::cut;

/// The condition `Remediation`, where `ready` says whether its node, or its member of etcd, is well; none for a machine
/// that was never sick, and for one that nobody decides about.
pub(super) fn statement(observed: &Observed<'_>, ready: &Statement) -> Option<Statement> {
    fn stated(status: bool, reason: impl Into<String>, message: String) -> Option<Statement> {
        Some(Statement::new(condition::REMEDIATION, status, reason, message))
    }
    if let Some(repair) = entry(observed) {
        return stated(repair.action.is_some(), repair.reason.as_str(), repair.message.clone());
    }
    let before = before(observed)?;
    if ready.status != Some(true) {
        return None;
    }
    if before.reason == Reason::Recovered {
        return stated(false, Reason::Recovered, before.message.clone());
    }
    stated(
        false,
        Reason::Recovered,
        cut(format!(
            "{}; before: {}",
            match observed.has_node() {
                true => "its node is Ready again",
                false => "its member of etcd is well again",
            },
            before.message
        )),
    )
}

fn entry<'a>(observed: &Observed<'a>) -> Option<&'a Repair> {
    let status = observed.deployment()?.status.as_ref()?;
    let name = observed.machine.metadata.name.as_ref();
    status.repairs.iter().find(|repair| Some(&repair.machine) == name)
}

fn before<'a>(observed: &Observed<'a>) -> Option<&'a Condition> {
    observed.machine.condition(condition::REMEDIATION)
}
