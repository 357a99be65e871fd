//! A run that is over: what was held for it is let go.

use crds::names::finalizer;
use crds::{ObjectExt, PlaybookRunStatus};
use k8s_openapi::api::core::v1::Pod;

use super::action::Action;
use super::observed::RunObserved;
use super::pod::has_ended;
use crate::{Next, Plan};

/// The outcome is recorded: nothing needs to be held any more.
pub(super) fn releasing(observed: &RunObserved<'_>) -> Plan<Action, PlaybookRunStatus> {
    let held_pods = observed.pods.iter().filter(|pod| pod.has_finalizer(finalizer::OUTCOME_RECORDED));
    let release = |pod: &Pod| match has_ended(pod) || pod.is_deleting() {
        true => Action::ReleasePod(Box::new(pod.clone())),
        // One that came up while its Job was being deleted.
        false => Action::StopPod(Box::new(pod.clone())),
    };
    let mut actions: Vec<Action> = held_pods.map(release).collect();
    if let Some(job) = observed.job
        && job.has_finalizer(finalizer::OUTCOME_RECORDED)
    {
        actions.push(Action::ReleaseJob(Box::new(job.clone())));
    }
    if observed.run.has_finalizer(finalizer::RUN) {
        actions.extend(let_go());
    }
    Plan { actions, status: observed.status(), next: Next::OnChange, waits_for: None }
}

/// What is left of a run that is over.
pub(super) fn let_go() -> [Action; 3] {
    [Action::Withdraw, Action::DropSecrets, Action::Release]
}
