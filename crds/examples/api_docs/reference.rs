//! The reference of the API as Markdown: a table of fields for each kind, and the rules that span fields.

use std::fmt::Write;

use crds::manifests;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use serde_json::Value;

const HEAD: &str = "# The API

<!-- Generated from the types in `crds`: make crds -->

Group `clusterwright.dev/v1alpha1`; every kind is namespaced. `kubectl get clusterwright` lists all of them. What is
wrong with an object itself is refused when it is applied, with the field's path and what to do; `kubectl apply
--validate=strict` (the default) refuses unknown fields too. References are to objects of the same namespace.
Versions are written without `v`. Durations are whole numbers with the unit in the field's name.

";

/// The whole text.
pub fn text() -> Result<String, Box<dyn std::error::Error>> {
    let definitions = manifests::all();
    let mut text = HEAD.to_owned();
    text.push_str("| kind | short | what it is |\n|---|---|---|\n");
    for definition in &definitions {
        let names = &definition.spec.names;
        let short = names.short_names.clone().unwrap_or_default().join(", ");
        let anchor = names.kind.to_lowercase();
        writeln!(
            text,
            "| [{}](#{anchor}) | {} | {} |",
            names.kind,
            if short.is_empty() { names.singular.clone().unwrap_or_default() } else { short },
            cell(schema(definition)?["description"].as_str().unwrap_or_default())
        )?;
    }
    for definition in &definitions {
        kind(&mut text, definition)?;
    }
    text.push_str(HANDS);
    Ok(text)
}

const HANDS: &str = "
## Labels

| label | on | says |
|---|---|---|
| `clusterwright.dev/cluster` | everything that belongs to a cluster | name of the ClusterDeployment |
| `clusterwright.dev/machine-set` | Machines | name of the MachineSet |
| `clusterwright.dev/role` | Machines, MachineSets | `control-plane`, `etcd` or `worker` |
| `clusterwright.dev/run` | Jobs, Pods, frozen inputs, logs, and what an executor may do | name of the PlaybookRun |
| `clusterwright.dev/log` | ConfigMaps that keep a run's log, and nothing else of the run | name of the PlaybookRun |
| `clusterwright.dev/backup` | Jobs that remove a stored backup, and their Pods | name of the EtcdBackup |
| `clusterwright.dev/schedule` | EtcdBackups that a schedule made | name of the EtcdBackupSchedule |
| `clusterwright.dev/addon` | ClusterAddons, revisions, and all that is applied to clusters | name of the Addon |
| `clusterwright.dev/intent` | PlaybookRuns and their Jobs | the intent in lower case |
";

fn schema(definition: &CustomResourceDefinition) -> Result<Value, Box<dyn std::error::Error>> {
    let version = definition.spec.versions.first().ok_or("a definition without versions")?;
    let schema = version.schema.as_ref().and_then(|schema| schema.open_api_v3_schema.as_ref());
    Ok(serde_json::to_value(schema.ok_or("a version without a schema")?)?)
}

fn kind(text: &mut String, definition: &CustomResourceDefinition) -> Result<(), Box<dyn std::error::Error>> {
    let schema = schema(definition)?;
    let names = &definition.spec.names;
    writeln!(text, "\n## {}\n", names.kind)?;
    writeln!(text, "{}", prose(schema["description"].as_str().unwrap_or_default()))?;
    let version = definition.spec.versions.first().ok_or("a definition without versions")?;
    let columns = version.additional_printer_columns.iter().flatten();
    let columns: Vec<String> = columns
        .map(|column| {
            let name = column.name.to_uppercase();
            if column.priority.unwrap_or_default() > 0 { format!("{name} (wide)") } else { name }
        })
        .collect();
    writeln!(text, "\n`kubectl get {}` shows: NAME, {}.", names.plural, columns.join(", "))?;
    for part in ["spec", "status"] {
        let properties = &schema["properties"][part];
        writeln!(text, "\n### {}: {part}\n", names.kind)?;
        text.push_str("| field | type | default | what it is |\n|---|---|---|---|\n");
        fields(text, "", properties)?;
        if part == "spec" {
            let mut rules = Vec::new();
            collect_rules(&mut rules, "metadata", &schema, false);
            collect_rules(&mut rules, "", properties, true);
            if !rules.is_empty() {
                text.push_str("\nRefused when applied:\n\n");
                for rule in rules {
                    writeln!(text, "- {rule}")?;
                }
            }
        }
    }
    Ok(())
}

fn fields(text: &mut String, path: &str, schema: &Value) -> std::fmt::Result {
    let required = schema["required"].as_array().cloned().unwrap_or_default();
    for (name, field) in schema["properties"].as_object().into_iter().flatten() {
        let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
        let must = required.iter().any(|required| required == name);
        let default = match &field["default"] {
            Value::Null => if must { "required" } else { "" }.to_owned(),
            // The parts of an object have their own lines.
            Value::Object(_) => String::new(),
            Value::String(text) if text.is_empty() => String::new(),
            value => format!("`{}`", value.to_string().trim_matches('"')),
        };
        let description = cell(field["description"].as_str().unwrap_or_default());
        writeln!(text, "| `{path}` | {} | {default} | {description} |", type_of(field))?;
        let (inner, path) = match field["type"].as_str() {
            Some("array") => (&field["items"], format!("{path}[]")),
            _ => (field, path),
        };
        // Conditions are metav1.Condition everywhere.
        if name != "conditions" {
            fields(text, &path, inner)?;
        }
    }
    Ok(())
}

fn type_of(field: &Value) -> String {
    if let Some(values) = field["enum"].as_array() {
        let values = values.iter().filter_map(Value::as_str).map(|value| format!("`{value}`"));
        return values.collect::<Vec<_>>().join(", ");
    }
    if field["x-kubernetes-int-or-string"] == true {
        return "count or percentage".into();
    }
    // The end of what all programs read as the same integer is no limit worth a word.
    let limit = |name: &str| field[name].as_f64().filter(|limit| *limit < 9e15);
    let range = |low: &str, high: &str, unit: &str| match (limit(low), limit(high)) {
        (Some(low), Some(high)) => format!(", {low} to {high}{unit}"),
        (Some(low), None) => format!(", at least {low}{unit}"),
        (None, Some(high)) => format!(", at most {high}{unit}"),
        (None, None) => String::new(),
    };
    match field["type"].as_str().unwrap_or_default() {
        "array" => {
            let inner = match field["items"]["type"].as_str() {
                Some("object") => "objects".into(),
                _ => type_of(&field["items"]).replace("text", "texts"),
            };
            format!("list of {inner}{}", range("minItems", "maxItems", " items"))
        }
        "object" if field["additionalProperties"].is_object() => {
            format!("map of texts{}", range("minProperties", "maxProperties", " entries"))
        }
        "string" if field["format"] == "date-time" => "time".into(),
        "string" => match field["maxLength"].as_i64() {
            Some(most) => format!("text, at most {most} characters"),
            None => "text".into(),
        },
        "integer" => format!("integer{}", range("minimum", "maximum", "")),
        "boolean" => "`true` or `false`".into(),
        other => other.into(),
    }
}

/// The messages of the rules, in the order of the fields; the same one once.
fn collect_rules(rules: &mut Vec<String>, path: &str, schema: &Value, deep: bool) {
    for rule in schema["x-kubernetes-validations"].as_array().into_iter().flatten() {
        let message = match (rule["message"].as_str(), rule["messageExpression"].as_str()) {
            (_, Some(expression)) => readable(expression),
            (Some(message), None) => message.to_owned(),
            (None, None) => continue,
        };
        let field = rule["fieldPath"].as_str().unwrap_or_default().trim_start_matches('.');
        let at = match (path, field) {
            ("", "") | ("metadata", _) => String::new(),
            ("", field) => format!("`{field}`: "),
            (path, "") => format!("`{path}`: "),
            (path, field) => format!("`{path}.{field}`: "),
        };
        let line = format!("{at}{}", prose(&message));
        if !rules.contains(&line) {
            rules.push(line);
        }
    }
    if !deep {
        return;
    }
    for (name, field) in schema["properties"].as_object().into_iter().flatten() {
        let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
        let (inner, path) = match field["type"].as_str() {
            Some("array") => {
                collect_rules(rules, &path, field, false);
                (&field["items"], format!("{path}[]"))
            }
            _ => (field, path),
        };
        collect_rules(rules, &path, inner, true);
    }
}

/// `'a ' + self.x + ' b'` becomes `a … b`.
fn readable(expression: &str) -> String {
    // What each case refuses says more than how the cases are told apart.
    let literals = expression.split('\'').skip(1).step_by(2);
    let is_refusal =
        |literal: &&str| [" is not allowed ", " has nothing to do "].iter().any(|one| literal.starts_with(one));
    let refusals = literals.filter(is_refusal);
    let refusals: Vec<String> = refusals.map(|refusal| format!("any other step{refusal}")).collect();
    if !refusals.is_empty() {
        return refusals.join(". ");
    }
    let mut text = String::new();
    for (index, part) in expression.split('\'').enumerate() {
        match index % 2 {
            1 => text.push_str(part),
            _ if part.contains("self") || part.contains("oldSelf") => text.push('…'),
            _ => {}
        }
    }
    text
}

fn prose(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn cell(text: &str) -> String {
    prose(text).replace('|', "\\|")
}
