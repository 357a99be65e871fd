//! All that is secret of a cluster, as one value and as the data of its Secret.

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::ByteString;
use plan::encryption::Scheme;
use plan::rotation::{Authorities, Move, Subject};

use super::authority::Authority;
use super::certificate::Certificate;
use super::encryption::{self, EncryptionKeys};
use super::error::PkiError;
use super::ring::{KeyRing, Signer};
use super::service_account::ServiceAccountKey;

/// Data of a Secret.
pub type Data = BTreeMap<String, ByteString>;

/// Authorities that the cluster's owner brings, by what each is.
pub type Own = BTreeMap<Subject, Authority>;

/// A cluster's authorities and keys.
#[derive(Clone, PartialEq, Eq)]
pub struct Pki {
    /// Signs the API server, kubelets and every client.
    pub kubernetes: KeyRing<Authority>,
    /// Signs the client certificate of the aggregation layer.
    pub front_proxy: KeyRing<Authority>,
    /// Signs etcd's servers, peers and clients.
    pub etcd: KeyRing<Authority>,
    /// Signs service account tokens.
    pub service_account: KeyRing<ServiceAccountKey>,
    /// Encrypt Secrets in etcd.
    pub encryption: EncryptionKeys,
}

/// Where each of them stands in the Secret, and its name.
const KUBERNETES: (&str, &str) = ("ca", "kubernetes");
const FRONT_PROXY: (&str, &str) = ("front-proxy-ca", "front-proxy-ca");
const ETCD: (&str, &str) = ("etcd-ca", "etcd-ca");
const SERVICE_ACCOUNT: (&str, &str) = ("sa", "service accounts");

impl Pki {
    /// Makes everything; a key encrypts Secrets.
    pub fn generate(now: Timestamp) -> Result<Self, PkiError> {
        Self::generate_for(&Scheme::default(), now)
    }

    /// Makes everything; what encrypts, as it is wanted.
    pub fn generate_for(wanted: &Scheme, now: Timestamp) -> Result<Self, PkiError> {
        let authority = |(_, name): (&str, &str)| Ok(KeyRing::new(Authority::make(name, now)?));
        Ok(Self {
            kubernetes: authority(KUBERNETES)?,
            front_proxy: authority(FRONT_PROXY)?,
            etcd: authority(ETCD)?,
            service_account: KeyRing::new(ServiceAccountKey::make(SERVICE_ACCOUNT.1, now)?),
            encryption: EncryptionKeys::generate(wanted),
        })
    }

    /// The same with these authorities in the place of its own; of a cluster that nobody has heard of yet.
    pub fn with(self, own: &Own) -> Self {
        let given = |subject, ring| own.get(&subject).map_or(ring, |authority| KeyRing::new(authority.clone()));
        Self {
            kubernetes: given(Subject::Ca, self.kubernetes),
            front_proxy: given(Subject::FrontProxyCa, self.front_proxy),
            etcd: given(Subject::EtcdCa, self.etcd),
            ..self
        }
    }

    /// The same with this authority to follow.
    pub fn followed_by(self, subject: Subject, next: Authority) -> Self {
        match subject {
            Subject::Ca => Self { kubernetes: self.kubernetes.followed_by(next), ..self },
            Subject::FrontProxyCa => Self { front_proxy: self.front_proxy.followed_by(next), ..self },
            Subject::EtcdCa => Self { etcd: self.etcd.followed_by(next), ..self },
            Subject::ServiceAccountKey | Subject::EncryptionKey => self,
        }
    }

    /// The authority of this kind; none: it is a key.
    pub fn authority(&self, subject: Subject) -> Option<&KeyRing<Authority>> {
        match subject {
            Subject::Ca => Some(&self.kubernetes),
            Subject::FrontProxyCa => Some(&self.front_proxy),
            Subject::EtcdCa => Some(&self.etcd),
            Subject::ServiceAccountKey | Subject::EncryptionKey => None,
        }
    }

    /// The data of the Secret.
    pub fn data(&self) -> Data {
        let rings = [
            self.kubernetes.entries(KUBERNETES.0),
            self.front_proxy.entries(FRONT_PROXY.0),
            self.etcd.entries(ETCD.0),
            self.service_account.entries(SERVICE_ACCOUNT.0),
            self.encryption.entries(),
        ];
        rings.into_iter().flatten().map(|(key, value)| (key, ByteString(value.into()))).collect()
    }

    /// Reads the data of the Secret back; everything must be there and fit.
    pub fn from_data(secret: &str, data: &Data) -> Result<Self, PkiError> {
        Ok(Self {
            kubernetes: KeyRing::from_data(secret, KUBERNETES.0, data)?,
            front_proxy: KeyRing::from_data(secret, FRONT_PROXY.0, data)?,
            etcd: KeyRing::from_data(secret, ETCD.0, data)?,
            service_account: KeyRing::from_data(secret, SERVICE_ACCOUNT.0, data)?,
            encryption: EncryptionKeys::from_data(secret, data)?,
        })
    }

    /// The same after a move of a rotation; what encrypts in the end, as it is wanted.
    pub fn rotated(self, subject: Subject, next: Move, wanted: &Scheme, now: Timestamp) -> Result<Self, PkiError> {
        Ok(match subject {
            Subject::Ca => Self { kubernetes: self.kubernetes.rotated(next, KUBERNETES.1, now)?, ..self },
            Subject::FrontProxyCa => Self { front_proxy: self.front_proxy.rotated(next, FRONT_PROXY.1, now)?, ..self },
            Subject::EtcdCa => Self { etcd: self.etcd.rotated(next, ETCD.1, now)?, ..self },
            Subject::ServiceAccountKey => {
                Self { service_account: self.service_account.rotated(next, SERVICE_ACCOUNT.1, now)?, ..self }
            }
            Subject::EncryptionKey => Self { encryption: self.encryption.rotated(next, wanted), ..self },
        })
    }

    /// What everybody may know of them; how often each was rotated stands beside them.
    pub fn seen(&self) -> Authorities {
        let rings = [
            (Subject::Ca, self.kubernetes.seen()),
            (Subject::FrontProxyCa, self.front_proxy.seen()),
            (Subject::EtcdCa, self.etcd.seen()),
            (Subject::ServiceAccountKey, self.service_account.seen()),
            (Subject::EncryptionKey, self.encryption.seen()),
        ];
        Authorities { rings: rings.into(), rotated: BTreeMap::new(), encryption: self.encryption.succession() }
    }

    /// What a run on control planes gets, by the names of its Secret's keys. etcd's private key goes to no machine.
    pub fn control_plane_files(&self) -> Data {
        let (kubernetes, front_proxy) = (&self.kubernetes, &self.front_proxy);
        files([
            ("ca.crt", kubernetes.trusted()),
            ("ca.key", kubernetes.signer().private().to_owned()),
            ("front-proxy-ca.crt", front_proxy.trusted()),
            ("front-proxy-ca.key", front_proxy.signer().private().to_owned()),
            ("etcd-ca.crt", self.etcd.trusted()),
            ("sa.key", self.service_account.signer().private().to_owned()),
            ("sa.pub", self.service_account.trusted()),
            (encryption::KEY, self.encryption.lines()),
        ])
    }

    /// What a run that goes by nothing but the keys of etcd's Secrets gets.
    pub fn encryption_files(&self) -> Data {
        files([(encryption::KEY, self.encryption.lines())])
    }

    /// What tells the cluster from others.
    pub fn authority_files(&self) -> Data {
        files([("ca.crt", self.kubernetes.trusted())])
    }

    /// What a run on etcd machines gets beside their own certificates.
    pub fn etcd_files(&self) -> Data {
        files([("etcd-ca.crt", self.etcd.trusted())])
    }

    /// `sha256:<hex>` of the public key of the Kubernetes authority that signs.
    pub fn ca_cert_hash(&self) -> Result<String, PkiError> {
        Certificate::parse("the Kubernetes authority", self.kubernetes.signer().certificate())?.public_key_hash()
    }
}

fn files<const N: usize>(files: [(&str, String); N]) -> Data {
    files.into_iter().map(|(name, value)| (format!("pki.{name}"), ByteString(value.into()))).collect()
}

impl std::fmt::Debug for Pki {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Pki(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::{Data, Pki};
    use jiff::Timestamp;

    fn pki() -> Pki {
        let now: Timestamp = "2026-11-21T00:00:00Z".parse().unwrap();
        Pki::generate(now).unwrap()
    }

    #[test]
    fn what_is_written_is_read_back() {
        let pki = pki();
        assert_eq!(Pki::from_data("a-pki", &pki.data()).unwrap(), pki);
    }

    #[test]
    fn a_missing_key_is_named_and_not_made_anew() {
        for key in pki().data().into_keys() {
            let mut data: Data = pki().data();
            data.remove(&key);
            let error = Pki::from_data("a-pki", &data).unwrap_err().to_string();
            assert_eq!(
                error,
                format!("Secret a-pki has no key {key}: restore it from a backup, it is never made anew")
            );
        }
    }

    #[test]
    fn no_machine_gets_the_private_key_of_etcds_authority() {
        let files = pki().control_plane_files();
        let names: Vec<&str> = files.keys().map(String::as_str).collect();
        assert_eq!(
            names,
            [
                "pki.ca.crt",
                "pki.ca.key",
                "pki.encryption.key",
                "pki.etcd-ca.crt",
                "pki.front-proxy-ca.crt",
                "pki.front-proxy-ca.key",
                "pki.sa.key",
                "pki.sa.pub"
            ]
        );
        assert_eq!(pki().etcd_files().into_keys().collect::<Vec<_>>(), ["pki.etcd-ca.crt"]);
    }

    #[test]
    fn the_hash_of_the_authority_is_what_kubeadm_takes() {
        let hash = pki().ca_cert_hash().unwrap();
        assert!(hash.starts_with("sha256:") && hash.len() == 7 + 64, "{hash}");
    }
}
