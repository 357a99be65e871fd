//! Whether variables fit the JSON Schema that stands beside a playbook. What a schema may say is bounded, so that
//! reading one and checking against it takes no longer than its size allows: no references, patterns in linear time.

use std::collections::BTreeMap;

use super::asked::Asked;
use super::refusal::{Refusal, refuse};
use crds::Reason;
use crds::inputs::depth;
use jsonschema::PatternOptions;
use serde_json::Value;

const LIMIT: usize = 64 * 1024;
const DEPTH_LIMIT: usize = 32;
/// Words that lead elsewhere.
const REFERENCES: [&str; 6] = ["$ref", "$dynamicRef", "$recursiveRef", "$id", "$anchor", "$dynamicAnchor"];
/// Misfits that one message tells.
const MOST_TOLD: usize = 3;
const LONGEST: usize = 240;

pub(super) fn check(at: &str, text: &str, asked: &Asked<'_>) -> Result<(), Refusal> {
    let invalid = |why: String| refuse(Reason::PlaybookSchemaInvalid, format!("{at}: {why}"));
    if text.len() > LIMIT {
        return invalid(format!("{} bytes, at most {LIMIT} are allowed", text.len()));
    }
    let schema: Value = match serde_json::from_str(text) {
        Ok(schema) => schema,
        Err(error) => return invalid(format!("no JSON: {error}")),
    };
    if depth(&schema) > DEPTH_LIMIT {
        return invalid(format!("nested deeper than {DEPTH_LIMIT} levels"));
    }
    if let Some(word) = REFERENCES.iter().find(|word| says(&schema, word)) {
        return invalid(format!("{word} is not allowed: write what it refers to in its place"));
    }
    let options = jsonschema::draft202012::options().with_pattern_options(PatternOptions::regex());
    let validator = match options.build(&schema) {
        Ok(validator) => validator,
        Err(error) => return invalid(format!("no JSON Schema: {error}")),
    };
    let vars: BTreeMap<&String, &Value> = asked.vars.iter().collect();
    let vars = serde_json::to_value(vars).unwrap_or_default();
    let misfits: Vec<String> = validator
        .iter_errors(&vars)
        .take(MOST_TOLD + 1)
        .map(|error| {
            let path = error.instance_path().to_string().replace('/', ".");
            let text: String = error.to_string().chars().take(LONGEST).collect();
            format!("{}{path}: {text}", asked.vars_at)
        })
        .collect();
    if misfits.is_empty() {
        return Ok(());
    }
    let told = misfits.iter().take(MOST_TOLD).cloned().collect::<Vec<_>>().join("; ");
    let more = if misfits.len() > MOST_TOLD { "; and more" } else { "" };
    refuse(Reason::InvalidVariable, format!("{told}{more} (by the schema in {at})"))
}

/// Whether a key of this name stands anywhere, but as the name of a property.
fn says(schema: &Value, word: &str) -> bool {
    match schema {
        Value::Array(items) => items.iter().any(|item| says(item, word)),
        Value::Object(fields) => fields.iter().any(|(key, value)| key == word || says(value, word)),
        _ => false,
    }
}
