//! What a machine has of a part: what runs have brought there, and what a probe has found since.

use crds::PlaybookRun;
use crds::machine::MachinePart;
use jiff::Timestamp;

use super::order::Part;
use super::turn::Placed;
use crate::attempts::{self, Outcome};
use crate::cluster_machine::ClusterMachine;
use crate::departure::has_sick_member;

/// The digest of a part that a run has taken off a machine.
pub(super) const ABSENT: &str = "absent";

/// What it has of the part; none: nothing.
pub(super) fn placed(machine: &ClusterMachine<'_>, part: Part, runs: &[&PlaybookRun]) -> Option<Placed> {
    let status = machine.machine.status.as_ref();
    let brought = brought(machine, part, runs);
    let recorded = || status?.applied.as_ref()?.parts.get(part.name()).cloned();
    let digest = brought.as_ref().map(|(_, digest)| digest.clone()).or_else(recorded);
    let digest = digest.filter(|digest| digest != ABSENT);
    if part.unit().is_none() {
        let is_well = part != Part::Etcd || !has_sick_member(machine.machine);
        return digest.map(|digest| Placed { digest, is_well: Some(is_well) });
    }
    let seen = status.and_then(|status| status.parts.iter().find(|seen| seen.name == part.name()));
    let is_newer = |seen: &&MachinePart| brought.as_ref().is_none_or(|(at, _)| seen.last_probe_time.0 > *at);
    match seen.filter(is_newer) {
        Some(seen) => seen.digest.clone().map(|digest| Placed { digest, is_well: Some(seen.healthy) }),
        // A run waits until it works.
        None => digest.map(|digest| Placed { digest, is_well: brought.as_ref().map(|_| true) }),
    }
}

/// The digest that a run brought last, and when it ended.
fn brought(machine: &ClusterMachine<'_>, part: Part, runs: &[&PlaybookRun]) -> Option<(Timestamp, String)> {
    let host = machine.host_name()?;
    let found = runs.iter().filter_map(|run| {
        let digest = digest_in(run, part, machine)?;
        let has_succeeded = attempts::outcome(run, host) == Outcome::Succeeded;
        has_succeeded.then(|| Some((attempts::ended_at(run)?, digest.to_owned()))).flatten()
    });
    found.max_by_key(|(at, _)| *at)
}

/// The digest that this run is to bring to the machine; none: it brings none of the part.
pub(super) fn digest_in<'r>(run: &'r PlaybookRun, part: Part, machine: &ClusterMachine<'_>) -> Option<&'r str> {
    let karmada = run.spec.karmada.as_ref().filter(|karmada| karmada.part == part.name())?;
    let digest = karmada.digests.get(machine.host_name()?)?;
    attempts::is_about(run, machine.uid()).then_some(digest.0.as_str())
}

/// The version in a digest: `1.18.2` of `1.18.2-0123456789abcdef`.
pub(super) fn version(digest: &str) -> Option<&str> {
    digest.rsplit_once('-').map(|(version, _)| version)
}

/// When the machine did not answer the last run or probe that would reach it; none: it answered, or none has ended.
pub(super) fn silent_since(machine: &ClusterMachine<'_>, runs: &[&PlaybookRun]) -> Option<Timestamp> {
    let host = machine.host_name()?;
    let found = runs.iter().filter(|run| attempts::is_over(run)).filter_map(|run| {
        let result = run.status.as_ref()?.hosts.iter().find(|result| result.name == host)?;
        Some((attempts::ended_at(run)?, result.unreachable))
    });
    found.max_by_key(|(at, _)| *at).filter(|(_, unreachable)| *unreachable).map(|(at, _)| at)
}
