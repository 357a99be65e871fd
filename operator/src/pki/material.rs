//! All that is secret of a cluster, as one value and as the data of its Secret.

use std::collections::BTreeMap;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use k8s_openapi::ByteString;
use rand::RngCore;

use super::authority::{Authority, generate_key};
use super::certificate::Certificate;
use super::error::PkiError;

/// Data of a Secret.
pub type Data = BTreeMap<String, ByteString>;

/// A cluster's authorities and keys.
#[derive(Clone, PartialEq, Eq)]
pub struct Pki {
    /// Signs the API server, kubelets and every client.
    pub kubernetes: Authority,
    /// Signs the client certificate of the aggregation layer.
    pub front_proxy: Authority,
    /// Signs etcd's servers, peers and clients.
    pub etcd: Authority,
    /// Signs service account tokens: private key, PEM.
    service_account_key: String,
    /// Its public half, PEM.
    service_account_public_key: String,
    /// 32 random bytes in base64: encrypts Secrets in etcd.
    encryption_key: String,
}

impl Pki {
    /// Makes everything.
    pub fn generate(now: Timestamp) -> Result<Self, PkiError> {
        let service_account = generate_key("service accounts")?;
        let mut encryption_key = [0; 32];
        rand::rng().fill_bytes(&mut encryption_key);
        Ok(Self {
            kubernetes: Authority::generate("kubernetes", now)?,
            front_proxy: Authority::generate("front-proxy-ca", now)?,
            etcd: Authority::generate("etcd-ca", now)?,
            service_account_key: service_account.serialize_pem(),
            service_account_public_key: service_account.public_key_pem(),
            encryption_key: STANDARD.encode(encryption_key),
        })
    }

    fn entries(&self) -> [(&'static str, &str); 9] {
        [
            ("ca.crt", self.kubernetes.certificate()),
            ("ca.key", self.kubernetes.key()),
            ("front-proxy-ca.crt", self.front_proxy.certificate()),
            ("front-proxy-ca.key", self.front_proxy.key()),
            ("etcd-ca.crt", self.etcd.certificate()),
            ("etcd-ca.key", self.etcd.key()),
            ("sa.key", &self.service_account_key),
            ("sa.pub", &self.service_account_public_key),
            ("encryption.key", &self.encryption_key),
        ]
    }

    /// The data of the Secret.
    pub fn data(&self) -> Data {
        let entries = self.entries().into_iter();
        entries.map(|(key, value)| (key.to_owned(), ByteString(value.into()))).collect()
    }

    /// Reads the data of the Secret back; everything must be there and fit.
    pub fn from_data(secret: &str, data: &Data) -> Result<Self, PkiError> {
        let text = |key: &'static str| -> Result<&str, PkiError> {
            let missing = || PkiError::MissingKey { secret: secret.into(), key };
            let value = data.get(key).filter(|value| !value.0.is_empty()).ok_or_else(missing)?;
            std::str::from_utf8(&value.0).map_err(|error| PkiError::Read {
                what: format!("{key} of Secret {secret}"),
                problem: error.to_string(),
            })
        };
        let authority = |certificate: &'static str, key: &'static str| {
            Authority::parse(&format!("{certificate} of Secret {secret}"), text(certificate)?, text(key)?)
        };
        Ok(Self {
            kubernetes: authority("ca.crt", "ca.key")?,
            front_proxy: authority("front-proxy-ca.crt", "front-proxy-ca.key")?,
            etcd: authority("etcd-ca.crt", "etcd-ca.key")?,
            service_account_key: text("sa.key")?.to_owned(),
            service_account_public_key: text("sa.pub")?.to_owned(),
            encryption_key: text("encryption.key")?.to_owned(),
        })
    }

    /// What a run on control planes gets, by the names of its Secret's keys. etcd's private key goes to no machine.
    pub fn control_plane_files(&self) -> Data {
        let entries = self.entries().into_iter();
        entries
            .filter(|(key, _)| *key != "etcd-ca.key")
            .map(|(key, value)| (format!("pki.{key}"), ByteString(value.into())))
            .collect()
    }

    /// What tells the cluster from others.
    pub fn authority_files(&self) -> Data {
        let certificate = ByteString(self.kubernetes.certificate().into());
        [("pki.ca.crt".to_owned(), certificate)].into()
    }

    /// What a run on etcd machines gets beside their own certificates.
    pub fn etcd_files(&self) -> Data {
        let certificate = ByteString(self.etcd.certificate().into());
        [("pki.etcd-ca.crt".to_owned(), certificate)].into()
    }

    /// `sha256:<hex>` of the Kubernetes authority's public key.
    pub fn ca_cert_hash(&self) -> Result<String, PkiError> {
        Certificate::parse("the Kubernetes authority", self.kubernetes.certificate())?.public_key_hash()
    }
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
