//! A certificate authority: made, read back, and issuing leaf certificates. Everything ECDSA P-256.

use std::net::IpAddr;

use jiff::{SignedDuration, Timestamp};
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair, KeyUsagePurpose,
    PKCS_ECDSA_P256_SHA256, SanType,
};

use super::certificate::Certificate;
use super::error::PkiError;
use super::issuer::sign;

/// How long an authority lasts: ten years.
const AUTHORITY_LIFETIME: SignedDuration = SignedDuration::from_hours(10 * 365 * 24);
/// Certificates begin this much before now: machines' clocks differ.
const SKEW: SignedDuration = SignedDuration::from_mins(5);

/// A certificate and its private key, both PEM.
#[derive(Clone, PartialEq, Eq)]
pub struct Certified {
    pub certificate: String,
    pub key: String,
}

impl std::fmt::Debug for Certified {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Certified(..)")
    }
}

/// A certificate authority.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Authority(Certified);

/// What a leaf certificate says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Leaf {
    pub common_name: String,
    pub organization: Option<&'static str>,
    pub dns_names: Vec<String>,
    pub addresses: Vec<IpAddr>,
    /// True: for servers that are clients of each other too (etcd). False: for clients only.
    pub serves: bool,
}

impl Authority {
    /// Makes a self-signed authority.
    pub fn generate(common_name: &str, now: Timestamp) -> Result<Self, PkiError> {
        let mut params = params(common_name, now, AUTHORITY_LIFETIME)?;
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages =
            vec![KeyUsagePurpose::DigitalSignature, KeyUsagePurpose::KeyEncipherment, KeyUsagePurpose::KeyCertSign];
        // kubeadm's authorities carry their own name as DNS name as well.
        params.subject_alt_names = vec![SanType::DnsName(dns(common_name)?)];
        let key = generate_key(common_name)?;
        let certificate = params.self_signed(&key).map_err(make(common_name))?;
        Ok(Self(Certified { certificate: certificate.pem(), key: key.serialize_pem() }))
    }

    /// Reads an authority back; the key must be the certificate's.
    pub fn parse(what: &str, certificate: &str, key: &str) -> Result<Self, PkiError> {
        let parsed = Certificate::parse(what, certificate)?;
        let pair = KeyPair::from_pem(key).map_err(|source| PkiError::Read {
            what: format!("the private key of {what}"),
            problem: format!("{source} (a PKCS #8 key, PEM block `PRIVATE KEY`, is wanted)"),
        })?;
        if !parsed.has_key(&pair) {
            return Err(PkiError::Read {
                what: what.into(),
                problem: "certificate and private key do not belong together".into(),
            });
        }
        Ok(Self(Certified { certificate: certificate.into(), key: key.into() }))
    }

    /// Issues a leaf certificate with a new key, that lasts so long, or as long as the authority if that ends before.
    pub fn issue(&self, leaf: &Leaf, lifetime: SignedDuration, now: Timestamp) -> Result<Certified, PkiError> {
        let what = leaf.common_name.as_str();
        let own = Certificate::parse("the authority", &self.0.certificate)?;
        let mut params = params(what, now, lifetime.min(own.not_after()?.duration_since(now)))?;
        if let Some(organization) = leaf.organization {
            params.distinguished_name.push(DnType::OrganizationName, organization);
        }
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature, KeyUsagePurpose::KeyEncipherment];
        params.extended_key_usages = if leaf.serves {
            vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth]
        } else {
            vec![ExtendedKeyUsagePurpose::ClientAuth]
        };
        params.use_authority_key_identifier_extension = true;
        for name in &leaf.dns_names {
            params.subject_alt_names.push(SanType::DnsName(dns(name)?));
        }
        let addresses = leaf.addresses.iter().copied().map(SanType::IpAddress);
        params.subject_alt_names.extend(addresses);

        let key = generate_key(what)?;
        let authority_key = KeyPair::from_pem(&self.0.key).map_err(make(what))?;
        let certificate = sign(&params, &key, &own, &authority_key).map_err(make(what))?;
        Ok(Certified { certificate, key: key.serialize_pem() })
    }

    /// The certificate, PEM.
    pub fn certificate(&self) -> &str {
        &self.0.certificate
    }

    /// The private key, PEM.
    pub fn key(&self) -> &str {
        &self.0.key
    }
}

/// A new ECDSA P-256 key.
pub(super) fn generate_key(what: &str) -> Result<KeyPair, PkiError> {
    KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).map_err(make(what))
}

fn params(common_name: &str, now: Timestamp, lifetime: SignedDuration) -> Result<CertificateParams, PkiError> {
    let mut params = CertificateParams::default();
    params.distinguished_name = rcgen::DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, common_name);
    let time = |at: Result<Timestamp, jiff::Error>| {
        let seconds = at.map_err(|_| PkiError::Time)?.as_second();
        let at = x509_parser::time::ASN1Time::from_timestamp(seconds).map_err(|_| PkiError::Time)?;
        Ok::<_, PkiError>(at.to_datetime())
    };
    params.not_before = time(now.checked_sub(SKEW))?;
    params.not_after = time(now.checked_add(lifetime))?;
    Ok(params)
}

fn dns(name: &str) -> Result<rcgen::string::Ia5String, PkiError> {
    name.try_into().map_err(make(name))
}

fn make(what: &str) -> impl FnOnce(rcgen::Error) -> PkiError {
    let what = format!("the certificate of {what}");
    move |source| PkiError::Make { what, source }
}

#[cfg(test)]
mod tests {
    use super::{Authority, Leaf};
    use crate::pki::certificate::Certificate;
    use jiff::{SignedDuration, Timestamp};

    fn now() -> Timestamp {
        "2026-11-21T00:00:00Z".parse().unwrap()
    }

    const YEAR: SignedDuration = SignedDuration::from_hours(365 * 24);

    #[test]
    fn no_leaf_outlasts_its_authority() {
        let authority = Authority::generate("kubernetes", now()).unwrap();
        let issued = authority.issue(&Leaf::default(), YEAR * 20, now()).unwrap();
        let certificate = Certificate::parse("leaf", &issued.certificate).unwrap();
        assert_eq!(certificate.not_after().unwrap().to_string(), "2036-11-18T00:00:00Z");
    }

    #[test]
    fn a_leaf_is_signed_by_its_authority_and_lasts_as_long_as_it_is_wanted() {
        let authority = Authority::generate("kubernetes", now()).unwrap();
        let leaf = Leaf {
            common_name: "m1".into(),
            dns_names: vec!["localhost".into(), "m1".into()],
            addresses: vec!["127.0.0.1".parse().unwrap(), "::1".parse().unwrap()],
            serves: true,
            ..Leaf::default()
        };
        let issued = authority.issue(&leaf, YEAR, now()).unwrap();
        let certificate = Certificate::parse("leaf", &issued.certificate).unwrap();
        let parsed = Certificate::parse("authority", authority.certificate()).unwrap();
        assert!(certificate.is_signed_by(&parsed));
        assert_eq!(certificate.not_after().unwrap().to_string(), "2027-11-21T00:00:00Z");
        assert_eq!(parsed.not_after().unwrap().to_string(), "2036-11-18T00:00:00Z");
        let (names, addresses) = certificate.alternative_names().unwrap();
        assert_eq!(names.into_iter().collect::<Vec<_>>(), leaf.dns_names);
        assert_eq!(addresses.into_iter().collect::<Vec<_>>(), leaf.addresses);
    }

    #[test]
    fn an_authority_with_the_key_of_another_is_refused() {
        let (a, b) = (Authority::generate("a", now()).unwrap(), Authority::generate("b", now()).unwrap());
        assert!(Authority::parse("a", a.certificate(), a.key()).is_ok());
        let error = Authority::parse("a", a.certificate(), b.key()).unwrap_err();
        assert_eq!(error.to_string(), "a cannot be used: certificate and private key do not belong together");
    }

    #[test]
    fn a_certificate_of_another_authority_of_the_same_name_is_not_taken_for_ours() {
        let (a, b) = (Authority::generate("etcd-ca", now()).unwrap(), Authority::generate("etcd-ca", now()).unwrap());
        let issued = a.issue(&Leaf::default(), YEAR, now()).unwrap();
        let leaf = Certificate::parse("leaf", &issued.certificate).unwrap();
        assert!(!leaf.is_signed_by(&Certificate::parse("b", b.certificate()).unwrap()));
    }
}
