//! What was tried on a machine, as its runs tell; and the run that tries the next thing.

use std::collections::BTreeMap;

use crds::PlaybookRun;
use crds::playbook_run::RunPhase;
use crds::remediation_policy::RemediationAction as Action;
use crds::step::{Intent, Step as RunStep};
use serde_json::Value;

use crate::attempts::{self, Outcome};
use crate::cluster_deployment::Step;
use crate::cluster_deployment::runs::{self, Attempt, Order};
use crate::cluster_deployment::scene::{Member, Scene};
use crate::remediation::{self, Begin, Effort, EffortResult};

/// Efforts at a machine that are remembered however many runs are kept.
const REMEMBERED: usize = 6;

/// What a run tries on a machine for its repair; none: it is another run.
pub(super) fn is_effort(run: &PlaybookRun, machine_uid: &str) -> Option<(Action, String, attempts::Mark)> {
    if run.spec.intent != Intent::Repair {
        return None;
    }
    let action = match run.spec.steps.as_slice() {
        [RunStep::RestartServices] => Action::RestartServices,
        [RunStep::Reboot] => Action::Reboot,
        _ => return None,
    };
    let marks = attempts::marks(run);
    let (host, mark) = marks.into_iter().find(|(_, mark)| mark.uid == machine_uid)?;
    Some((action, host, mark))
}

/// What was tried on a machine, oldest first.
pub(super) fn efforts_of(scene: &Scene<'_>, machine_uid: &str) -> Vec<Effort> {
    let effort = |run: &&PlaybookRun| {
        let (action, host, mark) = is_effort(run, machine_uid)?;
        let made = run.metadata.creation_timestamp.as_ref()?.0;
        Some(Effort {
            run: run.metadata.name.clone().unwrap_or_default(),
            action,
            made,
            ended: attempts::ended_at(run).unwrap_or(made),
            retry: mark.retry,
            result: result(run, &host),
        })
    };
    let mut efforts: Vec<Effort> = scene.observed.runs.iter().filter_map(effort).collect();
    efforts.sort_by(|a, b| (a.made, &a.run).cmp(&(b.made, &b.run)));
    efforts
}

/// Names of the repairs that decide what comes next for machines that live.
pub(super) fn needed(scene: &Scene<'_>) -> Vec<String> {
    let of_member = |member: &Member<'_>| {
        let efforts = efforts_of(scene, member.uid());
        efforts
            .into_iter()
            .rev()
            .take(REMEMBERED)
            .map(|effort| effort.run)
    };
    scene.live.iter().flat_map(of_member).collect()
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
            let kept_out = failure.unreachable && failure.reason != "Unreachable";
            let phase = status.and_then(|status| status.phase);
            // A run that could not be made ready says nothing of the machine, and one that is kept out says it of a key.
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
pub(super) fn next(scene: &Scene<'_>, member: &Member<'_>, begin: &Begin) -> Step {
    match begin.action {
        Action::RestartServices => create(scene, member, begin, RunStep::RestartServices),
        Action::Reboot => create(scene, member, begin, RunStep::Reboot),
        Action::Replace => Step::DeleteMachine(Box::new(member.machine.clone())),
    }
}

fn create(scene: &Scene<'_>, member: &Member<'_>, begin: &Begin, step: RunStep) -> Step {
    let known = scene
        .observed
        .runs
        .iter()
        .filter(|run| is_effort(run, member.uid()).is_some());
    let number = known
        .map(|run| attempts::attempt_of(run).saturating_add(1))
        .max()
        .unwrap_or_default();
    let order = Order {
        intent: Intent::Repair,
        steps: vec![step],
        targets: &[(*member, begin.retry.clone())],
        attempt: Attempt {
            number,
            resume: false,
        },
        name_of: Some(vec![
            member.uid().to_owned(),
            remediation::name(begin.action).to_owned(),
        ]),
        vars: match begin.action {
            Action::Reboot => reboot_vars(member, begin),
            Action::RestartServices | Action::Replace => BTreeMap::new(),
        },
    };
    Step::CreateRun(Box::new(runs::order(scene, order)))
}

/// How long the reboot may take, and what it is for: an attempt at the same finds a reboot that an earlier one made.
fn reboot_vars(member: &Member<'_>, begin: &Begin) -> BTreeMap<String, Value> {
    let since = begin.since.map(|since| since.to_string()).unwrap_or_default();
    let retry = begin.retry.as_deref().unwrap_or_default();
    let request = format!("{} {since} {retry}", member.uid());
    BTreeMap::from([
        (
            "reboot_timeout_seconds".to_owned(),
            begin.reboot_timeout_seconds.into(),
        ),
        ("reboot_request".to_owned(), request.trim_end().into()),
    ])
}
