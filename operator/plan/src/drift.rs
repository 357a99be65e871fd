//! Drift: what comparisons found on a machine, how that is reported, and how often it was tried to repair it.

mod steps;

use crds::commands;
use crds::conditions::Statement;
use crds::drift::{Drift, DriftRepair, DriftSeen, MOST_DIFFERENCES, StepDifference};
use crds::names::{annotation, condition};
use crds::playbook_run::RunPhase;
use crds::step::{Intent, Step};
use crds::{ClusterDeployment, Machine, ObjectExt, PlaybookRun, Reason};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use crate::lifecycle::is_provisioned;
use crate::message::{count, cut, quote};
use crate::{attempts, naming, provisioning};
pub use steps::{Compared, restarts};

/// What the ClusterDeployment says of drift, or what holds when it says nothing.
pub fn policy(deployment: &ClusterDeployment) -> Drift {
    deployment.spec.drift.clone().unwrap_or_default()
}

/// Whether a run compares machines.
pub fn is_comparison(run: &PlaybookRun) -> bool {
    run.spec.intent == Intent::Compare
}

/// What a Machine shows from now on: what its status has, and what comparisons have found since. None: it was not
/// compared since it is part of its cluster.
pub fn shown(machine: &Machine, runs: &[&PlaybookRun]) -> Option<DriftSeen> {
    let status = machine.status.as_ref()?;
    let (host, since) = (machine.spec.host_ref.as_ref()?, status.provisioned_at.as_ref()?);
    let recorded = status.drift.clone().filter(|seen| seen.checked_at >= *since);
    let last = recorded.as_ref().map(|seen| seen.checked_at.0);
    let is_new = |run: &&PlaybookRun| {
        is_comparison(run) && run.created_at() >= Some(since) && run.spec.hosts.contains(&host.name)
    };
    let new = runs.iter().copied().filter(|run| attempts::is_over(run) && is_new(run));
    let mut new: Vec<(Timestamp, &PlaybookRun)> = new.filter_map(|run| Some((attempts::ended_at(run)?, run))).collect();
    new.retain(|(ended, _)| last.is_none_or(|last| *ended > last));
    new.sort_by_key(|(ended, run)| (*ended, run.name()));
    new.into_iter().fold(recorded, |seen, (ended, run)| found(run, &host.name, Time(ended), seen.as_ref()).or(seen))
}

/// What a run found on a Host, after what was found before; none: it did not come to look.
fn found(run: &PlaybookRun, host: &str, ended: Time, before: Option<&DriftSeen>) -> Option<DriftSeen> {
    let status = run.status.as_ref()?;
    let result = status.hosts.iter().find(|result| result.name == host);
    let failure = match result.map(|result| &result.failure) {
        // It made room for something else.
        _ if status.phase == Some(RunPhase::Canceled) => return None,
        Some(None) => None,
        Some(Some(failure)) => Some(format!("{}: {}", failure.reason, failure.message)),
        None => Some(status.message.clone().unwrap_or_else(|| format!("run {} did not end well", run.name()))),
    };
    if let Some(failure) = failure {
        let (differences, differs_since) =
            before.map_or_else(Default::default, |before| (before.differences.clone(), before.differs_since.clone()));
        return Some(DriftSeen { checked_at: ended, differs_since, differences, failure: Some(quote(failure)) });
    }
    // A run of single steps says nothing of the others.
    let others = before.iter().flat_map(|before| &before.differences);
    let others = others.filter(|difference| !run.spec.steps.contains(&difference.step)).cloned();
    let mut differences: Vec<StepDifference> =
        result.iter().flat_map(|result| result.differences.clone()).chain(others).collect();
    differences.truncate(MOST_DIFFERENCES);
    let differs = differences.iter().any(|difference| !difference.unknown);
    let since = || before.and_then(|before| before.differs_since.clone()).unwrap_or_else(|| ended.clone());
    Some(DriftSeen { differs_since: differs.then(since), checked_at: ended, differences, failure: None })
}

/// By what the runs are known that repair what a machine has differed in since then.
pub fn repair_key(machine: &Machine, seen: &DriftSeen) -> String {
    let since = seen.differs_since.as_ref().map(|since| since.0.to_string()).unwrap_or_default();
    format!("drift-{}", naming::short_hash(&[machine.uid(), &since], 12))
}

/// The runs that were made to repair that, the newest last.
pub fn repairs<'a>(machine: &Machine, seen: &DriftSeen, runs: &[&'a PlaybookRun]) -> Vec<&'a PlaybookRun> {
    let key = repair_key(machine, seen);
    let is_one = |run: &&PlaybookRun| run.annotation(annotation::ROLLS_OUT) == Some(&key);
    let mut repairs: Vec<&PlaybookRun> = runs.iter().copied().filter(is_one).collect();
    repairs.sort_by_key(|run| attempts::attempt_of(run));
    repairs
}

/// Condition `Drifted` of a Machine; none: it is not part of its cluster yet, or nobody compares it.
pub fn statement(
    deployment: Option<&ClusterDeployment>,
    machine: &Machine,
    seen: Option<&DriftSeen>,
    runs: &[&PlaybookRun],
) -> Option<Statement> {
    let deployment = deployment.filter(|_| is_provisioned(machine))?;
    let policy = policy(deployment);
    if policy.check_every_seconds == 0 {
        return None;
    }
    let stated = |status: Option<bool>, reason: Reason, message: String| {
        Some(Statement::new(condition::DRIFTED, status, reason, cut(message)))
    };
    let Some(seen) = seen else {
        return stated(None, Reason::NotCompared, "it was not compared yet with what is wanted".into());
    };
    let steps = seen.steps();
    if !steps.is_empty() {
        let (reason, then) = what_next(deployment, machine, seen, &steps, runs);
        return stated(Some(true), reason, format!("{}; {then}", described(&seen.differences, false)));
    }
    if let Some(failure) = &seen.failure {
        return stated(None, Reason::ComparisonFailed, format!("it could not be compared: {failure}"));
    }
    match seen.differences.is_empty() {
        true => stated(Some(false), Reason::AsWanted, "it is as it is wanted, for all that is compared".into()),
        false => {
            let message = format!("not all could be compared: {}", described(&seen.differences, true));
            stated(None, Reason::ComparisonFailed, message)
        }
    }
}

/// What becomes of a machine that differs.
fn what_next(
    deployment: &ClusterDeployment,
    machine: &Machine,
    seen: &DriftSeen,
    steps: &[Step],
    runs: &[&PlaybookRun],
) -> (Reason, String) {
    let host = machine.spec.host_ref.as_ref().map_or("", |host| host.name.as_str());
    let command = commands::play_again(&deployment.metadata, steps, host);
    let made = repairs(machine, seen, runs).len();
    match policy(deployment).repair {
        DriftRepair::Never => (Reason::Drifted, format!("to have it changed back: {command}")),
        DriftRepair::Automatic if made < provisioning::most_attempts(deployment) => {
            (Reason::RepairingDrift, "these steps are played again".into())
        }
        DriftRepair::Automatic => {
            let attempts = count(made, "attempt");
            (Reason::DriftRepairFailed, format!("so it was after {attempts} to repair it; correct it, then: {command}"))
        }
    }
}

/// `prepare: differing: vm.overcommit_memory; node: kubelet.service: differing: /etc/systemd/system/kubelet.service`.
fn described(differences: &[StepDifference], unknown: bool) -> String {
    let reported = differences.iter().filter(|difference| difference.unknown == unknown);
    let described = reported.map(|difference| match difference.message.as_str() {
        "" => format!("{}: {}", difference.step, difference.reason),
        message => format!("{}: {message}", difference.step),
    });
    quote(described.collect::<Vec<_>>().join("; "))
}

#[cfg(test)]
mod tests;
