//! What a ClusterAddon shows.

use crds::cluster_addon::UnhealthyObject;
use crds::conditions::{Statement, state};
use crds::names::condition;
use crds::{ClusterAddonStatus, Conditions, Reason, kstatus};
use jiff::SignedDuration;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::checks;
use super::health::{Health, health};
use super::observed::{Observed, Seen, State};
use super::prepared::Prepared;
use crate::message::{cut, quote};
use crate::moment::after;

/// What is stated.
pub(super) struct Told {
    pub applied: Statement,
    pub healthy: Statement,
}

/// The status with its conditions and its sentence.
pub(super) fn status(observed: &Observed<'_>, status: ClusterAddonStatus, told: Told) -> ClusterAddonStatus {
    let Told { mut applied, mut healthy } = told;
    applied.message = cut(applied.message);
    healthy.message = cut(healthy.message);
    let is_true = |statement: &Statement| statement.status == Some(true);
    let worst = if is_true(&applied) { &healthy } else { &applied };
    let status_of = |one: &Statement| one.status;
    let mut ready = Statement::new(condition::READY, status_of(worst), worst.reason.clone(), worst.message.clone());
    if is_true(&ready) {
        (ready.reason, ready.message) = (applied.reason.clone(), applied.message.clone());
    }
    let waits = is_stalled(&ready);
    let mut old = observed.object.conditions().to_vec();
    let mut statements = vec![ready.clone(), applied, healthy];
    kstatus::Standing::new(is_true(&ready), waits).report(&ready, &mut old, &mut statements);
    let generation = observed.object.metadata.generation;
    ClusterAddonStatus {
        observed_generation: generation,
        message: Some(ready.message),
        conditions: state(&old, &statements, generation, &Time(observed.now)),
        ..status
    }
}

/// Whether nothing comes of waiting. A cluster that does not answer may do so at any time.
fn is_stalled(ready: &Statement) -> bool {
    ready.reason != Reason::ClusterUnreachable && Reason::is_warning_in(&ready.reason)
}

/// Whether the objects are healthy, and which is the first that is not.
pub(super) fn healthy(
    observed: &Observed<'_>,
    prepared: &Prepared,
    seen: &Seen,
    shown: &ClusterAddonStatus,
) -> (Statement, Option<UnhealthyObject>) {
    let stated =
        |status: bool, reason: Reason, message: String| Statement::new(condition::HEALTHY, status, reason, message);
    let found = match first_unhealthy(prepared, seen) {
        Ok(found) => found,
        Err(message) => return (stated(false, Reason::HealthCheckInvalid, message), None),
    };
    let Some(Unhealthy { object, message, has_failed }) = found else {
        let count = crate::message::count(prepared.documents.len(), "object");
        return (stated(true, Reason::ObjectsHealthy, format!("{count} healthy")), None);
    };
    let sentence = format!("{object}: {message}");
    let before = observed.object.status.as_ref().and_then(|status| status.unhealthy.as_ref());
    let since = before.filter(|before| before.object == object).map(|before| before.since.clone());
    let unhealthy = UnhealthyObject { object, message, since: since.unwrap_or(Time(observed.now)) };
    match has_failed || is_late(observed, shown) {
        true => (stated(false, Reason::ObjectUnhealthy, sentence), Some(unhealthy)),
        false => (stated(false, Reason::ObjectProgressing, sentence), Some(unhealthy)),
    }
}

/// Whether the time is over that the objects have to become healthy: since they were applied, or since they are not.
fn is_late(observed: &Observed<'_>, shown: &ClusterAddonStatus) -> bool {
    let timeout = observed.addon.map_or(600, |addon| addon.spec.health_timeout_seconds);
    let before = observed.object.condition(condition::HEALTHY).filter(|there| there.status == "False");
    let since = before.map(|there| there.last_transition_time.0).max(shown.applied_at.as_ref().map(|at| at.0));
    since.is_some_and(|since| {
        before.is_some() && after(since, SignedDuration::from_secs(i64::from(timeout))) <= observed.now
    })
}

/// An object that is not healthy.
struct Unhealthy {
    object: String,
    message: String,
    has_failed: bool,
}

/// The first that has failed, else the first that is not healthy yet; or which check is for no object.
fn first_unhealthy(prepared: &Prepared, seen: &Seen) -> Result<Option<Unhealthy>, String> {
    let checks = checks::compile(&prepared.health_checks)?;
    if let Some(check) = checks.iter().find(|check| !prepared.documents.iter().any(|document| check.concerns(document)))
    {
        return Err(check.unmatched());
    }
    let mut first: Option<Unhealthy> = None;
    for (document, seen) in prepared.documents.iter().zip(&seen.documents) {
        let found = match &seen.state {
            State::There { live, .. } => match health(live) {
                Health::Healthy => {
                    let concerned = checks.iter().filter(|check| check.concerns(document));
                    concerned.filter_map(|check| check.problem(live)).next().map(|why| (why, false))
                }
                Health::Progressing(why) => Some((why, false)),
                Health::Failed(why) => Some((why, true)),
            },
            State::Missing => Some(("it is not there".to_owned(), false)),
            // The condition `Applied` says why.
            State::KindUnknown | State::Refused(_) | State::Conflicting(_) => None,
        };
        let Some((message, has_failed)) = found else { continue };
        let name = |object: &crds::cluster_addon::AppliedObject| object.to_string();
        let object = seen.object.as_ref().map_or_else(|| format!("{} {}", document.kind, document.name), name);
        let unhealthy = Unhealthy { object, message: quote(message), has_failed };
        if has_failed {
            return Ok(Some(unhealthy));
        }
        first = first.or(Some(unhealthy));
    }
    Ok(first)
}

/// As a status has it.
pub(super) fn number(number: usize) -> i32 {
    i32::try_from(number).unwrap_or(i32::MAX)
}
