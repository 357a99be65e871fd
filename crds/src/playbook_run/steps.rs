//! Which steps a run may have: refused by the schema, and again by whoever reads a run that passed it by.

use std::fmt;

use kube::core::{Message, Rule};

use crate::step::{CustomStep, Intent, Step};

/// A step that runs of this intent may not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StepNotAllowed {
    /// What the run is for.
    pub intent: Intent,
    /// The step.
    pub step: Step,
}

impl fmt::Display for StepNotAllowed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (step, intent, allowed) = (self.step, self.intent, allowed(self.intent));
        write!(f, "steps: step {step} is not allowed in a run of intent {intent:?}; allowed are: {allowed}")
    }
}

impl std::error::Error for StepNotAllowed {}

/// Refuses the first step that a run of this intent may not have.
pub fn check_steps(intent: Intent, steps: &[Step]) -> Result<(), StepNotAllowed> {
    match steps.iter().find(|step| !step.is_allowed_in(intent)) {
        Some(step) => Err(StepNotAllowed { intent, step: *step }),
        None => Ok(()),
    }
}

/// The steps of an intent, as a message lists them.
fn allowed(intent: Intent) -> String {
    let mut names = intent.step_names();
    if intent.allows_custom() {
        names.push("custom-<name>");
    }
    names.join(", ")
}

/// The same for the API server.
pub(super) fn rule() -> Rule {
    let all_allowed = by_intent("false", |intent| format!("self.steps.all(s, {})", condition(intent)));
    let message = by_intent("'intent: ' + self.intent + ' is unknown'", |intent| {
        format!(
            "'steps: step ' + self.steps.filter(s, !({}))[0] + ' is not allowed in a run of intent {intent:?}; allowed are: {}'",
            condition(intent),
            allowed(intent)
        )
    });
    let mut rule = Rule::new(all_allowed);
    rule.message = Some(Message::Expression(message));
    rule
}

/// Whether the step `s` is allowed in runs of an intent.
fn condition(intent: Intent) -> String {
    let ours = format!("s in ['{}']", intent.step_names().join("', '"));
    match intent.allows_custom() {
        true => format!("{ours} || s.startsWith('{}')", CustomStep::PREFIX),
        false => ours,
    }
}

/// An expression that depends on the intent; the other one holds for what is no intent.
fn by_intent(otherwise: &str, expression: impl Fn(Intent) -> String) -> String {
    let mut all = String::new();
    for intent in Intent::ALL {
        all.push_str(&format!("self.intent == '{intent:?}' ? {} : ", expression(intent)));
    }
    all + otherwise
}

#[cfg(test)]
mod tests {
    use kube::CustomResourceExt;
    use kube::core::cel::Validator;
    use serde_json::json;

    use super::{check_steps, rule};
    use crate::step::{CustomStep, Effect, Intent, Step};

    /// What the API server says to a run of this intent.
    fn said(intent: Intent, steps: &[Step]) -> String {
        let schema = json!({"type": "object", "x-kubernetes-validations": [rule()]});
        match Validator::new().validate(&schema, &json!({"intent": intent, "steps": steps}), None) {
            Ok(()) => String::new(),
            Err(errors) => errors.to_string(),
        }
    }

    fn steps() -> Vec<Step> {
        let custom = CustomStep::new("x").map(Step::Custom);
        Step::ALL.into_iter().chain(custom).collect()
    }

    #[test]
    fn a_probe_has_no_step_that_changes_a_machine() {
        for intent in Intent::ALL.into_iter().filter(|intent| intent.spec().effect == Effect::Looks) {
            for step in steps().into_iter().filter(|step| step.is_allowed_in(intent)) {
                assert!(step.spec().read_only, "{intent:?} {step}");
            }
        }
        let message = "steps: step reset is not allowed in a run of intent Probe; allowed are: probe-host, probe-etcd, probe-certificates, probe-karmada, read-kubeconfig";
        let refused = check_steps(Intent::Probe, &[Step::ProbeHost, Step::Reset]).unwrap_err();
        assert_eq!(refused.to_string(), message);
        let said = said(Intent::Probe, &[Step::ProbeHost, Step::Reset]);
        assert!(said.contains(message), "{said}");
    }

    #[test]
    fn nobody_resets_a_machine_or_takes_etcd_apart_by_a_run_of_their_own() {
        for step in [Step::Reset, Step::RecoverEtcd, Step::RemoveEtcdMember, Step::RestoreEtcd, Step::HoldControlPlane]
        {
            let message = format!("step {step} is not allowed in a run of intent Custom");
            let refused = check_steps(Intent::Custom, &[step]).unwrap_err().to_string();
            assert!(refused.contains(&message), "{refused}");
        }
    }

    #[test]
    fn the_schema_refuses_the_very_steps_that_the_table_does() {
        for intent in Intent::ALL {
            for step in steps() {
                let allowed = check_steps(intent, &[step]);
                let said = said(intent, &[step]);
                match allowed {
                    Ok(()) => assert_eq!(said, "", "{intent:?} {step}"),
                    Err(refused) => assert!(said.contains(&refused.to_string()), "{intent:?} {step}: {said}"),
                }
            }
        }
    }

    #[test]
    fn every_intent_is_admitted_and_has_steps() {
        let crd = serde_json::to_value(crate::PlaybookRun::crd()).unwrap();
        let schema = &crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
        let admitted = &schema["properties"]["spec"]["properties"]["intent"]["enum"];
        assert_eq!(admitted, &json!(Intent::ALL));
        for intent in Intent::ALL {
            assert!(!intent.step_names().is_empty(), "{intent:?}");
        }
    }
}
