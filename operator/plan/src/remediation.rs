//! Remediation: what is done about sick machines, decided for all of a cluster at once. For each of them there is an
//! answer, also when nothing is done; what was tried is read from the runs, so that a lost status costs time at most.

mod decision;
mod effort;
mod escalation;
mod limits;
mod machine_health;
mod next_action;
mod policy;
mod removals;
mod spares;
mod words;

use crds::Reason;
use crds::step::Role;
use jiff::Timestamp;

pub use decision::{Begin, Decision};
pub use effort::{Effort, EffortResult};
pub use machine_health::{MachineHealth, RemediationInput, SetSeen, State};
pub use policy::{Rule, holding, policy_of};
pub use removals::Removals;
pub use spares::Spares;
pub use words::name;

use escalation::Stage;
use limits::Limits;

/// What was decided.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Round {
    /// One for each machine that is not well.
    pub decisions: Vec<Decision>,
    /// More than allowed are sick at once.
    pub too_many: bool,
    /// When it was last seen that too many are so no more.
    pub calm_since: Option<Timestamp>,
    /// When to look again.
    pub look_again: Option<Timestamp>,
}

/// Decides.
pub fn decide(input: &RemediationInput) -> Round {
    let mut limits = Limits::new(input);
    let mut order: Vec<&MachineHealth> = input.machines.iter().collect();
    order.sort_by_key(|health| (health.role == Role::Worker, health.since(), health.name.clone()));
    // What is under way comes first: it is counted before anything begins.
    let stages: Vec<(&MachineHealth, Option<Stage>)> =
        order.into_iter().map(|health| (health, stage(input, health))).collect();
    for (health, stage) in &stages {
        if stage.as_ref().is_some_and(Stage::is_under_way) {
            limits.count(health);
        }
    }
    let mut round = Round { too_many: limits.too_many(input), calm_since: limits.calm_since, ..Round::default() };
    for (health, stage) in stages {
        let decision = match stage {
            Some(stage) => next_action::decide(input, &mut limits, health, stage),
            None => frozen(input, health).or_else(|| unattended(input, health)),
        };
        round.decisions.extend(decision);
    }
    round.decisions.sort_by(|a, b| a.machine.cmp(&b.machine));
    round.look_again = round.decisions.iter().filter_map(|decision| decision.until).filter(|at| *at > input.now).min();
    round
}

/// Where a machine that is sick, and that somebody cares for, stands.
fn stage(input: &RemediationInput, health: &MachineHealth) -> Option<Stage> {
    let rule = health.rule.as_ref()?;
    match &health.state {
        State::Sick { since, .. } => Some(escalation::next(health, &rule.remediation, *since, input.now)),
        State::NeverStarted { .. } => Some(escalation::for_one_that_never_started(&rule.remediation)),
        State::Well | State::NotJudged => None,
        // What works on the machine goes on; nothing else does.
        State::Unknown => escalation::under_way(health),
    }
}

/// A sick machine that nobody cares for, in a cluster where somebody cares for others.
fn unattended(input: &RemediationInput, health: &MachineHealth) -> Option<Decision> {
    let others = input.machines.iter().any(|other| other.rule.is_some());
    let sick = matches!(health.state, State::Sick { .. });
    (sick && others && health.rule.is_none()).then(|| {
        let message = "nothing is done: no RemediationPolicy selects it, and its cluster has no spec.remediation";
        Decision::none(health, Reason::NoPolicy, message.into())
    })
}

fn frozen(input: &RemediationInput, health: &MachineHealth) -> Option<Decision> {
    let lost = input.unreachable.as_ref()?;
    let concerned = health.state == State::Unknown && health.told && health.rule.is_some();
    concerned.then(|| Decision::none(health, Reason::ClusterUnreachable, format!("not known how it is: {lost}")))
}
#[cfg(test)]
mod tests;
