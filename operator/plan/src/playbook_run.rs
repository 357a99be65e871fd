//! One run: held back until it may start, frozen, given a Job, followed, concluded, and let go. Never branches on what
//! the run is for.

mod action;
mod conclusion;
mod ending;
mod lock;
mod log;
mod observed;
mod permission;
pub(crate) mod pod;
mod preparing;
mod progress;
mod receiver;
mod releasing;
mod status;
mod trouble;
mod working;

use crds::names::finalizer;
use crds::playbook_run::RunPhase;
use crds::{ObjectExt, PlaybookRun, PlaybookRunStatus};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;

use crate::{Next, Plan};

pub use action::Action;
pub use lock::{Grant, grant};
pub use log::has_log;
pub use observed::{InputsSeen, LogSeen, RunObserved};
pub use pod::{has_ended, node_of};
pub use preparing::frozen;
use releasing::releasing;
pub use trouble::Trouble;

/// How far a run is; it says what must be observed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// It has no Job yet: look at the lock and at the inputs, and at the API itself, not at a cache.
    Preparing,
    /// It has, or had, a Job: look at the Pod and its log.
    Working,
    /// The outcome is recorded: what was held is let go.
    Releasing,
    /// Nothing is left to do.
    Over,
}

/// How far the run is.
pub fn stage(run: &PlaybookRun, job: Option<&Job>, pods: &[Pod]) -> Stage {
    let status = run.status.as_ref();
    if status.and_then(|status| status.phase).is_some_and(RunPhase::is_final) {
        let job_held = job.is_some_and(|job| job.has_finalizer(finalizer::OUTCOME_RECORDED));
        let pod_held = pods.iter().any(|pod| pod.has_finalizer(finalizer::OUTCOME_RECORDED));
        let run_held = run.has_finalizer(finalizer::RUN);
        return if job_held || pod_held || run_held { Stage::Releasing } else { Stage::Over };
    }
    if job.is_some() || status.is_some_and(|status| status.started_at.is_some()) {
        return Stage::Working;
    }
    Stage::Preparing
}

/// Decides.
pub fn playbook_run(observed: &RunObserved<'_>) -> Plan<Action, PlaybookRunStatus> {
    match stage(observed.run, observed.job, observed.pods) {
        Stage::Preparing => preparing::plan(observed),
        Stage::Working => working::plan(observed),
        Stage::Releasing => releasing(observed),
        Stage::Over => Plan { actions: Vec::new(), status: observed.status(), next: Next::OnChange, waits_for: None },
    }
}

#[cfg(test)]
mod tests;
