//! Which steps a run on machines of a kind of cluster may have: one that has nothing to do there would do nothing, and
//! say that it is done. Refused by the schema, and again by whoever freezes a run that passed it by.

use std::fmt;

use kube::core::{Message, Rule};

use crate::ClusterKind;
use crate::step::{CustomStep, Step};

/// A step that has nothing to do on machines of such a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StepNotForKind {
    /// The kind of the cluster.
    pub kind: ClusterKind,
    /// The step.
    pub step: Step,
}

impl fmt::Display for StepNotForKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (step, kind) = (self.step, self.kind.as_str());
        write!(
            f,
            "steps: step {step} has nothing to do on machines of a {kind}; those that have are: {}",
            listed(self.kind)
        )
    }
}

impl std::error::Error for StepNotForKind {}

/// Refuses the first step that has nothing to do on machines of a cluster of this kind.
pub fn check_steps_of_kind(kind: ClusterKind, steps: &[Step]) -> Result<(), StepNotForKind> {
    match steps.iter().find(|step| !step.is_for(kind)) {
        Some(step) => Err(StepNotForKind { kind, step: *step }),
        None => Ok(()),
    }
}

/// The names of our steps that have.
fn names(kind: ClusterKind) -> Vec<&'static str> {
    Step::ALL.iter().filter(|step| step.is_for(kind)).map(Step::name).collect()
}

/// The same, as a message lists them.
fn listed(kind: ClusterKind) -> String {
    format!("{}, {}<name>", names(kind).join(", "), CustomStep::PREFIX)
}

/// The same for the API server.
pub(super) fn rule() -> Rule {
    let condition = |kind| format!("s in ['{}'] || s.startsWith('{}')", names(kind).join("', '"), CustomStep::PREFIX);
    let by_kind = |expression: &dyn Fn(ClusterKind) -> String| {
        let [plane, cluster] = [ClusterKind::KarmadaDeployment, ClusterKind::ClusterDeployment].map(expression);
        format!("self.clusterKind == 'KarmadaDeployment' ? {plane} : {cluster}")
    };
    let message = |kind| {
        format!(
            "'steps: step ' + self.steps.filter(s, !({}))[0] + ' has nothing to do on machines of a {}; those that have are: {}'",
            condition(kind),
            ClusterKind::as_str(kind),
            listed(kind)
        )
    };
    let mut rule = Rule::new(by_kind(&|kind| format!("self.steps.all(s, {})", condition(kind))));
    rule.message = Some(Message::Expression(by_kind(&message)));
    rule
}

#[cfg(test)]
mod tests {
    use kube::core::cel::Validator;
    use serde_json::json;

    use super::{check_steps_of_kind, rule};
    use crate::ClusterKind;
    use crate::step::{CustomStep, Step};

    /// What the API server says to a run on machines of such a cluster.
    fn said(kind: ClusterKind, steps: &[Step]) -> String {
        let schema = json!({"type": "object", "x-kubernetes-validations": [rule()]});
        match Validator::new().validate(&schema, &json!({"clusterKind": kind, "steps": steps}), None) {
            Ok(()) => String::new(),
            Err(errors) => errors.to_string(),
        }
    }

    #[test]
    fn a_step_that_would_do_nothing_on_machines_of_a_plane_is_refused_and_those_that_work_are_named() {
        let steps = [Step::Prepare, Step::ContainerRuntime];
        let refused = check_steps_of_kind(ClusterKind::KarmadaDeployment, &steps).unwrap_err().to_string();
        let words = "step container-runtime has nothing to do on machines of a KarmadaDeployment; those that have are: bootstrap-os, preflight, prepare, etcd, load-balancer,";
        assert!(
            refused.contains(words) && refused.ends_with("probe-karmada, read-kubeconfig, custom-<name>"),
            "{refused}"
        );
        assert!(!refused.contains("kubelet"), "{refused}");
    }

    #[test]
    fn the_schema_refuses_on_each_kind_of_machines_the_very_steps_that_the_table_does() {
        let custom = CustomStep::new("x").map(Step::Custom);
        for step in Step::ALL.into_iter().chain(custom) {
            assert!(!step.spec().kinds.is_empty(), "{step} would be played nowhere");
            for kind in [ClusterKind::ClusterDeployment, ClusterKind::KarmadaDeployment] {
                let said = said(kind, &[step]);
                match check_steps_of_kind(kind, &[step]) {
                    Ok(()) => assert_eq!(said, "", "{kind:?} {step}"),
                    Err(refused) => assert!(said.contains(&refused.to_string()), "{kind:?} {step}: {said}"),
                }
            }
        }
    }
}
