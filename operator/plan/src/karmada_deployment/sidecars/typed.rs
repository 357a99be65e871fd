//! Parts of a PodSpec, read as Kubernetes' own types.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crds::karmada_deployment::PodPart;

/// The part; or why it is none, with the field that is not known.
pub(super) fn typed<T: DeserializeOwned + Serialize>(given: &PodPart) -> Result<T, String> {
    let given = Value::Object(given.clone());
    let read: T = serde_json::from_value(given.clone()).map_err(|error| error.to_string())?;
    let known = serde_json::to_value(&read).map_err(|error| error.to_string())?;
    match unknown(&given, &known, "") {
        Some(path) => Err(format!("{path} is no field of it: take it out")),
        None => Ok(read),
    }
}

/// Where the first field is that was passed over when it was read.
fn unknown(given: &Value, known: &Value, path: &str) -> Option<String> {
    let inner = |path: &str, name: &str| if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
    match (given, known) {
        (Value::Object(given), Value::Object(known)) => {
            given.iter().filter(|(_, value)| !value.is_null()).find_map(|(name, value)| {
                let path = inner(path, name);
                known.get(name).map_or(Some(path.clone()), |known| unknown(value, known, &path))
            })
        }
        (Value::Array(given), Value::Array(known)) => {
            let mut items = given.iter().zip(known).enumerate();
            items.find_map(|(at, (given, known))| unknown(given, known, &format!("{path}[{at}]")))
        }
        _ => None,
    }
}
