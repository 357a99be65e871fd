//! Takes a member that leaves, or whose Machine was forgotten, out of etcd, by a run on one that stays. Nothing is
//! needed of its own machine.

use crds::PlaybookRun;
use crds::Reason;
use crds::cluster_deployment::ForgottenMachine;
use crds::step::Role;

use crate::cluster_deployment::action::Action;
use crate::cluster_deployment::proposal::{Area, Proposal, Round, Severity};
use crate::cluster_deployment::request::describe_as;
use crate::cluster_deployment::retrying::Effort;
use crate::cluster_deployment::state::{ClusterMachine, ClusterState};
use crate::departure::{self, Departure, EtcdMembership};
use crate::etcd_removal::{Leaver, in_order};
use crate::run_request::Asker;

pub(super) fn propose(state: &ClusterState<'_>, _: &Round) -> Proposal {
    let membership = state.membership();
    match membership.etcd_role() {
        Some(role) if state.installed.is_some() => {
            under_way(state, &membership, role).or_else(|| next(state, &membership, role))
        }
        _ => None,
    }
    .unwrap_or_default()
}

/// Runs that took out a machine which is still there or remembered.
pub(super) fn keeps(state: &ClusterState<'_>) -> Vec<String> {
    let membership = state.membership();
    let leaving = state.leaving.iter().flat_map(|machine| membership.removals(machine.machine));
    let status = state.deployment.status.iter();
    let forgotten = status.flat_map(|status| &status.forgotten);
    let forgotten = forgotten.flat_map(|one| membership.removals_of(&one.uid));
    let runs = leaving.chain(forgotten);
    runs.filter_map(|run| run.metadata.name.clone()).collect()
}

fn leaving<'s, 'a>(
    state: &'s ClusterState<'a>,
    membership: &'s EtcdMembership<'a>,
) -> impl Iterator<Item = &'s ClusterMachine<'a>> {
    let leaving = state.leaving.iter();
    leaving.filter(|machine| membership.is_of_etcd(machine.machine))
}

fn under_way(state: &ClusterState<'_>, membership: &EtcdMembership<'_>, role: Role) -> Option<Proposal> {
    let forgotten = membership.forgotten();
    let leavers = leaving(state, membership).filter_map(|machine| Leaver::of_machine(&state.terms, machine));
    let mut leavers = leavers.chain(forgotten.iter().map(|one| Leaver::of_forgotten(&state.terms, one)));
    leavers.find_map(|leaver| {
        let run = leaver.under_way(membership)?;
        let by = run.spec.hosts.join(", ");
        let what = format!("takes {} out of etcd, by {by}", leaver.title);
        Some(progressing(role, describe_as(state, &what, run)))
    })
}

fn progressing(role: Role, message: String) -> Proposal {
    Proposal::report(Area::Machines(role), Reason::RemovingEtcdMember, message, Severity::Progressing)
}

/// Who was forgotten goes first.
fn next(state: &ClusterState<'_>, membership: &EtcdMembership<'_>, role: Role) -> Option<Proposal> {
    let forgotten = in_order(membership).into_iter().find_map(|one| {
        let stays = why_it_stays(state, membership, one).is_some();
        let leaver = (!stays).then(|| Leaver::of_forgotten(&state.terms, one))?;
        take_out(state, membership, &leaver, role)
    });
    forgotten.or_else(|| {
        leaving(state, membership).find_map(|machine| {
            let observed = state.observed;
            let waits = machine.deleting_reason().is_some_and(|reason| reason == Reason::LeavingEtcd);
            let departure =
                departure::decide(machine.machine, observed.machines, state.deployment.into(), observed.runs);
            let goes = waits && departure == Departure::MayGo;
            let leaver = Leaver::of_machine(&state.terms, machine).filter(|_| goes)?;
            take_out(state, membership, &leaver, role)
        })
    })
}

/// Why a member whose Machine was forgotten is not taken out of etcd now.
pub(super) fn why_it_stays(
    state: &ClusterState<'_>,
    membership: &EtcdMembership<'_>,
    forgotten: &ForgottenMachine,
) -> Option<String> {
    state.waits_for_api().or_else(|| state.waits_for_etcd()).or_else(|| membership.why_it_stays(forgotten))
}

fn take_out(
    state: &ClusterState<'_>,
    membership: &EtcdMembership<'_>,
    leaver: &Leaver<'_>,
    role: Role,
) -> Option<Proposal> {
    let title = &leaver.title;
    let effort = Effort {
        area: Area::Machines(role),
        failed: Reason::EtcdMemberRemovalFailed,
        could_not: format!("{title} could not be taken out of etcd"),
    };
    let decision = leaver.retry_decision(&state.terms, membership, state.observed.now);
    effort.propose(state, decision, |number, retry| {
        let Some(by) = leaver.executor(membership, |machine| state.member(machine), number) else {
            let message = format!("{title} is to be taken out of etcd, and no member that stays is known to be well");
            return Some(Proposal::report(
                Area::Machines(role),
                Reason::EtcdMemberRemovalFailed,
                message,
                Severity::Failing,
            ));
        };
        let message = format!("takes {title} out of etcd, by {}", by.title());
        let run = run(state, membership, leaver, (by, retry), number);
        Some(progressing(role, message).and(Action::create(run)))
    })
}

/// The run that another member plays.
fn run(
    state: &ClusterState<'_>,
    membership: &EtcdMembership<'_>,
    leaver: &Leaver<'_>,
    by: (ClusterMachine<'_>, Option<String>),
    attempt: i32,
) -> PlaybookRun {
    let asker = Asker { owner: &state.owner, generation: state.generation(), wanted: &state.terms.wanted };
    leaver.run(&asker, by, state.etcd_variables(&leaver.others(membership)), attempt)
}
