//! Sums up in condition `Drifted` which machines differ from what is wanted.

use crds::Conditions;
use crds::Reason;
use crds::conditions::Statement;
use crds::names::condition;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;

use crate::cluster_deployment::proposal::{Area, Proposal, Round};
use crate::cluster_deployment::state::ClusterState;
use crate::drift;
use crate::message::{count, cut};

/// Machines that are named.
const NAMED: usize = 5;

/// What Machines say, the worst first.
const WORST: [(Reason, Option<bool>); 5] = [
    (Reason::DriftRepairFailed, Some(true)),
    (Reason::Drifted, Some(true)),
    (Reason::RepairingDrift, Some(true)),
    (Reason::ComparisonFailed, None),
    (Reason::NotCompared, None),
];

pub(super) fn propose(state: &ClusterState<'_>, round: &Round) -> Proposal {
    let is_compared = drift::policy(state.deployment).check_every_seconds > 0 && state.installed.is_some();
    let said: Vec<(&str, &Condition)> = state
        .live
        .iter()
        .filter_map(|machine| Some((machine.name(), machine.machine.condition(condition::DRIFTED)?)))
        .collect();
    if !is_compared || said.is_empty() {
        return Proposal::default().condition(condition::DRIFTED, None);
    }
    let is_said = |(reason, _): &&(Reason, Option<bool>)| said.iter().any(|(_, said)| said.reason == *reason);
    let Some((reason, status)) = WORST.iter().find(is_said) else {
        let message = format!("none of {} differs from what is wanted", count(said.len(), "machine"));
        return stated(Some(false), Reason::AsWanted, message);
    };
    let of_reason: Vec<&(&str, &Condition)> = said.iter().filter(|(_, said)| said.reason == *reason).collect();
    let names: Vec<&str> = of_reason.iter().take(NAMED).map(|(name, _)| *name).collect();
    let more = of_reason.len().saturating_sub(NAMED);
    let more = if more == 0 { String::new() } else { format!(" and {more} more") };
    let what = match (status, reason) {
        (Some(_), _) => "differ from what is wanted",
        (None, Reason::NotCompared) => "were not compared yet",
        (None, _) => "could not be compared",
    };
    let message = format!("{} of {} {what}: {}{more}", of_reason.len(), count(said.len(), "machine"), names.join(", "));
    match round.report(Area::Drift) {
        Some(report) if *status == Some(true) && *reason == Reason::RepairingDrift => {
            stated(*status, report.reason, format!("{message}; {}", report.message))
        }
        _ => stated(*status, *reason, message),
    }
}

fn stated(status: Option<bool>, reason: Reason, message: String) -> Proposal {
    let statement = Statement::new(condition::DRIFTED, status, reason, cut(message));
    Proposal::default().condition(condition::DRIFTED, Some(statement))
}
