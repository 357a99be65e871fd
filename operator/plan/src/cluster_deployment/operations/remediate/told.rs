//! How it is told: an entry a machine, the condition, and the clause for the cluster's own sentence.

use crds::Reason;
use crds::cluster_deployment::Repair;
use crds::conditions::Statement;
use crds::names::condition;
use crds::remediation_policy::RemediationAction as Action;
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use crate::cluster_deployment::state::{ClusterMachine, ClusterState};
use crate::departure::is_out;
use crate::message::{count, cut};
use crate::remediation::{Decision, RemediationInput, Round};

pub(super) fn told<'a>(state: &ClusterState<'a>, machine: &str) -> Option<&'a Repair> {
    let status = state.deployment.status.as_ref()?;
    status.repairs.iter().find(|repair| repair.machine == machine)
}

pub(super) fn entry(decision: &Decision) -> Repair {
    Repair {
        machine: decision.machine.clone(),
        action: decision.action,
        reason: decision.reason.clone(),
        message: cut(decision.sentence()),
        since: Time(Timestamp::UNIX_EPOCH),
    }
}

/// Machines that were deleted to be replaced, until the cluster has nothing of them any more.
pub(super) fn replaced(state: &ClusterState<'_>) -> Vec<Repair> {
    let leaving = state.leaving.iter().filter_map(|member| {
        let before = told(state, member.name()).filter(|before| before.action == Some(Action::Replace))?;
        let out = member.deleting_reason().is_some_and(is_out);
        (!out).then(|| Repair { message: cut(format!("it is being replaced: {}", member.says())), ..before.clone() })
    });
    leaving.collect()
}

/// The condition, and the clause that goes with the cluster's own sentence, which has said already what is wrong.
pub(super) fn summary(
    state: &ClusterState<'_>,
    input: &RemediationInput,
    round: &Round,
    replaced: &[Repair],
) -> (Statement, Option<String>) {
    fn stated(status: bool, reason: impl Into<String>, message: String) -> Statement {
        Statement::new(condition::REMEDIATION, status, reason, cut(message))
    }
    let acts = round.decisions.iter().any(|decision| decision.action.is_some()) || !replaced.is_empty();
    let idle = round.decisions.iter().find(|decision| decision.action.is_none());
    let told = sentence(state, round, replaced, Decision::sentence);
    let says = sentence(state, round, replaced, |decision| decision.message.clone());
    match (acts, &input.unreachable, idle) {
        (true, _, _) => (stated(true, Reason::Repairing, told), Some(says)),
        (false, Some(lost), _) => {
            let message = format!("no machine is repaired: {lost}");
            (stated(false, Reason::ClusterUnreachable, message), None)
        }
        (false, None, Some(first)) => (stated(false, first.reason.as_str(), told), Some(says)),
        (false, None, None) => (stated(false, Reason::NothingToRepair, "no machine is sick".into()), None),
    }
}

/// What is done about the first machine, and why nothing about the first of the others.
fn sentence(
    state: &ClusterState<'_>,
    round: &Round,
    replaced: &[Repair],
    says: impl Fn(&Decision) -> String,
) -> String {
    let clause = |name: &str, message: &str| {
        let mut members = state.live.iter().chain(&state.leaving);
        let member = members.find(|member| member.name() == name);
        let title = member.map_or_else(|| name.to_owned(), ClusterMachine::title);
        format!("{title}: {message}")
    };
    let (acting, idle): (Vec<&Decision>, Vec<&Decision>) =
        round.decisions.iter().partition(|decision| decision.action.is_some());
    let of_decision = |decision: &&Decision| clause(&decision.machine, &says(decision));
    let mut acting: Vec<String> = acting.iter().map(of_decision).collect();
    acting.extend(replaced.iter().map(|repair| clause(&repair.machine, &repair.message)));
    let first = |clauses: &[String]| match clauses {
        [] => None,
        [one] => Some(one.clone()),
        [one, more @ ..] => Some(format!("{one}; and {}", count(more.len(), "more machine"))),
    };
    let idle: Vec<String> = idle.iter().map(of_decision).collect();
    let parts = [first(&acting), first(&idle)];
    parts.into_iter().flatten().collect::<Vec<_>>().join("; ")
}
