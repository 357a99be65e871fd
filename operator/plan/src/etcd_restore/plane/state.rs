//! How a restore of a plane stands.

use crds::etcd_restore::RestorePhase;
use crds::karmada_deployment::KarmadaRestoredFrom;
use crds::{EtcdBackup, Reason};

use super::super::action::Action;

/// How it stands.
pub(super) enum State<'a> {
    /// It cannot go on yet.
    Waits(Reason, String),
    /// The keys of the backup are fetched.
    Fetches(Reason, String, Vec<Action>),
    /// The backup fits, and waits for approval; the message says what to type.
    Asks(String, Box<KarmadaRestoredFrom>),
    /// It is approved, and what is there is backed up first: the EtcdBackup that is made, unless it is there, and what
    /// it does.
    BacksUp(Option<Box<EtcdBackup>>, String),
    /// The plane takes this over from now on.
    HandsOver(Box<KarmadaRestoredFrom>),
    /// The plane is at it.
    Taken(Taken),
    /// The plane has the data of before.
    Undone(&'a KarmadaRestoredFrom),
    /// The plane has the backup's data.
    Restored(&'a KarmadaRestoredFrom),
    /// Nothing of the plane was touched, and nothing will be; or the plane is gone.
    GivenUp(String, String),
}

/// What a plane says that has taken it over.
pub(super) struct Taken {
    pub phase: RestorePhase,
    pub reason: Reason,
    pub message: String,
}

impl State<'_> {
    /// Whether nothing more comes of it.
    pub fn is_end(&self) -> bool {
        matches!(self, Self::Undone(_) | Self::Restored(_) | Self::GivenUp(..))
    }
}
