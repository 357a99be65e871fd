//! Reasons: why a condition stands as it does, why an Event was written, why a run failed on a machine.

mod table;

use std::fmt;

pub use table::Reason;

use crate::names::condition;

/// Conditions that repeat the reason of another one, of a machine, or of a run.
const SUMMARIES: [&str; 14] = [
    condition::READY,
    condition::CONTROL_PLANE_READY,
    condition::ETCD_READY,
    condition::API_SERVER_READY,
    condition::COMPONENTS_READY,
    condition::WORKERS_READY,
    condition::MACHINES_READY,
    condition::PROVISIONED,
    condition::HEALTHY,
    condition::CONTROL_PLANE_HEALTHY,
    condition::NODES_HEALTHY,
    condition::REMEDIATION,
    condition::RECONCILING,
    condition::STALLED,
];

/// How much attention a reason asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// As it should be.
    Normal,
    /// Not there yet, and on its way: nothing has to be done.
    Progressing,
    /// Something is wrong. Events of it are warnings.
    Warning,
}

/// What there is to know of a reason.
#[derive(Clone, Copy, Debug)]
pub struct ReasonSpec {
    /// How much attention it asks for.
    pub severity: Severity,
    /// Types of the conditions that state it. None: it is the reason of an Event, or of a failure in a run
    /// (`status.hosts[].failure` of a PlaybookRun). A failure's, and one that ends a run (`Failed`), may come from
    /// there into any condition that tells of the run.
    pub conditions: &'static [&'static str],
    /// What it says, in one sentence.
    pub meaning: &'static str,
    /// What a person does about it; empty where nothing has to be done.
    pub remedy: &'static str,
}

impl Reason {
    /// The reason of this name; none where a playbook made it up.
    pub fn from_name(name: &str) -> Option<Self> {
        let found = Self::ALL.binary_search_by(|reason| reason.as_str().cmp(name));
        found.ok().map(|index| Self::ALL[index])
    }

    /// Whether a name that stands in a status is that of one of these.
    pub fn among(name: &str, reasons: &[Reason]) -> bool {
        reasons.iter().any(|reason| name == *reason)
    }

    /// Whether somebody should look.
    pub fn is_warning(self) -> bool {
        self.spec().severity == Severity::Warning
    }

    /// Whether the table has it on conditions of this type. One that ends a run, or is a failure's, may come into any
    /// condition that tells of the run, and conditions that sum up repeat the reasons of what they sum up.
    pub fn may_stand_on(self, condition: &str) -> bool {
        let conditions = self.spec().conditions;
        let is_of_runs = conditions.is_empty() || conditions.contains(&condition::FAILED);
        is_of_runs || SUMMARIES.contains(&condition) || conditions.contains(&condition)
    }

    /// Whether a reason that stands in a status asks for attention. One that is in no table does: a playbook may give
    /// any reason, and gives it for a failure.
    pub fn is_warning_in(status: &str) -> bool {
        Self::from_name(status).is_none_or(Self::is_warning)
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl AsRef<str> for Reason {
    fn as_ref(&self) -> &str {
        self.as_str()
    }
}

impl From<Reason> for String {
    fn from(reason: Reason) -> Self {
        reason.as_str().to_owned()
    }
}

impl PartialEq<Reason> for str {
    fn eq(&self, reason: &Reason) -> bool {
        self == reason.as_str()
    }
}

impl PartialEq<Reason> for &str {
    fn eq(&self, reason: &Reason) -> bool {
        *self == reason.as_str()
    }
}

impl PartialEq<Reason> for String {
    fn eq(&self, reason: &Reason) -> bool {
        self == reason.as_str()
    }
}

impl PartialEq<str> for Reason {
    fn eq(&self, name: &str) -> bool {
        self.as_str() == name
    }
}

impl PartialEq<&str> for Reason {
    fn eq(&self, name: &&str) -> bool {
        self.as_str() == *name
    }
}

#[cfg(test)]
mod tests {
    use super::{Reason, Severity};

    #[test]
    fn the_table_is_in_the_order_of_its_names_and_each_is_found_by_its_own() {
        assert!(Reason::ALL.is_sorted_by(|one, next| one.as_str() < next.as_str()));
        for reason in Reason::ALL {
            assert_eq!(Reason::from_name(reason.as_str()), Some(*reason));
        }
        assert_eq!(Reason::from_name("NoSuchReason"), None);
    }

    #[test]
    fn every_reason_says_what_it_means_and_a_warning_what_to_do() {
        for reason in Reason::ALL {
            let spec = reason.spec();
            assert!(spec.meaning.ends_with('.'), "{reason}: {:?}", spec.meaning);
            let asks = spec.severity == Severity::Warning;
            assert!(!asks || spec.remedy.ends_with('.'), "{reason}: what is to be done?");
        }
    }

    #[test]
    fn a_reason_that_a_playbook_made_up_asks_for_attention() {
        let check = |reason: &str, expected| assert_eq!(Reason::is_warning_in(reason), expected, "{reason}");
        check("Running", false);
        check("Joining", false);
        check("JoinFailed", true);
        check("LicenceMissing", true);
    }
}
