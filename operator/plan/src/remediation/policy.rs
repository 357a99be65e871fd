//! Which policy holds for a machine: the first by name that selects it, or else what its ClusterDeployment says.

use crds::ObjectExt;
use crds::remediation_policy::Remediation;
use crds::{ClusterDeployment, Machine, RemediationPolicy};

/// What is to be done about a machine, and who says so.
#[derive(Clone, Debug, PartialEq)]
pub struct Rule {
    /// `RemediationPolicy workers`, or `spec.remediation of cluster a`.
    pub source: String,
    /// What is to be done.
    pub remediation: Remediation,
}

/// The policy that holds for a Machine, and what it says.
pub fn holding(
    machine: &Machine,
    policies: &[&RemediationPolicy],
    deployment: Option<&ClusterDeployment>,
) -> Option<Rule> {
    if let Some(policy) = policy_of(machine, policies) {
        return Some(Rule {
            source: format!("RemediationPolicy {}", policy.name()),
            remediation: policy.spec.remediation.clone(),
        });
    }
    let remediation = deployment?.spec.remediation.clone()?;
    Some(Rule { source: format!("spec.remediation of cluster {}", machine.spec.cluster_name), remediation })
}

/// The first policy by name that selects a Machine; one that is being deleted selects none, and none selects a machine
/// that is no ClusterDeployment's.
pub fn policy_of<'a>(machine: &Machine, policies: &[&'a RemediationPolicy]) -> Option<&'a RemediationPolicy> {
    let selects = |policy: &&&RemediationPolicy| !policy.is_deleting() && selects(policy, machine);
    let selecting = policies.iter().filter(selects);
    selecting.min_by_key(|policy| policy.metadata.name.clone()).copied()
}

fn selects(policy: &RemediationPolicy, machine: &Machine) -> bool {
    let spec = &policy.spec;
    let of_cluster = spec.cluster_name.as_ref().is_none_or(|cluster| *cluster == machine.spec.cluster_name);
    let of_cluster = of_cluster && machine.spec.former().deployment().is_some();
    let of_role = spec.roles.is_empty() || spec.roles.contains(&machine.spec.role);
    let labels = machine.metadata.labels.as_ref();
    let labelled =
        spec.match_labels.iter().all(|(key, value)| labels.and_then(|labels| labels.get(key)) == Some(&value.0));
    of_cluster && of_role && labelled
}
