//! What is said of the store: that its machines are looked at first, what contradicts it, and how that is approved.

use crds::Reason;
use crds::conditions::Statement;
use crds::names::condition;

use super::comparison::Comparison;
use super::contradiction::Contradiction;
use crate::message::{count, cut};

/// Hosts that are named.
const NAMED: usize = 3;

/// What is said of the store while its machines speak against it, or have yet to be looked at.
pub struct Verdict {
    /// Why.
    pub reason: Reason,
    /// What it waits for, with the command that lets it go on.
    pub message: String,
    /// Whether it is known to be older.
    pub known: bool,
}

impl Verdict {
    /// As a condition.
    pub fn statement(&self) -> Statement {
        let known = self.known.then_some(true);
        Statement::new(condition::STORE_IS_OLDER, known, self.reason, cut(self.message.clone()))
    }
}

/// What is said; none: nothing speaks against the store. `approve`: what to type for a value of the annotation.
pub fn verdict(comparison: &Comparison<'_>, approve: impl Fn(&str) -> String) -> Option<Verdict> {
    let (reason, message, known) = if comparison.is_over() {
        return None;
    } else if comparison.contradictions.is_empty() && !comparison.unasked.is_empty() {
        (Reason::LookingAtMachines, looking(comparison), false)
    } else if comparison.is_silence() {
        let message = format!(
            "no operator has worked for a while, and no machine of the cluster answers to be compared with: nothing is done. Bring one back; or, if the metadata cluster was not set back to an older state, {}",
            approve(&comparison.value)
        );
        (Reason::NoMachineAnswers, message, false)
    } else if comparison.holds() {
        (Reason::MachineIsNewer, contradicting(comparison, approve), true)
    } else {
        let message = format!("adopts what {} know", count(comparison.contradictions.len(), "machine"));
        (Reason::AdoptingClaims, message, true)
    };
    Some(Verdict { reason, message, known })
}

fn looking(comparison: &Comparison<'_>) -> String {
    let unasked = &comparison.unasked;
    let named = unasked.iter().take(NAMED).copied().collect::<Vec<_>>().join(", ");
    let more = match unasked.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!(
        "no operator has worked for a while: each machine is looked at before anything is done; waits for {named}{more}"
    )
}

fn contradicting(comparison: &Comparison<'_>, approve: impl Fn(&str) -> String) -> String {
    let found: Vec<String> = comparison.contradictions.iter().take(NAMED).map(Contradiction::message).collect();
    let more = match comparison.contradictions.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!("; and {}", count(more, "more Host")),
    };
    let looks = match comparison.unasked.len() {
        0 => approve(&comparison.value),
        unasked => format!("wait until {} more were looked at", count(unasked, "machine")),
    };
    format!(
        "the metadata cluster is older than its machines: {}{more}. Nothing is done to any machine. To adopt what the machines know, {looks}",
        found.join("; ")
    )
}
