//! ComponentVersion: the version of a component that is wanted. One grammar in the schema and in the parser.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The grammar. What the parser accepts is the same: an object that the schema admits can be decoded.
const PATTERN: &str =
    r"^(0|[1-9][0-9]{0,4})\.(0|[1-9][0-9]{0,4})\.(0|[1-9][0-9]{0,4})(-[0-9A-Za-z]{1,10}([.-][0-9A-Za-z]{1,10}){0,3})?$";
/// Characters of the longest one, and as many as are shown of what is none.
const LONGEST: usize = 64;

/// A version of a component, written `MAJOR.MINOR.PATCH` without `v`, e.g. `3.6.16` or `2.3.0-rc.1`. Numbers are from 0
/// to 99999 without leading zeros; up to four words of letters and digits, of at most 10 characters each, may follow,
/// the first after a dash, the others after a dot or a dash.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ComponentVersion {
    text: String,
    minor: (u32, u32),
}

/// A text that is no [`ComponentVersion`]; the first 64 characters of it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no version of a component: it is written MAJOR.MINOR.PATCH without v, e.g. 3.6.16")]
pub struct InvalidComponentVersion(String);

impl ComponentVersion {
    /// As it is written.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Major and minor: `(3, 6)` of 3.6.16.
    pub fn minor(&self) -> (u32, u32) {
        self.minor
    }

    /// Whether a version of the artifact bundle is this one: tags of images begin with `v`.
    pub fn is(&self, reported: &str) -> bool {
        reported.trim_start_matches('v') == self.text
    }
}

impl FromStr for ComponentVersion {
    type Err = InvalidComponentVersion;

    fn from_str(text: &str) -> Result<Self, InvalidComponentVersion> {
        parse(text).ok_or_else(|| InvalidComponentVersion(text.chars().take(LONGEST).collect()))
    }
}

fn parse(text: &str) -> Option<ComponentVersion> {
    let (core, pre) = text.split_once('-').map_or((text, None), |(core, pre)| (core, Some(pre)));
    let mut numbers = core.split('.').map(number);
    let (major, minor, _patch) = (numbers.next()??, numbers.next()??, numbers.next()??);
    let is_word = |word: &str| (1..=10).contains(&word.len()) && word.chars().all(|c| c.is_ascii_alphanumeric());
    let is_pre = pre.is_none_or(|pre| pre.split(['.', '-']).all(is_word) && pre.split(['.', '-']).count() <= 4);
    let is_whole = numbers.next().is_none() && is_pre;
    is_whole.then(|| ComponentVersion { text: text.to_owned(), minor: (major, minor) })
}

/// A number from 0 to 99999 as it is written.
fn number(text: &str) -> Option<u32> {
    let is_plain =
        text.len() <= 5 && text.bytes().all(|byte| byte.is_ascii_digit()) && (text == "0" || !text.starts_with('0'));
    text.parse().ok().filter(|_| is_plain)
}

impl fmt::Display for ComponentVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Serialize for ComponentVersion {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.text)
    }
}

impl<'de> Deserialize<'de> for ComponentVersion {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}

impl JsonSchema for ComponentVersion {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "ComponentVersion".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "minLength": 5, "maxLength": LONGEST, "pattern": PATTERN })
    }
}

#[cfg(test)]
mod tests {
    use regex::Regex;

    use super::{ComponentVersion, LONGEST, PATTERN};

    #[test]
    fn the_schema_admits_what_the_parser_accepts_and_nothing_else() {
        let pattern = Regex::new(PATTERN).unwrap();
        let check = |text: &str, expected: bool| {
            assert_eq!(text.parse::<ComponentVersion>().is_ok(), expected, "the parser of {text:?}");
            assert_eq!(pattern.is_match(text) && text.len() <= LONGEST, expected, "the schema of {text:?}");
        };
        for text in ["3.6.16", "0.0.0", "2.3.0-rc.1", "1.2.3-alpha-2.x", "99999.1.1", "1.0.0-0"] {
            check(text, true);
        }
        for text in ["", "v3.6.16", "3.6", "3.6.16.1", "3.06.1", "3.6.x", "100000.1.1", "3.6.16-", "3.6.16-a..b"] {
            check(text, false);
        }
        for text in
            ["3.6.16-é", "3.6.+1", " 3.6.1", "3.6.1\n", "3.6.1+a", "latest", &format!("1.0.0-{}", "a".repeat(60))]
        {
            check(text, false);
        }
    }

    #[test]
    fn a_tag_of_an_image_may_begin_with_v_and_minors_are_numbers() {
        let version: ComponentVersion = "1.14.7".parse().unwrap();
        assert!(version.is("v1.14.7") && version.is("1.14.7") && !version.is("v1.14.70"));
        let minor = |text: &str| text.parse::<ComponentVersion>().unwrap().minor();
        assert!(minor("3.10.0") > minor("3.9.9") && minor("3.6.0-rc.1") == minor("3.6.16"));
    }
}
