//! One authority or key of a PKI, with what follows it or what it follows.

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::ByteString;
use plan::encryption::{Scheme, Succession};
use plan::pki::{Halves, PkiRow};
use plan::rotation::{Move, Ring, Subject};

use super::authority::Authority;
use super::encryption::{self, EncryptionKeys};
use super::error::PkiError;
use super::ring::{KeyRing, Signer};
use super::service_account::ServiceAccountKey;

/// What there is of one row of a PKI's table.
#[derive(Clone, PartialEq, Eq)]
pub(super) enum Entry {
    Authority(KeyRing<Authority>),
    ServiceAccountKey(KeyRing<ServiceAccountKey>),
    EncryptionKey(EncryptionKeys),
}

impl Entry {
    /// Makes one; of a key that encrypts, as it is wanted.
    pub fn make(row: &PkiRow, wanted: &Scheme, now: Timestamp) -> Result<Self, PkiError> {
        let name = row.common_name.unwrap_or_default();
        Ok(match row.subject {
            Subject::Ca | Subject::EtcdCa | Subject::FrontProxyCa => {
                Self::Authority(KeyRing::new(Authority::make(name, now)?))
            }
            Subject::ServiceAccountKey => Self::ServiceAccountKey(KeyRing::new(ServiceAccountKey::make(name, now)?)),
            Subject::EncryptionKey => Self::EncryptionKey(EncryptionKeys::generate(wanted)),
        })
    }

    /// Reads one back from the data of a Secret.
    pub fn read(secret: &str, subject: Subject, data: &BTreeMap<String, ByteString>) -> Result<Self, PkiError> {
        let stem = subject.stem();
        Ok(match subject {
            Subject::Ca | Subject::EtcdCa | Subject::FrontProxyCa => {
                Self::Authority(KeyRing::from_data(secret, stem, data)?)
            }
            Subject::ServiceAccountKey => Self::ServiceAccountKey(KeyRing::from_data(secret, stem, data)?),
            Subject::EncryptionKey => Self::EncryptionKey(EncryptionKeys::from_data(secret, data)?),
        })
    }

    /// Its entries in a Secret.
    pub fn data(&self, subject: Subject) -> Vec<(String, String)> {
        match self {
            Self::Authority(ring) => ring.entries(subject.stem()),
            Self::ServiceAccountKey(ring) => ring.entries(subject.stem()),
            Self::EncryptionKey(keys) => keys.entries(),
        }
    }

    /// The same after a move of a rotation; of a key that encrypts, as it is wanted in the end.
    pub fn rotated(self, row: &PkiRow, next: Move, wanted: &Scheme, now: Timestamp) -> Result<Self, PkiError> {
        let name = row.common_name.unwrap_or_default();
        Ok(match self {
            Self::Authority(ring) => Self::Authority(ring.rotated(next, name, now)?),
            Self::ServiceAccountKey(ring) => Self::ServiceAccountKey(ring.rotated(next, name, now)?),
            Self::EncryptionKey(keys) => Self::EncryptionKey(keys.rotated(next, wanted)),
        })
    }

    /// What everybody may know of it.
    pub fn seen(&self) -> Ring {
        match self {
            Self::Authority(ring) => ring.seen(),
            Self::ServiceAccountKey(ring) => ring.seen(),
            Self::EncryptionKey(keys) => keys.seen(),
        }
    }

    /// What is encrypted, and by what; none: it encrypts nothing.
    pub fn succession(&self) -> Option<Succession> {
        match self {
            Self::EncryptionKey(keys) => Some(keys.succession()),
            Self::Authority(_) | Self::ServiceAccountKey(_) => None,
        }
    }

    /// The files that machines get of it.
    pub fn files(&self, subject: Subject, halves: Halves) -> Vec<(String, String)> {
        match self {
            Self::Authority(ring) => halves_of(ring, subject, halves),
            Self::ServiceAccountKey(ring) => halves_of(ring, subject, halves),
            Self::EncryptionKey(keys) if halves == Halves::Both => vec![(encryption::KEY.to_owned(), keys.lines())],
            Self::EncryptionKey(_) => Vec::new(),
        }
    }
}

fn halves_of<S: Signer>(ring: &KeyRing<S>, subject: Subject, halves: Halves) -> Vec<(String, String)> {
    let stem = subject.stem();
    let public = || (format!("{stem}.{}", S::PUBLIC), ring.trusted());
    match halves {
        Halves::None => Vec::new(),
        Halves::Public => vec![public()],
        Halves::Both => vec![public(), (format!("{stem}.key"), ring.signer().private().to_owned())],
    }
}
