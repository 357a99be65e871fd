//! What a machine has of a part: what runs have brought there, and what a probe has found since.

use crds::PlaybookRun;
use crds::machine::MachinePart;
use crds::playbook_run::Digest;
use jiff::Timestamp;

use super::order::Part;
use super::turn::Placed;
use crate::attempts;
use crate::cluster_machine::ClusterMachine;
use crate::departure::has_sick_member;
use crate::settings;

/// What it has of the part; none: nothing.
pub(super) fn placed(machine: &ClusterMachine<'_>, part: Part, runs: &[&PlaybookRun]) -> Option<Placed> {
    let status = machine.machine.status.as_ref();
    let host = machine.host_name();
    let brought = host.and_then(|host| settings::brought(runs, part.name(), (host, machine.uid())));
    let recorded = || status?.applied.as_ref()?.parts.get(part.name()).cloned();
    let digest = brought.map(|(_, digest)| digest.to_owned()).or_else(recorded);
    let digest = digest.filter(|digest| digest != Digest::ABSENT);
    let seen = status.and_then(|status| status.parts.iter().find(|seen| seen.name == part.name()));
    let is_newer = |seen: &&MachinePart| brought.is_none_or(|(at, _)| seen.last_probe_time.0 > at);
    if !part.is_waited_for() {
        let digest = match seen.filter(is_newer) {
            Some(seen) => seen.digest.clone(),
            None => digest,
        };
        return digest.map(|digest| Placed { digest, is_well: Some(true) });
    }
    if part.unit().is_none() {
        let is_well = part != Part::Etcd || !has_sick_member(machine.machine);
        return digest.map(|digest| Placed { digest, is_well: Some(is_well) });
    }
    match seen.filter(is_newer) {
        Some(seen) => seen.digest.clone().map(|digest| Placed { digest, is_well: Some(seen.healthy) }),
        // A run waits until it works.
        None => digest.map(|digest| Placed { digest, is_well: brought.map(|_| true) }),
    }
}

/// The digest that this run is to bring to the machine; none: it brings none of the part.
pub(super) fn digest_in<'r>(run: &'r PlaybookRun, part: Part, machine: &ClusterMachine<'_>) -> Option<&'r str> {
    settings::digest_in(run, part.name(), (machine.host_name()?, machine.uid()))
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
