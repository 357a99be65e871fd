//! All that is secret of a cluster, as one value and as the data of its Secret: what its table has.

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::ByteString;
use plan::encryption::Scheme;
use plan::pki::{Halves, PkiRow};
use plan::rotation::{Authorities, Move, Subject};

use super::authority::Authority;
use super::certificate::Certificate;
use super::entry::Entry;
use super::error::PkiError;
use super::ring::KeyRing;

/// Data of a Secret.
pub type Data = BTreeMap<String, ByteString>;

/// Authorities that the cluster's owner brings, by what each is.
pub type Own = BTreeMap<Subject, Authority>;

/// Authorities and keys: those of its table.
#[derive(Clone, PartialEq, Eq)]
pub struct Pki {
    table: &'static [PkiRow],
    entries: BTreeMap<Subject, Entry>,
}

impl Pki {
    /// Makes all of a table; what encrypts, as it is wanted.
    pub fn generate(table: &'static [PkiRow], wanted: &Scheme, now: Timestamp) -> Result<Self, PkiError> {
        Self::of_rows(table, |row| Entry::make(row, wanted, now))
    }

    /// Reads the data of the Secret back; all of the table must be there and fit.
    pub fn from_data(table: &'static [PkiRow], secret: &str, data: &Data) -> Result<Self, PkiError> {
        Self::of_rows(table, |row| Entry::read(secret, row.subject, data))
    }

    fn of_rows(table: &'static [PkiRow], entry: impl Fn(&PkiRow) -> Result<Entry, PkiError>) -> Result<Self, PkiError> {
        let entries: Result<_, PkiError> = table.iter().map(|row| Ok((row.subject, entry(row)?))).collect();
        Ok(Self { table, entries: entries? })
    }

    /// The same with these authorities in the place of its own; of a cluster that nobody has heard of yet.
    pub fn with(mut self, own: &Own) -> Self {
        for (subject, authority) in own {
            if let Some(Entry::Authority(ring)) = self.entries.get_mut(subject) {
                *ring = KeyRing::new(authority.clone());
            }
        }
        self
    }

    /// The same with this authority to follow.
    pub fn followed_by(mut self, subject: Subject, next: Authority) -> Self {
        if let Some(Entry::Authority(ring)) = self.entries.get_mut(&subject) {
            *ring = ring.clone().followed_by(next);
        }
        self
    }

    /// The authority of this kind.
    ///
    /// # Errors
    ///
    /// The table has no such authority.
    pub fn authority(&self, subject: Subject) -> Result<&KeyRing<Authority>, PkiError> {
        match self.entries.get(&subject) {
            Some(Entry::Authority(ring)) => Ok(ring),
            Some(Entry::ServiceAccountKey(_) | Entry::EncryptionKey(_)) | None => Err(absent(subject)),
        }
    }

    /// The data of the Secret.
    pub fn data(&self) -> Data {
        let entries = self.entries.iter().flat_map(|(subject, entry)| entry.data(*subject));
        entries.map(|(key, value)| (key, ByteString(value.into()))).collect()
    }

    /// The same after a move of a rotation; what encrypts in the end, as it is wanted.
    ///
    /// # Errors
    ///
    /// The table has no such authority or key; or another one cannot be made.
    pub fn rotated(mut self, subject: Subject, next: Move, wanted: &Scheme, now: Timestamp) -> Result<Self, PkiError> {
        let missing = || absent(subject);
        let row = plan::pki::row(self.table, subject).ok_or_else(missing)?;
        let entry = self.entries.remove(&subject).ok_or_else(missing)?;
        self.entries.insert(subject, entry.rotated(row, next, wanted, now)?);
        Ok(self)
    }

    /// What everybody may know of them; how often each was rotated stands beside them.
    pub fn seen(&self) -> Authorities {
        let rings = self.entries.iter().map(|(subject, entry)| (*subject, entry.seen()));
        let encryption = self.entries.values().find_map(Entry::succession).unwrap_or_default();
        Authorities { rings: rings.collect(), rotated: BTreeMap::new(), encryption }
    }

    /// The EncryptionConfiguration of an API server.
    ///
    /// # Errors
    ///
    /// The table has no key that encrypts, or something else than a key encrypts.
    pub fn encryption_configuration(&self) -> Result<String, PkiError> {
        match self.entries.get(&Subject::EncryptionKey) {
            Some(Entry::EncryptionKey(keys)) => keys.configuration(),
            Some(_) | None => Err(absent(Subject::EncryptionKey)),
        }
    }

    /// What a run on control planes gets, by the names of its Secret's keys.
    pub fn control_plane_files(&self) -> Data {
        self.files(|row| row.control_planes)
    }

    /// What a run on etcd machines gets beside their own certificates.
    pub fn etcd_files(&self) -> Data {
        self.files(|row| row.etcd)
    }

    /// What a run that goes by nothing but the keys of etcd's Secrets gets.
    pub fn encryption_files(&self) -> Data {
        self.files(|row| if row.subject == Subject::EncryptionKey { Halves::Both } else { Halves::None })
    }

    /// What tells the cluster from others.
    pub fn authority_files(&self) -> Data {
        self.files(|row| if row.subject == Subject::Ca { Halves::Public } else { Halves::None })
    }

    fn files(&self, halves: impl Fn(&PkiRow) -> Halves) -> Data {
        let of_row = |row: &PkiRow| Some(self.entries.get(&row.subject)?.files(row.subject, halves(row)));
        let files = self.table.iter().filter_map(of_row).flatten();
        files.map(|(name, value)| (format!("pki.{name}"), ByteString(value.into()))).collect()
    }

    /// `sha256:<hex>` of the public key of the Kubernetes authority that signs.
    pub fn ca_cert_hash(&self) -> Result<String, PkiError> {
        let signer = self.authority(Subject::Ca)?.signer();
        Certificate::parse("the Kubernetes authority", signer.certificate())?.public_key_hash()
    }
}

fn absent(subject: Subject) -> PkiError {
    PkiError::Absent { what: subject.name().to_owned() }
}

impl std::fmt::Debug for Pki {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Pki(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::{Data, Pki};
    use crate::pki::certificate::Certificate;
    use crate::pki::fixtures::TWO;
    use jiff::Timestamp;
    use plan::cluster_deployment::pki::TABLE;
    use plan::encryption::Scheme;
    use plan::rotation::{Move, Stage, Subject};

    fn now() -> Timestamp {
        "2026-11-21T00:00:00Z".parse().unwrap()
    }

    fn pki() -> Pki {
        Pki::generate(TABLE, &Scheme::default(), now()).unwrap()
    }

    #[test]
    fn a_table_of_two_authorities_has_nothing_else_and_is_read_back_rotated_and_handed_out_by_its_rows() {
        let two = Pki::generate(TWO, &Scheme::default(), now()).unwrap();
        let entries: Vec<String> = two.data().into_keys().collect();
        assert_eq!(entries, ["ca.crt", "ca.key", "etcd-ca.crt", "etcd-ca.key"]);
        assert_eq!(Pki::from_data(TWO, "plane-pki", &two.data()).unwrap(), two);
        let authority = Certificate::parse("ca", &two.authority(Subject::Ca).unwrap().trusted()).unwrap();
        assert_eq!(authority.alternative_names().unwrap().0, ["plane".to_owned()].into());
        assert_eq!(two.control_plane_files().into_keys().collect::<Vec<_>>(), ["pki.ca.crt", "pki.etcd-ca.crt"]);
        assert_eq!(two.etcd_files().into_keys().collect::<Vec<_>>(), ["pki.etcd-ca.crt"]);
        assert!(two.encryption_files().is_empty());

        let wanted = Scheme::default();
        let begun = two.clone().rotated(Subject::EtcdCa, Move::Begin(1), &wanted, now()).unwrap();
        let stages: Vec<(Subject, Stage)> =
            begun.seen().rings.iter().map(|(subject, ring)| (*subject, ring.stage)).collect();
        assert_eq!(stages, [(Subject::Ca, Stage::Settled), (Subject::EtcdCa, Stage::Trust)]);
        let refused = two.clone().rotated(Subject::EncryptionKey, Move::Begin(1), &wanted, now()).unwrap_err();
        assert_eq!(refused.to_string(), "this PKI has no encryption-key");
        assert!(two.authority(Subject::FrontProxyCa).is_err());
        assert!(Pki::from_data(TABLE, "plane-pki", &two.data()).is_err(), "a table wants all of its rows");
    }

    #[test]
    fn what_is_written_is_read_back() {
        let pki = pki();
        assert_eq!(Pki::from_data(TABLE, "a-pki", &pki.data()).unwrap(), pki);
    }

    #[test]
    fn a_missing_key_is_named_and_not_made_anew() {
        for key in pki().data().into_keys() {
            let mut data: Data = pki().data();
            data.remove(&key);
            let error = Pki::from_data(TABLE, "a-pki", &data).unwrap_err().to_string();
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
