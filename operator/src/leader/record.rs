//! The Lease object: what it says, and what is written into it.

use crds::names::annotation;
use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use plan::leader::{Record, Times, Write};
use plan::store;

pub(super) fn read(lease: &Lease) -> Record {
    let spec = lease.spec.clone().unwrap_or_default();
    Record {
        version: lease.metadata.resource_version.clone().unwrap_or_default(),
        holder: spec.holder_identity.filter(|holder| !holder.is_empty()),
        lease_seconds: spec.lease_duration_seconds.and_then(|seconds| seconds.try_into().ok()),
        transitions: spec.lease_transitions.unwrap_or_default(),
    }
}

/// When an operator took the metadata cluster up again, as the Lease says.
pub(super) fn resumed_at(lease: &Lease) -> Option<Timestamp> {
    let annotations = lease.metadata.annotations.as_ref()?;
    annotations.get(annotation::RESUMED_AT)?.parse().ok()
}

/// Whether one Lease is of a store that was set back since the other was seen: it changed hands less often, or its
/// holder renewed it less far.
pub(super) fn is_older(lease: &Lease, before: &Lease) -> bool {
    let is_the_same = lease.metadata.uid == before.metadata.uid;
    if is_the_same && read(lease).transitions < read(before).transitions {
        return true;
    }
    let renewed = |lease: &Lease| {
        let spec = lease.spec.clone().unwrap_or_default();
        spec.holder_identity.zip(spec.renew_time.map(|renewed| renewed.0))
    };
    renewed(before)
        .zip(renewed(lease))
        .is_some_and(|((holder, at), (now_holder, now_at))| store::is_set_back((&holder, at), (&now_holder, now_at)))
}

/// The Lease with us in it. The times are for people: who leads is not decided by them. But a Lease that nobody renewed
/// for long, or that says of an earlier renewal than was seen, may be one of an older store: that the store was taken
/// up again is written with the write that takes the Lease, or renews it.
pub(super) fn held(
    seen: Option<&Lease>,
    name: &str,
    me: &str,
    write: &Write,
    times: &Times,
    is_set_back: bool,
) -> Lease {
    let now = Timestamp::now();
    let mut lease = seen.cloned().unwrap_or_default();
    let before = lease.spec.take().unwrap_or_default();
    let goes_on = before.holder_identity.as_deref() == Some(me);
    let acquired = before.acquire_time.filter(|_| goes_on);
    let renewed = before.renew_time.map(|renewed| renewed.0);
    let known = resumed_at(&lease);
    let resumed = match (is_set_back, goes_on) {
        (true, _) => Timestamp::from_second(now.as_second()).ok(),
        (false, true) => known,
        (false, false) => store::resumed_at(known, renewed, now),
    };
    if let Some(resumed) = resumed {
        lease.metadata.annotations.get_or_insert_default().insert(annotation::RESUMED_AT.into(), resumed.to_string());
    }
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

/// The Lease as it is, which says that its store was taken up again now.
pub(super) fn taken_up_again(mut lease: Lease) -> Lease {
    // Whole seconds, as in a status.
    let now = Timestamp::from_second(Timestamp::now().as_second()).unwrap_or_default();
    lease.metadata.annotations.get_or_insert_default().insert(annotation::RESUMED_AT.into(), now.to_string());
    lease
}

/// The Lease with nobody in it, for whoever comes first.
pub(super) fn released(mut lease: Lease) -> Lease {
    if let Some(spec) = &mut lease.spec {
        spec.holder_identity = None;
    }
    lease
}
