//! What a schema admits must decode. Of dates and of large integers the API server admits more than our types hold.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, JSONSchemaProps, JSONSchemaPropsOrArray, JSONSchemaPropsOrBool,
};

/// RFC 3339 up to the year 9998, each month with its days: `2026-02-28T09:00:00Z`. By `format: date-time` alone the API
/// server also admits offsets such as `+99:99`.
pub const DATE_TIME: &str = concat!(
    r"^(([0-8][0-9]{3}|9[0-8][0-9]{2}|99[0-8][0-9]|999[0-8])-",
    r"((0[13578]|1[02])-(0[1-9]|[12][0-9]|3[01])|(0[469]|11)-(0[1-9]|[12][0-9]|30)|02-(0[1-9]|1[0-9]|2[0-8]))",
    r"|([0-9]{2}(0[48]|[2468][048]|[13579][26])|([02468][048]|[13579][26])00)-02-29)",
    r"T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]([.][0-9]{1,9})?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])$"
);
/// Integers up to which every program agrees on what they are.
const LARGEST: f64 = 9_007_199_254_740_991.0;

/// Narrows every leaf of a definition to what its type decodes.
pub(super) fn narrow(definition: &mut CustomResourceDefinition) {
    let versions = definition.spec.versions.iter_mut();
    let schemas = versions.filter_map(|version| version.schema.as_mut()?.open_api_v3_schema.as_mut());
    schemas.for_each(narrow_schema);
}

fn narrow_schema(schema: &mut JSONSchemaProps) {
    if schema.format.as_deref() == Some("date-time") {
        schema.pattern = Some(DATE_TIME.into());
    }
    if schema.format.as_deref() == Some("int64") {
        schema.maximum.get_or_insert(LARGEST);
    }
    for property in schema.properties.iter_mut().flat_map(|properties| properties.values_mut()) {
        narrow_schema(property);
    }
    if let Some(JSONSchemaPropsOrBool::Schema(values)) = &mut schema.additional_properties {
        narrow_schema(values);
    }
    match &mut schema.items {
        Some(JSONSchemaPropsOrArray::Schema(items)) => narrow_schema(items),
        Some(JSONSchemaPropsOrArray::Schemas(items)) => items.iter_mut().for_each(narrow_schema),
        None => {}
    }
}
