//! Certificates of a cluster's machines: what was seen of them last, and which of them end first.

mod ended;
mod policy;

use crds::certificates::{CertificateSeen, Renewer, renewer};
use crds::step::{Intent, Step};
use crds::{Machine, ObjectExt, PlaybookRun};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use crate::attempts;
pub(crate) use ended::{ended_on, keeps_from_reading};
pub use policy::RenewalPolicy;

/// A certificate with less left than this is spoken of.
pub const WARNING: SignedDuration = SignedDuration::from_hours(30 * 24);

/// Whether a run looks when certificates end.
pub fn is_probe(run: &PlaybookRun) -> bool {
    run.spec.intent == Intent::Probe && run.spec.steps == [Step::ProbeCertificates]
}

/// Whether somebody verifies the certificate, so that its end is felt.
pub fn is_verified(certificate: &CertificateSeen) -> bool {
    renewer(&certificate.name).is_some_and(|renewer| renewer != Renewer::Process)
}

/// Of those that somebody verifies the one that ends first.
pub fn first_to_end(certificates: &[CertificateSeen]) -> Option<&CertificateSeen> {
    let verified = certificates.iter().filter(|certificate| is_verified(certificate));
    verified.min_by_key(|certificate| (certificate.expires_at.0, &certificate.name))
}

/// What a machine told of its certificates last, since it is part of its cluster, and when.
pub fn seen_last<'a>(machine: &Machine, runs: &[&'a PlaybookRun]) -> Option<(Timestamp, &'a [CertificateSeen])> {
    let host = machine.spec.host_ref.as_ref()?;
    let since = machine.status.as_ref()?.provisioned_at.as_ref()?;
    let told = runs.iter().filter(|run| attempts::is_over(run) && run.created_at() >= Some(since));
    let told = told.filter_map(|run| {
        let mut results = run.status.as_ref()?.hosts.iter();
        let result = results.find(|result| result.name == host.name && !result.certificates.is_empty())?;
        Some((attempts::ended_at(run)?, result.certificates.as_slice()))
    });
    told.max_by_key(|(at, _)| *at)
}

/// What a Machine shows of its certificates from now on: since when, and which.
pub(crate) fn shown(machine: &Machine, runs: &[&PlaybookRun]) -> (Option<Time>, Vec<CertificateSeen>) {
    let old = machine.status.clone().unwrap_or_default();
    let before = old.certificates_seen_at.as_ref().map(|time| time.0);
    match seen_last(machine, runs).filter(|(at, _)| before.is_none_or(|before| *at > before)) {
        Some((at, certificates)) => (Some(Time(at)), certificates.to_vec()),
        None => (old.certificates_seen_at, old.certificates),
    }
}

#[cfg(test)]
mod tests {
    use super::{first_to_end, shown};
    use crds::{Machine, PlaybookRun};

    fn machine(status: &str) -> Machine {
        serde_yaml::from_str(&format!("{{apiVersion: clusterwright.dev/v1alpha1, kind: Machine, metadata: {{name: m1, uid: u1}}, spec: {{clusterName: a, role: control-plane, kubernetesVersion: 1.35.4, hostRef: {{name: h1}}}}, status: {{{status}}}}}")).unwrap()
    }

    /// A look that was made, and ended, at this time, with what h1 said.
    fn look(at: &str, certificates: &str) -> PlaybookRun {
        serde_yaml::from_str(&format!("{{apiVersion: clusterwright.dev/v1alpha1, kind: PlaybookRun, metadata: {{name: 'p{at}', creationTimestamp: '2026-11-21T{at}:00Z'}}, spec: {{clusterName: a, intent: Probe, steps: [probe-certificates], hosts: [h1]}}, status: {{phase: Succeeded, finishedAt: '2026-11-21T{at}:00Z', hosts: [{{name: h1, certificates: [{certificates}]}}]}}}}")).unwrap()
    }

    const PROVISIONED: &str = "provisionedAt: '2026-11-21T08:00:00Z'";

    #[test]
    fn what_was_told_last_counts_and_stays_when_its_run_is_gone_or_a_later_one_said_nothing() {
        let entry = |end: &str| format!("{{name: apiserver, expiresAt: '{end}-01-01T00:00:00Z'}}");
        let check = |machine: &Machine, looks: &[(&str, &str)], expected: Option<(&str, &str)>| {
            let looks: Vec<PlaybookRun> = looks.iter().map(|(at, told)| look(at, told)).collect();
            let (at, told) = shown(machine, &looks.iter().collect::<Vec<_>>());
            let found =
                at.map(|at| (at.0.strftime("%H:%M").to_string(), told[0].expires_at.0.strftime("%Y").to_string()));
            assert_eq!(found, expected.map(|(at, end)| (at.to_owned(), end.to_owned())), "{looks:?}");
        };
        let new = machine(PROVISIONED);
        check(&new, &[], None);
        check(&new, &[("09:00", &entry("2027")), ("10:00", &entry("2028"))], Some(("10:00", "2028")));
        check(&new, &[("09:00", &entry("2027")), ("10:00", "")], Some(("09:00", "2027")));
        // It was another machine's then.
        check(&new, &[("07:00", &entry("2027"))], None);
        let known =
            format!("{PROVISIONED}, certificatesSeenAt: '2026-11-21T11:00:00Z', certificates: [{}]", entry("2029"));
        let known = machine(&known);
        check(&known, &[], Some(("11:00", "2029")));
        check(&known, &[("10:00", &entry("2028"))], Some(("11:00", "2029")));
        check(&known, &[("12:00", &entry("2030"))], Some(("12:00", "2030")));
        check(&machine(""), &[("12:00", &entry("2030"))], None);
    }

    #[test]
    fn what_nobody_verifies_is_not_the_first_to_end() {
        let look = look(
            "09:00",
            "{name: kubelet-serving, expiresAt: '2027-01-01T00:00:00Z'}, {name: kubernetes-ca, expiresAt: '2036-01-01T00:00:00Z'}, {name: etcd-peer, expiresAt: '2028-01-01T00:00:00Z'}",
        );
        let certificates = &look.status.as_ref().unwrap().hosts[0].certificates;
        assert_eq!(first_to_end(certificates).map(|first| first.name.as_str()), Some("etcd-peer"));
        assert_eq!(first_to_end(&certificates[..1]), None);
    }
}
