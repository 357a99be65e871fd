//! Certificates of the machines: they are written by steps, end a year later, and said by who is asked.

use crds::PlaybookRun;
use crds::certificates::CertificateSeen;
use crds::step::{Role, Step};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::world::World;
use crate::certificates::RenewalPolicy;

/// How long an authority lasts.
const AUTHORITY: SignedDuration = SignedDuration::from_hours(10 * 365 * 24);
impl World {
    /// A step that a run played on these machines wrote their leaves anew.
    pub(super) fn write_certificates(&mut self, run: &PlaybookRun, step: &Step) {
        let writes = [Step::Etcd, Step::ControlPlane, Step::Node, Step::RenewCertificates];
        if writes.contains(step) {
            let validity =
                self.cluster_of(run).map(|cluster| RenewalPolicy::from(&cluster.deployment.spec.certificates).validity);
            let end = self.now + validity.unwrap();
            self.certificates.extend(run.spec.hosts.iter().map(|host| (host.clone(), end)));
        }
    }

    /// So much time passes in which nobody does anything.
    pub fn jump(&mut self, time: SignedDuration) {
        self.now += time;
    }

    /// What a machine tells of its certificates; nothing where SSH does not reach it.
    pub(super) fn certificates_seen(&self, host: &str) -> Vec<CertificateSeen> {
        let end = self.certificates.get(host).filter(|_| !self.silent.contains(host));
        let (Some(end), Some(role)) = (end, self.role_of(host)) else { return Vec::new() };
        let seen = |name: &str, end: Timestamp| CertificateSeen {
            name: name.to_owned(),
            expires_at: Time(end),
            issuer: Some("kubernetes".to_owned()),
            outdated: false,
        };
        let leaf = match role {
            Role::ControlPlane => "apiserver",
            Role::Etcd => "etcd-server",
            Role::Worker => "kubelet.conf",
        };
        vec![seen(leaf, *end), seen("kubernetes-ca", self.begun + AUTHORITY)]
    }
}
