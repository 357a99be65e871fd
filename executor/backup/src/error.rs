//! Why a backup was not taken or cannot be used, with the reason and the message of each.

mod etcd;
mod programs;
mod storage;

pub use etcd::EtcdFailure;
pub use programs::ProgramsFailure;
pub use storage::StorageFailure;
use thiserror::Error;

/// A failure. Its text says what was tried, on what, what came back and what to do about it; it holds no credentials.
#[derive(Debug, Error)]
pub enum BackupError {
    /// The storage did not do what it was asked.
    #[error("failed to {action} in {storage}: {answer}{}", failure.advice())]
    Storage {
        /// What kind of failure it is.
        failure: StorageFailure,
        /// What was tried: `write paris/x/manifest.json`.
        action: String,
        /// The bucket and its endpoint, or the directory.
        storage: String,
        /// What came back.
        answer: String,
    },
    /// Another backup is at this location. Nothing of it was touched.
    #[error("{storage} already has a backup at {location}; every attempt needs a location of its own")]
    Exists {
        /// The bucket and its endpoint, or the directory.
        storage: String,
        /// The backup's directory in the storage.
        location: String,
    },
    /// What is at the location is no whole backup.
    #[error("the backup at {location} in {storage} cannot be used: {problem}; use another backup")]
    Corrupt {
        /// The bucket and its endpoint, or the directory.
        storage: String,
        /// The backup's directory in the storage.
        location: String,
        /// What is wrong with it.
        problem: String,
    },
    /// The storage gave back other bytes than it was given.
    #[error(
        "{storage} did not keep {object} as it was written: {problem}; check the storage, then take another backup"
    )]
    ReadBack {
        /// The bucket and its endpoint, or the directory.
        storage: String,
        /// The object, below the prefix.
        object: String,
        /// What differs.
        problem: String,
    },
    /// The files of the bundle cannot be packed.
    #[error("failed to pack {file:?} into the bundle: {problem}")]
    Bundle {
        /// Name of the file.
        file: String,
        /// What is wrong with it.
        problem: String,
    },
    /// The member did not answer, or refuses to be backed up.
    #[error("failed to {action} from the etcd member{} at {url}: {answer}{}", of_host(member), failure.advice(!member.is_empty()))]
    Etcd {
        /// What kind of failure it is.
        failure: EtcdFailure,
        /// What was tried: `read the revision`.
        action: &'static str,
        /// The Host whose member was asked; empty where no machine is known.
        member: String,
        /// The member's client URL.
        url: String,
        /// What came back.
        answer: String,
    },
    /// None of several endpoints is one of a member that a backup can be taken from.
    #[error("no member of etcd can be backed up from: {problems}")]
    NoMember {
        /// What all of them have in common, or `EtcdNoMember`.
        reason: &'static str,
        /// One of them may do later.
        retriable: bool,
        /// Each endpoint, and what it lacks.
        problems: String,
    },
    /// The endpoints are not of one etcd.
    #[error("the endpoints are of different clusters of etcd: {found}; give those of one")]
    Split {
        /// Endpoints and IDs of their clusters.
        found: String,
    },
    /// A recipient that nothing can be encrypted for.
    #[error("recipient {recipient:?} is not an age X25519 recipient: {problem}; age-keygen prints one, age1...")]
    Recipient {
        /// As it was given; it is a public key.
        recipient: String,
        /// What is wrong with it.
        problem: String,
    },
    /// An identity that nothing can be decrypted with.
    #[error("the age identity cannot be used: {problem}; give the file that age-keygen wrote")]
    Identity {
        /// What is wrong with it; nothing of what was given.
        problem: String,
    },
    /// The backup is whole, and for others.
    #[error(
        "the backup at {location} in {storage} cannot be decrypted with the identity that was given, whose public key is \
         {public_keys}: give the identity of one of the recipients that it was taken for"
    )]
    OtherRecipients {
        /// The bucket and its endpoint, or the directory.
        storage: String,
        /// The backup's directory in the storage.
        location: String,
        /// Public keys of what was given, at most three.
        public_keys: String,
    },
    /// etcd's programs, by which a backup is verified, cannot be had.
    #[error("the programs of etcd cannot be had: {problem}")]
    Programs {
        /// What kind of failure it is.
        failure: ProgramsFailure,
        /// What was tried, what came back, and what to do.
        problem: String,
    },
    /// There is no room to restore a snapshot for a verification.
    #[error(
        "the verification needs {} MiB in {place}, and {} MiB are free: it is made on the node of its Pod; free as \
         much there, or let Pods run on a node that has it", .needed >> 20, .free >> 20
    )]
    NoRoom {
        /// The directory.
        place: String,
        /// Bytes that are needed.
        needed: u64,
        /// Bytes that are free.
        free: u64,
    },
    /// A snapshot was not restored for a verification, which says nothing of it.
    #[error("failed to {action}: {problem}")]
    Verification {
        /// What was tried: `start etcd`.
        action: &'static str,
        /// What came back.
        problem: String,
    },
    /// Whoever the snapshot was passed on to did not take it.
    #[error("failed to pass the snapshot on: {problem}")]
    Receiver {
        /// What came back.
        problem: String,
    },
}

impl BackupError {
    /// The reason, in CamelCase.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Storage { failure, .. } => failure.reason(),
            Self::Exists { .. } => "BackupExists",
            Self::Corrupt { .. } | Self::ReadBack { .. } | Self::Bundle { .. } => "BackupCorrupt",
            Self::Etcd { failure, .. } => failure.reason(),
            Self::NoMember { reason, .. } => reason,
            Self::Split { .. } => "EtcdSplit",
            Self::Recipient { .. } => "RecipientInvalid",
            Self::Identity { .. } => "IdentityInvalid",
            Self::OtherRecipients { .. } => "IdentityDoesNotMatch",
            Self::Programs { failure, .. } => failure.reason(),
            Self::NoRoom { .. } | Self::Verification { .. } => "VerificationNotMade",
            Self::Receiver { .. } => "SnapshotInterrupted",
        }
    }

    /// Whether what is stored is no whole backup. All else says nothing of it.
    pub fn is_damage(&self) -> bool {
        matches!(self, Self::Corrupt { .. })
    }

    /// Whether the same, tried again later, may succeed without anybody doing anything. An unsuitable member stays
    /// so; another member of its cluster may do.
    pub fn retriable(&self) -> bool {
        match self {
            Self::Storage { failure, .. } => matches!(failure, StorageFailure::Unreachable | StorageFailure::Failed),
            Self::Etcd { failure, .. } => failure.may_pass(),
            Self::NoMember { retriable, .. } => *retriable,
            Self::Programs { failure, .. } => *failure == ProgramsFailure::Unavailable,
            Self::ReadBack { .. } | Self::Receiver { .. } | Self::NoRoom { .. } | Self::Verification { .. } => true,
            Self::Exists { .. }
            | Self::Corrupt { .. }
            | Self::Split { .. }
            | Self::Bundle { .. }
            | Self::Recipient { .. }
            | Self::Identity { .. }
            | Self::OtherRecipients { .. } => false,
        }
    }
}

/// The member's machine in a message.
fn of_host(member: &str) -> String {
    if member.is_empty() { String::new() } else { format!(" of Host {member}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_says_what_was_tried_on_what_what_came_back_and_what_to_do() {
        let error = BackupError::Storage {
            failure: StorageFailure::Full,
            action: "write a/manifest.json".to_owned(),
            storage: "bucket b at https://s3.example.com".to_owned(),
            answer: "507 Insufficient Storage".to_owned(),
        };
        assert_eq!(
            error.to_string(),
            "failed to write a/manifest.json in bucket b at https://s3.example.com: 507 Insufficient Storage; remove \
             old backups, or give it more room or a higher quota"
        );
        assert_eq!((error.reason(), error.retriable()), ("StorageFull", false));
    }
}
