//! What a schema admits must decode: every leaf of every kind is given what the API server lets in.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, JSONSchemaProps, JSONSchemaPropsOrArray, JSONSchemaPropsOrBool,
};
use kube::Resource;
use proptest::prelude::{Strategy, any};
use proptest::strategy::{BoxedStrategy, Just, Union, ValueTree};
use proptest::string::string_regex;
use proptest::test_runner::TestRunner;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use super::Decoded;

/// How often a leaf is fed.
const SAMPLES: usize = 24;

/// A date as `format: date-time` alone lets it in: nobody looks at the offset.
const LOOSE_DATE: &str = "[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|1[0-9]|2[0-8])[Tt]([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]([.][0-9]{1,9})?([Zz]|[+-][0-9]{2}:[0-9]{2})";

type Schema = JSONSchemaProps;

fn one_of(values: Vec<BoxedStrategy<Value>>) -> BoxedStrategy<Value> {
    Union::new(values).boxed()
}

fn text(schema: &Schema) -> BoxedStrategy<Value> {
    let text = match (&schema.pattern, schema.format.as_deref()) {
        (Some(pattern), _) => pattern.trim_start_matches('^').trim_end_matches('$').to_owned(),
        (None, Some("date-time")) => LOOSE_DATE.to_owned(),
        (None, _) => {
            let least = schema.min_length.unwrap_or(0);
            format!("[ -~]{{{least},{}}}", schema.max_length.unwrap_or(8).clamp(least, least + 8))
        }
    };
    string_regex(&text).unwrap().prop_map(Value::from).boxed()
}

fn integer(schema: &Schema) -> BoxedStrategy<Value> {
    let (least, most) = match schema.format.as_deref() {
        Some("int32") => (f64::from(i32::MIN), f64::from(i32::MAX)),
        // A number that is written as a float is compared as one.
        _ => (-9_223_372_036_854_775_808.0, 9_223_372_036_854_775_808.0),
    };
    let least = schema.minimum.unwrap_or(least).max(least);
    let most = schema.maximum.unwrap_or(most).min(most);
    // As Go prints them: without a fraction.
    let whole = |value: f64| serde_json::from_str::<Value>(&format!("{value:.0}")).unwrap();
    let nought = (least <= 0.0 && most >= 0.0).then_some(-0.0);
    let ends = [least, most].into_iter().chain(nought).map(|end| Just(whole(end)).boxed());
    let between = (least..=most).prop_map(move |value| whole(value.trunc())).boxed();
    one_of(ends.chain([between]).collect())
}

/// What a leaf may be.
fn leaf(schema: &Schema) -> BoxedStrategy<Value> {
    let values = match (&schema.enum_, schema.type_.as_deref()) {
        _ if schema.x_kubernetes_int_or_string == Some(true) => one_of(vec![text(schema), integer(schema)]),
        _ if schema.x_kubernetes_preserve_unknown_fields == Some(true) => {
            let values = [json!({}), json!({ "a": [1, 1.5, -1, null, { "b": "x" }] })];
            one_of(values.map(|value| Just(value).boxed()).into())
        }
        (Some(values), _) => one_of(values.iter().map(|value| Just(value.0.clone()).boxed()).collect()),
        (None, Some("string")) => text(schema),
        (None, Some("integer")) => integer(schema),
        (None, Some("boolean")) => any::<bool>().prop_map(Value::from).boxed(),
        (None, Some("object")) => Just(json!({})).boxed(),
        (None, Some("array")) => Just(json!([])).boxed(),
        (None, Some("number")) => any::<i32>().prop_map(Value::from).boxed(),
        (None, other) => panic!("a leaf of type {other:?}"),
    };
    match schema.nullable {
        Some(true) => one_of(vec![values, Just(Value::Null).boxed()]),
        _ => values,
    }
}

fn items(schema: &Schema) -> Option<&Schema> {
    match &schema.items {
        Some(JSONSchemaPropsOrArray::Schema(items)) => Some(items),
        _ => None,
    }
}

fn values(schema: &Schema) -> Option<&Schema> {
    match &schema.additional_properties {
        Some(JSONSchemaPropsOrBool::Schema(values)) => Some(values),
        _ => None,
    }
}

/// The least that the schema admits.
fn least(schema: &Schema, runner: &mut TestRunner) -> Value {
    if let (Some("object"), None) = (schema.type_.as_deref(), schema.x_kubernetes_preserve_unknown_fields) {
        let required = schema.required.iter().flatten();
        let fields = required.map(|name| {
            let field = &schema.properties.as_ref().unwrap()[name];
            (name.clone(), least(field, runner))
        });
        return Value::Object(fields.collect());
    }
    match items(schema) {
        Some(items) => {
            let count = schema.min_items.unwrap_or(0);
            (0..count).map(|_| least(items, runner)).collect()
        }
        None => leaf(schema).new_tree(runner).unwrap().current(),
    }
}

/// Every leaf, with its path, within the least that the schema admits around it.
fn leaves(schema: &Schema, path: &str, runner: &mut TestRunner, fed: &mut Vec<(String, Value)>) {
    let mut below =
        |inner: &Schema, path: String, around: &dyn Fn(Value, &mut TestRunner) -> Value, runner: &mut TestRunner| {
            let mut found = Vec::new();
            leaves(inner, &path, runner, &mut found);
            for (path, value) in found {
                let whole = around(value, runner);
                fed.push((path, whole));
            }
        };
    for (name, inner) in schema.properties.iter().flatten() {
        let around = |value: Value, runner: &mut TestRunner| {
            let mut fields = least(schema, runner);
            fields[name] = value;
            fields
        };
        below(inner, format!("{path}.{name}"), &around, runner);
    }
    if let Some(inner) = values(schema) {
        let around = |value: Value, _: &mut TestRunner| Value::Object(Map::from_iter([("k".to_owned(), value)]));
        below(inner, format!("{path}.*"), &around, runner);
    }
    if let Some(inner) = items(schema) {
        let around = |value: Value, _: &mut TestRunner| json!([value]);
        below(inner, format!("{path}[]"), &around, runner);
    }
    if schema.properties.is_none() && values(schema).is_none() && items(schema).is_none() {
        let strategy = leaf(schema);
        for _ in 0..SAMPLES {
            fed.push((path.to_owned(), strategy.new_tree(runner).unwrap().current()));
        }
    }
}

fn check<K: Resource<DynamicType = ()> + DeserializeOwned>(
    definition: &CustomResourceDefinition,
    wrong: &mut Vec<String>,
) {
    let mut runner = TestRunner::deterministic();
    let schema = definition.spec.versions[0].schema.as_ref().unwrap();
    let schema = schema.open_api_v3_schema.as_ref().unwrap();
    let mut fed = Vec::new();
    leaves(schema, &K::kind(&()), &mut runner, &mut fed);
    let mut paths: Vec<&String> = fed.iter().map(|(path, _)| path).collect();
    paths.dedup();
    assert!(paths.len() > 5, "{paths:?}");
    for (path, object) in &fed {
        let mut object = object.clone();
        object["metadata"] = json!({ "name": "x", "namespace": "fleet" });
        let decoded: Decoded<K> = serde_json::from_value(object).unwrap();
        if let Decoded::Undecodable { why, .. } = decoded {
            wrong.push(format!("{path}: {} in {}", why.message(), why.object));
        }
    }
}

#[test]
fn whatever_the_schema_lets_in_is_decoded() {
    let mut wrong = Vec::new();
    let mut definitions = crds::manifests::all().into_iter();
    macro_rules! check_each {
        ($($kind:ty),+) => { $(check::<$kind>(&definitions.next().unwrap(), &mut wrong);)+ };
    }
    crds::for_every_kind!(check_each);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
