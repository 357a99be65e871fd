//! The authority of a cluster that ends first. Nobody renews one by itself, so that its end is spoken of long before.

use crds::cluster_deployment::EtcdTopology;
use jiff::{SignedDuration, Timestamp};

use super::operations::rotate_authorities;
use super::state::ClusterState;
use crate::moment::after;
use crate::rotation::{Stage, Subject};

/// With less left it is to be rotated.
pub(super) const YEAR: SignedDuration = SignedDuration::from_hours(365 * 24);
/// With less left it is to be rotated now.
pub(super) const SOON: SignedDuration = SignedDuration::from_hours(90 * 24);

/// An authority that nobody replaces for now.
pub(super) struct Ending {
    pub end: Timestamp,
    subject: Subject,
    certificate: String,
}

/// The one that ends first, as far as machines have told, of those that are not being rotated.
pub(super) fn first(state: &ClusterState<'_>) -> Option<Ending> {
    let certificates = state.live.iter().filter_map(|machine| machine.machine.status.as_ref());
    let authorities = certificates.flat_map(|status| &status.certificates).filter_map(|certificate| {
        let subject = subject(&certificate.name)?;
        let ring = state.observed.authorities.rings.get(&subject);
        let is_rotated = ring.is_some_and(|ring| ring.stage != Stage::Settled);
        let end = certificate.expires_at.0;
        (!is_rotated).then(|| Ending { end, subject, certificate: certificate.name.clone() })
    });
    authorities.min_by_key(|ending| (ending.end, ending.subject))
}

/// What stands for it among what can be rotated.
fn subject(certificate: &str) -> Option<Subject> {
    match certificate {
        "kubernetes-ca" => Some(Subject::Ca),
        "etcd-ca" => Some(Subject::EtcdCa),
        "front-proxy-ca" => Some(Subject::FrontProxyCa),
        _ => None,
    }
}

impl Ending {
    /// Whether it has less left than this.
    pub fn is_within(&self, state: &ClusterState<'_>, left: SignedDuration) -> bool {
        self.end < after(state.observed.now, left)
    }

    /// When it has just so much left.
    pub fn before(&self, left: SignedDuration) -> Timestamp {
        self.end.saturating_sub(left).unwrap_or(self.end)
    }

    /// When it ends, and what to do about it.
    pub fn told(&self, state: &ClusterState<'_>) -> String {
        let (name, day) = (&self.certificate, self.end.strftime("%Y-%m-%d"));
        if self.end <= state.observed.now {
            return format!(
                "authority {name} ended on {day}: nothing that it signed is believed, and it is too late to rotate it: make the cluster anew, with authorities of its own (docs/operations/certificates.md)"
            );
        }
        let of_others =
            self.subject == Subject::EtcdCa && state.deployment.spec.etcd.topology == EtcdTopology::External;
        let what = match of_others {
            true => "put the one that follows it beside it in ca.crt of the Secret of etcd.secretRef".to_owned(),
            false => format!("rotate it before: {}", rotate_authorities::how(state, self.subject)),
        };
        format!("authority {name} ends on {day}, and with it all that it has signed: {what}")
    }
}
