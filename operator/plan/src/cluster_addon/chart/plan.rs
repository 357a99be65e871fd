//! What is done for a chart now, and what is shown of it.

use crds::cluster_addon::{ChartRelease, MOST_OBJECTS};
use crds::conditions::Statement;
use crds::names::condition;
use crds::{ClusterAddonStatus, Reason};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::attempt::{Again, Settled, again, next_attempt, settle};
use super::decision::{Decision, stated};
use super::need::{Need, is_over, need};
use super::prepared::PreparedChart;
use super::release::{Release, inventory};
use super::upgrade::{Upgrade, run};
use crate::cluster_addon::action::{Action, Planned};
use crate::cluster_addon::observed::{Observed, Seen};
use crate::cluster_addon::pace::{pause, resync};
use crate::cluster_addon::prepared::Prepared;
use crate::cluster_addon::status::{self, Told, number};
use crate::message::count;
use crate::{Next, Plan};

/// The plan of a ClusterAddon whose source is a chart.
pub(in crate::cluster_addon) fn plan(observed: &Observed<'_>, prepared: &PreparedChart, seen: &Seen) -> Planned {
    let old = observed.object.status.clone().unwrap_or_default();
    let Decision { actions, release, applied, next } = decide(observed, prepared, seen);
    let is_taken = applied.reason == Reason::ReleaseTaken.as_str();
    let is_applied = applied.status == Some(true);
    let mut shown = ClusterAddonStatus { release: Some(release).filter(|_| !is_taken), ..old };
    if !is_taken {
        shown.inventory = inventory(seen.documents.iter().map(|seen| seen.object.as_ref()), MOST_OBJECTS);
        shown.objects = number(shown.inventory.len());
    }
    if is_applied {
        let has_it =
            (shown.digest.as_ref(), shown.revision.as_ref()) == (Some(&prepared.digest), Some(&prepared.revision));
        if !has_it {
            shown.applied_at = Some(Time(observed.now));
        }
        shown.revision = Some(prepared.revision.clone());
        shown.version = prepared.version.clone();
        shown.digest = Some(prepared.digest.clone());
    }
    let (healthy, unhealthy) = healthy(observed, prepared, seen, &shown, &applied);
    shown.unhealthy = unhealthy;
    let next = match (is_applied, healthy.status) {
        (true, Some(true)) => resync(observed),
        (true, _) => Next::after_seconds(pause(observed, condition::HEALTHY)),
        (false, _) => next,
    };
    let status = status::status(observed, shown, Told { applied, healthy });
    let is_ready = status.conditions.iter().any(|there| there.type_ == condition::READY && there.status == "True");
    let waits_for = status.message.clone().filter(|_| !is_ready);
    Plan { actions, status, next, waits_for }
}

fn decide(observed: &Observed<'_>, prepared: &PreparedChart, seen: &Seen) -> Decision {
    let old = observed.object.status.as_ref().and_then(|status| status.release.clone());
    let known = old.unwrap_or_else(|| ChartRelease {
        name: prepared.release.clone(),
        namespace: prepared.namespace.clone(),
        ..ChartRelease::default()
    });
    let Settled { mut release, under_way, ended } = settle(observed, known);
    note(&mut release, seen.release.as_ref());
    let actions: Vec<Action> = ended.into_iter().map(Action::DropInputs).collect();
    if let Some(sentence) = under_way {
        let applied = stated(false, Reason::Applying, format!("{sentence} for {}", prepared.name()));
        let next = Next::after_seconds(pause(observed, condition::APPLIED).min(5));
        return Decision { actions, release, applied, next };
    }
    let soon = Next::after_seconds(pause(observed, condition::APPLIED));
    match need(observed, prepared, seen, &release) {
        Need::Nothing => {
            release.failure = None;
            let applied = stated(true, Reason::Applied, as_wanted(prepared, seen));
            Decision { actions, release, applied, next: soon }
        }
        Need::Waits(problem, until) => {
            let next = until.map_or(soon, |until| seconds_until(observed, until));
            Decision { actions, release, applied: stated(false, problem.reason, problem.message), next }
        }
        Need::Run { .. } if observed.addon.is_some_and(|addon| addon.spec.paused) => {
            let message = "paused: Helm runs once spec.paused of the Addon is false".to_owned();
            Decision { actions, release, applied: stated(false, Reason::Paused, message), next: resync(observed) }
        }
        Need::Run { why, recover, force } => {
            let again = again(observed, &release, &prepared.digest);
            match again {
                Again::Now(retry) => {
                    let how = Upgrade { why, recover, force, retry };
                    run(observed, prepared, how, (actions, release))
                }
                Again::At(_) | Again::Asked => {
                    let applied = failed(observed, prepared, (&release, seen.release.as_ref()), &again);
                    Decision { actions, release, applied, next: until(observed, &again) }
                }
            }
        }
    }
}

/// What the cluster says of the release.
fn note(release: &mut ChartRelease, seen: Option<&Release>) {
    release.revision = seen.map(|seen| seen.revision);
    release.status = seen.map(|seen| seen.status.clone());
    release.chart_version = seen.and_then(|seen| seen.chart_version.clone());
    release.app_version = seen.and_then(|seen| seen.app_version.clone());
}

fn as_wanted(prepared: &PreparedChart, seen: &Seen) -> String {
    let revision = seen.release.as_ref().map_or(0, |release| release.revision);
    format!(
        "release {} has revision {revision} with {}: {} as wanted",
        prepared.release,
        prepared.name(),
        count(seen.documents.len(), "object")
    )
}

/// What is said of an attempt that failed.
fn failed(
    observed: &Observed<'_>,
    prepared: &PreparedChart,
    (release, seen): (&ChartRelease, Option<&Release>),
    again: &Again,
) -> Statement {
    let failure = release.failure.clone().unwrap_or_default();
    let reason = Reason::from_name(&failure.reason).unwrap_or(Reason::ReleaseFailed);
    let (chart, next) = (prepared.name(), next_attempt(observed.object, again));
    let why = &failure.message;
    match seen.filter(|seen| seen.is_deployed() && reason == Reason::ReleaseFailed) {
        Some(Release { revision, chart_version, .. }) => {
            let serving = chart_version.as_deref().unwrap_or("of another version");
            let message = format!(
                "{chart} failed and was rolled back; revision {revision} with chart {serving} serves: {why}; {next}"
            );
            stated(false, Reason::ReleaseRolledBack, message)
        }
        None => stated(false, reason, format!("{chart} failed: {why}; {next}")),
    }
}

/// When to look again at what may not be tried now.
pub(super) fn until(observed: &Observed<'_>, again: &Again) -> Next {
    match again {
        Again::At(at) => seconds_until(observed, *at),
        Again::Now(_) | Again::Asked => resync(observed),
    }
}

fn seconds_until(observed: &Observed<'_>, at: Timestamp) -> Next {
    let seconds = at.as_second().saturating_sub(observed.now.as_second()).max(1);
    Next::after_seconds(u64::try_from(seconds).unwrap_or(1)).or_sooner(resync(observed))
}

/// Whether the objects of the release that serves are healthy.
fn healthy(
    observed: &Observed<'_>,
    prepared: &PreparedChart,
    seen: &Seen,
    shown: &ClusterAddonStatus,
    applied: &Statement,
) -> (Statement, Option<crds::cluster_addon::UnhealthyObject>) {
    let Some(release) = seen.release.as_ref().filter(|_| applied.reason != Reason::ReleaseTaken.as_str()) else {
        let mut healthy = applied.clone();
        (healthy.type_, healthy.status) = (condition::HEALTHY, None);
        return (healthy, None);
    };
    let there = release.documents.iter().cloned().zip(seen.documents.iter().cloned());
    let (documents, states) = there.filter(|(document, seen)| !is_over(document, &seen.state)).unzip();
    let prepared = Prepared {
        revision: prepared.revision.clone(),
        version: prepared.version.clone(),
        digest: prepared.digest.clone(),
        documents,
        health_checks: prepared.health_checks.clone(),
    };
    status::healthy(observed, &prepared, &Seen { documents: states, ..Seen::default() }, shown)
}
