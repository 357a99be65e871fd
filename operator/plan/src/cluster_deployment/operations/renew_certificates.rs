//! Renews the leaf certificates of control planes and etcd members before they end, one machine at a time, by a run on
//! each. It is planned by what the machines serve, so that it is due for certificates that nobody renewed as well as
//! for those that have ended: the step needs no API.

mod due;
mod renewals;

use crds::ObjectExt;
use crds::PlaybookRun;
use crds::Reason;
use crds::names::annotation;
use crds::step::{Intent, Role, Step};

use crate::attempts::{self, Outcome, PastAttempt, RetryDecision};
use crate::cluster_deployment::action::Action;
use crate::cluster_deployment::lane::{Lane, Needs};
use crate::cluster_deployment::proposal::{Area, Proposal, Round, Severity};
use crate::cluster_deployment::request::{Attempt, Request, describe_as, number_after};
use crate::cluster_deployment::retrying::retry;
use crate::cluster_deployment::state::{ClusterMachine, ClusterState};
use crate::moment::clock;

use due::{Due, due};
use renewals::renewals;

/// Runs that are kept of each machine, the newest.
const KEEP: usize = 8;

pub(super) fn propose(state: &ClusterState<'_>, round: &Round) -> Proposal {
    if state.installed.is_none() {
        return Proposal::default();
    }
    if let Some(run) = state.active_with(&Step::RenewCertificates) {
        let what = what(state, run.spec.hosts.first().map(String::as_str).unwrap_or_default());
        return progressing(describe_as(state, &what, run));
    }
    let mut proposal = Proposal::default();
    for due in due(state) {
        if due.at > state.observed.now {
            proposal = proposal.at(state, due.at);
            continue;
        }
        match decide(state, &due) {
            // Of a paused cluster it is said that they end, and not that they are renewed.
            RetryDecision::Now { .. } if !round.allows(Lane::ControlPlane, Needs::Lock) => {}
            RetryDecision::Now { retry: asked, .. } => return begin(state, &due, asked),
            // Another machine's are renewed meanwhile, and nothing else waits for this one.
            RetryDecision::Later { at, .. } => proposal = proposal.at(state, at),
            RetryDecision::Halted { .. } | RetryDecision::UnderWay { .. } | RetryDecision::Done { .. } => {}
        }
    }
    proposal
}

/// The machines whose certificates are renewed, or are about to be.
pub(in crate::cluster_deployment) fn due_now<'a>(state: &ClusterState<'a>) -> Vec<ClusterMachine<'a>> {
    if state.installed.is_none() {
        return Vec::new();
    }
    let now = due(state).into_iter().filter(|due| due.at <= state.observed.now);
    now.map(|due| due.machine).collect()
}

fn progressing(message: String) -> Proposal {
    Proposal::report(Area::Certificates, Reason::RenewingCertificates, message, Severity::Progressing)
}

fn begin(state: &ClusterState<'_>, due: &Due<'_>, asked: Option<String>) -> Proposal {
    let what = what(state, due.machine.host_name().unwrap_or_default());
    if let Some(why) = state.membership().run_in_the_way(None) {
        return progressing(format!("{what}: {why}"));
    }
    let number = number_after(attempts_at(state, due));
    let targets = [(due.machine, asked)];
    let request = Request::new(Intent::Renew, vec![Step::RenewCertificates], &targets, Attempt::from_start(number))
        .named(["certificates", due.machine.uid(), &due.key]);
    let mut run = request.run(state);
    run.metadata.annotations.get_or_insert_default().insert(annotation::RENEWS.to_owned(), due.key.clone());
    progressing(format!("{what}: run {} begins", run.name())).and(Action::create(run))
}

/// `renewing certificates: control plane 2 of 3 (h2)`.
fn what(state: &ClusterState<'_>, host: &str) -> String {
    let machine = state.live.iter().find(|machine| machine.host_name() == Some(host));
    let Some(machine) = machine else { return format!("renewing certificates: {host}") };
    let role = machine.machine.spec.role;
    let all: Vec<ClusterMachine<'_>> = state.of_role(role).collect();
    let number = all.iter().position(|other| other.uid() == machine.uid()).unwrap_or_default() + 1;
    let thing = if role == Role::Etcd { "etcd member" } else { "control plane" };
    format!("renewing certificates: {thing} {number} of {} ({host})", all.len())
}

/// The attempts at what is due.
fn attempts_at<'a>(state: &ClusterState<'a>, due: &Due<'_>) -> Vec<&'a PlaybookRun> {
    let mut runs = renewals(state, due.machine.uid());
    runs.retain(|run| run.annotation(annotation::RENEWS) == Some(&due.key));
    runs
}

fn tried(state: &ClusterState<'_>, due: &Due<'_>) -> Vec<PastAttempt> {
    attempts::tried(&attempts_at(state, due), &[Intent::Renew], due.machine.uid())
}

fn decide(state: &ClusterState<'_>, due: &Due<'_>) -> RetryDecision {
    let retries = state.terms.asked_retries(due.machine.machine);
    let policy = state.terms.endless(retries);
    attempts::retry_decision(&tried(state, due), &policy, state.observed.now)
}

/// Which machine's certificates could not be renewed, why, and when that is tried again.
pub(super) fn failing(state: &ClusterState<'_>) -> Option<String> {
    due(state).iter().filter(|due| due.at <= state.observed.now).find_map(|due| {
        let tried = tried(state, due);
        let last = tried.iter().rev().find(|attempt| attempt.outcome != Outcome::UnderWay)?;
        let why = match &last.outcome {
            Outcome::Failed(failure) => failure.told(),
            Outcome::Canceled => attempts::why_halted(None),
            Outcome::Succeeded | Outcome::Held | Outcome::UnderWay => return None,
        };
        let next = match decide(state, due) {
            RetryDecision::Later { at, .. } => format!("tried again at {}", clock(at)),
            RetryDecision::Halted { .. } => format!("for another attempt: {}", retry(state)),
            RetryDecision::Now { .. } | RetryDecision::UnderWay { .. } | RetryDecision::Done { .. } => {
                "it is tried again now".to_owned()
            }
        };
        Some(format!("the certificates of {} could not be renewed ({why}); {next}", due.machine.title()))
    })
}

/// The renewals by which it is known how often they were tried.
pub(super) fn keeps(state: &ClusterState<'_>) -> Vec<String> {
    let machines = state.live.iter().filter(|machine| machine.machine.spec.role != Role::Worker);
    let newest = machines.flat_map(|machine| renewals(state, machine.uid()).into_iter().take(KEEP));
    newest.map(|run| run.name().to_owned()).collect()
}
