//! The status of a run.

use super::observed::RunObserved;
use crds::conditions::{self, Statement};
use crds::kstatus::Standing;
use crds::names::condition;
use crds::playbook_run::{RunPhase, end};
use crds::{PlaybookRunStatus, Reason};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

/// The longest message of a status.
pub(super) const LONGEST_MESSAGE: usize = 1024;

/// The status of a run that is not over.
pub(super) fn under_way(
    observed: &RunObserved<'_>,
    phase: RunPhase,
    reason: Reason,
    message: &str,
    condition_message: &str,
) -> PlaybookRunStatus {
    let mut status = observed.status();
    status.phase = Some(phase);
    status.message = Some(cut(message));
    let statement = Statement::new(condition::COMPLETE, false, reason, cut(condition_message));
    report(observed, &mut status, Standing::Reconciling, vec![statement]);
    status
}

/// The status of a run that is over.
pub(super) fn over(
    observed: &RunObserved<'_>,
    phase: RunPhase,
    retriable: bool,
    reason: impl Into<String>,
    message: &str,
) -> PlaybookRunStatus {
    let mut status = observed.status();
    status.phase = Some(phase);
    status.retriable = (phase == RunPhase::Failed).then_some(retriable);
    status.message = Some(cut(message));
    status.finished_at = Some(Time(observed.now));
    let standing = Standing::new(phase == RunPhase::Succeeded, true);
    report(observed, &mut status, standing, end(phase, &reason.into(), &cut(message)));
    status
}

/// Where it stands; the first statement says why.
pub(super) fn report(
    observed: &RunObserved<'_>,
    status: &mut PlaybookRunStatus,
    standing: Standing,
    mut statements: Vec<Statement>,
) {
    if let Some(why) = statements.first().cloned() {
        standing.report(&why, &mut status.conditions, &mut statements);
    }
    state(observed, status, &statements);
}

pub(super) fn state(observed: &RunObserved<'_>, status: &mut PlaybookRunStatus, statements: &[Statement]) {
    let generation = observed.run.metadata.generation;
    status.observed_generation = generation;
    status.conditions = conditions::state(&status.conditions, statements, generation, &Time(observed.now));
}

/// Within what the schema allows, and without what would disturb a terminal: part of it comes from machines.
pub(super) fn cut(text: &str) -> String {
    let clean = text.chars().map(|c| if c.is_control() { ' ' } else { c });
    let text: String = clean.take(LONGEST_MESSAGE).collect();
    text.trim().to_owned()
}
