//! What can go wrong with certificates and keys.

/// What can go wrong with certificates and keys.
#[derive(Debug, thiserror::Error)]
pub enum PkiError {
    /// Something could not be made.
    #[error("failed to make {what}")]
    Make {
        /// Of what.
        what: String,
        /// Why.
        #[source]
        source: rcgen::Error,
    },
    /// Something that is there cannot be used.
    #[error("{what} cannot be used: {problem}")]
    Read {
        /// What.
        what: String,
        /// Why.
        problem: String,
    },
    /// A key is gone.
    #[error("Secret {secret} has no key {key}: restore it from a backup, it is never made anew")]
    MissingKey {
        /// Name of the Secret.
        secret: String,
        /// Name of the key.
        key: String,
    },
    /// What is asked for is not in the table of this PKI.
    #[error("this PKI has no {what}")]
    Absent {
        /// Which authority or key.
        what: String,
    },
    /// A date that certificates cannot hold.
    #[error("the time is out of the range of certificates")]
    Time,
    /// The Secret is another object's.
    #[error("Secret {secret} belongs to another object ({owner}): it is used once that one is gone")]
    NotOurs {
        /// Name of the Secret.
        secret: String,
        /// Kind, name and UID of its owner.
        owner: String,
    },
}
