//! What a person asks for by an annotation whose value is the generation it is meant for, a retry above all.

use std::collections::BTreeMap;

use crds::commands::{self, Target};
use crds::names::annotation;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

/// Whether the object's annotation is there and meant for the generation that the object has: `7`, or `7.2` for a
/// second time.
pub fn names_generation(metadata: &ObjectMeta, key: &str) -> bool {
    let value = metadata.annotations.as_ref().and_then(|all| all.get(key));
    value.is_some_and(|value| is_meant_for(value, metadata.generation.unwrap_or_default()))
}

fn is_meant_for(value: &str, generation: i64) -> bool {
    let meant_for = value.split_once('.').map_or(value, |(meant_for, _)| meant_for);
    meant_for.parse() == Ok(generation)
}

/// The retry that an object's annotation asks for, if it is meant for this generation.
pub fn asked_retry(annotations: Option<&BTreeMap<String, String>>, generation: i64) -> Option<String> {
    asked(annotations, annotation::RETRY, generation)
}

/// The value of an annotation, if it is meant for this generation.
pub fn asked(annotations: Option<&BTreeMap<String, String>>, key: &str, generation: i64) -> Option<String> {
    let value = annotations?.get(key)?;
    is_meant_for(value, generation).then(|| value.clone())
}

/// The value that asks for another attempt now.
pub fn next_retry(annotations: Option<&BTreeMap<String, String>>, generation: i64) -> String {
    next_value(annotations, annotation::RETRY, generation)
}

/// What a person types to have another attempt at this object.
pub fn retry_command(target: Target, object: &ObjectMeta) -> String {
    let value = next_retry(object.annotations.as_ref(), object.generation.unwrap_or_default());
    commands::annotate(target, object, annotation::RETRY, value)
}

/// The value of an annotation that asks now: one that was used up already must be another one, and still begin with the
/// generation.
pub fn next_value(annotations: Option<&BTreeMap<String, String>>, key: &str, generation: i64) -> String {
    let used = asked(annotations, key, generation);
    match used.as_deref().map(|value| value.split_once('.')) {
        None => generation.to_string(),
        Some(None) => format!("{generation}.2"),
        Some(Some((_, number))) => format!("{generation}.{}", number.parse::<u32>().unwrap_or(1) + 1),
    }
}

#[cfg(test)]
mod tests {
    use super::{asked_retry, next_retry};
    use crds::names::annotation;

    #[test]
    fn a_retry_is_meant_for_one_generation_and_the_next_one_has_another_value() {
        let check = |value: Option<&str>, asked: Option<&str>, next: &str| {
            let annotations = value.map(|value| [(annotation::RETRY.to_owned(), value.to_owned())].into());
            assert_eq!(asked_retry(annotations.as_ref(), 7).as_deref(), asked);
            assert_eq!(next_retry(annotations.as_ref(), 7), next);
        };
        check(None, None, "7");
        check(Some("6"), None, "7");
        check(Some("yes"), None, "7");
        check(Some("7"), Some("7"), "7.2");
        check(Some("7.2"), Some("7.2"), "7.3");
    }
}
