//! Which machines' certificates are renewed, and when.

use crds::certificates::{CertificateSeen, Renewer, renewer};
use crds::cluster_deployment::EtcdTopology;
use crds::step::Role;
use jiff::{SignedDuration, Timestamp};

use super::renewals::renewed_at;
use crate::certificates::RenewalPolicy;
use crate::cluster_deployment::state::{ClusterMachine, ClusterState};
use crate::moment::after;
use crate::naming;

/// Clusters that were built together renew within so much of each other's time, at most.
const SPREAD: SignedDuration = SignedDuration::from_hours(24);
/// How long what is outdated may take until the process that uses it has read it by itself.
const UNREAD: SignedDuration = SignedDuration::from_hours(1);
/// A machine's are renewed no more often than this, at most: where new ones end as soon as the old ones, more of them
/// do not help.
const PAUSE: SignedDuration = SignedDuration::from_hours(24);

/// A machine whose certificates are renewed at some time.
pub(super) struct Due<'a> {
    pub machine: ClusterMachine<'a>,
    pub at: Timestamp,
    /// What the attempts at it have in common: which end is put off.
    pub key: String,
}

/// Control planes and etcd members, dedicated ones first: without etcd no API server is of use. Each as far as it is
/// known when its certificates end.
pub(super) fn due<'a>(state: &ClusterState<'a>) -> Vec<Due<'a>> {
    let policy = RenewalPolicy::from(&state.deployment.spec.certificates);
    let machines = [Role::Etcd, Role::ControlPlane].into_iter().flat_map(|role| state.of_role(role));
    let machines = machines.filter(|machine| machine.is_provisioned() && machine.host.is_some());
    machines.filter_map(|machine| of_machine(state, machine, policy)).collect()
}

fn of_machine<'a>(state: &ClusterState<'a>, machine: ClusterMachine<'a>, policy: RenewalPolicy) -> Option<Due<'a>> {
    let status = machine.machine.status.as_ref()?;
    let seen_at = status.certificates_seen_at.as_ref()?.0;
    let ours = |certificate: &&CertificateSeen| {
        let is_of_others = state.deployment.spec.etcd.topology == EtcdTopology::External
            && certificate.name == "apiserver-etcd-client";
        renewer(&certificate.name) == Some(Renewer::Run) && !is_of_others
    };
    let spread = SPREAD.min(policy.renew_before / 4);
    let spread = naming::offset(state.uid(), u64::try_from(spread.as_secs()).unwrap_or_default());
    let at = |certificate: &CertificateSeen| {
        let renewed = certificate.expires_at.0.saturating_sub(policy.renew_before).unwrap_or(Timestamp::MIN);
        let regular = after(renewed, spread);
        if certificate.outdated { regular.min(after(seen_at, UNREAD)) } else { regular }
    };
    let first = status.certificates.iter().filter(ours).min_by_key(|certificate| at(certificate))?;
    let pause = PAUSE.min(policy.renew_before / 2);
    let again = renewed_at(state, machine.uid()).map_or(Timestamp::MIN, |ended| after(ended, pause));
    Some(Due { machine, at: at(first).max(again), key: first.expires_at.0.as_second().to_string() })
}
