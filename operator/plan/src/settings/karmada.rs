//! The parts of a Karmada control plane that runs have brought to a machine.

use std::collections::BTreeMap;

use crds::PlaybookRun;
use crds::playbook_run::Digest;
use jiff::Timestamp;

use super::done::how_done;
use crate::attempts::{self, Outcome};

/// The end of the digest of a part whose service is to be there, and not to run.
const STOPPED: &str = "-stopped";

/// The digest of a part of this version that is to be there, and not to run.
pub(crate) fn stopped(version: &str) -> String {
    format!("{version}{STOPPED}")
}

/// Whether the part is stopped by this digest: then nobody asks whether it works.
pub(crate) fn is_stopped(digest: &str) -> bool {
    digest.ends_with(STOPPED)
}

/// The digest that this run is to bring to the Machine of this UID on its Host; none: it brings none of the part.
pub(crate) fn digest_in<'r>(run: &'r PlaybookRun, part: &str, (host, uid): (&str, &str)) -> Option<&'r str> {
    let karmada = run.spec.karmada.as_ref().filter(|karmada| karmada.part == part)?;
    let Digest(digest) = karmada.digests.get(host)?;
    attempts::is_about(run, uid).then_some(digest)
}

/// The digest that a run brought there last, and when it ended. A run waits until what it brings works.
pub(crate) fn brought<'r>(runs: &[&'r PlaybookRun], part: &str, at: (&str, &str)) -> Option<(Timestamp, &'r str)> {
    let found = runs.iter().filter_map(|run| {
        let digest = digest_in(run, part, at)?;
        let has_succeeded = attempts::outcome(run, at.0) == Outcome::Succeeded;
        has_succeeded.then(|| Some((attempts::ended_at(run)?, digest))).flatten()
    });
    found.max_by_key(|(at, _)| *at)
}

/// What a machine has of its plane once this run is over: the part that the run brings, if it did all its steps there.
pub(super) fn bring(parts: &mut BTreeMap<String, String>, run: &PlaybookRun, host: &str) {
    let Some((karmada, last)) = run.spec.karmada.as_ref().zip(run.spec.steps.last()) else { return };
    let Some(Digest(digest)) = karmada.digests.get(host).filter(|_| how_done(run, host, *last).is_some()) else {
        return;
    };
    match digest == Digest::ABSENT {
        true => drop(parts.remove(&karmada.part)),
        false => drop(parts.insert(karmada.part.clone(), digest.clone())),
    }
}

#[cfg(test)]
mod tests {
    use crds::{Machine, PlaybookRun};

    use crate::settings::applied;

    fn machine() -> Machine {
        serde_yaml::from_str("{apiVersion: clusterwright.dev/v1alpha1, kind: Machine, metadata: {name: m, uid: m-uid}, spec: {clusterName: k1, clusterKind: KarmadaDeployment, role: control-plane, hostRef: {name: h}}, status: {applied: {token: 3, parts: {webhook: 1.18.1-a, search: 1.18.1-a}}}}").unwrap()
    }

    fn run(token: i64, part: &str, digest: &str, status: &str) -> PlaybookRun {
        let yaml = format!(
            "{{apiVersion: clusterwright.dev/v1alpha1, kind: PlaybookRun, metadata: {{name: r{token}, creationTimestamp: '2026-01-01T00:00:0{token}Z', annotations: {{clusterwright.dev/machines: '{{\"h\": {{\"uid\": \"m-uid\"}}}}'}}}}, spec: {{clusterName: k1, clusterKind: KarmadaDeployment, intent: Configure, steps: [prepare, load-balancer], hosts: [h], karmada: {{part: {part}, digests: {{h: {digest}}}}}}}, status: {{token: {token}, finishedAt: '2026-01-01T00:01:0{token}Z', startedAt: '2026-01-01T00:00:30Z', {status}}}}}"
        );
        serde_yaml::from_str(&yaml).unwrap()
    }

    const DONE: &str = "phase: Succeeded, hosts: [{name: h, ok: 2}], steps: [{name: prepare, phase: Succeeded}, {name: load-balancer, phase: Succeeded}]";

    fn parts(runs: &[PlaybookRun]) -> String {
        let applied = applied(&machine(), "h", &runs.iter().collect::<Vec<_>>()).unwrap();
        let parts: Vec<String> = applied.parts.iter().map(|(part, digest)| format!("{part} {digest}")).collect();
        parts.join(", ")
    }

    #[test]
    fn a_machine_has_the_parts_that_runs_did_to_their_end_and_not_those_that_were_taken_off() {
        let before = "search 1.18.1-a, webhook 1.18.1-a";
        assert_eq!(parts(&[]), before);
        assert_eq!(parts(&[run(4, "webhook", "1.18.2-b", DONE)]), "search 1.18.1-a, webhook 1.18.2-b");
        let failed = "phase: Failed, hosts: [{name: h, ok: 1, failed: 1, failure: {step: load-balancer, task: t, reason: X, message: m}}], steps: [{name: prepare, phase: Succeeded}, {name: load-balancer, phase: Failed}]";
        assert_eq!(parts(&[run(4, "webhook", "1.18.2-b", failed)]), before);
        assert_eq!(parts(&[run(4, "search", "absent", DONE)]), "webhook 1.18.1-a");
        // One after the other, by their tokens; what was taken into account already is not looked at again.
        let runs =
            [run(6, "search", "1.18.2-c", DONE), run(5, "search", "absent", DONE), run(2, "webhook", "old", DONE)];
        assert_eq!(parts(&runs), "search 1.18.2-c, webhook 1.18.1-a");
    }
}
