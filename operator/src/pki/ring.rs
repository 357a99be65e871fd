//! An authority, or the key of service accounts, while another one takes its place: first the next one is trusted
//! beside the one that signs, then it signs and the former one is trusted still.

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::ByteString;
use plan::rotation::{Move, Ring, Stage};
use plan::settings::digest;

use super::authority::Authority;
use super::error::PkiError;

/// What signs, and what of it everybody may know: a certificate or a public key, PEM.
pub trait Signer: Sized + Clone + PartialEq {
    /// What follows the name of its public half in the Secret: `crt`.
    const PUBLIC: &'static str;

    /// Makes another one.
    fn make(name: &str, now: Timestamp) -> Result<Self, PkiError>;
    /// Reads one back.
    fn read(what: &str, public: &str, key: &str) -> Result<Self, PkiError>;
    /// Its public half.
    fn public(&self) -> &str;
    /// Its private half.
    fn private(&self) -> &str;
}

/// A signer with the one that follows it or the one that it follows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyRing<S> {
    signer: S,
    other: Other<S>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Other<S> {
    None,
    Next(S),
    /// Its public half.
    Former(String),
}

impl<S: Signer> KeyRing<S> {
    /// One that is alone.
    pub fn new(signer: S) -> Self {
        Self { signer, other: Other::None }
    }

    /// The one that signs.
    pub fn signer(&self) -> &S {
        &self.signer
    }

    /// The one that will sign.
    pub fn next(&self) -> Option<&S> {
        match &self.other {
            Other::Next(next) => Some(next),
            Other::None | Other::Former(_) => None,
        }
    }

    /// The public halves of all that are trusted, PEM, the signer's first.
    pub fn trusted(&self) -> String {
        let with_end = |pem: &str| format!("{}\n", pem.trim_end());
        match self.other() {
            None => self.signer.public().to_owned(),
            Some(other) => with_end(self.signer.public()) + &with_end(other),
        }
    }

    fn other(&self) -> Option<&str> {
        match &self.other {
            Other::None => None,
            Other::Next(next) => Some(next.public()),
            Other::Former(former) => Some(former),
        }
    }

    /// The public halves of all that are trusted, each for itself.
    pub fn certificates(&self) -> impl Iterator<Item = &str> {
        [self.signer.public()].into_iter().chain(self.other())
    }

    /// The public half of the one that signed until now.
    pub fn former(&self) -> Option<&str> {
        match &self.other {
            Other::Former(former) => Some(former),
            Other::None | Other::Next(_) => None,
        }
    }

    /// The same with this one to follow; one that is followed already, or that another one follows still, stays.
    pub fn followed_by(self, next: S) -> Self {
        match self.other {
            Other::None => Self { signer: self.signer, other: Other::Next(next) },
            other => Self { other, signer: self.signer },
        }
    }

    /// What everybody may know of it.
    pub fn seen(&self) -> Ring {
        let fingerprint = |public: &str| digest(&public.trim());
        let stage = match &self.other {
            Other::None => Stage::Settled,
            Other::Next(_) => Stage::Trust,
            Other::Former(_) => Stage::Sign,
        };
        let signer = fingerprint(self.signer.public());
        let trusted = self.other().map(fingerprint).into_iter().chain([signer.clone()]).collect();
        Ring { stage, signer, trusted }
    }

    /// Makes a move; whoever is not where it is made from stays. `name`: of the authority, without a number.
    pub fn rotated(self, next: Move, name: &str, now: Timestamp) -> Result<Self, PkiError> {
        Ok(match (next, self.other) {
            (Move::Begin(number), Other::None) => {
                let next = S::make(&format!("{name}-{number}"), now)?;
                Self { signer: self.signer, other: Other::Next(next) }
            }
            (Move::Sign, Other::Next(next)) => {
                Self { other: Other::Former(self.signer.public().to_owned()), signer: next }
            }
            (Move::Complete, Other::Former(_)) => Self::new(self.signer),
            (_, other) => Self { other, signer: self.signer },
        })
    }

    /// The keys of the Secret that hold it, where `stem` is `ca`, and their values.
    pub fn entries(&self, stem: &str) -> Vec<(String, String)> {
        let pair = |stem: &str, signer: &S| {
            [
                (format!("{stem}.{}", S::PUBLIC), signer.public().to_owned()),
                (format!("{stem}.key"), signer.private().to_owned()),
            ]
        };
        let other = match &self.other {
            Other::None => Vec::new(),
            Other::Next(next) => pair(&format!("{stem}-next"), next).to_vec(),
            Other::Former(former) => vec![(format!("{stem}-former.{}", S::PUBLIC), former.clone())],
        };
        pair(stem, &self.signer).into_iter().chain(other).collect()
    }

    /// Reads it back.
    pub fn from_data(secret: &str, stem: &str, data: &BTreeMap<String, ByteString>) -> Result<Self, PkiError> {
        let find = |name: &str| text(secret, name, data);
        let get = |name: &str| {
            find(name)?.ok_or_else(|| PkiError::MissingKey { secret: secret.into(), key: name.to_owned() })
        };
        let read = |stem: &str| {
            let public = format!("{stem}.{}", S::PUBLIC);
            S::read(&format!("{public} of Secret {secret}"), get(&public)?, get(&format!("{stem}.key"))?)
        };
        let (next, former) = (format!("{stem}-next"), format!("{stem}-former.{}", S::PUBLIC));
        let other = match (find(&format!("{next}.{}", S::PUBLIC))?, find(&former)?) {
            (None, None) => Other::None,
            (Some(_), None) => Other::Next(read(&next)?),
            (None, Some(pem)) => Other::Former(pem.to_owned()),
            (Some(_), Some(_)) => {
                return Err(PkiError::Read {
                    what: format!("Secret {secret}"),
                    problem: format!(
                        "it has both {next}.{} and {former}: one is rotated after the other: remove what was put there last",
                        S::PUBLIC
                    ),
                });
            }
        };
        Ok(Self { signer: read(stem)?, other })
    }
}

/// A value of the Secret; none: it has none.
pub(super) fn text<'a>(
    secret: &str,
    name: &str,
    data: &'a BTreeMap<String, ByteString>,
) -> Result<Option<&'a str>, PkiError> {
    let value = data.get(name).filter(|value| !value.0.is_empty());
    value
        .map(|value| std::str::from_utf8(&value.0))
        .transpose()
        .map_err(|error| PkiError::Read { what: format!("{name} of Secret {secret}"), problem: error.to_string() })
}

impl Signer for Authority {
    const PUBLIC: &'static str = "crt";

    fn make(name: &str, now: Timestamp) -> Result<Self, PkiError> {
        Self::generate(name, now)
    }

    fn read(what: &str, public: &str, key: &str) -> Result<Self, PkiError> {
        Self::parse(what, public, key)
    }

    fn public(&self) -> &str {
        self.certificate()
    }

    fn private(&self) -> &str {
        self.key()
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use k8s_openapi::ByteString;
    use plan::rotation::{Move, Stage};

    use super::{KeyRing, Signer};
    use crate::pki::authority::Authority;
    use crate::pki::material::Data;

    fn now() -> Timestamp {
        "2026-11-21T00:00:00Z".parse().unwrap()
    }

    fn data(ring: &KeyRing<Authority>) -> Data {
        ring.entries("ca").into_iter().map(|(name, value)| (name, ByteString(value.into()))).collect()
    }

    #[test]
    fn each_stage_trusts_what_the_one_before_and_the_one_after_sign_with_and_is_read_back() {
        let ring = KeyRing::new(Authority::make("kubernetes", now()).unwrap());
        let mut seen = vec![ring.clone()];
        for next in [Move::Begin(1), Move::Sign, Move::Complete] {
            let ring = seen.last().unwrap().clone().rotated(next, "kubernetes", now()).unwrap();
            assert_eq!(KeyRing::from_data("a-pki", "ca", &data(&ring)).unwrap(), ring);
            seen.push(ring);
        }
        let stages: Vec<Stage> = seen.iter().map(|ring| ring.seen().stage).collect();
        assert_eq!(stages, [Stage::Settled, Stage::Trust, Stage::Sign, Stage::Settled]);
        for pair in seen.windows(2) {
            let (one, other) = (pair[0].seen(), pair[1].seen());
            assert!(one.trusted.contains(&other.signer) && other.trusted.contains(&one.signer));
        }
        let certificates = |ring: &KeyRing<Authority>| ring.trusted().matches("BEGIN CERTIFICATE").count();
        assert_eq!(seen.iter().map(certificates).collect::<Vec<_>>(), [1, 2, 2, 1]);
        assert!(seen.iter().all(|ring| ring.trusted().starts_with(ring.signer().public().trim_end())));
        assert_ne!(seen[0].signer(), seen[3].signer());
        assert!(!data(&seen[2]).contains_key("ca-former.key"), "nobody signs with the former one any more");
    }

    #[test]
    fn a_move_from_elsewhere_changes_nothing() {
        let ring = KeyRing::new(Authority::make("kubernetes", now()).unwrap());
        for next in [Move::Sign, Move::Complete] {
            assert_eq!(ring.clone().rotated(next, "kubernetes", now()).unwrap(), ring);
        }
        let trust = ring.rotated(Move::Begin(1), "kubernetes", now()).unwrap();
        for next in [Move::Begin(2), Move::Complete] {
            assert_eq!(trust.clone().rotated(next, "kubernetes", now()).unwrap(), trust);
        }
    }

    #[test]
    fn two_at_once_and_a_next_one_without_its_key_are_refused_in_words() {
        let ring = KeyRing::new(Authority::make("kubernetes", now()).unwrap());
        let trust = ring.rotated(Move::Begin(1), "kubernetes", now()).unwrap();
        let refused = |change: &dyn Fn(&mut Data)| {
            let mut data = data(&trust);
            change(&mut data);
            KeyRing::<Authority>::from_data("a-pki", "ca", &data).unwrap_err().to_string()
        };
        let both = refused(&|data| drop(data.insert("ca-former.crt".into(), data["ca.crt"].clone())));
        assert!(both.contains("both ca-next.crt and ca-former.crt"), "{both}");
        let keyless = refused(&|data| drop(data.remove("ca-next.key")));
        assert!(keyless.contains("has no key ca-next.key"), "{keyless}");
        let other = refused(&|data| drop(data.insert("ca-next.key".into(), data["ca.key"].clone())));
        assert!(other.contains("do not belong together"), "{other}");
    }
}
