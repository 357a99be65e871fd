//! The rows of the page: what the code says of each field, and what was declared where it says nothing.

use std::collections::BTreeMap;
use std::error::Error;

use crds::step::Step;
use serde_json::Value;

use super::declared::Declared;
use super::effect::Effect;
use super::known::{Known, is_below};
use super::leaves::{Leaf, leaves};

/// What an edit of one field does.
pub struct Row {
    pub field: String,
    pub effect: Effect,
    /// What brings it to machines; none: no run does.
    pub steps: Vec<Step>,
    pub remark: String,
}

/// What the code says of a field.
pub type Ask = fn(&Value, &Leaf) -> Result<Known, Box<dyn Error>>;

/// A row for each leaf field below a schema. It is an error if there is none, or if one that is declared says what the
/// code says, or is of no field.
pub fn rows(schema: &Value, ask: Ask, declared: &[Declared]) -> Result<Vec<Row>, Box<dyn Error>> {
    let all = declared.iter().flat_map(|row| expand(row.field).into_iter().map(move |field| (field, row)));
    let (of_effects, mut of_remarks): (Vec<_>, Vec<_>) = all.partition(|(_, row)| row.effect.is_some());
    let mut by_field: BTreeMap<String, &Declared> = BTreeMap::new();
    for (field, row) in of_effects {
        if by_field.insert(field.clone(), row).is_some() {
            return Err(format!("{field} is declared twice in declared.rs: take one of the rows out").into());
        }
    }
    let mut rows = Vec::new();
    let leaves = leaves(schema);
    for leaf in &leaves {
        let field = leaf.to_string();
        let known = ask(schema, leaf)?;
        let declared = by_field.remove(&field);
        let effect = match (known.effect, declared.and_then(|row| row.effect)) {
            (Some(effect), None) | (None, Some(effect)) => effect,
            (None, None) => {
                return Err(format!("{field}: no code says what an edit does: declare it in declared.rs").into());
            }
            (Some(known), Some(_)) => {
                return Err(format!("{field}: the code says {known}: declare no effect in declared.rs").into());
            }
        };
        let steps = known.steps.iter().chain(declared.map_or(&[][..], |row| row.steps)).copied().collect();
        let beside = of_remarks.iter().filter(|(field, _)| is_below(leaf, field)).map(|(_, row)| row.remark);
        let remarks = declared.map(|row| row.remark).into_iter().chain(beside).chain([known.remark.as_str()]);
        let remarks: Vec<&str> = remarks.filter(|remark| !remark.is_empty()).collect();
        rows.push(Row { field, effect, steps, remark: remarks.join("; ") });
    }
    of_remarks.retain(|(field, _)| !leaves.iter().any(|leaf| is_below(leaf, field)));
    match by_field.into_keys().chain(of_remarks.into_iter().map(|(field, _)| field)).next() {
        Some(field) => Err(format!("{field} is declared in declared.rs and is no field: take it out").into()),
        None => Ok(rows),
    }
}

/// `a.{b,c}.d` is `a.b.d` and `a.c.d`.
pub fn expand(pattern: &str) -> Vec<String> {
    let Some((before, rest)) = pattern.split_once('{') else { return vec![pattern.to_owned()] };
    let Some((names, after)) = rest.split_once('}') else { return vec![pattern.to_owned()] };
    names.split(',').flat_map(|name| expand(&format!("{before}{}{after}", name.trim()))).collect()
}
