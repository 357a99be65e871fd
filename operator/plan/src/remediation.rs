//! Remediation: what is done about sick machines, decided for all of a cluster at once. For each of them there is an
//! answer, also when nothing is done; what was tried is read from the runs, so that a lost status costs time at most.

mod brake;
mod ladder;
mod patient;
mod policy;
mod removals;
mod spares;
mod verdict;
mod words;

use crds::Reason;
use crds::step::Role;
use jiff::Timestamp;

pub use ladder::{Effort, Result as EffortResult};
pub use patient::{Patient, SetSeen, State, Ward};
pub use policy::{Rule, holding, policy_of};
pub use removals::Removals;
pub use spares::Spares;
pub use verdict::{Begin, Verdict};
pub use words::name;

use brake::Brakes;
use ladder::Rung;

/// What was decided.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Round {
    /// One for each machine that is not well.
    pub verdicts: Vec<Verdict>,
    /// More than allowed are sick at once.
    pub too_many: bool,
    /// When it was last seen that too many are so no more.
    pub calm_since: Option<Timestamp>,
    /// When to look again.
    pub look_again: Option<Timestamp>,
}

/// Decides.
pub fn decide(ward: &Ward) -> Round {
    let mut brakes = Brakes::of(ward);
    let mut order: Vec<&Patient> = ward.patients.iter().collect();
    order.sort_by_key(|patient| {
        (
            patient.role == Role::Worker,
            patient.since(),
            patient.name.clone(),
        )
    });
    // What is under way comes first: it is counted before anything begins.
    let rungs: Vec<(&Patient, Option<Rung>)> = order
        .into_iter()
        .map(|patient| (patient, rung(ward, patient)))
        .collect();
    for (patient, rung) in &rungs {
        if rung.as_ref().is_some_and(Rung::is_under_way) {
            brakes.count(patient);
        }
    }
    let mut round = Round {
        too_many: brakes.too_many(ward),
        calm_since: brakes.calm_since,
        ..Round::default()
    };
    for (patient, rung) in rungs {
        let verdict = match rung {
            Some(rung) => verdict::of(ward, &mut brakes, patient, rung),
            None => frozen(ward, patient).or_else(|| unattended(ward, patient)),
        };
        round.verdicts.extend(verdict);
    }
    round.verdicts.sort_by(|a, b| a.machine.cmp(&b.machine));
    round.look_again = round
        .verdicts
        .iter()
        .filter_map(|verdict| verdict.until)
        .filter(|at| *at > ward.now)
        .min();
    round
}

/// Where a machine that is sick, and that somebody cares for, stands.
fn rung(ward: &Ward, patient: &Patient) -> Option<Rung> {
    let rule = patient.rule.as_ref()?;
    match &patient.state {
        State::Sick { since, .. } => Some(ladder::next(patient, &rule.remediation, *since, ward.now)),
        State::NeverStarted { .. } => Some(ladder::for_one_that_never_started(&rule.remediation)),
        State::Well | State::NotJudged => None,
        // What works on the machine goes on; nothing else does.
        State::Unknown => ladder::under_way(patient),
    }
}

/// A sick machine that nobody cares for, in a cluster where somebody cares for others.
fn unattended(ward: &Ward, patient: &Patient) -> Option<Verdict> {
    let others = ward.patients.iter().any(|other| other.rule.is_some());
    let sick = matches!(patient.state, State::Sick { .. });
    (sick && others && patient.rule.is_none()).then(|| {
        let message =
            "nothing is done: no RemediationPolicy selects it, and its cluster has no spec.remediation";
        Verdict::none(patient, Reason::NoPolicy, message.into())
    })
}

fn frozen(ward: &Ward, patient: &Patient) -> Option<Verdict> {
    let lost = ward.unreachable.as_ref()?;
    let concerned = patient.state == State::Unknown && patient.told && patient.rule.is_some();
    concerned.then(|| {
        Verdict::none(
            patient,
            Reason::ClusterUnreachable,
            format!("not known how it is: {lost}"),
        )
    })
}
#[cfg(test)]
mod tests;
