//! The leaf fields of a kind's spec, by its schema, and edits of each of them.

use std::fmt;

use crds::manifests;
use serde_json::{Map, Value, json};

/// Two values each of fields for which the schema does not say one that means something.
const VALUES: [(&str, [&str; 2]); 14] = [
    ("checkEverySeconds", ["86400", "604800"]),
    ("hashCheckSeconds", ["86400", "604800"]),
    ("validityDays", ["365", "1825"]),
    ("renewBeforeDays", ["120", "364"]),
    ("kubernetesVersion", ["1.35.4", "1.36.2"]),
    ("via", ["1.35.4", "1.34.4"]),
    ("cniPlugins", ["1.8.0", "1.9.0"]),
    ("containerd", ["2.2.0", "2.2.1"]),
    ("coredns", ["1.13.1", "1.14.7"]),
    ("etcd", ["3.6.14", "3.6.16"]),
    ("replicas", ["1", "3"]),
    ("runc", ["1.3.4", "1.4.0"]),
    ("schedule", ["0 4 * * SUN", "0 2 * * SAT"]),
    ("timeZone", ["Etc/UTC", "Europe/Paris"]),
];

/// A field with no fields of its own.
#[derive(Clone)]
pub struct Leaf {
    /// The names on the way to it; lists end with `[]`.
    names: Vec<String>,
    schema: Value,
}

impl fmt::Display for Leaf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.names.join("."))
    }
}

/// The schema of a kind's spec.
pub fn schema(kind: &str) -> Option<Value> {
    let definition = manifests::all().into_iter().find(|definition| definition.spec.names.kind == kind)?;
    let schema = definition.spec.versions.into_iter().next()?.schema?.open_api_v3_schema?;
    let mut schema = serde_json::to_value(schema).ok()?;
    Some(schema["properties"]["spec"].take())
}

/// The leaf fields below a schema, in the order of their names.
pub fn leaves(schema: &Value) -> Vec<Leaf> {
    let mut found = Vec::new();
    collect(&mut found, &[], schema);
    found
}

fn collect(found: &mut Vec<Leaf>, above: &[String], schema: &Value) {
    for (name, field) in schema["properties"].as_object().into_iter().flatten() {
        let (inner, is_list) = inner(field);
        let is_leaf = !inner["properties"].is_object();
        let suffix = if is_list && !is_leaf { "[]" } else { "" };
        let names: Vec<String> = above.iter().cloned().chain([format!("{name}{suffix}")]).collect();
        match is_leaf {
            true => found.push(Leaf { names, schema: field.clone() }),
            false => collect(found, &names, inner),
        }
    }
}

/// The schema of a list's items, or of the field itself, and whether it is a list.
fn inner(field: &Value) -> (&Value, bool) {
    if field["type"] == "array" { (&field["items"], true) } else { (field, false) }
}

impl Leaf {
    /// Two values that it may have.
    pub fn values(&self) -> [Value; 2] {
        let name = self.names.last().map(String::as_str).unwrap_or_default();
        [0, 1].map(|which| value(name, &self.schema, which))
    }

    /// A spec with the field as it is here, and with what must be beside it.
    pub fn set(&self, schema: &Value, spec: &Value, value: &Value) -> Value {
        let mut spec = spec.clone();
        set(&mut spec, schema, &self.names, value);
        spec
    }
}

fn set(there: &mut Value, schema: &Value, names: &[String], value: &Value) {
    let Some((name, rest)) = names.split_first() else {
        there.clone_from(value);
        return;
    };
    if !there.is_object() {
        *there = least(schema);
    }
    let name = name.trim_end_matches("[]");
    let field = &schema["properties"][name];
    let (items, is_list) = inner(field);
    let there = &mut there[name];
    if rest.is_empty() || !is_list {
        return set(there, field, rest, value);
    }
    if !there.is_array() {
        *there = json!([least(items)]);
    }
    set(&mut there[0], items, rest, value);
}

/// An object with what it must have.
fn least(schema: &Value) -> Value {
    let required = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let fields = required.map(|name| (name.to_owned(), value(name, &schema["properties"][name], 0)));
    Value::Object(fields.collect::<Map<String, Value>>())
}

/// One of two values that differ.
fn value(name: &str, schema: &Value, which: usize) -> Value {
    let known = VALUES.iter().find(|(known, _)| *known == name).and_then(|(_, values)| values.get(which));
    if let Some(values) = schema["enum"].as_array() {
        return values.get(which).or(values.first()).cloned().unwrap_or_default();
    }
    let number = || schema["minimum"].as_f64().unwrap_or_default().max(1.0) as i64 + if which == 0 { 0 } else { 1 };
    match schema["type"].as_str() {
        Some("array") if schema["items"]["properties"].is_object() => json!([least(&schema["items"])]),
        Some("array") => json!([value(name, &schema["items"], which)]),
        Some("object") if schema["properties"].is_object() => least(schema),
        Some("object") => json!({ "A": value("", &schema["additionalProperties"], which) }),
        Some("boolean") => json!(which == 0),
        Some("integer") => known.and_then(|known| known.parse().ok()).map_or_else(|| json!(number()), Value::Number),
        // A count, or a percentage.
        _ if schema["x-kubernetes-int-or-string"] == true => json!(number()),
        _ => json!(known.unwrap_or(&["a", "b"][which.min(1)])),
    }
}
