//! Rotation of a cluster's authorities and keys: what there is of each, and how one after the other takes its place.
//! Everybody trusts both before the new one signs, and has from the new one before the old one goes.

pub mod asking;
pub mod own;
pub mod request;
pub mod retired;

use std::collections::{BTreeMap, BTreeSet};

use crds::cluster_deployment::EtcdTopology;

use crate::encryption::Succession;
use crate::settings;

/// What may be rotated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Subject {
    /// Signs API servers, kubelets and clients.
    Ca,
    /// Signs etcd's members and clients.
    EtcdCa,
    /// Signs the client certificate of the aggregation layer.
    FrontProxyCa,
    /// Signs the tokens of service accounts.
    ServiceAccountKey,
    /// Encrypts Secrets in etcd: it signs nothing, and decrypts where others are trusted.
    EncryptionKey,
}

impl Subject {
    /// All of them.
    pub const ALL: [Subject; 5] =
        [Subject::Ca, Subject::EtcdCa, Subject::FrontProxyCa, Subject::ServiceAccountKey, Subject::EncryptionKey];

    /// As it stands in annotations and statuses.
    pub const fn name(self) -> &'static str {
        match self {
            Subject::Ca => "ca",
            Subject::EtcdCa => "etcd-ca",
            Subject::FrontProxyCa => "front-proxy-ca",
            Subject::ServiceAccountKey => "service-account-key",
            Subject::EncryptionKey => "encryption-key",
        }
    }

    /// What the names of its entries in a Secret begin with, and those of its files on machines: `ca` of `ca.crt`.
    pub const fn stem(self) -> &'static str {
        match self {
            Subject::ServiceAccountKey => "sa",
            Subject::EncryptionKey => "encryption",
            authority @ (Subject::Ca | Subject::EtcdCa | Subject::FrontProxyCa) => authority.name(),
        }
    }

    /// The names of its entries in a Secret, in order, while nothing takes its place: `ca.crt` and `ca.key`.
    pub fn entries(self) -> Vec<String> {
        let endings: &[&str] = match self {
            Subject::Ca | Subject::EtcdCa | Subject::FrontProxyCa => &["crt", "key"],
            Subject::ServiceAccountKey => &["key", "pub"],
            Subject::EncryptionKey => &["key"],
        };
        endings.iter().map(|ending| format!("{}.{ending}", self.stem())).collect()
    }

    /// Whether it signs certificates.
    pub const fn is_authority(self) -> bool {
        matches!(self, Subject::Ca | Subject::EtcdCa | Subject::FrontProxyCa)
    }

    /// The one of this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|subject| subject.name() == name)
    }

    /// Whether people hold something that was signed by the old one: it goes once they say so.
    pub const fn is_held_by_people(self) -> bool {
        matches!(self, Subject::Ca | Subject::ServiceAccountKey)
    }
}

/// How far the rotation of one is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// There is one, and it alone is trusted.
    Settled,
    /// The next one is trusted as well.
    Trust,
    /// The next one signs, and the former one is still trusted.
    Sign,
}

impl Stage {
    const ALL: [Stage; 3] = [Stage::Settled, Stage::Trust, Stage::Sign];

    const fn name(self) -> &'static str {
        match self {
            Stage::Settled => "settled",
            Stage::Trust => "trust",
            Stage::Sign => "sign",
        }
    }

    /// That of a digest of [`Ring::digest`]; none: it says nothing of one.
    pub fn in_digest(digest: &str) -> Option<Self> {
        let (stage, _) = digest.split_once('.')?;
        Self::ALL.into_iter().find(|known| known.name() == stage)
    }
}

/// What there is of one authority or key, as fingerprints: of its public half, where it has one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ring {
    /// How far its rotation is.
    pub stage: Stage,
    /// The one that signs.
    pub signer: String,
    /// All that are trusted, the signer among them.
    pub trusted: BTreeSet<String>,
}

/// Hexadecimal digits of what stands for a certificate or key in statuses.
const DIGITS: usize = 10;

impl Ring {
    /// For statuses: the stage, the signer and those that are trusted, e.g. `trust.0123456789.abcdef0123`.
    pub fn digest(&self) -> String {
        format!("{}.{}.{}", self.stage.name(), short(&self.signer), self.trust())
    }

    /// Of those that are trusted.
    pub fn trust(&self) -> String {
        short(&settings::digest(&self.trusted))
    }

    /// Of the one that signs.
    pub fn fingerprint(&self) -> String {
        short(&settings::digest(&self.signer))
    }

    /// Whether what a machine has, as its digest, is from the same signer.
    pub fn signs_for(&self, has: &str) -> bool {
        signer_of(has).is_none_or(|signer| signer == short(&self.signer))
    }
}

fn short(text: &str) -> String {
    text.chars().take(DIGITS).collect()
}

/// The signer in a digest of [`Ring::digest`]; none: it says nothing of one.
fn signer_of(digest: &str) -> Option<&str> {
    digest.split('.').nth(1).filter(|_| Stage::in_digest(digest).is_some())
}

/// The authorities and keys of a cluster, as far as everybody may know of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Authorities {
    /// Each, by what it is; empty: there are none, or they cannot be read.
    pub rings: BTreeMap<Subject, Ring>,
    /// The number with which each was rotated last.
    pub rotated: BTreeMap<Subject, i64>,
    /// What is encrypted in etcd, and by what.
    pub encryption: Succession,
}

impl Authorities {
    /// The digest of each, by its name in statuses: of members of etcd beside control planes, of what Pods are to
    /// trust, of what etcd has stored, and of a KMS plug-in that is to encrypt, under names of their own.
    pub fn digests(&self, etcd: EtcdTopology) -> BTreeMap<String, String> {
        let rings = self.rings.iter().map(|(subject, ring)| (subject.name().to_owned(), ring.digest()));
        let pods = self.rings.get(&Subject::Ca).map(|ring| (PODS.to_owned(), ring.trust()));
        let member = self.rings.get(&Subject::EtcdCa).map(|ring| (MEMBER.to_owned(), ring.digest()));
        let stored = self.rings.get(&Subject::EncryptionKey).map(|ring| (STORED.to_owned(), ring.fingerprint()));
        let plugin = self.plugin().map(|plugin| (PLUGIN.to_owned(), plugin));
        rings.chain(pods).chain(member.filter(|_| etcd == EtcdTopology::Stacked)).chain(stored).chain(plugin).collect()
    }

    /// A digest of the KMS plug-in that takes over, while it does.
    pub fn plugin(&self) -> Option<String> {
        let plugin = self.encryption.arriving()?;
        Some(short(&settings::digest(&(&plugin.name, &plugin.endpoint))))
    }

    /// The one whose rotation is under way, of which there is no more than one unless somebody edits the Secret.
    pub fn under_way(&self) -> Option<(Subject, &Ring)> {
        let (subject, ring) = self.rings.iter().find(|(_, ring)| ring.stage != Stage::Settled)?;
        Some((*subject, ring))
    }
}

/// What stands in statuses for what the Pods of a machine trust, which they read when they begin.
pub const PODS: &str = "pods";
/// The same for the authority of the member of etcd that is beside a control plane: the API server has its own part.
pub const MEMBER: &str = "etcd-ca/member";
/// What stands in statuses of a control plane for the key that it has seen all Secrets in etcd to be encrypted with.
pub const STORED: &str = "stored-secrets";
/// What stands in statuses of a control plane for the KMS plug-in that answered there, until it has taken over.
pub const PLUGIN: &str = "kms-plugin";
/// Of a machine that joined while a rotation was under way: it may have some of it.
pub const JOINED: &str = "joined";

/// What is done in this stage.
pub fn doing(subject: Subject, stage: Stage) -> &'static str {
    match (stage, subject) {
        (Stage::Trust, Subject::EncryptionKey) => "the next one decrypts",
        (Stage::Trust, _) => "the next one is trusted",
        (Stage::Sign, Subject::EncryptionKey) => "the next one encrypts",
        (Stage::Sign, _) => "the next one signs",
        (Stage::Settled, _) => "the former one goes",
    }
}

/// What is refused once the former one is gone, and what people do about it before.
pub fn refused_afterwards(subject: Subject) -> &'static str {
    match subject {
        Subject::ServiceAccountKey => {
            "tokens of the former key are refused afterwards: Pods get new ones within a day, and Secrets of type kubernetes.io/service-account-token are to be made anew"
        }
        Subject::Ca | Subject::EtcdCa | Subject::FrontProxyCa | Subject::EncryptionKey => {
            "whoever has a kubeconfig or certificate from the former one is refused afterwards: replace those"
        }
    }
}

/// What is done about a rotation, in the Secret that keeps the authorities and keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Act {
    /// Make this move, if the authority or key is where the move is made from.
    Move {
        /// What is rotated.
        subject: Subject,
        /// The move.
        next: Move,
    },
    /// Have the authority of this fingerprint, from the Secret of `certificates.caRef`, follow the one that signs, if
    /// none does: it is trusted from then on.
    Take {
        /// What is rotated.
        subject: Subject,
        /// Of its certificate.
        fingerprint: String,
    },
}

/// One move of a rotation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Move {
    /// Another one is made, and trusted, for the number that was asked for.
    Begin(i64),
    /// What the spec says of encryption by now is prepared: it decrypts.
    Adopt,
    /// What was prepared so goes before it encrypts: the spec says something else by now.
    Withdraw,
    /// It signs.
    Sign,
    /// The former one goes.
    Complete,
}

impl Move {
    /// The stage from which it is made.
    pub const fn from(self) -> Stage {
        match self {
            Move::Begin(_) | Move::Adopt => Stage::Settled,
            Move::Sign | Move::Withdraw => Stage::Trust,
            Move::Complete => Stage::Sign,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Ring, Stage, Subject};

    fn ring(stage: Stage, signer: &str, trusted: &[&str]) -> Ring {
        Ring { stage, signer: signer.into(), trusted: trusted.iter().map(|name| (*name).to_owned()).collect() }
    }

    #[test]
    fn a_digest_tells_the_stage_the_signer_and_what_is_trusted_and_fits_into_a_status() {
        let (one, two) = ("0123456789abcdef", "fedcba9876543210");
        let settled = ring(Stage::Settled, one, &[one]);
        let trust = ring(Stage::Trust, one, &[one, two]);
        let sign = ring(Stage::Sign, two, &[two, one]);
        assert!(settled.digest().starts_with("settled.0123456789."), "{}", settled.digest());
        assert_eq!(trust.trust(), sign.trust(), "whatever the order");
        assert!([&settled, &trust, &sign].iter().all(|ring| ring.digest().len() <= 32));
        assert!(settled.signs_for(&trust.digest()) && !settled.signs_for(&sign.digest()));
        assert!(settled.signs_for(super::JOINED), "nothing is known of it");
    }

    #[test]
    fn names_are_read_back() {
        for subject in Subject::ALL {
            assert_eq!(Subject::from_name(subject.name()), Some(subject));
        }
        assert_eq!(Subject::from_name("kubelet"), None);
    }
}
