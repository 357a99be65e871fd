//! What is asked of custom playbooks.

use std::collections::{BTreeMap, BTreeSet};

use super::refusal::{Refusal, refuse};
use crds::Reason;
use crds::step::{CustomStep, Step};
use serde_json::Value;

/// What is asked of a playbook: its name, its variables, and where both are written.
#[derive(Clone, Debug)]
pub struct Asked<'a> {
    /// Name of the playbook.
    pub name: &'a str,
    /// Its own variables.
    pub vars: BTreeMap<String, Value>,
    /// Where its name stands.
    pub name_at: String,
    /// Where its variables stand.
    pub vars_at: String,
}

/// What a run asks for: of its steps, each that is a playbook of the user's.
pub(super) fn asked_by_run<'a>(
    steps: &'a [Step],
    playbook_vars: &BTreeMap<String, Value>,
) -> Result<Vec<Asked<'a>>, Refusal> {
    let names: BTreeSet<&str> = steps.iter().filter_map(playbook_of_step).collect();
    if let Some(name) = playbook_vars.keys().find(|name| !names.contains(name.as_str())) {
        let steps: Vec<&str> = names.into_iter().collect();
        return refuse(
            Reason::InvalidVariable,
            format!(
                "playbookVars.{name}: this run has no step custom-{name} (playbooks of its steps: {})",
                steps.join(", ")
            ),
        );
    }
    let asked = |name: &&'a str| {
        let vars_at = format!("playbookVars.{name}");
        let vars = match playbook_vars.get(*name) {
            None => BTreeMap::new(),
            Some(Value::Object(vars)) => vars.clone().into_iter().collect(),
            Some(other) => {
                return refuse(Reason::InvalidVariable, format!("{vars_at}: {other} is no map of variables"));
            }
        };
        Ok(Asked { name, vars, name_at: format!("steps: custom-{name}"), vars_at })
    };
    names.iter().map(asked).collect()
}

pub(super) fn playbook_of_step(step: &Step) -> Option<&str> {
    step.custom().map(CustomStep::playbook)
}
