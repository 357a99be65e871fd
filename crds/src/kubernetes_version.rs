//! KubernetesVersion: the version of Kubernetes that is wanted, or that runs bring. One grammar for every field that
//! holds one, in the schema and in the parser.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The grammar. What the parser accepts is the same: an object that the schema admits can be decoded.
const PATTERN: &str = r"^1\.(0|[1-9][0-9]?)\.(0|[1-9][0-9]?)$";

/// A version of Kubernetes, written `1.MINOR.PATCH` without `v`, e.g. `1.35.4`. MINOR and PATCH are numbers from 0 to
/// 99 without leading zeros; the major is always 1. Versions are ordered by number, 1.9.0 before 1.10.0.
///
/// Programs report versions as they like (`1.35.4-eks`): what a kubelet or an API server reports stays text, and is
/// compared as `reported.parse() == Ok(version)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KubernetesVersion {
    // The order of the fields is the order of versions.
    minor: u8,
    patch: u8,
}

/// A text that is no [`KubernetesVersion`]; the first 64 characters of it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} is no Kubernetes version: it is written 1.MINOR.PATCH without v, with numbers from 0 to 99 without leading zeros, e.g. 1.35.4"
)]
pub struct InvalidKubernetesVersion(String);

impl KubernetesVersion {
    /// The number after `1.`.
    pub fn minor(self) -> u8 {
        self.minor
    }
}

impl FromStr for KubernetesVersion {
    type Err = InvalidKubernetesVersion;

    fn from_str(text: &str) -> Result<Self, InvalidKubernetesVersion> {
        let numbers = text.strip_prefix("1.").and_then(|rest| rest.split_once('.'));
        numbers
            .and_then(|(minor, patch)| Some(Self { minor: number(minor)?, patch: number(patch)? }))
            .ok_or_else(|| InvalidKubernetesVersion(text.chars().take(64).collect()))
    }
}

/// A number from 0 to 99 as it is written; `05` and `+5` are other texts, and would be written as `5`.
fn number(text: &str) -> Option<u8> {
    match text.as_bytes() {
        [ones @ b'0'..=b'9'] => Some(ones - b'0'),
        [tens @ b'1'..=b'9', ones @ b'0'..=b'9'] => Some((tens - b'0') * 10 + (ones - b'0')),
        _ => None,
    }
}

impl fmt::Display for KubernetesVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "1.{}.{}", self.minor, self.patch)
    }
}

impl Serialize for KubernetesVersion {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for KubernetesVersion {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}

impl JsonSchema for KubernetesVersion {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "KubernetesVersion".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        // The pattern bounds the length, too; the API server estimates the cost of CEL rules by the length alone.
        json_schema!({ "type": "string", "minLength": 5, "maxLength": 16, "pattern": PATTERN })
    }
}

#[cfg(test)]
mod tests {
    use regex::Regex;
    use schemars::schema_for;
    use serde_json::json;

    use super::KubernetesVersion;

    fn version(text: &str) -> KubernetesVersion {
        text.parse().unwrap()
    }

    /// Every version there is.
    fn all() -> impl Iterator<Item = KubernetesVersion> {
        (0..=99).flat_map(|minor| (0..=99).map(move |patch| KubernetesVersion { minor, patch }))
    }

    /// Whether the schema of the definitions admits the text.
    fn admits(schema: &serde_json::Value, pattern: &Regex, text: &str) -> bool {
        let bound = |name: &str| schema[name].as_u64().and_then(|bound| usize::try_from(bound).ok()).unwrap();
        (bound("minLength")..=bound("maxLength")).contains(&text.chars().count()) && pattern.is_match(text)
    }

    #[test]
    fn the_schema_admits_what_the_parser_accepts_and_nothing_else() {
        let schema = schema_for!(KubernetesVersion).to_value();
        let pattern = Regex::new(schema["pattern"].as_str().unwrap()).unwrap();
        let check = |text: &str, expected: bool| {
            assert_eq!(text.parse::<KubernetesVersion>().is_ok(), expected, "the parser of {text:?}");
            assert_eq!(admits(&schema, &pattern, text), expected, "the schema of {text:?}");
        };
        check("1.35.4", true);
        check("1.0.0", true);
        check("1.9.10", true);
        check("1.99.99", true);
        // No numbers as they are written.
        check("1.35.04", false);
        check("1.05.4", false);
        check("1.35.00", false);
        check("1.35.100", false);
        check("1.100.0", false);
        check("1.35.+4", false);
        check("1.35.-4", false);
        check("1.35.x", false);
        check("1.35.٤", false);
        // Another major, or none.
        check("0.35.4", false);
        check("2.35.4", false);
        check("01.35.4", false);
        check("11.35.4", false);
        check("35.4", false);
        // More or less than three numbers.
        check("", false);
        check("1", false);
        check("1.35", false);
        check("1.35.", false);
        check("1..4", false);
        check("1.35.4.1", false);
        check("1.35.4.", false);
        // Something around it.
        check("v1.35.4", false);
        check("1.35.4-rc.1", false);
        check("1.35.4-eks", false);
        check("1.35.4+k3s1", false);
        check(" 1.35.4", false);
        check("1.35.4 ", false);
        check("1.35.4\n", false);
        check("1,35,4", false);
        check("latest", false);
        all().for_each(|version| check(&version.to_string(), true));
    }

    #[test]
    fn a_version_is_read_as_it_is_written() {
        for version in all() {
            assert_eq!(version.to_string().parse(), Ok(version));
        }
        let check = |text: &str| {
            assert_eq!(version(text).to_string(), text);
            let read: KubernetesVersion = serde_json::from_value(json!(text)).unwrap();
            assert_eq!((read, json!(read)), (version(text), json!(text)));
        };
        check("1.35.4");
        check("1.0.0");
        check("1.9.10");
        check("1.99.99");
    }

    #[test]
    fn versions_are_ordered_by_number() {
        let check = |mut given: Vec<&str>, expected: &str| {
            given.sort_by_key(|text| version(text));
            assert_eq!(given.join(" < "), expected);
        };
        check(vec!["1.10.0", "1.9.0"], "1.9.0 < 1.10.0");
        check(vec!["1.35.10", "1.35.9"], "1.35.9 < 1.35.10");
        check(vec!["1.36.0", "1.35.99"], "1.35.99 < 1.36.0");
        check(vec!["1.35.4", "1.4.35"], "1.4.35 < 1.35.4");
    }

    #[test]
    fn an_error_says_what_was_given_what_is_allowed_and_an_example() {
        let check = |text: &str, expected: &str| {
            let error = serde_json::from_value::<KubernetesVersion>(json!(text)).unwrap_err();
            let allowed = "it is written 1.MINOR.PATCH without v, with numbers from 0 to 99 without leading zeros";
            assert_eq!(error.to_string(), format!("{expected} is no Kubernetes version: {allowed}, e.g. 1.35.4"));
        };
        check("v1.35.4", "\"v1.35.4\"");
        check("", "\"\"");
        check("1.35.4\n", "\"1.35.4\\n\"");
        check(&"9".repeat(500), &format!("\"{}\"", "9".repeat(64)));
    }
}
