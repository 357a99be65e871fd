//! Joins the next control plane or dedicated etcd machine to the running cluster, by a run on itself alone.

use crds::PlaybookRun;
use crds::Reason;
use crds::cluster_deployment::EtcdTopology;
use crds::networking::EndpointProvider;
use crds::step::{Intent, Role, Step};

use crate::attempts::RetryDecision;
use crate::cluster_deployment::action::Action;
use crate::cluster_deployment::lane::{Lane, Needs};
use crate::cluster_deployment::proposal::{Area, Proposal, Round, Severity};
use crate::cluster_deployment::request::{Attempt, Request, describe};
use crate::cluster_deployment::retrying::{failed_to_join, given_up, next_attempt};
use crate::cluster_deployment::state::{ClusterMachine, ClusterState};
use crate::departure::{self, EtcdMembership, is_healthy};
use crate::message::count;
use crate::{hooks, provisioning};

pub(super) fn propose(state: &ClusterState<'_>, round: &Round) -> Proposal {
    if state.installed.is_none() || !round.allows(Lane::ControlPlane, Needs::Spec) {
        return Proposal::default();
    }
    join_next(state).unwrap_or_default()
}

fn join_next(state: &ClusterState<'_>) -> Option<Proposal> {
    let (next, others) = next(state)?;
    let role = next.machine.spec.role;
    let report = |reason, message, severity| Proposal::report(Area::Machines(role), reason, message, severity);
    let host = next.host_name()?;
    let more = match others {
        0 => String::new(),
        others => format!("; {} more after it, one at a time", count(others, "machine")),
    };
    if let Some(run) = state.active_on(host) {
        let message = format!("{}{more}", describe(state, run));
        return Some(report(Reason::Joining, message, Severity::Progressing));
    }
    let title = next.title();
    let proposal = match state.retry_decision(&next) {
        // Its Machine is about to say so.
        RetryDecision::Done { .. } | RetryDecision::UnderWay { .. } => {
            report(Reason::Joining, format!("{title} has joined"), Severity::Progressing)
        }
        RetryDecision::Now { attempt, retry, goes_on } => match why_not_now(state, role) {
            Some(why) => {
                let message = format!("{title} is to join; {why}");
                report(Reason::WaitingToJoin, message, Severity::Progressing)
            }
            None => {
                let attempt = Attempt { number: attempt, resume: goes_on.is_some() };
                let message = format!("joining {title}{more}");
                report(Reason::Joining, message, Severity::Progressing)
                    .and(Action::create(run(state, next, retry, attempt)))
            }
        },
        RetryDecision::Later { at, failures, cause } => {
            let message = next_attempt(state, &failed_to_join(&title, &cause), failures, &cause, at);
            report(Reason::JoinFailed, message, Severity::Failing).at(state, at)
        }
        RetryDecision::Halted { failures, cause } => {
            let could_not = format!("{title} could not join");
            let message = format!(
                "{}; or delete Machine {}, and another one is made",
                given_up(state, &could_not, failures, cause.as_ref()),
                next.name()
            );
            report(Reason::JoinFailed, message, Severity::Stalled)
        }
    };
    Some(proposal)
}

/// The machine that joins next, and how many more there are: etcd's before control planes, one that was begun before
/// all.
fn next<'a>(state: &ClusterState<'a>) -> Option<(ClusterMachine<'a>, usize)> {
    let waits = |machine: &&ClusterMachine<'a>| {
        machine.machine.spec.role != Role::Worker && machine.host.is_some() && !machine.is_provisioned()
    };
    let mut waiting: Vec<ClusterMachine<'a>> = state.live.iter().filter(waits).copied().collect();
    waiting.sort_by_key(|machine| {
        let begun = provisioning::was_touched(machine.machine, state.observed.runs);
        (!begun, machine.machine.spec.role != Role::Etcd)
    });
    Some((*waiting.first()?, waiting.len() - 1))
}

fn why_not_now(state: &ClusterState<'_>, role: Role) -> Option<String> {
    no_endpoint(state, role).or_else(|| waits_for(state, &state.membership()))
}

/// The address of the only control plane stands in every kubeconfig: nobody can take its place.
fn no_endpoint(state: &ClusterState<'_>, role: Role) -> Option<String> {
    let endpoint = &state.deployment.spec.control_plane.endpoint;
    (role == Role::ControlPlane && endpoint.is_none()).then(|| {
        "the cluster has no spec.controlPlane.endpoint, which cannot be added later: its only control plane can neither be replaced nor get another beside it".to_owned()
    })
}

/// Why no machine joins now.
fn waits_for(state: &ClusterState<'_>, membership: &EtcdMembership<'_>) -> Option<String> {
    if let Some(leaves) = membership.leaving_in_the_way() {
        return Some(leaves);
    }
    if let Some(forgotten) = membership.forgotten().first() {
        let title = departure::title_of_forgotten(forgotten);
        return Some(format!("waits for {title} to be taken out of etcd first"));
    }
    if let Some(run) = membership.run_in_the_way(None) {
        return Some(run);
    }
    let stays = |machine: &&ClusterMachine<'_>| machine.machine.spec.role != Role::Worker && machine.is_provisioned();
    let mut staying = state.live.iter().filter(stays);
    if let Some(sick) = staying.find(|machine| !is_healthy(machine.machine)) {
        return Some(format!(
            "waits for {} to be well ({}), or for its Machine to be deleted: it is taken out before another one comes",
            sick.title(),
            sick.says()
        ));
    }
    state.waits_for_etcd().or_else(|| state.waits_for_api())
}

fn run(state: &ClusterState<'_>, next: ClusterMachine<'_>, retry: Option<String>, attempt: Attempt) -> PlaybookRun {
    let membership = state.membership();
    let mut members = membership.members();
    if membership.is_of_etcd(next.machine) {
        members.push(next.machine);
    }
    let steps = steps_of(state, next.machine.spec.role);
    Request::new(Intent::Join, steps, &[(next, retry)], attempt)
        .with(state.etcd_variables(&members))
        .around(hooks::around_join)
        .run(state)
}

fn steps_of(state: &ClusterState<'_>, role: Role) -> Vec<Step> {
    let spec = &state.deployment.spec;
    let mut steps = vec![Step::BootstrapOs, Step::Preflight, Step::Prepare, Step::ContainerRuntime];
    if role == Role::Etcd || spec.etcd.topology == EtcdTopology::Stacked {
        steps.push(Step::Etcd);
    }
    if role != Role::Etcd {
        steps.push(Step::ControlPlane);
        let endpoint = spec.control_plane.endpoint.as_ref();
        if endpoint.is_some_and(|endpoint| endpoint.provider == EndpointProvider::Keepalived) {
            steps.push(Step::LoadBalancer);
        }
        steps.extend([Step::Network, Step::PostInstall]);
    }
    steps
}
