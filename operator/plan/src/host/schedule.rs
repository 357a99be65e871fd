//! When Hosts are probed, as far as that is not their own.

use jiff::Timestamp;

/// When Hosts are probed.
#[derive(Clone, Copy, Debug)]
pub struct ProbeSchedule {
    /// Seconds between two probes of a spare Host that is well.
    pub interval_seconds: u64,
    /// When an operator took the metadata cluster up again after nobody had renewed the Lease for long: every Host is
    /// probed once since then, also one that is claimed. None: no such time is known.
    pub resumed_at: Option<Timestamp>,
}
