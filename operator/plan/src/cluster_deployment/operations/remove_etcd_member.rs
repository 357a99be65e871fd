//! Takes a member that leaves, or whose Machine was forgotten, out of etcd, by a run on one that stays. Nothing is
//! needed of its own machine.

use crds::Reason;
use crds::cluster_deployment::ForgottenMachine;
use crds::names::annotation;
use crds::step::{Intent, Role, Step};
use crds::{Machine, PlaybookRun};
use serde_json::json;

use crate::attempts::{self, RetryDecision};
use crate::cluster_deployment::action::Action;
use crate::cluster_deployment::proposal::{Area, Proposal, Round, Severity};
use crate::cluster_deployment::request::{Attempt, Request, describe_as};
use crate::cluster_deployment::retrying::Effort;
use crate::cluster_deployment::state::{ClusterMachine, ClusterState};
use crate::departure::{self, Departure, EtcdMembership, is_healthy};

/// Whose member is taken out.
struct Leaver<'a> {
    /// UID of its Machine.
    uid: &'a str,
    /// Its Host, whose name the member has.
    host: &'a str,
    title: String,
    /// What people ask for.
    retries: Vec<String>,
}

impl<'a> Leaver<'a> {
    fn of_machine(state: &ClusterState<'_>, machine: &ClusterMachine<'a>) -> Option<Self> {
        Some(Self {
            uid: machine.uid(),
            host: &machine.machine.spec.host_ref.as_ref()?.name,
            title: machine.title(),
            retries: state.terms.asked_retries(machine.machine),
        })
    }

    fn of_forgotten(state: &ClusterState<'_>, forgotten: &'a ForgottenMachine) -> Self {
        Self {
            uid: &forgotten.uid,
            host: &forgotten.host,
            title: departure::title_of_forgotten(forgotten),
            retries: state.terms.retry.clone().into_iter().collect(),
        }
    }
}

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
    let leavers = leaving(state, membership).filter_map(|machine| Leaver::of_machine(state, machine));
    let mut leavers = leavers.chain(forgotten.iter().map(|one| Leaver::of_forgotten(state, one)));
    leavers.find_map(|leaver| {
        let removals = membership.removals_of(leaver.uid);
        let run = removals.into_iter().find(|run| !attempts::is_over(run))?;
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
        let leaver = (!stays).then(|| Leaver::of_forgotten(state, one))?;
        take_out(state, membership, &leaver, role)
    });
    forgotten.or_else(|| {
        leaving(state, membership).find_map(|machine| {
            let observed = state.observed;
            let waits = machine.deleting_reason().is_some_and(|reason| reason == Reason::LeavingEtcd);
            let departure =
                departure::decide(machine.machine, observed.machines, state.deployment.into(), observed.runs);
            let goes = waits && departure == Departure::MayGo;
            let leaver = Leaver::of_machine(state, machine).filter(|_| goes)?;
            take_out(state, membership, &leaver, role)
        })
    })
}

/// Those that are not known to be well first, then those that were tried less: which of them lives is not always known.
fn in_order<'a>(membership: &EtcdMembership<'a>) -> Vec<&'a ForgottenMachine> {
    let mut forgotten = membership.forgotten();
    forgotten.sort_by_key(|one| {
        let tried = membership.removals_of(&one.uid).len();
        (one.node_ready, tried, one.host.clone(), one.uid.clone())
    });
    forgotten
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
    effort.propose(state, retry_decision(state, membership, leaver), |number, retry| {
        let Some(by) = executor(state, membership, leaver, number) else {
            let message = format!("{title} is to be taken out of etcd, and no member that stays is known to be well");
            return Some(Proposal::report(
                Area::Machines(role),
                Reason::EtcdMemberRemovalFailed,
                message,
                Severity::Failing,
            ));
        };
        let message = format!("takes {title} out of etcd, by {}", by.title());
        let run = run(state, membership, leaver, by, number, retry);
        Some(progressing(role, message).and(Action::create(run)))
    })
}

fn retry_decision(state: &ClusterState<'_>, membership: &EtcdMembership<'_>, leaver: &Leaver<'_>) -> RetryDecision {
    let removals = membership.removals_of(leaver.uid);
    let tried = attempts::tried_by(&removals, |run| {
        let host = run.spec.hosts.first()?;
        let target = attempts::targets(run).remove(host)?;
        Some((host.clone(), target))
    });
    let policy = state.terms.limited(leaver.retries.clone()).stopped_is_final();
    attempts::retry_decision(&tried, &policy, state.observed.now)
}

/// Another member that is well, another one at each attempt: one may be dead without anyone's knowing. Those that leave
/// later do it only where none stays.
fn executor<'a>(
    state: &ClusterState<'a>,
    membership: &EtcdMembership<'_>,
    leaver: &Leaver<'_>,
    attempt: i32,
) -> Option<ClusterMachine<'a>> {
    let members = membership.members();
    let members = members.iter().filter_map(|machine| state.member(machine));
    let is_well = |machine: &ClusterMachine<'_>| machine.host.is_some() && is_healthy(machine.machine);
    let mut others: Vec<ClusterMachine<'a>> =
        members.filter(|machine| machine.uid() != leaver.uid && is_well(machine)).collect();
    if others.iter().any(|machine| machine.deleted_at().is_none()) {
        others.retain(|machine| machine.deleted_at().is_none());
    }
    let index = usize::try_from(attempt).unwrap_or_default();
    others.get(index % others.len().max(1)).copied()
}

fn run(
    state: &ClusterState<'_>,
    membership: &EtcdMembership<'_>,
    leaver: &Leaver<'_>,
    by: ClusterMachine<'_>,
    attempt: i32,
    retry: Option<String>,
) -> PlaybookRun {
    let host = leaver.host;
    let stay: Vec<&Machine> =
        membership.members().into_iter().filter(|other| other.metadata.uid.as_deref() != Some(leaver.uid)).collect();
    let mut vars = state.etcd_variables(&stay);
    vars.insert("etcd_member_remove".into(), json!({ "name": host, "host": host }));
    let (steps, targets) = (vec![Step::RemoveEtcdMember], [(by, retry)]);
    // Whoever carries it out, it is the same attempt.
    let request = Request::new(Intent::Remove, steps, &targets, Attempt::from_start(attempt))
        .named(["member", leaver.uid])
        .with(vars);
    let mut run = request.run(state);
    let annotations = run.metadata.annotations.get_or_insert_default();
    annotations.insert(annotation::LEAVES.into(), leaver.uid.to_owned());
    run
}
