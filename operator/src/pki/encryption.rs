//! What encrypts in a cluster's etcd: one encrypts, and while another one takes its place both decrypt. Former keys
//! stay in the Secret of the cluster's keys, since backups of before need them; machines lose them.

mod configuration;
mod scheme;

use std::collections::BTreeMap;

use k8s_openapi::ByteString;
use plan::encryption::{Scheme, Succession};
use plan::rotation::{Move, Ring, Stage};
use plan::settings::digest;

use super::error::PkiError;
use super::ring::text;
use scheme::{EncryptionKey, KeyedScheme, Provider};

/// What encrypts, in the Secret.
pub(super) const KEY: &str = "encryption.key";
/// What will encrypt.
const NEXT: &str = "encryption-next.key";
/// What encrypted until now.
const FORMER: &str = "encryption-former.key";
/// What stands around the names of former ones that no machine has any more: `encryption-retired-key1.key`.
const RETIRED: (&str, &str) = ("encryption-retired-", ".key");

/// All of a cluster.
#[derive(Clone, PartialEq, Eq)]
pub struct EncryptionKeys {
    key: KeyedScheme,
    other: Other,
    retired: Vec<Provider>,
}

#[derive(Clone, PartialEq, Eq)]
enum Other {
    None,
    /// What will encrypt, and whether it does since the spec was edited.
    Next(KeyedScheme, bool),
    Former(KeyedScheme),
}

impl EncryptionKeys {
    /// What a cluster begins with.
    pub fn generate(wanted: &Scheme) -> Self {
        Self { key: KeyedScheme::first(wanted), other: Other::None, retired: Vec::new() }
    }

    /// What everybody may know of them.
    pub fn seen(&self) -> Ring {
        let stage = match &self.other {
            Other::None => Stage::Settled,
            Other::Next(..) => Stage::Trust,
            Other::Former(_) => Stage::Sign,
        };
        let trusted = self.used().map(|scheme| digest(&scheme.line())).collect();
        Ring { stage, signer: digest(&self.key.line()), trusted }
    }

    /// What is encrypted and by what, without keys.
    pub fn succession(&self) -> Succession {
        let (from, to, is_edit) = match &self.other {
            Other::None => (&self.key, &self.key, false),
            Other::Next(next, is_edit) => (&self.key, next, *is_edit),
            Other::Former(former) => (former, &self.key, false),
        };
        let providers = self.used().map(|scheme| &scheme.provider).chain(&self.retired);
        let plugins = providers.filter_map(Provider::plugin).cloned().collect();
        Succession { from: from.seen(), to: to.seen(), is_edit, plugins }
    }

    /// A line for each that machines have, the one that encrypts first.
    pub fn lines(&self) -> String {
        self.used().map(KeyedScheme::line).collect::<Vec<_>>().join("\n")
    }

    fn used(&self) -> impl Iterator<Item = &KeyedScheme> {
        [&self.key].into_iter().chain(self.other())
    }

    fn other(&self) -> Option<&KeyedScheme> {
        match &self.other {
            Other::None => None,
            Other::Next(other, _) | Other::Former(other) => Some(other),
        }
    }

    /// Makes a move, to what is wanted where the spec is followed; whoever is not where it is made from stays.
    pub fn rotated(self, next: Move, wanted: &Scheme) -> Self {
        match (next, self.other) {
            (Move::Begin(number), Other::None) => {
                let next = KeyedScheme { provider: self.key.provider.next(number), ..self.key.clone() };
                Self { other: Other::Next(next, false), ..self }
            }
            (Move::Adopt, Other::None) if self.key.seen() != *wanted => {
                Self { other: Other::Next(self.key.edited(wanted), true), ..self }
            }
            (Move::Withdraw, Other::Next(_, true)) => Self { other: Other::None, ..self },
            (Move::Sign, Other::Next(next, _)) => Self { key: next, other: Other::Former(self.key), ..self },
            (Move::Complete, Other::Former(former)) => {
                let retired = self.retired.into_iter().chain([former.provider.at_rest()]).collect();
                Self { other: Other::None, retired, ..self }
            }
            (_, other) => Self { other, ..self },
        }
        .without_doubles()
    }

    /// One that is used again is not retired. The others are in the order of their names.
    fn without_doubles(mut self) -> Self {
        let used: Vec<Provider> = self.used().map(|scheme| scheme.provider.clone()).collect();
        self.retired.retain(|former| !used.iter().any(|provider| provider.decrypts_for(former)));
        self.retired.sort_by_key(Provider::name);
        self.retired.dedup_by_key(|former| former.name());
        self
    }

    /// The keys of the Secret that hold them, and their values. Those beside the one that encrypts say which resources
    /// they are of where these are others; the next one always where that is since the spec was edited.
    pub fn entries(&self) -> Vec<(String, String)> {
        let text = |scheme: &KeyedScheme, says: bool| scheme.provider.text(says.then(|| scheme.resources.clone()));
        let other = match &self.other {
            Other::None => None,
            Other::Next(next, is_edit) => Some((NEXT.to_owned(), text(next, *is_edit))),
            Other::Former(former) => Some((FORMER.to_owned(), text(former, former.resources != self.key.resources))),
        };
        let retired = self
            .retired
            .iter()
            .map(|provider| (format!("{}{}{}", RETIRED.0, provider.name(), RETIRED.1), provider.text(None)));
        [(KEY.to_owned(), self.key.line())].into_iter().chain(other).chain(retired).collect()
    }

    /// Reads them back.
    pub fn from_data(secret: &str, data: &BTreeMap<String, ByteString>) -> Result<Self, PkiError> {
        let what = |name: &str| format!("{name} of Secret {secret}");
        let find = |name: &str| text(secret, name, data);
        let missing = || PkiError::MissingKey { secret: secret.into(), key: KEY.into() };
        let first = Scheme::default().resources;
        let (key, _) = KeyedScheme::parse(&what(KEY), find(KEY)?.ok_or_else(missing)?, EncryptionKey::first, &first)?;
        let retired = retired(secret, data)?;
        // One that comes back is known by the name that it had.
        let known = |secret: String| {
            let before = retired.iter().find_map(|former| match former {
                Provider::Secretbox(key) if key.secret == secret => Some(key.clone()),
                Provider::Secretbox(_) | Provider::Kms(..) => None,
            });
            before.unwrap_or_else(|| EncryptionKey::named(secret))
        };
        let other = match (find(NEXT)?, find(FORMER)?) {
            (None, None) => Other::None,
            (Some(next), None) => {
                let (next, is_edit) = KeyedScheme::parse(&what(NEXT), next, known, &key.resources)?;
                Other::Next(next, is_edit)
            }
            (None, Some(former)) => {
                Other::Former(KeyedScheme::parse(&what(FORMER), former, EncryptionKey::first, &key.resources)?.0)
            }
            (Some(_), Some(_)) => {
                let problem = format!(
                    "it has both {NEXT} and {FORMER}: one is rotated after the other: remove what was put there last"
                );
                return Err(PkiError::Read { what: format!("Secret {secret}"), problem });
            }
        };
        let keys = Self { key, other, retired };
        let clashes = |other: &&KeyedScheme| {
            let (one, other) = (&keys.key.provider, &other.provider);
            one.name() == other.name() && !one.decrypts_for(other)
        };
        if let Some(other) = keys.other().filter(clashes) {
            let problem = format!("two keys have the name {}: remove what was put there last", other.provider.name());
            return Err(PkiError::Read { what: format!("Secret {secret}"), problem });
        }
        Ok(keys.without_doubles())
    }
}

/// Those that no machine has any more.
fn retired(secret: &str, data: &BTreeMap<String, ByteString>) -> Result<Vec<Provider>, PkiError> {
    let names = data.keys().filter(|name| name.starts_with(RETIRED.0) && name.ends_with(RETIRED.1));
    let read = |name: &String| {
        let found = text(secret, name, data).transpose()?;
        Some(found.and_then(|text| {
            let what = format!("{name} of Secret {secret}");
            KeyedScheme::parse(&what, text, EncryptionKey::first, &[]).map(|(scheme, _)| scheme.provider)
        }))
    };
    names.filter_map(read).collect()
}

#[cfg(test)]
mod tests;
