//! Provisioning: whether a Machine is part of its cluster yet, and whether its next attempt is due.

use crds::ObjectExt;
use crds::Reason;
use crds::cluster_deployment::{Approval, Certificates, DeletionPolicy, Executor, Rollout, UpgradePath};
use crds::names::condition;
use crds::playbook_run::RunPhase;
use crds::step::Intent;
use crds::{ClusterDeployment, Host, Machine, PlaybookRun, conditions};
use jiff::Timestamp;

use crate::attempts::{self, HasTerms, Policy, RetryDecision, Terms};
use crate::naming;

/// What the ClusterDeployment says of its executor, or what holds when it says nothing.
pub fn executor(deployment: &ClusterDeployment) -> Executor {
    deployment.spec.executor.clone().unwrap_or_default()
}

/// A digest of what is wanted of a cluster's machines. Pausing it, or changing how often it is tried, wants nothing
/// else.
pub fn wanted(deployment: &ClusterDeployment) -> String {
    let mut spec = deployment.spec.clone();
    (spec.paused, spec.executor) = (false, None);
    spec.deletion_policy = DeletionPolicy::default();
    // No machine is given these.
    (spec.etcd.hash_check_seconds, spec.etcd.defragmentation) = (None, None);
    (spec.approval, spec.rollout) = (Approval::default(), Rollout::default());
    spec.drift = None;
    // It says how, and not what.
    spec.upgrade_path = UpgradePath::default();
    // Those that were made under another one are renewed when they are due.
    spec.certificates = Certificates::default();
    let text = serde_json::to_string(&spec).unwrap_or_default();
    naming::short_hash(&[&text], 12)
}

/// When the machine's cluster was installed, by a run of ours that the status may not tell yet.
pub fn installed_with(machine: &Machine, runs: &[&PlaybookRun]) -> Option<Timestamp> {
    let uid = machine.uid();
    let succeeded = runs.iter().filter(|run| {
        let phase = run.status.as_ref().and_then(|status| status.phase);
        run.spec.intent == Intent::Install && phase == Some(RunPhase::Succeeded) && attempts::is_about(run, uid)
    });
    succeeded.filter_map(|run| attempts::ended_at(run)).min()
}

/// Attempts without progress before a person must ask for another.
pub fn most_attempts(deployment: &ClusterDeployment) -> usize {
    usize::try_from(executor(deployment).max_attempts).unwrap_or_default().max(1)
}

impl HasTerms for ClusterDeployment {
    fn terms(&self) -> Terms {
        terms(self)
    }
}

/// What holds for all attempts at the machines of a ClusterDeployment.
pub fn terms(deployment: &ClusterDeployment) -> Terms {
    let asked = attempts::asked_retry(deployment.metadata.annotations.as_ref(), deployment.generation());
    Terms {
        wanted: wanted(deployment),
        most: most_attempts(deployment),
        retry: asked.map(|value| format!("cluster {value}")),
    }
}

/// Where the machine's provisioning stands. What was recorded in its status counts, even if the run is gone; only where
/// nothing was, the terms of its cluster are asked for.
pub fn retry_decision(
    machine: &Machine,
    host: Option<&Host>,
    terms: impl FnOnce() -> Terms,
    runs: &[&PlaybookRun],
    now: Timestamp,
) -> RetryDecision {
    let recorded = machine.status.as_ref().and_then(|status| status.provisioned_at.as_ref());
    if let Some(at) = recorded {
        let run = machine.status.as_ref().and_then(|status| status.last_run.as_ref());
        return RetryDecision::Done { run: run.map(|run| run.name.clone()).unwrap_or_default(), at: Some(at.0) };
    }
    let uid = machine.uid();
    let tried = attempts::tried(runs, &[Intent::Install, Intent::Join], uid);
    let terms = terms();
    let policy = Policy {
        host_generation: host.and_then(|host| host.metadata.generation),
        ..terms.limited(terms.asked_retries(machine))
    };
    attempts::retry_decision(&tried, &policy, now)
}

/// Whether any run has ever been about this machine, an administrator's too: one that was only claimed needs no
/// cleaning.
pub fn was_touched(machine: &Machine, runs: &[&PlaybookRun]) -> bool {
    let uid = machine.uid();
    let status = machine.status.as_ref();
    let told = status.is_some_and(|status| {
        let provisioned = conditions::find(&status.conditions, condition::PROVISIONED);
        // Any word but these speaks of a run, which may be gone.
        let of_run = provisioned
            .is_some_and(|there| !Reason::among(&there.reason, &[Reason::WaitingForHost, Reason::WaitingForRun]));
        status.provisioned_at.is_some() || status.last_run.is_some() || of_run
    });
    let marked = |run: &PlaybookRun| attempts::is_about(run, uid);
    told || runs.iter().any(|run| marked(run) || worked_on(run, machine))
}

/// Whether a run that no controller made has worked on the machine's Host in the machine's time, for all that is known:
/// it may have been made before the machine, and have waited; and its status may have been lost.
fn worked_on(run: &PlaybookRun, machine: &Machine) -> bool {
    let host = machine.spec.host_ref.as_ref();
    let in_its_time = match &run.status {
        None => true,
        Some(status) => {
            let began = status.started_at.as_ref();
            status.token > 0 && began.is_none_or(|at| Some(at) >= machine.created_at())
        }
    };
    !run.spec.intent.changes_nothing() && in_its_time && host.is_some_and(|host| run.spec.hosts.contains(&host.name))
}
