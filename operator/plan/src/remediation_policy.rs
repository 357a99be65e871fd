//! RemediationPolicy: says which machines it holds for, how many of them are sick, and what is done about them. The
//! ClusterDeployments decide; this only tells.

use crds::ObjectExt;
use crds::Reason;
use crds::cluster_deployment::Repair;
use crds::conditions::{Statement, state};
use crds::names::condition;
use crds::step::Intent;
use crds::{ClusterDeployment, Machine, PlaybookRun, RemediationPolicy, RemediationPolicyStatus};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use crate::message::{count, cut};
use crate::remediation::policy_of;
use crate::{Next, Plan, attempts};

/// What was observed.
pub struct Observed<'a> {
    /// The time.
    pub now: Timestamp,
    /// The policy.
    pub policy: &'a RemediationPolicy,
    /// RemediationPolicies of the namespace; the first by name that selects a machine holds for it.
    pub policies: &'a [&'a RemediationPolicy],
    /// Machines of the namespace.
    pub machines: &'a [&'a Machine],
    /// ClusterDeployments of the namespace.
    pub deployments: &'a [&'a ClusterDeployment],
    /// Runs of the namespace.
    pub runs: &'a [&'a PlaybookRun],
}

/// There is nothing to do but to tell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {}

/// Decides.
pub fn plan(observed: &Observed<'_>) -> Plan<Action, RemediationPolicyStatus> {
    let policy = observed.policy;
    let old = policy.status.clone().unwrap_or_default();
    let machines = held(observed);
    let repairs: Vec<&Repair> = machines.iter().filter_map(|machine| repair_of(observed, machine)).collect();
    let repairing: Vec<&Repair> = repairs.iter().copied().filter(|repair| repair.action.is_some()).collect();
    let ready = ready(observed, &machines, &repairs, &repairing);
    let generation = policy.metadata.generation;
    let number = |number: usize| i32::try_from(number).unwrap_or(i32::MAX);
    let status = RemediationPolicyStatus {
        observed_generation: generation,
        message: Some(ready.message.clone()),
        machines: number(machines.len()),
        unhealthy_machines: number(repairs.len()),
        repairing: number(repairing.len()),
        last_action_at: last_action(observed, &machines, &repairing).max(old.last_action_at.clone()),
        conditions: state(&old.conditions, &[ready], generation, &Time(observed.now)),
    };
    Plan {
        actions: Vec::new(),
        waits_for: (!repairs.is_empty()).then(|| status.message.clone().unwrap_or_default()),
        status,
        next: Next::OnChange,
    }
}

/// The machines that it holds for, in the order of their names; also those that leave, while something is said of them.
fn held<'a>(observed: &Observed<'a>) -> Vec<&'a Machine> {
    let uid = observed.policy.metadata.uid.as_ref();
    let held = observed.machines.iter().copied().filter(|machine| {
        let stays = !machine.is_deleting();
        let holds = || policy_of(machine, observed.policies).is_some_and(|policy| policy.metadata.uid.as_ref() == uid);
        (stays || repair_of(observed, machine).is_some()) && holds()
    });
    let mut held: Vec<&Machine> = held.collect();
    held.sort_by_key(|machine| machine.metadata.name.clone());
    held
}

fn repair_of<'a>(observed: &Observed<'a>, machine: &Machine) -> Option<&'a Repair> {
    let cluster = machine.spec.former().deployment()?;
    let deployment = observed.deployments.iter().find(|deployment| deployment.name() == cluster)?;
    let repairs = &deployment.status.as_ref()?.repairs;
    repairs.iter().find(|repair| Some(&repair.machine) == machine.metadata.name.as_ref())
}

/// When something was last begun, as far as runs and repairs tell.
fn last_action(observed: &Observed<'_>, machines: &[&Machine], repairing: &[&Repair]) -> Option<Time> {
    let of_machines = |run: &&&PlaybookRun| {
        let targets = attempts::targets(run);
        let marked = |machine: &&Machine| {
            let uid = machine.uid();
            targets.values().any(|target| target.uid == uid)
        };
        run.spec.intent == Intent::Repair && machines.iter().any(marked)
    };
    let runs = observed.runs.iter().filter(of_machines);
    let made = runs.filter_map(|run| run.metadata.creation_timestamp.clone());
    made.chain(repairing.iter().map(|repair| repair.since.clone())).max()
}

fn ready(observed: &Observed<'_>, machines: &[&Machine], repairs: &[&Repair], repairing: &[&Repair]) -> Statement {
    fn stated(status: bool, reason: impl Into<String>, message: String) -> Statement {
        Statement::new(condition::READY, status, reason, cut(message))
    }
    let more = |number: usize| match number {
        0 => String::new(),
        number => format!("; and {}", count(number, "more machine")),
    };
    let clause = |repair: &Repair| format!("{}: {}", repair.machine, repair.message);
    let first = |repairs: &[&Repair]| {
        let first = repairs.first().map(|repair| clause(repair)).unwrap_or_default();
        format!("{first}{}", more(repairs.len().saturating_sub(1)))
    };
    if observed.policy.spec.remediation.paused {
        return stated(false, Reason::Paused, "paused: nothing is done until spec.paused is false".into());
    }
    if machines.is_empty() {
        return stated(true, Reason::NoMachines, "holds for no machine".into());
    }
    let idle: Vec<&Repair> = repairs.iter().copied().filter(|repair| repair.action.is_none()).collect();
    let stuck = |repair: &&&Repair| repair.reason != Reason::Waiting;
    if let Some(worst) = idle.iter().find(stuck).filter(|_| repairing.is_empty()) {
        let message = format!("{}{}", clause(worst), more(repairs.len() - 1));
        return stated(false, worst.reason.as_str(), message);
    }
    if !repairing.is_empty() {
        return stated(true, Reason::Repairing, first(repairing));
    }
    match idle.is_empty() {
        true => stated(true, Reason::NothingToRepair, "no machine is sick".into()),
        false => stated(true, Reason::Waiting, first(&idle)),
    }
}

#[cfg(test)]
mod tests;
