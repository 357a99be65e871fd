//! Defragments the members of etcd, by a run on one of them that takes them one after the other: by a schedule, when a
//! person asks for it, and where etcd's quota is used up. Nothing is brought to machines meanwhile.

use crds::cluster_deployment::EtcdStatus;
use crds::commands::Target;
use crds::names::annotation;
use crds::step::{Intent, Step};
use crds::{ObjectExt, PlaybookRun, Reason};

use super::super::act::Act;
use super::super::part_wanted::Basis;
use super::super::proposal::{Proposal, Round};
use super::super::state::PlaneState;
use crate::addon::Problem;
use crate::attempts;
use crate::cluster_machine::ClusterMachine;
use crate::etcd::defragmentation::{Cause, Due, VARIABLE, Wish, due, executor_of, member_in_the_way, refused, stated};
use crate::etcd::{self, Finding};
use crate::run_request::{Attempt, RunRequest};

pub(super) fn propose(state: &PlaneState<'_>, _: &Basis<'_>, round: &Round) -> Proposal {
    let Some(status) = state.etcd_status() else { return Proposal::default() };
    let runs = state.defragmentations();
    if let Some(run) = runs.iter().find(|run| !attempts::is_over(run)) {
        let message = format!("{} (run {})", state.describe(run), run.name());
        return Proposal { holds: true, ..said(true, Reason::Defragmenting, message) };
    }
    begin(state, round, &status, &runs)
}

/// What is wrong with what the members hold, and what is done about it or what to do.
pub(in super::super) fn advised(state: &PlaneState<'_>, finding: &Finding) -> Problem {
    let wish = wish(state, &[]);
    Problem { reason: finding.reason, message: finding.advise(wish.schedule.is_some(), &wish.command()) }
}

fn wish<'s>(state: &'s PlaneState<'_>, own_runs: &'s [&'s PlaybookRun]) -> Wish<'s> {
    let etcd = state.object.spec.binary.as_ref().and_then(|binary| binary.etcd.as_ref());
    Wish {
        now: state.now,
        schedule: etcd.and_then(|etcd| etcd.defragmentation.as_ref()),
        field: "spec.binary.etcd.defragmentation",
        target: Target::KarmadaDeployment,
        metadata: &state.object.metadata,
        installed: state.installed.as_ref().map(|time| time.0),
        own_runs,
    }
}

fn begin(state: &PlaneState<'_>, round: &Round, status: &EtcdStatus, runs: &[&PlaybookRun]) -> Proposal {
    let own_runs: Vec<&PlaybookRun> = state.own_runs().collect();
    let wish = wish(state, &own_runs);
    let finding = etcd::finding(status);
    let (cause, next) = match due(&wish, status, finding.as_ref(), runs) {
        Err((reason, message)) => return said(false, reason, message),
        Ok(Due::Now(cause, next)) => (cause, next),
        Ok(Due::Later(next)) => {
            let proposal = Proposal { statement: wish.last(status), ..Proposal::default() };
            return next.into_iter().fold(proposal, |proposal, at| proposal.at(state, at));
        }
    };
    let again = |proposal: Proposal| next.into_iter().fold(proposal, |proposal, at| proposal.at(state, at));
    if let Some(refused) = refused(status, finding.as_ref()) {
        let message = format!("{} is not made: {}", cause.describe(), refused.message);
        return again(said(false, refused.reason, message));
    }
    if let Some(why) = why_not_yet(state, round, &cause, finding.as_ref()) {
        let message = format!("{} waits: {why}", cause.describe());
        return again(said(false, Reason::DefragmentationWaiting, message));
    }
    let number = attempts::number_after(runs.iter().copied());
    let Some(by) = executor_of(state.etcd_machines(), number) else {
        let message = format!("{} waits: no machine of a member is reached", cause.describe());
        return again(said(false, Reason::DefragmentationWaiting, message));
    };
    let message = format!("{} begins, by {}", cause.describe(), by.title());
    let run = run(state, by, (&wish, &cause), number);
    again(Proposal { holds: true, ..said(true, Reason::Defragmenting, message) }.and(Act::create(run)))
}

/// What it waits for: it is never made beside anything else, nor with a member away.
fn why_not_yet(state: &PlaneState<'_>, round: &Round, cause: &Cause, finding: Option<&Finding>) -> Option<String> {
    if let Some(run) = state.active.first() {
        return Some(format!("run {} is under way", run.name()));
    }
    if !round.lock_is_known() || round.is_busy || state.object.spec.paused {
        return Some("nothing is begun on the plane's machines now".to_owned());
    }
    let status = state.object.status.as_ref();
    if status.and_then(|status| status.restored_from.as_ref()).is_some_and(|record| record.step.is_some()) {
        return Some("the plane is being restored".to_owned());
    }
    if status.and_then(|status| status.upgrade.as_ref()).is_some_and(|upgrade| upgrade.step.is_some()) {
        return Some("the plane is being upgraded".to_owned());
    }
    // The step alone looks at the members of an etcd that accepts no writes.
    let is_full = finding.is_some_and(|finding| finding.reason == Reason::EtcdNoSpace);
    if is_full || matches!(cause, Cause::NoSpace(_)) {
        return None;
    }
    member_in_the_way(&state.membership(), &state.live)
}

fn run(state: &PlaneState<'_>, by: ClusterMachine<'_>, (wish, cause): (&Wish<'_>, &Cause), number: i32) -> PlaybookRun {
    let key = cause.key();
    let machines: Vec<_> = state.etcd_machines().iter().map(|machine| machine.machine).collect();
    let mut vars = state.etcd_variables(&machines);
    vars.insert(VARIABLE.to_owned(), wish.thresholds(cause));
    let targets = [(by, None)];
    let mut run = state.request(RunRequest {
        name_of: Some(vec!["defragment".to_owned(), key.clone()]),
        vars,
        ..RunRequest::new(Intent::Maintain, vec![Step::DefragmentEtcd], &targets, Attempt::from_start(number))
    });
    run.metadata.annotations.get_or_insert_default().insert(annotation::DEFRAGMENTS_FOR.to_owned(), key);
    run
}

fn said(status: bool, reason: Reason, message: String) -> Proposal {
    Proposal { statement: Some(stated(status, reason, message)), ..Proposal::default() }
}
