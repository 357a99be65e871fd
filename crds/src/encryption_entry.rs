//! What encrypts in a cluster's etcd, as an entry of the Secret `<cluster>-pki` has it, and as each line of what API
//! servers are given.

use serde::{Deserialize, Serialize};

use crate::cluster_deployment::KmsPlugin;

/// What was encrypted before there was anything else: the resources of an entry that is a key alone.
pub const FIRST_RESOURCES: &str = "secrets";
/// The name of every cluster's first key: values in etcd name the key that they were encrypted with.
pub const FIRST_KEY: &str = "key1";

/// An entry: `SECRET`, `NAME:SECRET`, or JSON with all that it says. There is no `Debug` of it.
#[derive(Clone, PartialEq, Eq)]
pub struct EncryptionEntry {
    /// What encrypts.
    pub provider: EntryProvider,
    /// The resources that it encrypts, sorted; none: the entry leaves that to the one that encrypts now.
    pub resources: Option<Vec<String>>,
}

/// What encrypts.
#[derive(Clone, PartialEq, Eq)]
pub enum EntryProvider {
    /// The API server, with a key.
    Secretbox {
        /// As API servers and values in etcd name it; none: the entry does not say.
        name: Option<String>,
        /// 32 bytes in base64.
        secret: String,
    },
    /// A plug-in.
    Kms {
        /// Which one.
        plugin: KmsPlugin,
        /// The number of the rotation for which everything was written anew, 0: of none.
        written: i64,
    },
}

/// The form of those that say more than a key.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Json {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    secretbox: Option<JsonKey>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    kms: Option<KmsPlugin>,
    #[serde(default, skip_serializing_if = "is_zero")]
    written: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    resources: Option<Vec<String>>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct JsonKey {
    name: String,
    secret: String,
}

fn is_zero(number: &i64) -> bool {
    *number == 0
}

impl EncryptionEntry {
    /// Reads one; none: it has no such form. Whether a key can be used is not looked at.
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        if !text.starts_with('{') {
            let (name, secret) = text.split_once(':').map_or((None, text), |(name, secret)| (Some(name), secret));
            let provider = EntryProvider::Secretbox { name: name.map(str::to_owned), secret: secret.to_owned() };
            return Some(Self { provider, resources: None });
        }
        let Json { secretbox, kms, written, resources } = serde_json::from_str(text).ok()?;
        let provider = match (secretbox, kms) {
            (Some(JsonKey { name, secret }), None) => EntryProvider::Secretbox { name: Some(name), secret },
            (None, Some(plugin)) => EntryProvider::Kms { plugin, written },
            _ => return None,
        };
        Some(Self { provider, resources })
    }

    /// The text that is read back: of a key that says no resources `NAME:SECRET`, or without the name of the first one.
    pub fn text(&self) -> String {
        let (secretbox, kms, written) = match (&self.provider, &self.resources) {
            (EntryProvider::Secretbox { name, secret }, None) => {
                return match name.as_deref() {
                    None | Some(FIRST_KEY) => secret.clone(),
                    Some(name) => format!("{name}:{secret}"),
                };
            }
            (EntryProvider::Secretbox { name, secret }, Some(_)) => {
                let name = name.clone().unwrap_or_else(|| FIRST_KEY.to_owned());
                (Some(JsonKey { name, secret: secret.clone() }), None, 0)
            }
            (EntryProvider::Kms { plugin, written }, _) => (None, Some(plugin.clone()), *written),
        };
        let json = Json { secretbox, kms, written, resources: self.resources.clone() };
        // Strings and numbers: nothing of it can fail.
        serde_json::to_string(&json).unwrap_or_default()
    }
}

/// Whether a list of resources has one, by its name or by a wildcard; both may be wildcards.
pub fn covers(resources: &[String], resource: &str) -> bool {
    let group = resource.split_once('.').map(|(_, group)| format!("*.{group}"));
    resources.iter().any(|known| known == resource || Some(known) == group.as_ref())
}

/// The resources sorted, without those that a wildcard of them has.
pub fn canonical(resources: &[String]) -> Vec<String> {
    let is_own = |resource: &&String| {
        resource.starts_with('*') || {
            let others: Vec<String> = resources.iter().filter(|other| other != resource).cloned().collect();
            !covers(&others, resource)
        }
    };
    let mut kept: Vec<String> = resources.iter().filter(is_own).cloned().collect();
    kept.sort();
    kept.dedup();
    kept
}

#[cfg(test)]
mod tests {
    use super::{EncryptionEntry, EntryProvider, canonical, covers};

    fn read(text: &str) -> Option<(String, bool)> {
        let entry = EncryptionEntry::parse(text)?;
        Some((entry.text(), matches!(entry.provider, EntryProvider::Kms { .. })))
    }

    #[test]
    fn each_form_is_read_and_written_as_it_was() {
        let boxed = r#"{"secretbox":{"name":"key1","secret":"QUFB"},"resources":["configmaps","secrets"]}"#;
        let kms = r#"{"kms":{"name":"vault","endpoint":"unix:///run/kms/a.sock","timeoutSeconds":3},"written":2}"#;
        for (text, is_kms) in [("QUFB", false), ("key-1:QUFB", false), (boxed, false), (kms, true)] {
            assert_eq!(read(text), Some((text.to_owned(), is_kms)));
        }
        assert_eq!(read("key1:QUFB\n"), Some(("QUFB".into(), false)), "the first key has no name there");
        for text in ["{}", "{", r#"{"secretbox":{"name":"a","secret":"b"},"more":1}"#] {
            assert_eq!(read(text), None, "{text}");
        }
    }

    #[test]
    fn a_wildcard_has_the_resources_of_its_group() {
        let list = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        let some = list(&["secrets", "*.apps", "a.example.com"]);
        for (resource, is_covered) in [
            ("secrets", true),
            ("configmaps", false),
            ("deployments.apps", true),
            ("*.apps", true),
            ("a.example.com", true),
            ("*.example.com", false),
            ("b.example.com", false),
        ] {
            assert_eq!(covers(&some, resource), is_covered, "{resource}");
        }
        let all = list(&["secrets", "deployments.apps", "*.apps", "configmaps"]);
        assert_eq!(canonical(&all), list(&["*.apps", "configmaps", "secrets"]));
    }
}
