//! Transitions of conditions, which Events are written for: another status or reason, and nothing else.

use crds::Reason;
use crds::conditions;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;

/// A condition whose status or reason has changed: to be reported once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transition {
    /// True: needs a look.
    pub warning: bool,
    /// CamelCase: the condition's reason.
    pub reason: String,
    /// The condition's message.
    pub note: String,
}

/// Those of the conditions of these types; the table of reasons says which need a look.
pub fn transitions(old: &[Condition], new: &[Condition], types: &[&str]) -> Vec<Transition> {
    let changed = |condition: &&Condition| {
        conditions::find(old, &condition.type_)
            .is_none_or(|before| before.status != condition.status || before.reason != condition.reason)
    };
    types
        .iter()
        .filter_map(|type_| conditions::find(new, type_))
        .filter(changed)
        .map(|condition| Transition {
            warning: Reason::is_warning_in(&condition.reason),
            reason: condition.reason.clone(),
            note: if condition.message.is_empty() {
                format!("{} is {}", condition.type_, condition.status)
            } else {
                condition.message.clone()
            },
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::transitions;
    use crds::conditions::{Statement, state};
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
    use k8s_openapi::jiff::Timestamp;

    #[test]
    fn a_message_that_changes_is_no_transition() {
        let of = |reason: &str, message: &str| {
            state(&[], &[Statement::new("Ready", false, reason, message)], None, &Time(Timestamp::UNIX_EPOCH))
        };
        let told = |old: &[Condition], new: &[Condition]| transitions(old, new, &["Ready"]).len();
        assert_eq!(told(&[], &of("Installing", "task 1")), 1);
        assert_eq!(told(&of("Installing", "task 1"), &of("Installing", "task 2")), 0);
        assert_eq!(told(&of("Installing", "task 2"), &of("Failed", "task 2")), 1);
    }
}
