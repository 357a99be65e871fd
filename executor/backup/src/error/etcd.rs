//! How a member of etcd may fail, and what to do then.

/// Kinds of failures of an etcd member.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EtcdFailure {
    /// No connection, or no answer in time.
    Unreachable,
    /// It has no contact to a majority of the members.
    NoQuorum,
    /// It is no member that a backup is taken from.
    Unsuitable,
    /// Its certificate is not trusted.
    Untrusted,
    /// It does not accept the client's certificate.
    Refused,
    /// The client's certificate or key, or the authority, cannot be used.
    Client,
    /// The client's user may not take a snapshot.
    Denied,
    /// There is no key below the prefix.
    Empty,
    /// Its database grew too much while it was read.
    Grown,
    /// Its machine has no room for the snapshot.
    NoRoom,
    /// The snapshot ended before it was whole.
    Interrupted,
    /// The snapshot is not what the member meant to send.
    Corrupt,
}

impl EtcdFailure {
    /// The reason, in CamelCase.
    pub fn reason(self) -> &'static str {
        match self {
            Self::Unreachable => "EtcdUnreachable",
            Self::NoQuorum => "EtcdNoQuorum",
            Self::Unsuitable => "EtcdMemberUnsuitable",
            Self::Untrusted => "EtcdCertificateInvalid",
            Self::Refused => "EtcdClientRefused",
            Self::Client => "InvalidEtcdClient",
            Self::Denied => "EtcdPermissionDenied",
            Self::Empty => "EtcdPrefixEmpty",
            Self::Grown => "EtcdDatabaseGrew",
            Self::NoRoom => "SpoolFull",
            Self::Interrupted => "SnapshotInterrupted",
            Self::Corrupt => "SnapshotCorrupt",
        }
    }

    /// Whether it may pass by itself.
    pub(super) fn may_pass(self) -> bool {
        match self {
            Self::Unreachable | Self::NoQuorum | Self::Interrupted | Self::Corrupt | Self::Grown => true,
            Self::Unsuitable
            | Self::Untrusted
            | Self::Refused
            | Self::Client
            | Self::Denied
            | Self::Empty
            | Self::NoRoom => false,
        }
    }

    pub(super) fn advice(self, is_on_machine: bool) -> &'static str {
        match self {
            Self::Unreachable if is_on_machine => {
                "; check that etcd runs on the machine (systemctl status etcd, journalctl -u etcd)"
            }
            Self::Unreachable => "; check the endpoint, and that Pods of the metadata cluster reach it",
            Self::Untrusted | Self::Refused if is_on_machine => {
                "; the machine's certificates are not of the cluster's authority: see the Secret CLUSTER-pki"
            }
            Self::Untrusted => {
                "; give the authority that signed its certificate in ca.crt of the Secret, and an endpoint that the \
                 certificate names"
            }
            Self::Refused => "; give tls.crt and tls.key that etcd's administrator issued in the Secret",
            Self::Client => "; correct the Secret",
            Self::Denied => "; give a client certificate whose common name is a user of etcd with the role root",
            Self::Grown if is_on_machine => {
                "; nothing of it was kept: take it with spool: true, which writes it to the machine first, or raise or \
                 leave out bytesPerSecond"
            }
            Self::Grown => {
                "; nothing of it was kept: raise or leave out bytesPerSecond, or use a faster storage; spool: true is for \
                 etcds on machines of a cluster"
            }
            Self::NoRoom => "; make room, or take it without spool, which needs none",
            Self::Empty => "; correct the endpoints or the prefix: it may be another etcd than was meant",
            Self::NoQuorum => {
                "; a backup is taken from a member that is in contact with a majority: bring the other members back"
            }
            Self::Unsuitable => "; take the backup from another member",
            Self::Interrupted | Self::Corrupt => "; nothing of it was kept",
        }
    }
}
