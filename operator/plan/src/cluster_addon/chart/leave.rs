//! A release that goes: Helm uninstalls it.

use crds::Reason;
use crds::chart::{ChartInputs, ChartVerb};
use crds::cluster_addon::ChartRelease;
use crds::names::condition;

use super::attempt::{Again, Settled, again, next_attempt, settle};
use super::job;
use super::plan::until;
use super::upgrade::with_release;
use crate::Next;
use crate::cluster_addon::action::Action;
use crate::cluster_addon::observed::{Observed, Seen};
use crate::cluster_addon::pace::pause;

/// As a failure has it.
const UNINSTALL: &str = "uninstall";
/// How long Helm waits for hooks, where the Addon does not say so any more.
const TIMEOUT_SECONDS: u32 = 300;

/// What is done now for a release that goes.
pub(in crate::cluster_addon) struct Leaving {
    pub actions: Vec<Action>,
    pub release: ChartRelease,
    pub reason: Reason,
    pub message: String,
    pub next: Next,
}

/// What is done now; none where the release is gone.
pub(in crate::cluster_addon) fn leave(observed: &Observed<'_>, known: &ChartRelease, seen: &Seen) -> Option<Leaving> {
    let Settled { mut release, under_way, ended } = settle(observed, known.clone());
    let mut actions: Vec<Action> = ended.into_iter().map(Action::DropInputs).collect();
    let told = |actions, release, reason, message, next| Some(Leaving { actions, release, reason, message, next });
    if let Some(sentence) = under_way {
        let next = Next::after_seconds(pause(observed, condition::APPLIED).min(5));
        return told(actions, release, Reason::RemovingObjects, sentence, next);
    }
    let found = seen.release.as_ref()?;
    release.revision = Some(found.revision);
    release.status = Some(found.status.clone());
    let again = again(observed, &release, UNINSTALL);
    let Again::Now(retry) = &again else {
        let failure = release.failure.clone().unwrap_or_default();
        let message = format!(
            "Helm could not uninstall release {}: {}; {}",
            release.name,
            failure.message,
            next_attempt(observed.object, &again)
        );
        return told(actions, release, Reason::UninstallFailed, message, until(observed, &again));
    };
    let chart = observed.addon.and_then(|addon| addon.spec.source.chart.as_ref());
    let inputs = ChartInputs {
        verb: ChartVerb::Uninstall,
        release: release.name.clone(),
        namespace: release.namespace.clone(),
        timeout_seconds: chart.and_then(|chart| u32::try_from(chart.timeout_seconds).ok()).unwrap_or(TIMEOUT_SECONDS),
        chart: None,
        description: String::new(),
        force_conflicts: false,
        take_ownership: false,
        recover: false,
    };
    let name = job::name(&with_release(observed.object, &release), UNINSTALL);
    match job::operation(observed, (&name, UNINSTALL), &inputs, None) {
        Ok(operation) => {
            if let Some(failure) = &mut release.failure {
                failure.retry = retry.clone();
            }
            release.job = Some(name.clone());
            let message = format!("Job {name} uninstalls release {}", release.name);
            actions.push(Action::RecordRelease(Box::new(release.clone())));
            actions.push(Action::Run(Box::new(operation)));
            told(actions, release, Reason::RemovingObjects, message, Next::after_seconds(2))
        }
        Err(problem) => told(actions, release, problem.reason, problem.message, Next::after_seconds(30)),
    }
}
