//! How far a Machine is on its way into the cluster.

use crds::Host;
use crds::ObjectExt;
use crds::Reason;
use crds::conditions::Statement;
use crds::names::condition;
use crds::step::Role;

use crate::attempts::RetryDecision;
use crate::machine::hold::Hold;
use crate::machine::observed::{Observed, active_run};
use crate::machine::retry::retry;
use crate::message::count;
use crate::moment::clock;

pub(super) fn claimed(hold: &Hold<'_>) -> Statement {
    let stated =
        |status, reason: Reason, message: String| Statement::new(condition::HOST_CLAIMED, status, reason, message);
    match hold {
        Hold::Held(host) => stated(true, Reason::Claimed, format!("Host {}", host.name())),
        Hold::Take(host) => stated(false, Reason::Claiming, format!("claims Host {}", host.name())),
        Hold::Nothing { reason, message, .. } => stated(false, *reason, message.clone()),
    }
}

pub(super) fn statement(observed: &Observed<'_>, host: Option<&Host>, decision: &RetryDecision) -> Statement {
    fn stated(status: bool, reason: impl Into<String>, message: String) -> Statement {
        Statement::new(condition::PROVISIONED, status, reason, message)
    }
    let Some(host) = host else {
        return stated(false, Reason::WaitingForHost, "has no Host yet".into());
    };
    match decision {
        RetryDecision::Done { run, .. } => stated(true, Reason::Provisioned, format!("run {run}")),
        RetryDecision::UnderWay { run } => stated(false, Reason::Provisioning, under_way(observed, host.name(), run)),
        RetryDecision::Now { .. } => stated(false, Reason::WaitingForRun, waits_for_run(observed)),
        RetryDecision::Later { at, cause, .. } => {
            stated(false, cause.reason.as_str(), format!("{} (tried again at {})", cause.message, clock(*at)))
        }
        RetryDecision::Halted { failures, cause } => match cause {
            Some(cause) => stated(
                false,
                cause.reason.as_str(),
                format!(
                    "{} (gave up after {}: correct it, then {})",
                    cause.message,
                    count(*failures, "attempt"),
                    retry(observed)
                ),
            ),
            None => stated(false, Reason::Canceled, format!("the run was canceled (to go on: {})", retry(observed))),
        },
    }
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
    let installed = observed.formed.is_some_and(|cluster| cluster.is_installed);
    match (observed.machine.spec.role, installed) {
        (Role::Worker, false) => "joins once the control plane is installed".into(),
        (Role::Worker, true) => "waits for its run to begin".into(),
        (Role::ControlPlane | Role::Etcd, false) => "waits for the install to begin".into(),
        (Role::ControlPlane | Role::Etcd, true) => {
            "waits for its turn to join: control planes and etcd machines change one at a time".into()
        }
    }
}
