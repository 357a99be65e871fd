//! What was tried on a machine, as its runs tell; and the run that tries the next thing.

use std::collections::BTreeMap;

use crds::ObjectExt;
use crds::PlaybookRun;
use crds::Reason;
use crds::playbook_run::RunPhase;
use crds::remediation_policy::RemediationAction as Action;
use crds::step::{Intent, Step};
use serde_json::Value;

use crate::attempts::{self, Outcome};
use crate::cluster_deployment::action::Action as ClusterAction;
use crate::cluster_deployment::request::{Attempt, Request, number_after};
use crate::cluster_deployment::state::{ClusterMachine, ClusterState};
use crate::remediation::{self, Begin, Effort, EffortResult};

/// Efforts at a machine that are remembered however many runs are kept.
const REMEMBERED: usize = 6;

/// What a run tries on a machine for its repair; none: it is another run.
pub(super) fn is_effort(run: &PlaybookRun, machine_uid: &str) -> Option<(Action, String, attempts::TargetRecord)> {
    if run.spec.intent != Intent::Repair {
        return None;
    }
    let action = match run.spec.steps.as_slice() {
        [Step::RestartServices] => Action::RestartServices,
        [Step::Reboot] => Action::Reboot,
        _ => return None,
    };
    let targets = attempts::targets(run);
    let (host, target) = targets.into_iter().find(|(_, target)| target.uid == machine_uid)?;
    Some((action, host, target))
}

/// What was tried on a machine, oldest first.
pub(super) fn efforts_of(state: &ClusterState<'_>, machine_uid: &str) -> Vec<Effort> {
    let effort = |run: &&PlaybookRun| {
        let (action, host, target) = is_effort(run, machine_uid)?;
        let made = run.created_at()?.0;
        Some(Effort {
            run: run.name().to_owned(),
            action,
            made,
            ended: attempts::ended_at(run).unwrap_or(made),
            retry: target.retry,
            result: result(run, &host),
        })
    };
    let mut efforts: Vec<Effort> = state.observed.runs.iter().filter_map(effort).collect();
    efforts.sort_by(|a, b| (a.made, &a.run).cmp(&(b.made, &b.run)));
    efforts
}

/// Names of the repairs that decide what comes next for machines that live.
pub(super) fn needed(state: &ClusterState<'_>) -> Vec<String> {
    let of_member = |member: &ClusterMachine<'_>| {
        let efforts = efforts_of(state, member.uid());
        efforts.into_iter().rev().take(REMEMBERED).map(|effort| effort.run)
    };
    state.live.iter().flat_map(of_member).collect()
}

fn result(run: &PlaybookRun, host: &str) -> EffortResult {
    match attempts::outcome(run, host) {
        Outcome::UnderWay => EffortResult::UnderWay,
        Outcome::Succeeded => EffortResult::Done,
        Outcome::Canceled => EffortResult::Canceled,
        Outcome::Held => EffortResult::Held,
        Outcome::Failed(failure) => {
            let status = run.status.as_ref();
            let results = status.map(|status| status.hosts.as_slice()).unwrap_or_default();
            let own = results.iter().find(|result| result.name == host);
            let reached = own.is_some_and(|own| own.failure.is_some() || own.failed > 0);
            let kept_out = failure.unreachable && failure.reason != Reason::Unreachable;
            let phase = status.and_then(|status| status.phase);
            // A run that could not be made ready says nothing of the machine, and one that is kept out says it of a
            // key.
            let elsewhere = phase == Some(RunPhase::Failed) && !reached && !failure.unreachable;
            if kept_out || elsewhere || !failure.has_begun() {
                EffortResult::NotTried(failure)
            } else {
                EffortResult::Failed(failure)
            }
        }
    }
}

/// What begins on a machine: a run, or its deletion.
pub(super) fn next(state: &ClusterState<'_>, machine: &ClusterMachine<'_>, begin: &Begin) -> ClusterAction {
    match begin.action {
        Action::RestartServices => create(state, machine, begin, Step::RestartServices, BTreeMap::new()),
        Action::Reboot => create(state, machine, begin, Step::Reboot, reboot_vars(machine, begin)),
        Action::Replace => ClusterAction::DeleteMachine(Box::new(machine.machine.clone())),
    }
}

fn create(
    state: &ClusterState<'_>,
    machine: &ClusterMachine<'_>,
    begin: &Begin,
    step: Step,
    vars: BTreeMap<String, Value>,
) -> ClusterAction {
    let runs = state.observed.runs.iter().copied();
    let known = runs.filter(|run| is_effort(run, machine.uid()).is_some());
    let attempt = Attempt::from_start(number_after(known));
    let targets = [(*machine, begin.retry.clone())];
    let request = Request::new(Intent::Repair, vec![step], &targets, attempt)
        .named([machine.uid(), remediation::name(begin.action)])
        .with(vars);
    ClusterAction::create(request.run(state))
}

/// How long the reboot may take, and what it is for: an attempt at the same finds a reboot that an earlier one made.
fn reboot_vars(member: &ClusterMachine<'_>, begin: &Begin) -> BTreeMap<String, Value> {
    let since = begin.since.map(|since| since.to_string()).unwrap_or_default();
    let retry = begin.retry.as_deref().unwrap_or_default();
    let request = format!("{} {since} {retry}", member.uid());
    BTreeMap::from([
        ("reboot_timeout_seconds".to_owned(), begin.reboot_timeout_seconds.into()),
        ("reboot_request".to_owned(), request.trim_end().into()),
    ])
}
