//! How far a Machine is on its way into the cluster.

use crds::Host;
use crds::Reason;
use crds::commands::{self, Target};
use crds::conditions::Statement;
use crds::names::{annotation, condition};
use crds::step::Role;

use super::{Hold, Observed};
use crate::attempts::{self, RetryDecision};
use crate::machine::{active_run, name_of};
use crate::moment::clock;
use crate::sentence::count;

pub(super) fn claimed(hold: &Hold<'_>) -> Statement {
    let of = |status, reason: Reason, message: String| {
        Statement::new(condition::HOST_CLAIMED, status, reason, message)
    };
    match hold {
        Hold::Held(host) => of(true, Reason::Claimed, format!("Host {}", name_of(host))),
        Hold::Take(host) => of(false, Reason::Claiming, format!("claims Host {}", name_of(host))),
        Hold::Nothing { reason, message } => of(false, *reason, message.clone()),
    }
}

pub(super) fn statement(observed: &Observed<'_>, host: Option<&Host>, decision: &RetryDecision) -> Statement {
    fn of(status: bool, reason: impl Into<String>, message: String) -> Statement {
        Statement::new(condition::PROVISIONED, status, reason, message)
    }
    let Some(host) = host else {
        return of(false, Reason::WaitingForHost, "has no Host yet".into());
    };
    match decision {
        RetryDecision::Done { run, .. } => of(true, Reason::Provisioned, format!("run {run}")),
        RetryDecision::UnderWay { run } => of(
            false,
            Reason::Provisioning,
            under_way(observed, name_of(host), run),
        ),
        RetryDecision::Now { .. } => of(false, Reason::WaitingForRun, waits_for_run(observed)),
        RetryDecision::Later { at, cause, .. } => of(
            false,
            cause.reason.as_str(),
            format!("{} (tried again at {})", cause.message, clock(*at)),
        ),
        RetryDecision::Halted { failures, cause } => match cause {
            Some(cause) => of(
                false,
                cause.reason.as_str(),
                format!(
                    "{} (gave up after {}: correct it, then {})",
                    cause.message,
                    count(*failures, "attempt"),
                    retry(observed)
                ),
            ),
            None => of(
                false,
                Reason::Canceled,
                format!("the run was canceled (to go on: {})", retry(observed)),
            ),
        },
    }
}

/// What a person types to have another attempt.
pub(in crate::machine) fn retry(observed: &Observed<'_>) -> String {
    let metadata = &observed.machine.metadata;
    let value = attempts::next_retry(
        metadata.annotations.as_ref(),
        metadata.generation.unwrap_or_default(),
    );
    commands::annotate(Target::Machine, metadata, annotation::RETRY, value)
}

fn under_way(observed: &Observed<'_>, host: &str, run: &str) -> String {
    // The step, and not the task: a task a second would be a write a second for each Machine.
    let found = active_run(observed.runs, host).and_then(|run| run.status.as_ref());
    match found.and_then(|status| status.progress.as_ref()) {
        Some(progress) if !progress.step.is_empty() => format!("run {run}: {}", progress.step),
        _ => format!("run {run} begins"),
    }
}

fn waits_for_run(observed: &Observed<'_>) -> String {
    let deployment = observed
        .deployment
        .and_then(|deployment| deployment.status.as_ref());
    let installed = deployment.is_some_and(|status| status.installed_at.is_some());
    match (observed.machine.spec.role, installed) {
        (Role::Worker, false) => "joins once the control plane is installed".into(),
        (Role::Worker, true) => "waits for its run to begin".into(),
        (Role::ControlPlane | Role::Etcd, false) => "waits for the install to begin".into(),
        (Role::ControlPlane | Role::Etcd, true) => {
            "waits for its turn to join: control planes and etcd machines change one at a time".into()
        }
    }
}
