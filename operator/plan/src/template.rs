//! Templates that an administrator wrote on purpose: rendered strictly. What is no template stays as it is.

use std::collections::BTreeSet;

use minijinja::{AutoEscape, Environment, ErrorKind, UndefinedBehavior};
use serde_json::{Map, Value};

/// Steps of a template before it counts as one that does not end.
const FUEL: u64 = 1_000_000;

/// The content with the facts in it; or where and why it cannot be rendered: `net.yaml, line 2: x is not defined`.
pub(crate) fn render(name: &str, content: &str, facts: &Map<String, Value>) -> Result<String, String> {
    let mut environment = Environment::new();
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    environment.set_auto_escape_callback(|_| AutoEscape::None);
    environment.set_keep_trailing_newline(true);
    environment.set_fuel(Some(FUEL));
    environment
        .render_named_str(name, content, facts)
        .map_err(|error| problem(name, content, &environment, facts, &error))
}

fn problem(
    name: &str,
    content: &str,
    environment: &Environment<'_>,
    facts: &Map<String, Value>,
    error: &minijinja::Error,
) -> String {
    let place = match error.line() {
        Some(line) => format!("{name}, line {line}"),
        None => name.to_owned(),
    };
    let what = match error.kind() {
        ErrorKind::UndefinedError => {
            let unknown = undefined(environment, content, facts);
            let known: Vec<&str> = facts.keys().map(String::as_str).collect();
            format!("{unknown} is not defined; defined are {}", known.join(", "))
        }
        _ => format!(
            "it is no template that can be rendered ({error}); braces that are the manifest's own go between {{% raw %}} and {{% endraw %}}"
        ),
    };
    format!("{place}: {what}")
}

/// The names that a template uses and that nothing defines.
fn undefined(environment: &Environment<'_>, content: &str, facts: &Map<String, Value>) -> String {
    let facts = Value::Object(facts.clone());
    let used: BTreeSet<String> = match environment.template_from_str(content) {
        Ok(template) => template.undeclared_variables(true).into_iter().collect(),
        Err(_) => BTreeSet::new(),
    };
    let is_there = |path: &str| facts.pointer(&format!("/{}", path.replace('.', "/"))).is_some();
    let names: Vec<&str> = used.iter().map(String::as_str).filter(|path| !is_there(path)).collect();
    match names.as_slice() {
        [] => "a name".to_owned(),
        names => names.join(", "),
    }
}
