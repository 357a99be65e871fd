//! The install: one Exclusive run on all control planes and dedicated etcd machines, when all of them have their Hosts.

use crds::PlaybookRun;
use crds::Reason;
use crds::playbook_run::RunPhase;
use crds::step::{Intent, Role, Step};
use jiff::Timestamp;

use crate::attempts::{self, Failure, RetryDecision};
use crate::cluster_deployment::action::Action;
use crate::cluster_deployment::blocker::waits_for_hosts;
use crate::cluster_deployment::endpoint;
use crate::cluster_deployment::proposal::{Area, Proposal, Round, Severity};
use crate::cluster_deployment::request::{Attempt, Request, Target, describe};
use crate::cluster_deployment::restoring;
use crate::cluster_deployment::retrying::{failed_after, next_attempt, retry};
use crate::cluster_deployment::state::{ClusterMachine, ClusterState};
use crate::hooks;

/// Where the control planes hold the endpoint, the first one begins to while it is made, and the others follow. A
/// backup that the cluster begins with lies ready on the machines before etcd runs on any of them.
fn steps(state: &ClusterState<'_>) -> Vec<Step> {
    let mut steps = vec![Step::BootstrapOs, Step::Preflight, Step::Prepare, Step::ContainerRuntime];
    steps.extend(restoring::pending(state.deployment).map(|_| Step::StageBackup));
    steps.extend(state.membership().etcd_role().map(|_| Step::Etcd));
    steps.push(Step::ControlPlane);
    steps.extend(endpoint::held(state).map(|_| Step::LoadBalancer));
    steps.extend([Step::Network, Step::Addons, Step::PostInstall]);
    steps
}

/// What the machines' attempts together come to.
enum Due<'a> {
    /// All may begin.
    Now {
        targets: Vec<Target<'a>>,
        number: i32,
        /// The run that each of them goes on from.
        goes_on: Vec<Option<String>>,
    },
    /// What stands in the way.
    NotNow(Proposal),
}

/// An attempt that is not due yet.
struct Later {
    at: Timestamp,
    failures: usize,
    cause: Failure,
}

pub(super) fn propose(state: &ClusterState<'_>, _: &Round) -> Proposal {
    if state.installed.is_some() {
        return Proposal::default();
    }
    let Some(initial) = state.founders() else {
        return waiting_for_hosts(state);
    };
    let active = initial.iter().find_map(|machine| state.active_on(machine.host_name()?));
    if let Some(run) = active {
        return installing(describe(state, run));
    }
    match due(state, initial) {
        Due::NotNow(proposal) => proposal,
        Due::Now { targets, number, goes_on } => {
            let resume = is_resumed(state, &goes_on, targets.len());
            let attempt = Attempt { number, resume };
            let backup = restoring::pending(state.deployment);
            let vars = backup.map(|backup| restoring::variables(state.deployment, backup)).unwrap_or_default();
            let request = Request::new(Intent::Install, steps(state), &targets, attempt).with(vars);
            let run = request.around(hooks::around_install).run(state);
            Proposal { pending: true, ..installing("the install begins".into()).and(Action::create(run)) }
        }
    }
}

fn due<'a>(state: &ClusterState<'a>, initial: Vec<ClusterMachine<'a>>) -> Due<'a> {
    let mut targets: Vec<Target<'a>> = Vec::new();
    let mut number = 0;
    let mut stopped: Vec<Option<String>> = Vec::new();
    let mut later: Option<Later> = None;
    for machine in initial {
        match state.retry_decision(&machine) {
            RetryDecision::Now { attempt, retry, goes_on } => {
                number = number.max(attempt);
                stopped.push(goes_on);
                targets.push((machine, retry));
            }
            // A machine that was part of an earlier attempt is installed again with the others: every step may be.
            RetryDecision::Done { .. } => {
                stopped.push(None);
                targets.push((machine, None));
            }
            RetryDecision::UnderWay { run } => {
                let message = state.run(&run).map(|run| describe(state, run));
                return Due::NotNow(installing(message.unwrap_or_else(|| format!("run {run}"))));
            }
            RetryDecision::Halted { failures, cause } => {
                let cause = cause.map(|cause| named(cause, &machine));
                return Due::NotNow(halted(state, failures, cause));
            }
            RetryDecision::Later { at, failures, cause } => {
                if later.as_ref().is_none_or(|other| other.at < at) {
                    let cause = named(cause, &machine);
                    later = Some(Later { at, failures, cause });
                }
            }
        }
    }
    match later {
        Some(later) => Due::NotNow(failing(state, &later)),
        None => Due::Now { targets, number, goes_on: stopped },
    }
}

fn report(reason: Reason, message: String, severity: Severity) -> Proposal {
    Proposal::report(Area::Install, reason, message, severity)
}

fn installing(message: String) -> Proposal {
    report(Reason::Installing, message, Severity::Progressing)
}

fn waiting_for_hosts(state: &ClusterState<'_>) -> Proposal {
    let message = waits_for_hosts(state, |_| true).unwrap_or_else(|| {
        let spec = &state.deployment.spec;
        let etcd = spec.etcd.replicas.unwrap_or_default();
        let wanted = spec.control_plane.replicas.saturating_add(etcd);
        let with_hosts = |role| state.of_role(role).filter(|machine| machine.host.is_some()).count();
        let has = with_hosts(Role::ControlPlane) + with_hosts(Role::Etcd);
        format!("waits for the Hosts of the control plane: {has} of {wanted} are claimed")
    });
    report(Reason::WaitingForHosts, message, Severity::Progressing)
}

fn failing(state: &ClusterState<'_>, later: &Later) -> Proposal {
    let Later { at, failures, cause } = later;
    let how = match cause.interrupted {
        true => "the install was interrupted",
        false => "the install failed",
    };
    let message = next_attempt(state, how, *failures, cause, *at);
    Proposal { pending: true, ..report(Reason::InstallFailed, message, Severity::Failing).at(state, *at) }
}

fn halted(state: &ClusterState<'_>, failures: usize, cause: Option<Failure>) -> Proposal {
    match cause {
        Some(cause) => {
            let message = failed_after(state, "the install failed", failures, &cause);
            report(Reason::InstallFailed, message, Severity::Stalled)
        }
        None => {
            let place = where_canceled(state);
            let message = format!("the install was canceled{place}; to go on, {}", retry(state));
            report(Reason::InstallCanceled, message, Severity::Stalled)
        }
    }
}

/// ` on HOST: what its run says`, of the install that was canceled last.
fn where_canceled(state: &ClusterState<'_>) -> String {
    let canceled = |run: &&&PlaybookRun| {
        let phase = run.status.as_ref().and_then(|status| status.phase);
        run.spec.intent == Intent::Install && phase == Some(RunPhase::Canceled)
    };
    let runs = state.observed.runs.iter().filter(canceled);
    let last = runs.max_by_key(|run| attempts::attempt_of(run));
    last.map_or_else(String::new, |run| {
        let said = run.status.as_ref().and_then(|status| status.message.as_deref());
        format!(" on {}: {}", run.spec.hosts.join(", "), said.unwrap_or_default())
    })
}

/// What went wrong, with the Host that it went wrong on.
fn named(cause: Failure, machine: &ClusterMachine<'_>) -> Failure {
    match machine.host_name() {
        Some(host) if !cause.message.contains(host) => {
            Failure { message: format!("{host}: {}", cause.message), ..cause }
        }
        _ => cause,
    }
}

/// Whether the same run stopped for all of them, and for no other machine: then the next one goes on from there.
fn is_resumed(state: &ClusterState<'_>, stopped: &[Option<String>], wanted: usize) -> bool {
    let Some(Some(first)) = stopped.first() else {
        return false;
    };
    let machines = state.run(first).map(|run| attempts::targets(run).len());
    stopped.iter().all(|run| run.as_ref() == Some(first)) && machines == Some(wanted)
}
