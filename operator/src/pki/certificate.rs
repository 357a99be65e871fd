//! A certificate, read: when it ends, what it stands for, who issued it.

use std::collections::BTreeSet;
use std::net::IpAddr;

use jiff::Timestamp;
use rcgen::{KeyPair, PublicKeyData};
use sha2::{Digest, Sha256};
use x509_parser::extensions::GeneralName;
use x509_parser::pem::Pem;
use x509_parser::prelude::X509Certificate;

use super::error::PkiError;

/// A certificate in DER form that parses.
#[derive(Clone, Debug)]
pub struct Certificate {
    what: String,
    der: Pem,
}

impl Certificate {
    /// The first certificate of a PEM text.
    pub fn parse(what: &str, pem: &str) -> Result<Self, PkiError> {
        let unreadable = |problem: String| PkiError::Read { what: what.into(), problem };
        let der = Pem::iter_from_buffer(pem.as_bytes())
            .filter_map(Result::ok)
            .find(|pem| pem.label == "CERTIFICATE")
            .ok_or_else(|| unreadable("it holds no PEM block `CERTIFICATE`".into()))?;
        der.parse_x509().map_err(|error| unreadable(error.to_string()))?;
        Ok(Self { what: what.into(), der })
    }

    pub(super) fn x509(&self) -> Result<X509Certificate<'_>, PkiError> {
        self.der.parse_x509().map_err(|error| PkiError::Read { what: self.what.clone(), problem: error.to_string() })
    }

    /// When it ends.
    pub fn not_after(&self) -> Result<Timestamp, PkiError> {
        let seconds = self.x509()?.validity().not_after.timestamp();
        Timestamp::from_second(seconds).map_err(|_| PkiError::Time)
    }

    /// When it begins.
    pub fn not_before(&self) -> Result<Timestamp, PkiError> {
        let seconds = self.x509()?.validity().not_before.timestamp();
        Timestamp::from_second(seconds).map_err(|_| PkiError::Time)
    }

    /// True when it is the same certificate, however its text is laid out.
    pub fn is_same_as(&self, other: &Certificate) -> bool {
        self.der.contents == other.der.contents
    }

    /// True when both have one key.
    pub fn shares_key_with(&self, other: &Certificate) -> bool {
        match (self.x509(), other.x509()) {
            (Ok(one), Ok(other)) => one.public_key().raw == other.public_key().raw,
            _ => false,
        }
    }

    /// The names and addresses that it serves.
    pub fn alternative_names(&self) -> Result<(BTreeSet<String>, BTreeSet<IpAddr>), PkiError> {
        let x509 = self.x509()?;
        let mut names = BTreeSet::new();
        let mut addresses = BTreeSet::new();
        if let Ok(Some(extension)) = x509.subject_alternative_name() {
            for name in &extension.value.general_names {
                match name {
                    GeneralName::DNSName(name) => {
                        names.insert((*name).to_owned());
                    }
                    GeneralName::IPAddress(octets) => {
                        if let Ok(octets) = <[u8; 4]>::try_from(*octets) {
                            addresses.insert(octets.into());
                        } else if let Ok(octets) = <[u8; 16]>::try_from(*octets) {
                            addresses.insert(octets.into());
                        }
                    }
                    _ => {}
                }
            }
        }
        Ok((names, addresses))
    }

    /// True when the other certificate's key signed this one.
    pub fn is_signed_by(&self, authority: &Certificate) -> bool {
        match (self.x509(), authority.x509()) {
            (Ok(leaf), Ok(authority)) => {
                leaf.issuer().as_raw() == authority.subject().as_raw()
                    && leaf.verify_signature(Some(authority.public_key())).is_ok()
            }
            _ => false,
        }
    }

    /// True when no other authority stands above it.
    pub fn is_self_signed(&self) -> bool {
        self.is_signed_by(self)
    }

    /// True when this is the certificate of the key.
    pub fn has_key(&self, key: &KeyPair) -> bool {
        self.x509().is_ok_and(|x509| x509.public_key().raw == key.subject_public_key_info())
    }

    /// `sha256:<hex>` of its public key: what `kubeadm join --discovery-token-ca-cert-hash` takes.
    pub fn public_key_hash(&self) -> Result<String, PkiError> {
        let digest = Sha256::digest(self.x509()?.public_key().raw);
        let hex: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
        Ok(format!("sha256:{hex}"))
    }
}
