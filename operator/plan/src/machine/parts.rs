//! The parts of a Karmada control plane on the machine, as they were found when it was looked at last.

use crds::conditions::Statement;
use crds::machine::MachinePart;
use crds::names::condition;
use crds::playbook_run::PartSeen;
use crds::{ObjectExt, Reason};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::observed::Observed;
use crate::attempts;
use crate::message::{cut, quote};
use crate::settings::{brought, is_stopped};

/// What was seen longer ago says nothing of now.
const STALE: SignedDuration = SignedDuration::from_mins(30);

/// What the machine shows of its parts from now on: what it said last, if that is newer than what it shows.
pub(super) fn shown(observed: &Observed<'_>) -> Vec<MachinePart> {
    let status = observed.machine.status.as_ref();
    let before = status.map(|status| status.parts.clone()).unwrap_or_default();
    let shown_at = before.iter().map(|part| part.last_probe_time.0).max();
    let host = observed.machine.spec.host_ref.as_ref().map(|host| host.name.as_str());
    let since = status.and_then(|status| status.provisioned_at.as_ref());
    let told =
        observed.runs.iter().filter(|run| attempts::is_over(run) && since.is_some() && run.created_at() >= since);
    let told = told.filter_map(|run| {
        let mut results = run.status.as_ref()?.hosts.iter();
        let result = results.find(|result| Some(result.name.as_str()) == host && !result.parts.is_empty())?;
        Some((attempts::ended_at(run)?, result.parts.as_slice()))
    });
    match told.max_by_key(|(at, _)| *at).filter(|(at, _)| shown_at.is_none_or(|before| *at > before)) {
        Some((at, parts)) => parts.iter().map(|part| seen(part, at)).collect(),
        None => before,
    }
}

fn seen(part: &PartSeen, at: Timestamp) -> MachinePart {
    MachinePart {
        name: part.name.clone(),
        digest: part.digest.clone(),
        healthy: part.healthy,
        message: part.message.clone(),
        members: part.members.clone(),
        last_probe_time: Time(at),
    }
}

/// `Ready` of a machine on which a part is known not to work, of those that it has been given.
pub(super) fn not_well(observed: &Observed<'_>) -> Option<Statement> {
    let parts = shown(observed);
    let mut fresh = parts.iter().filter(|part| observed.now.duration_since(part.last_probe_time.0) < STALE);
    let is_sick = |part: &&MachinePart| !part.healthy && is_to_run(observed, part) && !is_newer_by_run(observed, part);
    let sick = fresh.find(is_sick)?;
    let why = sick.message.as_deref().map(|message| format!(": {}", quote(message.to_owned()))).unwrap_or_default();
    let message = cut(format!("{} is not healthy{why}", sick.name));
    Some(Statement::new(condition::READY, false, Reason::PartUnhealthy, message))
}

/// Whether a run has brought the part, and not so that it stands still.
fn is_to_run(observed: &Observed<'_>, part: &MachinePart) -> bool {
    let applied = observed.machine.status.as_ref().and_then(|status| status.applied.as_ref());
    let brought = applied.and_then(|applied| applied.parts.get(&part.name));
    brought.is_some_and(|digest| !is_stopped(digest))
}

/// Whether a run has brought the part since it was looked at.
fn is_newer_by_run(observed: &Observed<'_>, part: &MachinePart) -> bool {
    let host = observed.machine.spec.host_ref.as_ref();
    let brought = host.and_then(|host| brought(observed.runs, &part.name, (&host.name, observed.machine.uid())));
    brought.is_some_and(|(at, _)| at > part.last_probe_time.0)
}
