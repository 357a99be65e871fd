//! Whether Helm is to run: the release is not there, is not as it is wanted, or its objects are not.

use crds::Reason;
use crds::addon::ConflictPolicy;
use crds::cluster_addon::ChartRelease;
use jiff::{SignedDuration, Timestamp};

use super::prepared::{PreparedChart, of_addon};
use super::release::Release;
use crate::addon::Problem;
use crate::cluster_addon::conflict::{self, FieldConflict};
use crate::cluster_addon::documents::Document;
use crate::cluster_addon::observed::{DocumentSeen, Observed, Seen, State, Trial};
use crate::moment::after;

/// What an interrupted Helm may take beyond its timeouts.
const GRACE_SECONDS: i64 = 60;
/// Between two Jobs that put something back.
const PUT_BACK_SECONDS: i64 = 10;

/// Whether Helm is to run.
#[derive(Debug, PartialEq)]
pub(super) enum Need {
    /// All is as it is wanted.
    Nothing,
    /// It is.
    Run {
        /// Why, in words: `ConfigMap default/a is gone`.
        why: String,
        /// Whether an interrupted Helm has left something.
        recover: bool,
        /// Whether fields are taken over from others.
        force: bool,
    },
    /// Not now, and perhaps after that time.
    Waits(Problem, Option<Timestamp>),
}

/// Whether Helm is to run; `old`: what was known of the release before.
pub(super) fn need(observed: &Observed<'_>, prepared: &PreparedChart, seen: &Seen, old: &ChartRelease) -> Need {
    let force = observed.addon.is_some_and(|addon| addon.spec.conflicts == ConflictPolicy::Force);
    // What a person changed is put back with the next version, too: Helm would stop at it, and at rolling back.
    let forces = force || is_changed_by_hand_alone(seen);
    let run = |why: &str, recover: bool| Need::Run { why: why.to_owned(), recover, force: forces };
    let Some(release) = &seen.release else { return run("it is not there", false) };
    let addon = observed.object.spec.addon_ref.name.as_str();
    let is_ours = old.tried_at.is_some() || old.job.is_some() || release.description.starts_with(&of_addon(addon));
    if !is_ours && !force {
        let message = format!(
            "release {} is in namespace {} already, with revision {}, and this Addon has not made it: spec.conflicts: Force would take it over",
            prepared.release, prepared.namespace, release.revision
        );
        return Need::Waits(Problem { reason: Reason::ReleaseTaken, message }, None);
    }
    if release.is_pending() {
        return match pending_until(observed, release).filter(|until| *until > observed.now) {
            Some(until) => Need::Waits(pending(prepared, release), Some(until)),
            None => run("an interrupted Helm is put in order", true),
        };
    }
    match release.is_deployed() && release.description == prepared.description(addon) {
        true => drift(observed, seen, (old, force)),
        false => run("it is not as it is wanted", false),
    }
}

/// Whether all that holds up fields was written by people.
fn is_changed_by_hand_alone(seen: &Seen) -> bool {
    let conflicts = seen.documents.iter().filter_map(|seen| match &seen.state {
        State::There { trial: Trial::Conflicts(conflicts), .. } => Some(conflicts),
        _ => None,
    });
    let conflicts: Vec<&FieldConflict> = conflicts.flatten().collect();
    !conflicts.is_empty() && conflicts.into_iter().all(FieldConflict::is_by_hand)
}

fn pending(prepared: &PreparedChart, release: &Release) -> Problem {
    let Release { status, revision, .. } = release;
    let message =
        format!("revision {revision} of release {} is {status}: another Helm is at work on it", prepared.release);
    Problem { reason: Reason::ReleasePending, message }
}

/// Until then somebody else may be at work on it.
fn pending_until(observed: &Observed<'_>, release: &Release) -> Option<Timestamp> {
    let chart = observed.addon.and_then(|addon| addon.spec.source.chart.as_ref());
    let timeout = chart.map_or(300, |chart| i64::from(chart.timeout_seconds));
    Some(after(release.deployed_at?, SignedDuration::from_secs(2 * timeout + GRACE_SECONDS)))
}

/// Whether objects of the release are not as Helm has applied them.
fn drift(observed: &Observed<'_>, seen: &Seen, (old, force): (&ChartRelease, bool)) -> Need {
    let tried = old.tried_at.as_ref().map(|tried| tried.0);
    let within = |seconds: i64| {
        let until = tried.map(|tried| after(tried, SignedDuration::from_secs(seconds)));
        until.filter(|until| *until > observed.now)
    };
    let resync = observed.addon.map_or(600, |addon| i64::from(addon.spec.resync_seconds));
    // What differs right after Helm has run is what an admission webhook makes of it.
    let is_webhook = within(resync).is_some();
    let mut found = None;
    for (document, seen) in seen.release.iter().flat_map(|release| &release.documents).zip(&seen.documents) {
        let name = name(seen, &document.kind, &document.name);
        match &seen.state {
            State::Missing if is_over(document, &seen.state) => {}
            State::Missing => return put_back(format!("{name} is gone"), force, within(PUT_BACK_SECONDS)),
            State::There { trial: Trial::Conflicts(conflicts), .. } => {
                if !force && !conflicts.iter().all(FieldConflict::is_by_hand) {
                    let message = format!(
                        "{name}: {}; spec.conflicts: Force would take the fields over",
                        conflict::message(conflicts)
                    );
                    return Need::Waits(Problem { reason: Reason::FieldConflict, message }, None);
                }
                found = Some((format!("{name} was changed by hand"), true));
            }
            State::There { trial: Trial::Differs, .. } if !is_webhook => {
                found = found.or(Some((format!("{name} was changed"), force)));
            }
            State::Refused(why) => {
                let message = format!("{name}: {why}");
                return Need::Waits(Problem { reason: Reason::ApplyFailed, message }, None);
            }
            State::KindUnknown | State::Conflicting(_) | State::There { .. } => {}
        }
    }
    match found {
        Some((what, force)) => put_back(what, force, within(PUT_BACK_SECONDS)),
        None => Need::Nothing,
    }
}

/// Whether it is a Job that is gone: one that has ended may be deleted by its time to live.
pub(super) fn is_over(document: &Document, state: &State) -> bool {
    *state == State::Missing && document.group == "batch" && document.kind == "Job"
}

fn put_back(what: String, force: bool, until: Option<Timestamp>) -> Need {
    match until {
        None => Need::Run { why: what, recover: false, force },
        Some(until) => {
            let message = format!("{what}: Helm runs again soon");
            Need::Waits(Problem { reason: Reason::Applying, message }, Some(until))
        }
    }
}

fn name(seen: &DocumentSeen, kind: &str, name: &str) -> String {
    seen.object.as_ref().map_or_else(|| format!("{kind} {name}"), ToString::to_string)
}
