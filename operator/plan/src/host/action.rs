//! What is done about a Host.

use crds::host::Quarantine;
use crds::inputs::HostIdentity;
use crds::{Host, PlaybookRun};

/// What to do.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Create this probe, unless it is there already.
    Probe(Box<PlaybookRun>),
    /// Delete an old probe.
    Forget(Box<PlaybookRun>),
    /// Write which machine the claimed Host is, if nobody has written the Host since it was read.
    SetIdentity {
        /// The Host, as it was read.
        host: Box<Host>,
        /// The machine.
        identity: HostIdentity,
    },
    /// Raise the claim epoch of a Host whose machine is clean to the one that the machine knows, if nobody has written
    /// the Host since it was read.
    RaiseEpoch {
        /// The Host, as it was read.
        host: Box<Host>,
        /// `spec.claimEpoch` from now on.
        epoch: i64,
    },
    /// Take the quarantine off the Host, and which machine it was, if nobody has written the Host since it was read.
    EndQuarantine(Box<Host>),
    /// Take the claim of a Machine that is gone off the Host, if nobody has written the Host since it was read.
    ReleaseClaim {
        /// The Host, as it was read.
        host: Box<Host>,
        /// Finalizers of the Host from now on.
        finalizers: Vec<String>,
        /// What keeps it out of the pool until it is known to be clean.
        quarantine: Quarantine,
    },
}
