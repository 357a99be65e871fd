//! How a storage may fail, and what to do then.

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
    /// Its certificate is not valid at this time.
    CertificateExpired,
    /// Its certificate is for other names.
    CertificateOfOther,
    /// The clocks differ by more than it accepts.
    ClockSkewed,
    /// It does not accept such a request: something about it is set wrongly.
    Rejected,
    /// It failed in another way.
    Failed,
}

impl StorageFailure {
    /// The reason, in CamelCase.
    pub fn reason(self) -> &'static str {
        match self {
            Self::Unreachable => "StorageUnreachable",
            Self::AccessDenied => "StorageAccessDenied",
            Self::Full => "StorageFull",
            Self::BucketNotFound => "BucketNotFound",
            Self::CertificateInvalid | Self::CertificateExpired | Self::CertificateOfOther => {
                "StorageCertificateInvalid"
            }
            Self::ClockSkewed => "StorageClockSkewed",
            Self::Rejected | Self::Failed => "StorageFailed",
        }
    }

    pub(super) fn advice(self) -> &'static str {
        match self {
            Self::Unreachable => "; check that it is up and that Pods of the metadata cluster reach it",
            Self::AccessDenied => {
                "; check the credentials, and their rights to list the bucket and to read, write and delete objects \
                 below the prefix; of a volume, that its files belong to user 65532"
            }
            Self::Full => "; remove old backups, or give it more room or a higher quota",
            Self::BucketNotFound => "; create the bucket, or correct its name",
            Self::CertificateInvalid => "; give the authority that signed its certificate in caRef",
            Self::CertificateExpired => "; renew the storage's certificate, or correct the clocks",
            Self::CertificateOfOther => "; write a name that its certificate has in endpoint",
            Self::ClockSkewed => "; synchronize the clocks of the metadata cluster's nodes and of the storage",
            Self::Rejected => "; check what the BackupStorage says: endpoint, region, pathStyle, prefix or path",
            Self::Failed => "",
        }
    }
}
