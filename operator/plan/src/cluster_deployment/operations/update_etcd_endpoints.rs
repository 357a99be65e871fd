//! Updates the etcd endpoints of API servers when the members of a dedicated etcd have changed.

use std::cmp::Reverse;

use crds::PlaybookRun;
use crds::Reason;
use crds::names::annotation;
use crds::step::{Intent, Role, Step};

use crate::attempts::{self, RetryDecision};
use crate::cluster_deployment::action::Action;
use crate::cluster_deployment::proposal::{Area, Proposal, Round, Severity};
use crate::cluster_deployment::request::{Attempt, Request, Target, describe_as, number_after};
use crate::cluster_deployment::retrying::Effort;
use crate::cluster_deployment::state::{ClusterMachine, ClusterState};
use crate::departure::knows_of;
use crate::message::count;

const ROLE: Role = Role::ControlPlane;
/// Runs that are kept, the newest.
const KEEP: usize = 8;

fn progressing(message: String) -> Proposal {
    Proposal::report(Area::Machines(ROLE), Reason::UpdatingEtcdEndpoints, message, Severity::Progressing)
}

pub(super) fn propose(state: &ClusterState<'_>, _: &Round) -> Proposal {
    if state.installed.is_none() || state.membership().etcd_role() != Some(Role::Etcd) {
        return Proposal::default();
    }
    match state.active_with(&Step::EtcdEndpoints) {
        Some(run) => progressing(describe_as(state, "tells the API servers of etcd's members", run)),
        None => update(state).unwrap_or_default(),
    }
}

/// The runs that told the API servers last.
pub(super) fn keeps(state: &ClusterState<'_>) -> Vec<String> {
    let tells =
        |run: &&PlaybookRun| !run.spec.intent.changes_nothing() && run.spec.steps.contains(&Step::EtcdEndpoints);
    let mut runs: Vec<&PlaybookRun> = state.observed.runs.iter().copied().filter(tells).collect();
    runs.sort_by_key(|run| Reverse(run.metadata.creation_timestamp.clone()));
    let newest = runs.into_iter().take(KEEP);
    newest.filter_map(|run| run.metadata.name.clone()).collect()
}

fn update(state: &ClusterState<'_>) -> Option<Proposal> {
    let membership = state.membership();
    let since = membership.changed_at()?;
    let untold = membership.untold(since);
    let machines = untold.iter().filter_map(|machine| {
        let mut live = state.live.iter();
        live.find(|live| live.machine.metadata.uid == machine.metadata.uid)
    });
    let told = |run: &&PlaybookRun| knows_of(run, since);
    let told_since: Vec<&PlaybookRun> = state.observed.runs.iter().copied().filter(told).collect();
    let mut due: Vec<Target<'_>> = Vec::new();
    let mut waits = None;
    for machine in machines.filter(|machine| machine.host.is_some()) {
        let effort = Effort {
            area: Area::Machines(ROLE),
            failed: Reason::EndpointUpdateFailed,
            could_not: format!("{} could not be told of etcd's members", machine.title()),
        };
        let decision = retry_decision(state, machine, &told_since);
        waits = effort
            .propose(state, decision, |_, retry| {
                due.push((*machine, retry));
                None
            })
            .or(waits);
    }
    if due.is_empty() {
        return waits;
    }
    if let Some(why) = membership.run_in_the_way(None) {
        return Some(progressing(why));
    }
    let attempt = Attempt::from_start(number_after(told_since));
    let since = since.to_string();
    let request = Request::new(Intent::Repair, vec![Step::EtcdEndpoints], &due, attempt)
        .named(["endpoints", &since])
        .with(state.etcd_variables(&membership.members()));
    let mut run = request.run(state);
    let annotations = run.metadata.annotations.get_or_insert_default();
    annotations.insert(annotation::ETCD_CHANGE.to_owned(), since);
    let message = format!("tells the API servers of {} of etcd's members", count(due.len(), "control plane"));
    Some(progressing(message).and(Action::create(run)))
}

fn retry_decision(
    state: &ClusterState<'_>,
    machine: &ClusterMachine<'_>,
    told_since: &[&PlaybookRun],
) -> RetryDecision {
    let tried = attempts::tried_by(told_since, |run| {
        let host = machine.host_name()?;
        let target = attempts::targets(run).remove(host)?;
        (target.uid == machine.uid()).then(|| (host.to_owned(), target))
    });
    let retries = state.terms.asked_retries(machine.machine);
    let policy = state.terms.limited(retries);
    attempts::retry_decision(&tried, &policy, state.observed.now)
}
