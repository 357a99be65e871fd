//! The Lease object: what it says, and what is written into it.

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use plan::leader::{Record, Times, Write};

pub(super) fn read(lease: &Lease) -> Record {
    let spec = lease.spec.clone().unwrap_or_default();
    Record {
        version: lease.metadata.resource_version.clone().unwrap_or_default(),
        holder: spec.holder_identity.filter(|holder| !holder.is_empty()),
        lease_seconds: spec.lease_duration_seconds.and_then(|seconds| seconds.try_into().ok()),
        transitions: spec.lease_transitions.unwrap_or_default(),
    }
}

/// The Lease with us in it. The times are for people: nobody decides by them.
pub(super) fn held(seen: Option<&Lease>, name: &str, me: &str, write: &Write, times: &Times, now: Timestamp) -> Lease {
    let mut lease = seen.cloned().unwrap_or_default();
    let before = lease.spec.take().unwrap_or_default();
    let goes_on = before.holder_identity.as_deref() == Some(me);
    let acquired = before.acquire_time.filter(|_| goes_on);
    lease.metadata.name = Some(name.to_owned());
    lease.metadata.resource_version = write.version.clone();
    lease.spec = Some(LeaseSpec {
        holder_identity: Some(me.to_owned()),
        lease_duration_seconds: i32::try_from(times.lease().as_secs()).ok(),
        lease_transitions: Some(write.transitions),
        acquire_time: acquired.or(Some(MicroTime(now))),
        renew_time: Some(MicroTime(now)),
        ..LeaseSpec::default()
    });
    lease
}

/// The Lease with nobody in it, for whoever comes first.
pub(super) fn released(mut lease: Lease) -> Lease {
    if let Some(spec) = &mut lease.spec {
        spec.holder_identity = None;
    }
    lease
}
