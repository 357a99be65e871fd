//! The keys that a cluster's Secrets are encrypted with in etcd: one encrypts, and while another one takes its place
//! both decrypt. Former ones stay in the Secret of the cluster's keys, since backups of before need them; machines lose
//! them.

use std::collections::BTreeMap;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use k8s_openapi::ByteString;
use plan::rotation::{Move, Ring, Stage};
use plan::settings::digest;
use rand::RngCore;

use super::error::PkiError;
use super::ring::text;

/// The key that encrypts, in the Secret.
pub(super) const KEY: &str = "encryption.key";
/// The one that will encrypt.
const NEXT: &str = "encryption-next.key";
/// The one that encrypted until now.
const FORMER: &str = "encryption-former.key";
/// What stands around the names of former ones that no machine has any more: `encryption-retired-key1.key`.
const RETIRED: (&str, &str) = ("encryption-retired-", ".key");
/// The name of every cluster's first key: values in etcd name the key that they were encrypted with.
const FIRST: &str = "key1";
/// Bytes of a key.
const LENGTH: usize = 32;
/// Characters of the digest in a key's name.
const DIGITS: usize = 10;

/// One key.
#[derive(Clone, PartialEq, Eq)]
pub struct EncryptionKey {
    /// As API servers and values in etcd name it; no other key of the cluster ever has it.
    name: String,
    /// 32 bytes in base64.
    secret: String,
}

impl EncryptionKey {
    fn make() -> String {
        let mut bytes = [0; LENGTH];
        rand::rng().fill_bytes(&mut bytes);
        STANDARD.encode(bytes)
    }

    /// A key that follows others: it is named after itself, so that no two have one name.
    fn named(secret: String) -> Self {
        let name: String = digest(&secret).chars().take(DIGITS).collect();
        Self { name: format!("key-{name}"), secret }
    }

    /// `NAME:SECRET`; of the first key the secret alone, as it stood there before there were others.
    fn text(&self) -> String {
        if self.name == FIRST { self.secret.clone() } else { format!("{}:{}", self.name, self.secret) }
    }

    /// Reads it back; one that stands there without a name has the one that is given.
    fn parse(what: &str, text: &str, unnamed: impl FnOnce(String) -> Self) -> Result<Self, PkiError> {
        let (name, secret) = match text.trim().split_once(':') {
            Some((name, secret)) => (Some(name), secret),
            None => (None, text.trim()),
        };
        let is_name =
            |name: &str| !name.is_empty() && name.chars().all(|char| char.is_ascii_alphanumeric() || char == '-');
        if !name.is_none_or(is_name) || !STANDARD.decode(secret).is_ok_and(|bytes| bytes.len() == LENGTH) {
            let problem = "it is no key of 32 bytes in base64, with its name and a colon before it if it has one";
            return Err(PkiError::Read { what: what.to_owned(), problem: problem.to_owned() });
        }
        let secret = secret.to_owned();
        Ok(match name {
            Some(name) => Self { name: name.to_owned(), secret },
            None => unnamed(secret),
        })
    }

    fn first(secret: String) -> Self {
        Self { name: FIRST.to_owned(), secret }
    }
}

/// All of a cluster.
#[derive(Clone, PartialEq, Eq)]
pub struct EncryptionKeys {
    key: EncryptionKey,
    other: Other,
    retired: Vec<EncryptionKey>,
}

#[derive(Clone, PartialEq, Eq)]
enum Other {
    None,
    Next(EncryptionKey),
    Former(EncryptionKey),
}

impl EncryptionKeys {
    /// The first key of a cluster.
    pub fn generate() -> Self {
        Self { key: EncryptionKey::first(EncryptionKey::make()), other: Other::None, retired: Vec::new() }
    }

    /// What everybody may know of them.
    pub fn seen(&self) -> Ring {
        let stage = match &self.other {
            Other::None => Stage::Settled,
            Other::Next(_) => Stage::Trust,
            Other::Former(_) => Stage::Sign,
        };
        let trusted = self.used().map(|key| digest(&key.text())).collect();
        Ring { stage, signer: digest(&self.key.text()), trusted }
    }

    /// A line for each that machines have, the one that encrypts first.
    pub fn lines(&self) -> String {
        self.used().map(EncryptionKey::text).collect::<Vec<_>>().join("\n")
    }

    fn used(&self) -> impl Iterator<Item = &EncryptionKey> {
        [&self.key].into_iter().chain(self.other())
    }

    fn other(&self) -> Option<&EncryptionKey> {
        match &self.other {
            Other::None => None,
            Other::Next(other) | Other::Former(other) => Some(other),
        }
    }

    /// Makes a move; whoever is not where it is made from stays.
    pub fn rotated(self, next: Move) -> Self {
        match (next, self.other) {
            (Move::Begin(_), Other::None) => {
                Self { other: Other::Next(EncryptionKey::named(EncryptionKey::make())), ..self }
            }
            (Move::Sign, Other::Next(next)) => Self { key: next, other: Other::Former(self.key), ..self },
            (Move::Complete, Other::Former(former)) => {
                Self { other: Other::None, retired: self.retired.into_iter().chain([former]).collect(), ..self }
            }
            (_, other) => Self { other, ..self },
        }
        .without_doubles()
    }

    /// One that is used again is not retired. The others are in the order of their names.
    fn without_doubles(mut self) -> Self {
        let used: Vec<EncryptionKey> = self.used().cloned().collect();
        self.retired.retain(|key| !used.contains(key));
        self.retired.sort_by(|one, other| one.name.cmp(&other.name));
        self
    }

    /// The keys of the Secret that hold them, and their values.
    pub fn entries(&self) -> Vec<(String, String)> {
        let other = match &self.other {
            Other::None => None,
            Other::Next(next) => Some((NEXT.to_owned(), next.text())),
            Other::Former(former) => Some((FORMER.to_owned(), former.text())),
        };
        let retired = self.retired.iter().map(|key| (format!("{}{}{}", RETIRED.0, key.name, RETIRED.1), key.text()));
        [(KEY.to_owned(), self.key.text())].into_iter().chain(other).chain(retired).collect()
    }

    /// Reads them back.
    pub fn from_data(secret: &str, data: &BTreeMap<String, ByteString>) -> Result<Self, PkiError> {
        let what = |name: &str| format!("{name} of Secret {secret}");
        let find = |name: &str| text(secret, name, data);
        let missing = || PkiError::MissingKey { secret: secret.into(), key: KEY.into() };
        let key = EncryptionKey::parse(&what(KEY), find(KEY)?.ok_or_else(missing)?, EncryptionKey::first)?;
        let retired = data.keys().filter(|name| name.starts_with(RETIRED.0) && name.ends_with(RETIRED.1));
        let retired: Vec<EncryptionKey> = retired
            .filter_map(|name| {
                let text = find(name).transpose()?;
                Some(text.and_then(|text| EncryptionKey::parse(&what(name), text, EncryptionKey::first)))
            })
            .collect::<Result<_, PkiError>>()?;
        // One that comes back is known by the name that it had.
        let known = |secret: String| {
            let before = retired.iter().find(|key| key.secret == secret).cloned();
            before.unwrap_or_else(|| EncryptionKey::named(secret))
        };
        let other = match (find(NEXT)?, find(FORMER)?) {
            (None, None) => Other::None,
            (Some(next), None) => Other::Next(EncryptionKey::parse(&what(NEXT), next, known)?),
            (None, Some(former)) => Other::Former(EncryptionKey::parse(&what(FORMER), former, EncryptionKey::first)?),
            (Some(_), Some(_)) => {
                let problem = format!(
                    "it has both {NEXT} and {FORMER}: one is rotated after the other: remove what was put there last"
                );
                return Err(PkiError::Read { what: format!("Secret {secret}"), problem });
            }
        };
        let keys = Self { key, other, retired };
        if let Some(other) = keys.other().filter(|other| other.name == keys.key.name) {
            let problem = format!("two keys have the name {}: remove what was put there last", other.name);
            return Err(PkiError::Read { what: format!("Secret {secret}"), problem });
        }
        Ok(keys.without_doubles())
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::ByteString;
    use plan::rotation::{Move, Stage};

    use super::{EncryptionKey, EncryptionKeys, FORMER, KEY, NEXT};
    use crate::pki::material::Data;

    fn data(keys: &EncryptionKeys) -> Data {
        keys.entries().into_iter().map(|(name, value)| (name, ByteString(value.into()))).collect()
    }

    fn read(data: &Data) -> Result<EncryptionKeys, String> {
        EncryptionKeys::from_data("a-pki", data).map_err(|error| error.to_string())
    }

    #[test]
    fn each_stage_decrypts_what_the_one_before_and_the_one_after_encrypt_and_former_keys_are_kept_and_not_brought() {
        let first = EncryptionKeys::generate();
        assert_eq!(first.lines(), first.key.secret, "as it was before there were others");
        let mut seen = vec![first.clone()];
        for number in [1, 2] {
            for next in [Move::Begin(number), Move::Sign, Move::Complete] {
                let keys = seen.last().unwrap().clone().rotated(next);
                assert!(read(&data(&keys)) == Ok(keys.clone()));
                assert_eq!(keys.clone().rotated(next).lines(), keys.lines(), "it is made once");
                seen.push(keys);
            }
        }
        let stages: Vec<Stage> = seen.iter().map(|keys| keys.seen().stage).collect();
        let round = [Stage::Trust, Stage::Sign, Stage::Settled];
        assert_eq!(stages, [&[Stage::Settled][..], &round, &round].concat());
        for pair in seen.windows(2) {
            let (one, other) = (pair[0].seen(), pair[1].seen());
            assert!(one.trusted.contains(&other.signer) && other.trusted.contains(&one.signer));
        }
        let last = seen.last().unwrap();
        assert!(last.lines().starts_with("key-") && !last.lines().contains('\n'), "one, with its name");
        let names: Vec<String> = data(last).into_keys().collect();
        let second = &seen[3].key.name;
        assert_eq!(names, [&format!("encryption-retired-{second}.key"), "encryption-retired-key1.key", KEY]);
        assert!(seen[1].lines().lines().count() == 2 && seen[2].lines().starts_with(second));
    }

    #[test]
    fn a_former_key_that_comes_back_has_its_name_and_one_that_a_person_brings_one_of_its_own() {
        let first = EncryptionKeys::generate();
        let rotated = [Move::Begin(1), Move::Sign, Move::Complete]
            .into_iter()
            .fold(first.clone(), |keys, next| keys.rotated(next));
        let mut back = data(&rotated);
        back.insert(NEXT.into(), back["encryption-retired-key1.key"].clone());
        let back = read(&back).unwrap();
        assert_eq!((back.seen().stage, back.other().unwrap().name.as_str()), (Stage::Trust, "key1"));
        assert_eq!(back.seen().trusted, [first.seen().signer, rotated.seen().signer].into());
        let back = back.rotated(Move::Sign).rotated(Move::Complete);
        assert!(back.key == first.key && back.retired == [rotated.key.clone()]);

        let mut own = data(&first);
        own.insert(NEXT.into(), ByteString(format!("{}\n", EncryptionKey::make()).into()));
        assert!(read(&own).unwrap().other().unwrap().name.starts_with("key-"), "not key1 once more");
    }

    #[test]
    fn what_cannot_be_used_is_told_and_not_shown() {
        let good = data(&EncryptionKeys::generate());
        let with = |name: &str, value: &str| {
            let mut data = good.clone();
            data.insert(name.into(), ByteString(value.into()));
            read(&data).map(|_| ()).unwrap_err()
        };
        for (name, value) in [(KEY, "hunter2"), (NEXT, "key-1:hunter2"), (FORMER, ":"), (KEY, "aHVudGVyMg==")] {
            let error = with(name, value);
            assert!(error.starts_with(&format!("{name} of Secret a-pki cannot be used")), "{error}");
            assert!(!error.contains("hunter") && !error.contains("aHVu"), "{error}");
        }
        let other = EncryptionKey::make();
        assert!(with(FORMER, &other).contains("two keys have the name key1"));
        let mut both = data(&EncryptionKeys::generate().rotated(Move::Begin(1)));
        both.insert(FORMER.into(), ByteString(format!("key-0:{other}").into()));
        assert!(read(&both).map(|_| ()).unwrap_err().contains("both encryption-next.key and encryption-former.key"));
    }
}
