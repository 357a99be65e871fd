//! Certificates that have ended, and that a run of the intent Renew makes anew.

use crds::certificates::{CertificateSeen, Renewer, renewer};
use crds::{Machine, ObjectExt};
use jiff::Timestamp;

use crate::moment::day_and_clock;

/// What a client of etcd and its member show each other: without them nobody reads the member.
const OF_READERS: [&str; 2] = ["etcd-server", "etcd-healthcheck-client"];

/// For a sentence, the first certificate that has ended on one of these machines, as far as they have told.
pub(crate) fn ended_on(machines: &[&Machine], now: Timestamp) -> Option<String> {
    let ended = machines.iter().filter_map(|machine| Some((first_ended(machine, now, |_| true)?, *machine)));
    let (first, machine) = ended.min_by_key(|(certificate, _)| (certificate.expires_at.0, &certificate.name))?;
    Some(sentence(first, machine))
}

/// The same for members of etcd of which too few are left that can be read: these have no majority.
pub(crate) fn keeps_from_reading(members: &[&Machine], now: Timestamp) -> Option<String> {
    let of_readers = |certificate: &CertificateSeen| OF_READERS.contains(&certificate.name.as_str());
    let ended = members.iter().filter_map(|member| Some((first_ended(member, now, of_readers)?, *member)));
    let ended: Vec<(&CertificateSeen, &Machine)> = ended.collect();
    let (first, machine) = ended.first()?;
    let has_majority = members.len() - ended.len() > members.len() / 2;
    (!has_majority).then(|| sentence(first, machine))
}

fn first_ended(
    machine: &Machine,
    now: Timestamp,
    matters: impl Fn(&CertificateSeen) -> bool,
) -> Option<&CertificateSeen> {
    let seen = machine.status.as_ref()?.certificates.iter();
    let is_renewed = |certificate: &&CertificateSeen| renewer(&certificate.name) == Some(Renewer::Run);
    let ended = seen.filter(is_renewed).filter(|certificate| certificate.expires_at.0 <= now && matters(certificate));
    ended.min_by_key(|certificate| (certificate.expires_at.0, &certificate.name))
}

fn sentence(certificate: &CertificateSeen, machine: &Machine) -> String {
    let host = machine.spec.host_ref.as_ref().map_or(machine.name(), |host| &host.name);
    let at = day_and_clock(certificate.expires_at.0);
    format!("certificate {} of {host} ended on {at}: it is renewed first", certificate.name)
}

#[cfg(test)]
mod tests {
    use super::{ended_on, keeps_from_reading};
    use crds::Machine;

    const NOW: &str = "2026-11-25T12:00:00Z";

    fn machine(name: &str, certificates: &[(&str, &str)]) -> Machine {
        let seen = certificates.iter().map(|(name, end)| format!("{{name: {name}, expiresAt: '{end}'}}"));
        let seen = seen.collect::<Vec<_>>().join(", ");
        serde_yaml::from_str(&format!("{{apiVersion: clusterwright.dev/v1alpha1, kind: Machine, metadata: {{name: m-{name}}}, spec: {{clusterName: a, role: control-plane, kubernetesVersion: 1.35.4, hostRef: {{name: {name}}}}}, status: {{certificates: [{seen}]}}}}")).unwrap()
    }

    const PAST: &str = "2026-11-18T12:00:00Z";
    const FUTURE: &str = "2027-11-18T12:00:00Z";

    #[test]
    fn the_first_that_has_ended_and_that_a_run_renews_is_named() {
        let check = |certificates: &[(&str, &str)], expected: Option<&str>| {
            let (well, other) = (machine("h1", &[("apiserver", FUTURE)]), machine("h2", certificates));
            let found = ended_on(&[&well, &other], NOW.parse().unwrap());
            assert_eq!(found.as_deref(), expected, "{certificates:?}");
        };
        check(&[], None);
        check(&[("apiserver", FUTURE)], None);
        check(&[("kubelet.conf", PAST), ("kubelet-serving", PAST), ("etcd-ca", PAST)], None);
        let first = "certificate etcd-peer of h2 ended on 2026-11-11 12:00:00 UTC: it is renewed first";
        check(&[("apiserver", PAST), ("etcd-peer", "2026-11-11T12:00:00Z")], Some(first));
        check(
            &[("admin.conf", NOW)],
            Some("certificate admin.conf of h2 ended on 2026-11-25 12:00:00 UTC: it is renewed first"),
        );
    }

    #[test]
    fn members_are_read_while_a_majority_can_be_reached() {
        let (well, ended) = (&[("etcd-server", FUTURE)][..], &[("etcd-server", PAST)][..]);
        let check = |members: &[&[(&str, &str)]], can_be_read: bool| {
            let members: Vec<Machine> = members.iter().map(|certificates| machine("h", certificates)).collect();
            let found = keeps_from_reading(&members.iter().collect::<Vec<_>>(), NOW.parse().unwrap());
            assert_eq!(found.is_none(), can_be_read, "{found:?}");
        };
        check(&[], true);
        check(&[&[]], true);
        check(&[well], true);
        check(&[ended], false);
        check(&[well, well, ended], true);
        check(&[well, ended, ended], false);
        check(&[&[("etcd-healthcheck-client", PAST)]], false);
        check(&[&[("etcd-peer", PAST), ("apiserver", PAST)]], true);
    }
}
