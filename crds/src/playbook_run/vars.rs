//! Variables as anyone may write them. An object that is nested deeper than readers of JSON go would make every list of
//! runs unreadable, for all who ask: what is deeper than [`DEPTH`] is passed over unread.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

/// Levels that are read. Whoever uses a value refuses it long before.
const DEPTH: usize = 40;

/// Reads the variables of a spec.
pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<BTreeMap<String, Value>, D::Error> {
    match Reader(DEPTH).deserialize(deserializer)? {
        Value::Object(fields) => Ok(fields.into_iter().collect()),
        Value::Null => Ok(BTreeMap::new()),
        _ => Err(serde::de::Error::custom("vars is no map")),
    }
}

/// Levels of a whole object that are read: those of its variables, and more than there are around them.
const WHOLE: usize = DEPTH + 20;

/// Reads a whole object as JSON, however deep its variables are.
pub fn read_object<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Value, D::Error> {
    Reader(WHOLE).deserialize(deserializer)
}

/// Reads a value of so many levels.
#[derive(Clone, Copy)]
struct Reader(usize);

impl<'de> DeserializeSeed<'de> for Reader {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        if self.0 == 0 {
            // Passing over needs no recursion.
            return deserializer.deserialize_ignored_any(IgnoredAny).map(|_| Value::Null);
        }
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Reader {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value of JSON")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        // Written as -0.0 and stored as -0: no integer to a reader of JSON, and one to the API server.
        if value == 0.0 && value.is_sign_negative() {
            return Ok(0.into());
        }
        Ok(Number::from_f64(value).map_or(Value::Null, Value::Number))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_none<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        self.deserialize(deserializer)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut read = Vec::new();
        while let Some(item) = items.next_element_seed(Reader(self.0 - 1))? {
            read.push(item);
        }
        Ok(read.into())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Value, A::Error> {
        let mut read = Map::new();
        while let Some(key) = fields.next_key::<String>()? {
            read.insert(key, fields.next_value_seed(Reader(self.0 - 1))?);
        }
        Ok(read.into())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use crate::PlaybookRunSpec;

    fn vars(text: &str) -> Value {
        let spec = format!(r#"{{"intent": "Probe", "steps": ["probe-host"], "hosts": ["m"], "vars": {text}}}"#);
        json!(serde_json::from_str::<PlaybookRunSpec>(&spec).unwrap().vars)
    }

    #[test]
    fn variables_are_read_as_they_are_written() {
        let text = r#"{"a": [1, -1, 1.5, true, null, "x", {}, []], "b": {"c": {"d": 18446744073709551615}}}"#;
        assert_eq!(vars(text), serde_json::from_str::<Value>(text).unwrap());
        assert_eq!(vars("null"), json!({}));
    }

    #[test]
    fn what_is_nested_without_end_is_passed_over() {
        for (open, close) in [("[", "]"), ("{\"a\":", "}")] {
            let deep = format!("{{\"deep\": {}1{}}}", open.repeat(9_000), close.repeat(9_000));
            let read = vars(&deep);
            let mut value = &read["deep"];
            let mut depth = 0;
            while let Some(inner) = value.get(0).or_else(|| value.get("a")) {
                value = inner;
                depth += 1;
            }
            assert!((33..=super::DEPTH).contains(&depth), "{depth}");
        }
    }
}
