//! Conditions: setting one without moving its time when nothing changed, and reading one.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};

/// A condition as a planner states it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Statement {
    /// The condition's type.
    pub type_: &'static str,
    /// `Some(true)` is `True`, `Some(false)` is `False`, `None` is `Unknown`.
    pub status: Option<bool>,
    /// CamelCase, for programs.
    pub reason: String,
    /// A sentence, for people; never empty, since people read conditions one by one.
    pub message: String,
}

impl Statement {
    /// A condition that holds, does not, or is unknown (`None`).
    pub fn new(
        type_: &'static str,
        status: impl Into<Option<bool>>,
        reason: impl Into<String>,
        message: impl Into<String>,
    ) -> Self {
        Self { type_, status: status.into(), reason: reason.into(), message: message.into() }
    }
}

/// Puts the statements into the conditions, in the order of the statements; others stay behind them. The time of
/// transition moves only when the status does. A statement without a message is a mistake of its planner: debug builds
/// refuse it, release builds show the reason instead.
pub fn state(old: &[Condition], statements: &[Statement], generation: Option<i64>, now: &Time) -> Vec<Condition> {
    let mut conditions: Vec<Condition> = statements
        .iter()
        .map(|statement| {
            debug_assert!(
                !statement.message.trim().is_empty(),
                "condition {} ({}) has an empty message",
                statement.type_,
                statement.reason
            );
            let status = match statement.status {
                Some(true) => "True",
                Some(false) => "False",
                None => "Unknown",
            };
            let last_transition_time = old
                .iter()
                .find(|condition| condition.type_ == statement.type_ && condition.status == status)
                .map_or_else(|| now.clone(), |condition| condition.last_transition_time.clone());
            Condition {
                type_: statement.type_.to_owned(),
                status: status.to_owned(),
                reason: statement.reason.clone(),
                message: match statement.message.trim().is_empty() {
                    true => format!("{} is {status}: {}", statement.type_, statement.reason),
                    false => statement.message.clone(),
                },
                observed_generation: generation,
                last_transition_time,
            }
        })
        .collect();
    let others = old.iter().filter(|condition| !statements.iter().any(|s| s.type_ == condition.type_));
    conditions.extend(others.cloned());
    conditions
}

/// The condition of a type, if there is one.
pub fn find<'a>(conditions: &'a [Condition], type_: &str) -> Option<&'a Condition> {
    conditions.iter().find(|condition| condition.type_ == type_)
}

/// True when the condition is there and `True`.
pub fn is_true(conditions: &[Condition], type_: &str) -> bool {
    find(conditions, type_).is_some_and(|condition| condition.status == "True")
}
