//! Health as a user says it: expressions in CEL over an object.

use cel::objects::{Key, Map};
use cel::{Context, Program, Value as Cel};
use crds::addon::{HEALTH_CHECKS, HealthCheck};
use serde_json::Value;
use std::collections::HashMap;
use std::sync::Arc;

use super::documents::Document;

/// An expression that can be evaluated.
pub struct Check<'a> {
    wanted: &'a HealthCheck,
    index: usize,
    program: Program,
}

/// The checks; or which cannot be read, and why.
pub fn compile<'a>(checks: &'a [HealthCheck]) -> Result<Vec<Check<'a>>, String> {
    let compile = |(index, wanted): (usize, &'a HealthCheck)| match Program::compile(&wanted.expression) {
        Ok(program) => Ok(Check { wanted, index, program }),
        Err(error) => {
            let error = error.to_string();
            let error = error.lines().next().unwrap_or_default();
            Err(format!("{HEALTH_CHECKS}[{index}].expression cannot be read as CEL: {error}"))
        }
    };
    checks.iter().enumerate().map(compile).collect()
}

impl Check<'_> {
    /// Whether it is for this object.
    pub fn concerns(&self, document: &Document) -> bool {
        let api_version = match document.group.as_str() {
            "" => document.version.clone(),
            group => format!("{group}/{}", document.version),
        };
        let wanted = self.wanted;
        wanted.api_version == api_version
            && wanted.kind == document.kind
            && wanted.name.as_ref().is_none_or(|name| *name == document.name)
    }

    /// What is said when no object of the Addon is meant by it.
    pub fn unmatched(&self) -> String {
        let HealthCheck { api_version, kind, name, .. } = self.wanted;
        let name = name.as_ref().map(|name| format!(" {name}")).unwrap_or_default();
        format!(
            "{HEALTH_CHECKS}[{}]: the Addon has no {api_version} {kind}{name}: correct it, or take it out",
            self.index
        )
    }

    /// Why the object is not healthy; `None`: it is.
    pub fn problem(&self, object: &Value) -> Option<String> {
        let mut context = Context::default();
        context.add_variable_from_value("object", cel_of(object));
        let wanted = self.wanted;
        let message = || wanted.message.clone().unwrap_or_else(|| format!("not yet: {}", wanted.expression));
        match self.program.execute(&context) {
            Ok(Cel::Bool(true)) => None,
            Ok(Cel::Bool(false)) => Some(message()),
            Ok(_) => Some(format!("{HEALTH_CHECKS}[{}].expression is neither true nor false", self.index)),
            // What a controller has not written yet is no mistake.
            Err(error) => Some(format!("{} ({error})", message())),
        }
    }
}

/// Whole numbers are `int`, as expressions write them.
pub(crate) fn cel_of(value: &Value) -> Cel {
    match value {
        Value::Null => Cel::Null,
        Value::Bool(value) => Cel::Bool(*value),
        Value::Number(number) => match (number.as_i64(), number.as_f64()) {
            (Some(number), _) => Cel::Int(number),
            (None, number) => Cel::Float(number.unwrap_or_default()),
        },
        Value::String(text) => Cel::String(Arc::new(text.clone())),
        Value::Array(values) => Cel::List(Arc::new(values.iter().map(cel_of).collect())),
        Value::Object(fields) => {
            let fields = fields.iter().map(|(name, value)| (Key::String(Arc::new(name.clone())), cel_of(value)));
            let fields: HashMap<Key, Cel> = fields.collect();
            Cel::Map(Map { map: Arc::new(fields) })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::compile;
    use crds::addon::HealthCheck;
    use serde_json::json;

    fn check(expression: &str, message: Option<&str>) -> HealthCheck {
        HealthCheck {
            api_version: "example.com/v1".into(),
            kind: "Widget".into(),
            name: None,
            expression: expression.into(),
            message: message.map(str::to_owned),
        }
    }

    #[test]
    fn an_object_is_healthy_when_the_expression_says_so() {
        let object = json!({"spec": {"size": 3}, "status": {"size": 3, "phase": "Bound", "parts": [{"up": true}, {"up": false}]}});
        let problem = |expression: &str| {
            let checks = [check(expression, Some("not bound"))];
            compile(&checks).unwrap()[0].problem(&object)
        };
        assert_eq!(problem("object.status.phase == 'Bound'"), None);
        assert_eq!(problem("object.status.size == object.spec.size && object.spec.size == 3"), None);
        assert_eq!(problem("object.status.parts.exists(part, part.up)"), None);
        assert_eq!(problem("object.status.parts.all(part, part.up)").as_deref(), Some("not bound"));
        assert_eq!(problem("has(object.status.other) && object.status.other").as_deref(), Some("not bound"));
        assert!(problem("object.status.other == 'x'").unwrap().starts_with("not bound ("));
        assert_eq!(
            problem("object.status.size").as_deref(),
            Some("spec.healthChecks[0].expression is neither true nor false")
        );
    }

    #[test]
    fn an_expression_that_cannot_be_read_is_refused_by_its_place() {
        for expression in ["object.", "1 +", "'", "object.status.phase = 'Bound'", &"(".repeat(1024)] {
            let checks = [check("true", None), check(expression, None)];
            let why = compile(&checks).err().unwrap();
            assert!(why.starts_with("spec.healthChecks[1].expression cannot be read as CEL: "), "{why}");
        }
    }
}
