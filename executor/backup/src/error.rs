//! Why a backup was not taken or cannot be used, with the reason and the message of each.

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
    #[error("failed to {action} from the etcd member of Host {member} at {url}: {answer}{}", failure.advice())]
    Etcd {
        /// What kind of failure it is.
        failure: EtcdFailure,
        /// What was tried: `read the revision`.
        action: &'static str,
        /// The Host whose member was asked.
        member: String,
        /// The member's client URL.
        url: String,
        /// What came back.
        answer: String,
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
    /// Whoever the snapshot was passed on to did not take it.
    #[error("failed to pass the snapshot on: {problem}")]
    Receiver {
        /// What came back.
        problem: String,
    },
}

/// Kinds of failures of a storage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StorageFailure {
    /// No connection, or no answer in time.
    Unreachable,
    /// It does not accept the credentials, or they lack a right.
    AccessDenied,
    /// No room is left.
    Full,
    /// The bucket is not there.
    BucketNotFound,
    /// Its certificate is not trusted.
    CertificateInvalid,
    /// The clocks differ by more than it accepts.
    ClockSkewed,
    /// It does not accept such a request: something about it is set wrongly.
    Rejected,
    /// It failed in another way.
    Failed,
}

/// Kinds of failures of an etcd member.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EtcdFailure {
    /// No connection, or no answer in time.
    Unreachable,
    /// It has no contact to a majority of the members.
    NoQuorum,
    /// It is no member that a backup is taken from.
    Unsuitable,
    /// The snapshot ended before it was whole.
    Interrupted,
    /// The snapshot is not what the member meant to send.
    Corrupt,
}

impl BackupError {
    /// The reason, in CamelCase.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Storage { failure, .. } => failure.reason(),
            Self::Exists { .. } => "BackupExists",
            Self::Corrupt { .. } | Self::ReadBack { .. } | Self::Bundle { .. } => "BackupCorrupt",
            Self::Etcd { failure, .. } => failure.reason(),
            Self::Recipient { .. } => "RecipientInvalid",
            Self::Identity { .. } => "IdentityInvalid",
            Self::OtherRecipients { .. } => "IdentityDoesNotMatch",
            Self::Receiver { .. } => "SnapshotInterrupted",
        }
    }

    /// Whether the same, tried again later, may succeed without anybody doing anything. An unsuitable member stays
    /// so; another member of its cluster may do.
    pub fn retriable(&self) -> bool {
        match self {
            Self::Storage { failure, .. } => matches!(failure, StorageFailure::Unreachable | StorageFailure::Failed),
            Self::Etcd { failure, .. } => *failure != EtcdFailure::Unsuitable,
            Self::ReadBack { .. } | Self::Receiver { .. } => true,
            Self::Exists { .. }
            | Self::Corrupt { .. }
            | Self::Bundle { .. }
            | Self::Recipient { .. }
            | Self::Identity { .. }
            | Self::OtherRecipients { .. } => false,
        }
    }
}

impl StorageFailure {
    /// The reason, in CamelCase.
    pub fn reason(self) -> &'static str {
        match self {
            Self::Unreachable => "StorageUnreachable",
            Self::AccessDenied => "StorageAccessDenied",
            Self::Full => "StorageFull",
            Self::BucketNotFound => "BucketNotFound",
            Self::CertificateInvalid => "StorageCertificateInvalid",
            Self::ClockSkewed => "StorageClockSkewed",
            Self::Rejected | Self::Failed => "StorageFailed",
        }
    }

    fn advice(self) -> &'static str {
        match self {
            Self::Unreachable => "; check that it is up and that Pods of the metadata cluster reach it",
            Self::AccessDenied => {
                "; check the credentials, and their rights to list the bucket and to read, write and delete objects \
                 below the prefix; of a volume, that its files belong to user 65532"
            }
            Self::Full => "; remove old backups, or give it more room or a higher quota",
            Self::BucketNotFound => "; create the bucket, or correct its name",
            Self::CertificateInvalid => "; give the authority that signed its certificate in caRef",
            Self::ClockSkewed => "; synchronize the clocks of the metadata cluster's nodes and of the storage",
            Self::Rejected => "; check what the BackupStorage says: endpoint, region, pathStyle, prefix or path",
            Self::Failed => "",
        }
    }
}

impl EtcdFailure {
    /// The reason, in CamelCase.
    pub fn reason(self) -> &'static str {
        match self {
            Self::Unreachable => "EtcdUnreachable",
            Self::NoQuorum => "EtcdNoQuorum",
            Self::Unsuitable => "EtcdMemberUnsuitable",
            Self::Interrupted => "SnapshotInterrupted",
            Self::Corrupt => "SnapshotCorrupt",
        }
    }

    fn advice(self) -> &'static str {
        match self {
            Self::Unreachable => "; check that etcd runs on the machine (crictl ps, journalctl -u etcd)",
            Self::NoQuorum => {
                "; a backup is taken from a member that is in contact with a majority: bring the other members back"
            }
            Self::Unsuitable => "; take the backup from another member",
            Self::Interrupted | Self::Corrupt => "; nothing of it was kept",
        }
    }
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
