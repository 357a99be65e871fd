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
    let Digest(digest) = run.spec.parts().find(|one| one.part == part)?.digests.get(host)?;
    attempts::is_about(run, uid).then_some(digest)
}

/// Whether a run that is over has brought the part to the Host: the run went well there, or the step that brings the
/// part did, or that step had brought it before it failed at another one.
pub(crate) fn has_brought(run: &PlaybookRun, part: &str, host: &str) -> bool {
    let Some((part, digest)) = run.spec.parts().find(|one| one.part == part).and_then(|part| {
        let digest = part.digests.get(host).filter(|_| attempts::is_over(run))?;
        Some((part, digest))
    }) else {
        return false;
    };
    let mut results = run.status.iter().flat_map(|status| &status.hosts);
    let result = results.find(|result| result.name == host);
    result.is_some_and(|result| result.brought.get(&part.part) == Some(digest))
        || how_done(run, host, part.step()).is_some()
        || attempts::outcome(run, host) == Outcome::Succeeded
}

/// Whether a run that is over never came to the part on the Host, since it ended at one ahead of it.
pub(crate) fn never_came_to(run: &PlaybookRun, part: &str, host: &str) -> bool {
    let to_host = run.spec.parts().filter(|one| one.digests.contains_key(host));
    let mut ahead = to_host.take_while(|one| one.part != part);
    attempts::is_over(run) && ahead.any(|one| !has_brought(run, &one.part, host)) && !has_brought(run, part, host)
}

/// The digest that a run brought there last, and when it ended. A run waits until what it brings works. Of two that
/// ended within one second, that is the one which had the lock later.
pub(crate) fn brought<'r>(runs: &[&'r PlaybookRun], part: &str, at: (&str, &str)) -> Option<(Timestamp, &'r str)> {
    let found = runs.iter().filter_map(|run| {
        let digest = digest_in(run, part, at)?;
        let token = run.status.as_ref().map(|status| status.token);
        has_brought(run, part, at.0).then(|| Some((attempts::ended_at(run)?, token, digest))).flatten()
    });
    let last = found.max_by_key(|(at, token, _)| (*at, *token));
    last.map(|(at, _, digest)| (at, digest))
}

/// What a machine has of its plane once this run is over: beside what it had, the parts that the run brought there.
pub(super) fn bring(parts: &mut BTreeMap<String, String>, run: &PlaybookRun, host: &str) {
    for part in run.spec.parts().filter(|part| has_brought(run, &part.part, host)) {
        let Some(Digest(digest)) = part.digests.get(host) else { continue };
        match digest == Digest::ABSENT {
            true => drop(parts.remove(&part.part)),
            false => drop(parts.insert(part.part.clone(), digest.clone())),
        }
    }
}

#[cfg(test)]
mod tests {
    use crds::{Machine, PlaybookRun};

    use super::{brought, digest_in, has_brought, never_came_to};
    use crate::settings::applied;

    fn machine() -> Machine {
        serde_yaml::from_str("{apiVersion: clusterwright.dev/v1alpha1, kind: Machine, metadata: {name: m, uid: m-uid}, spec: {clusterName: k1, clusterKind: KarmadaDeployment, role: control-plane, hostRef: {name: h}}, status: {applied: {token: 3, parts: {webhook: 1.18.1-a, search: 1.18.1-a}}}}").unwrap()
    }

    fn run(token: i64, part: &str, digest: &str, status: &str) -> PlaybookRun {
        with_parts(token, &format!("karmada: {{part: {part}, digests: {{h: {digest}}}}}"), status)
    }

    fn with_parts(token: i64, parts: &str, status: &str) -> PlaybookRun {
        let yaml = format!(
            "{{apiVersion: clusterwright.dev/v1alpha1, kind: PlaybookRun, metadata: {{name: r{token}, creationTimestamp: '2026-01-01T00:00:0{token}Z', annotations: {{clusterwright.dev/machines: '{{\"h\": {{\"uid\": \"m-uid\"}}}}'}}}}, spec: {{clusterName: k1, clusterKind: KarmadaDeployment, intent: Configure, steps: [prepare, karmada-service], hosts: [h], {parts}}}, status: {{token: {token}, finishedAt: '2026-01-01T00:01:0{token}Z', startedAt: '2026-01-01T00:00:30Z', {status}}}}}"
        );
        serde_yaml::from_str(&yaml).unwrap()
    }

    const DONE: &str = "phase: Succeeded, hosts: [{name: h, ok: 2}], steps: [{name: prepare, phase: Succeeded}, {name: karmada-service, phase: Succeeded}]";

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
        let failed = "phase: Failed, hosts: [{name: h, ok: 1, failed: 1, failure: {step: karmada-service, task: t, reason: X, message: m}}], steps: [{name: prepare, phase: Succeeded}, {name: karmada-service, phase: Failed}]";
        assert_eq!(parts(&[run(4, "webhook", "1.18.2-b", failed)]), before);
        assert_eq!(parts(&[run(4, "search", "absent", DONE)]), "webhook 1.18.1-a");
        // One after the other, by their tokens; what was taken into account already is not looked at again.
        let runs =
            [run(6, "search", "1.18.2-c", DONE), run(5, "search", "absent", DONE), run(2, "webhook", "old", DONE)];
        assert_eq!(parts(&runs), "search 1.18.2-c, webhook 1.18.1-a");
    }

    #[test]
    fn of_several_parts_those_are_there_that_worked_before_one_did_not() {
        let several = "karmadaParts: [{part: webhook, digests: {h: 1.18.2-b}}, {part: search, digests: {h: 1.18.2-c}}, {part: scheduler, digests: {h: 1.18.2-d}}]";
        assert_eq!(parts(&[with_parts(4, several, DONE)]), "scheduler 1.18.2-d, search 1.18.2-c, webhook 1.18.2-b");
        let failed = "phase: Failed, hosts: [{name: h, ok: 1, failed: 1, brought: {webhook: 1.18.2-b}, failure: {step: karmada-service, task: t, reason: X, message: m}}], steps: [{name: prepare, phase: Succeeded}, {name: karmada-service, phase: Failed}]";
        let run = with_parts(4, several, failed);
        assert_eq!(parts(std::slice::from_ref(&run)), "search 1.18.1-a, webhook 1.18.2-b");
        let is = |part: &str| (has_brought(&run, part, "h"), never_came_to(&run, part, "h"));
        let found = ["webhook", "search", "scheduler", "descheduler"].map(is);
        assert_eq!(found, [(true, false), (false, false), (false, true), (false, true)]);
        assert_eq!(digest_in(&run, "search", ("h", "m-uid")), Some("1.18.2-c"));
        assert_eq!((digest_in(&run, "search", ("h", "other")), digest_in(&run, "etcd", ("h", "m-uid"))), (None, None));
        // What it says of another digest is no proof.
        let other = failed.replace("webhook: 1.18.2-b", "webhook: 1.18.2-a");
        assert!(!has_brought(&with_parts(4, several, &other), "webhook", "h"));
        let running = with_parts(4, several, "phase: Running, hosts: [{name: h, brought: {webhook: 1.18.2-b}}]");
        assert!(!has_brought(&running, "webhook", "h") && !never_came_to(&running, "scheduler", "h"));
    }

    #[test]
    fn of_two_runs_that_ended_within_one_second_the_later_one_says_what_is_there() {
        let first = run(4, "webhook", "1.18.2-b", DONE);
        let mut second = run(5, "webhook", "absent", DONE);
        second.status.as_mut().unwrap().finished_at = first.status.as_ref().unwrap().finished_at.clone();
        for runs in [[&first, &second], [&second, &first]] {
            assert_eq!(brought(&runs, "webhook", ("h", "m-uid")).unwrap().1, "absent");
        }
    }
}
