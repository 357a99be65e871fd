//! A ConfigMap of custom playbooks: what is in it, what of it is refused, and what a run takes from it.

use std::collections::BTreeMap;

use crds::Reason;
use crds::inputs::{PlaybookInputs, VARIABLE_DEPTH_LIMIT, depth, is_reserved_variable, is_variable_name};
use crds::step::CustomStep;

use super::asked::Asked;
use super::refusal::{Refusal, refuse};
use super::{content, schema};

/// A playbook, or its probe.
const CONTENT_LIMIT: usize = 256 * 1024;
/// The variables of one playbook, as JSON.
const VARS_LIMIT: usize = 64 * 1024;

/// What was found under the name of a ConfigMap.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Library {
    /// Name of the ConfigMap.
    pub config_map: String,
    /// Its data; none: it is not there.
    pub data: Option<BTreeMap<String, String>>,
    /// Keys of its binaryData.
    pub binary: Vec<String>,
}

impl Library {
    /// The playbooks asked for, each with its variables, once all of it is found to be right.
    pub fn take(&self, asked: &[Asked<'_>]) -> Result<BTreeMap<String, PlaybookInputs>, Refusal> {
        let data = self.checked()?;
        asked.iter().map(|asked| Ok((asked.name.to_owned(), self.one(data, asked)?))).collect()
    }

    fn one(&self, data: &BTreeMap<String, String>, asked: &Asked<'_>) -> Result<PlaybookInputs, Refusal> {
        let (map, name) = (&self.config_map, asked.name);
        let Some(text) = data.get(&format!("{name}.yml")) else {
            let there: Vec<&str> = data.keys().filter_map(|key| playbook_of(key)).collect();
            let there = if there.is_empty() { "none".into() } else { there.join(", ") };
            return refuse(
                Reason::PlaybookNotFound,
                format!(
                    "{}: there is no playbook \"{name}\": ConfigMap {map} has no key {name}.yml (playbooks there: {there})",
                    asked.name_at
                ),
            );
        };
        let probe = data.get(&format!("{name}.probe.yml"));
        for (key, text) in [("yml", Some(text)), ("probe.yml", probe)] {
            let at = format!("ConfigMap {map}, key {name}.{key}");
            text.map_or(Ok(()), |text| content::check(&at, text))?;
        }
        check_vars(asked)?;
        if let Some(text) = data.get(&format!("{name}.schema.json")) {
            let at = format!("ConfigMap {map}, key {name}.schema.json");
            schema::check(&at, text, asked)?;
        }
        Ok(PlaybookInputs { content: text.clone(), probe: probe.cloned(), vars: asked.vars.clone() })
    }

    fn checked(&self) -> Result<&BTreeMap<String, String>, Refusal> {
        let map = &self.config_map;
        let Some(data) = &self.data else {
            return refuse(
                Reason::ConfigMapNotFound,
                format!("ConfigMap {map} with custom playbooks is not there: make it"),
            );
        };
        if !self.binary.is_empty() {
            return refuse(
                Reason::PlaybooksNotText,
                format!(
                    "ConfigMap {map}: binaryData {}: playbooks are text: put them into data",
                    self.binary.join(", ")
                ),
            );
        }
        for (key, text) in data {
            let Some(name) = name_of(key) else {
                return refuse(
                    Reason::PlaybookNameRefused,
                    format!(
                        "ConfigMap {map}: key {key:?} is refused: <name>.yml, <name>.probe.yml and <name>.schema.json are allowed, with a name of a-z, 0-9 and -, at most {} characters",
                        CustomStep::NAME_LIMIT
                    ),
                );
            };
            if !data.contains_key(&format!("{name}.yml")) {
                let message = format!("ConfigMap {map}: key {key} belongs to no playbook: there is no key {name}.yml");
                return refuse(Reason::PlaybookNameRefused, message);
            }
            if text.len() > CONTENT_LIMIT {
                let message = format!(
                    "ConfigMap {map}: key {key} has {} bytes, at most {CONTENT_LIMIT} are allowed: make several playbooks of it",
                    text.len()
                );
                return refuse(Reason::PlaybookTooLarge, message);
            }
        }
        Ok(data)
    }
}

fn check_vars(asked: &Asked<'_>) -> Result<(), Refusal> {
    for (name, value) in &asked.vars {
        let at = format!("{}.{name}", asked.vars_at);
        if is_reserved_variable(name) {
            let message =
                format!("{at}: the name is reserved (ansible_* and Ansible's own variables are): choose another");
            return refuse(Reason::ReservedVariable, message);
        }
        if !is_variable_name(name) {
            let message = format!(
                "{at}: a variable's name is letters, digits and _, at most 128, and begins with no digit: choose another"
            );
            return refuse(Reason::InvalidVariable, message);
        }
        let depth = depth(value);
        if depth > VARIABLE_DEPTH_LIMIT {
            let message = format!(
                "{at}: nested {depth} levels deep or more: {VARIABLE_DEPTH_LIMIT} are allowed: give it as text, or flatter"
            );
            return refuse(Reason::InvalidVariable, message);
        }
    }
    let size = serde_json::to_string(&asked.vars).map_or(usize::MAX, |text| text.len());
    if size > VARS_LIMIT {
        let message = format!(
            "{}: {size} bytes of variables, at most {VARS_LIMIT} are allowed: put data into files, and files into an artifact",
            asked.vars_at
        );
        return refuse(Reason::InvalidVariable, message);
    }
    Ok(())
}

fn playbook_of(key: &str) -> Option<&str> {
    let name = name_of(key)?;
    (key.len() == name.len() + ".yml".len()).then_some(name)
}

fn name_of(key: &str) -> Option<&str> {
    let name = [".probe.yml", ".schema.json", ".yml"].iter().find_map(|ending| key.strip_suffix(ending))?;
    CustomStep::new(name).map(|_| name)
}
