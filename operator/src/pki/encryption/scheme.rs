//! What encrypts in etcd, with its key if it has one, and which resources.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use crds::cluster_deployment::KmsPlugin;
use crds::encryption_entry::{EncryptionEntry, EntryProvider, FIRST_KEY, FIRST_RESOURCES};
use plan::encryption::Scheme;
use plan::settings::digest;
use rand::RngCore;

use crate::pki::error::PkiError;

/// Bytes of a key.
const LENGTH: usize = 32;
/// Characters of the digest in a key's name.
const DIGITS: usize = 10;

/// A key.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct EncryptionKey {
    /// As API servers and values in etcd name it; no other key of the cluster ever has it.
    pub name: String,
    /// 32 bytes in base64.
    pub secret: String,
}

impl EncryptionKey {
    /// A secret without a name.
    pub fn make() -> String {
        let mut bytes = [0; LENGTH];
        rand::rng().fill_bytes(&mut bytes);
        STANDARD.encode(bytes)
    }

    /// A key that follows others: it is named after itself, so that no two have one name.
    pub fn named(secret: String) -> Self {
        let name: String = digest(&secret).chars().take(DIGITS).collect();
        Self { name: format!("key-{name}"), secret }
    }

    /// The first one of a cluster.
    pub fn first(secret: String) -> Self {
        Self { name: FIRST_KEY.to_owned(), secret }
    }
}

/// What encrypts.
#[derive(Clone, PartialEq, Eq)]
pub(super) enum Provider {
    /// The API server itself.
    Secretbox(EncryptionKey),
    /// A plug-in, and the number of the rotation for which it encrypted everything anew.
    Kms(KmsPlugin, i64),
}

impl Provider {
    /// By which its retired entry is named: no two have one.
    pub fn name(&self) -> String {
        match self {
            Provider::Secretbox(key) => key.name.clone(),
            Provider::Kms(plugin, _) => format!("kms-{}", plugin.name),
        }
    }

    /// Whether what the one encrypted is decrypted by the other.
    pub fn decrypts_for(&self, other: &Self) -> bool {
        match (self, other) {
            (Provider::Secretbox(key), Provider::Secretbox(other)) => key == other,
            (Provider::Kms(plugin, _), Provider::Kms(other, _)) => {
                (&plugin.name, &plugin.endpoint) == (&other.name, &other.endpoint)
            }
            _ => false,
        }
    }

    /// The one that follows for a rotation: of a plug-in itself, which has its key to itself.
    pub fn next(&self, number: i64) -> Self {
        match self {
            Provider::Secretbox(_) => Provider::made(),
            Provider::Kms(plugin, _) => Provider::Kms(plugin.clone(), number),
        }
    }

    /// As it is kept once no machine has it.
    pub fn at_rest(self) -> Self {
        match self {
            Provider::Secretbox(key) => Provider::Secretbox(key),
            Provider::Kms(plugin, _) => Provider::Kms(plugin, 0),
        }
    }

    /// One with a new key.
    pub fn made() -> Self {
        Provider::Secretbox(EncryptionKey::named(EncryptionKey::make()))
    }

    /// The plug-in.
    pub fn plugin(&self) -> Option<&KmsPlugin> {
        match self {
            Provider::Secretbox(_) => None,
            Provider::Kms(plugin, _) => Some(plugin),
        }
    }

    /// As an entry has it.
    pub fn text(&self, resources: Option<Vec<String>>) -> String {
        let provider = match self.clone() {
            Provider::Secretbox(EncryptionKey { name, secret }) => {
                EntryProvider::Secretbox { name: Some(name), secret }
            }
            Provider::Kms(plugin, written) => EntryProvider::Kms { plugin, written },
        };
        EncryptionEntry { provider, resources }.text()
    }
}

/// What encrypts, and what is encrypted.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct KeyedScheme {
    /// What encrypts.
    pub provider: Provider,
    /// Sorted.
    pub resources: Vec<String>,
}

impl KeyedScheme {
    /// The first one of a cluster.
    pub fn first(wanted: &Scheme) -> Self {
        let key = || Provider::Secretbox(EncryptionKey::first(EncryptionKey::make()));
        let provider = wanted.kms.clone().map_or_else(key, |plugin| Provider::Kms(plugin, 0));
        Self { provider, resources: wanted.resources.clone() }
    }

    /// What is wanted, with the same key if there is one.
    pub fn edited(&self, wanted: &Scheme) -> Self {
        let provider = match (&self.provider, &wanted.kms) {
            (Provider::Secretbox(key), None) => Provider::Secretbox(key.clone()),
            (Provider::Kms(..), None) => Provider::made(),
            (Provider::Kms(plugin, written), Some(wanted)) if plugin.name == wanted.name => {
                Provider::Kms(wanted.clone(), *written)
            }
            (_, Some(plugin)) => Provider::Kms(plugin.clone(), 0),
        };
        Self { provider, resources: wanted.resources.clone() }
    }

    /// What everybody may know of it.
    pub fn seen(&self) -> Scheme {
        Scheme { resources: self.resources.clone(), kms: self.provider.plugin().cloned() }
    }

    /// All that it is, as machines are given it: a key alone where nothing but Secrets is encrypted.
    pub fn line(&self) -> String {
        let is_first = self.resources == [FIRST_RESOURCES];
        self.provider.text((!is_first).then(|| self.resources.clone()))
    }

    /// Reads an entry. Of a key without a name, and of one without resources, it is said what they are.
    pub fn parse(
        what: &str,
        text: &str,
        unnamed: impl FnOnce(String) -> EncryptionKey,
        resources: &[String],
    ) -> Result<(Self, bool), PkiError> {
        let refused = || PkiError::Read {
            what: what.to_owned(),
            problem: "it is no key of 32 bytes in base64, with its name and a colon before it if it has one, and no \
                      entry that was made of such a key or of a KMS plug-in"
                .to_owned(),
        };
        let entry = EncryptionEntry::parse(text).filter(is_usable).ok_or_else(refused)?;
        let provider = match entry.provider {
            EntryProvider::Secretbox { name: Some(name), secret } => {
                Provider::Secretbox(EncryptionKey { name, secret })
            }
            EntryProvider::Secretbox { name: None, secret } => Provider::Secretbox(unnamed(secret)),
            EntryProvider::Kms { plugin, written } => Provider::Kms(plugin, written),
        };
        let has_resources = entry.resources.is_some();
        Ok((Self { provider, resources: entry.resources.unwrap_or_else(|| resources.to_vec()) }, has_resources))
    }
}

/// Whether API servers could take it.
fn is_usable(entry: &EncryptionEntry) -> bool {
    let is_name = |name: &str| !name.is_empty() && name.chars().all(|char| char.is_ascii_alphanumeric() || char == '-');
    let is_resource = |name: &String| {
        !name.is_empty() && name.chars().all(|char| char.is_ascii_alphanumeric() || "-.*".contains(char))
    };
    let provider = match &entry.provider {
        EntryProvider::Secretbox { name, secret } => {
            name.as_deref().is_none_or(is_name) && STANDARD.decode(secret).is_ok_and(|bytes| bytes.len() == LENGTH)
        }
        EntryProvider::Kms { plugin, .. } => is_name(&plugin.name) && plugin.endpoint.starts_with("unix:///"),
    };
    provider && entry.resources.as_ref().is_none_or(|all| !all.is_empty() && all.iter().all(is_resource))
}
