//! A PKI of two authorities, of an object that is no cluster.

use jiff::SignedDuration;
use k8s_openapi::api::core::v1::ConfigMap;
use plan::certificates::RenewalPolicy;
use plan::pki::{Halves, PkiRow};
use plan::rotation::Subject;

use super::PkiOwner;

pub(crate) const TWO: &[PkiRow] = &[
    PkiRow { subject: Subject::Ca, common_name: Some("plane"), control_planes: Halves::Public, etcd: Halves::None },
    PkiRow {
        subject: Subject::EtcdCa,
        common_name: Some("plane-etcd"),
        control_planes: Halves::Public,
        etcd: Halves::Public,
    },
];

/// A year, of which a third is left when they are renewed.
pub(crate) fn policy() -> RenewalPolicy {
    let days = |days: i64| SignedDuration::from_hours(24 * days);
    RenewalPolicy { validity: days(365), renew_before: days(121) }
}

/// The ConfigMap `plane` with this UID, as the owner of such a PKI.
pub(crate) fn plane(uid: &str) -> PkiOwner {
    let mut object = ConfigMap::default();
    object.metadata.name = Some("plane".into());
    object.metadata.namespace = Some("fleet".into());
    object.metadata.uid = Some(uid.into());
    PkiOwner::new("plane", &object, TWO, policy())
}
