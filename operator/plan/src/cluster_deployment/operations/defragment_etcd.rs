//! Defragments the members of etcd, by a run on one of them that takes them one after the other: by a schedule, when a
//! person asks for it, and where etcd's quota is used up. While its data differs, or nothing can be written, no member
//! joins.

mod gate;

use crds::cluster_deployment::EtcdStatus;
use crds::commands::Target;
use crds::names::{annotation, condition};
use crds::step::{Intent, Step};
use crds::{ObjectExt, PlaybookRun, Reason};

use super::report_etcd::advise;
use crate::attempts;
use crate::cluster_deployment::action::Action;
use crate::cluster_deployment::lane::{Lane, Needs};
use crate::cluster_deployment::proposal::{Area, Proposal, Report, Round, Severity};
use crate::cluster_deployment::request::{Attempt, Request, describe, number_after};
use crate::cluster_deployment::state::{ClusterMachine, ClusterState};
use crate::etcd::defragmentation::{self, Cause, Due, KEEP, VARIABLE, Wish, due, refused};
use crate::etcd::{self, Finding};

pub(super) fn propose(state: &ClusterState<'_>, round: &Round) -> Proposal {
    let is_ours = state.installed.is_some() && state.membership().etcd_role().is_some();
    if !is_ours {
        return Proposal::default().condition(condition::ETCD_DEFRAGMENTED, None);
    }
    let status = state.etcd_status().unwrap_or_default();
    let finding = etcd::finding(&status);
    let runs = runs(state);
    let mut proposal = match runs.iter().find(|run| !attempts::is_over(run)) {
        Some(run) => stated(true, Reason::Defragmenting, format!("{} (run {})", describe(state, run), run.name())),
        None => begin(state, round, &status, finding.as_ref(), &runs),
    };
    proposal.report = finding.filter(Finding::is_grave).and_then(|finding| report(state, &finding));
    proposal
}

/// The runs by which it is known what was done, and how often.
pub(super) fn keeps(state: &ClusterState<'_>) -> Vec<String> {
    let newest = runs(state).into_iter().take(KEEP);
    newest.map(|run| run.name().to_owned()).collect()
}

/// Those of the cluster's own, the newest first.
fn runs<'a>(state: &ClusterState<'a>) -> Vec<&'a PlaybookRun> {
    state.newest_runs(etcd::defragments)
}

/// What keeps etcd from serving as it should, as its machines' condition has it.
fn report(state: &ClusterState<'_>, finding: &Finding) -> Option<Report> {
    let area = Area::Machines(state.membership().etcd_role()?);
    Proposal::report(area, finding.reason, advise(state, finding), Severity::Failing).report
}

fn begin(
    state: &ClusterState<'_>,
    round: &Round,
    status: &EtcdStatus,
    finding: Option<&Finding>,
    runs: &[&PlaybookRun],
) -> Proposal {
    let own_runs = state.own_runs();
    let wish = Wish {
        now: state.observed.now,
        schedule: state.deployment.spec.etcd.defragmentation.as_ref(),
        field: "spec.etcd.defragmentation",
        target: Target::ClusterDeployment,
        metadata: &state.deployment.metadata,
        installed: state.installed.as_ref().map(|time| time.0),
        own_runs: &own_runs,
    };
    let due = match due(&wish, status, finding, runs) {
        Ok(due) => due,
        Err((reason, message)) => return stated(false, reason, message),
    };
    let (cause, next) = match due {
        Due::Now(cause, next) => (cause, next),
        Due::Later(next) => {
            let proposal = Proposal::default().condition(condition::ETCD_DEFRAGMENTED, wish.last(status));
            return next.into_iter().fold(proposal, |proposal, at| proposal.at(state, at));
        }
    };
    let again = |proposal: Proposal| next.into_iter().fold(proposal, |proposal, at| proposal.at(state, at));
    if let Some(refused) = refused(status, finding) {
        let message = format!("{} is not made: {}", cause.describe(), refused.message);
        return again(stated(false, refused.reason, message));
    }
    if !round.allows(Lane::ControlPlane, Needs::Lock) {
        let message = format!("{} waits: nothing is begun in the cluster now", cause.describe());
        return again(stated(false, Reason::DefragmentationWaiting, message));
    }
    if let Some(why) = gate::why_not_yet(state, &cause, finding) {
        let message = format!("{} waits: {why}", cause.describe());
        return again(stated(false, Reason::DefragmentationWaiting, message));
    }
    let number = number_after(runs.iter().copied());
    let Some(by) = gate::executor(state, number) else {
        let message = format!("{} waits: no machine of a member is reached", cause.describe());
        return again(stated(false, Reason::DefragmentationWaiting, message));
    };
    let message = format!("{} begins, by {}", cause.describe(), by.title());
    let run = run(state, by, (&wish, &cause), number);
    again(stated(true, Reason::Defragmenting, message).and(Action::create(run)))
}

fn run(
    state: &ClusterState<'_>,
    by: ClusterMachine<'_>,
    (wish, cause): (&Wish<'_>, &Cause),
    number: i32,
) -> PlaybookRun {
    let key = cause.key();
    let machines: Vec<_> = state.etcd_machines().iter().map(|machine| machine.machine).collect();
    let mut vars = state.etcd_variables(&machines);
    vars.insert(VARIABLE.to_owned(), wish.thresholds(cause));
    let targets = [(by, None)];
    let request = Request::new(Intent::Maintain, vec![Step::DefragmentEtcd], &targets, Attempt::from_start(number))
        .named(["defragment", &key])
        .with(vars);
    let mut run = request.run(state);
    run.metadata.annotations.get_or_insert_default().insert(annotation::DEFRAGMENTS_FOR.to_owned(), key);
    run
}

fn stated(status: bool, reason: Reason, message: String) -> Proposal {
    let statement = defragmentation::stated(status, reason, message);
    Proposal::default().condition(condition::ETCD_DEFRAGMENTED, Some(statement))
}
