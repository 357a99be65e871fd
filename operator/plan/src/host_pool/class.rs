//! In which number of a pool a Host counts.

use crds::Host;
use crds::host::HostPhase;

use crate::claims;

/// In which number of a pool a Host counts.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Class {
    /// It can be claimed.
    Available,
    /// A Machine holds it.
    Claimed,
    /// It was given back, and is not verified clean.
    Cleaning,
    /// It is kept out of the pool.
    Quarantined,
    /// SSH does not accept the operator's login.
    Unreachable,
    /// It cannot be claimed for this reason.
    Other(String),
}

/// What can be claimed is decided as for a claim, and not by the phase.
pub fn class(host: &Host) -> Class {
    if host.spec.claim_ref.is_some() {
        return Class::Claimed;
    }
    if host.spec.quarantine.is_some() {
        return Class::Quarantined;
    }
    let Some(why) = claims::why_not(host) else { return Class::Available };
    match host.status.as_ref().and_then(|status| status.phase) {
        Some(HostPhase::Unreachable) => Class::Unreachable,
        Some(HostPhase::Cleaning) => Class::Cleaning,
        // It was claimed or quarantined a moment ago, or it is not looked at yet.
        Some(HostPhase::Available | HostPhase::Claimed | HostPhase::Quarantined) | None => Class::Other(why),
    }
}
