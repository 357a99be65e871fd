//! What kstatus reads of any object, and with it Argo CD, Flux and `kubectl wait`: `Reconciling` while it is not as it
//! is wanted and something is done about that, `Stalled` while nothing is until somebody acts. Each is there only while
//! it is True.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;

use crate::conditions::{self, Statement};
use crate::names::condition;

/// Where an object stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// It is as it is wanted, or it goes.
    Settled,
    /// It comes to be so by itself.
    Reconciling,
    /// It does not, until somebody acts.
    Stalled,
}

impl Standing {
    /// Of an object that is ready, or that waits for a person.
    pub fn new(is_ready: bool, is_stalled: bool) -> Self {
        match (is_ready, is_stalled) {
            (true, _) => Self::Settled,
            (false, true) => Self::Stalled,
            (false, false) => Self::Reconciling,
        }
    }

    /// Reports it, in the words of `why`, and takes out of the old conditions what is so no more.
    pub fn report(self, why: &Statement, old: &mut Vec<Condition>, statements: &mut Vec<Statement>) {
        let type_ = match self {
            Self::Settled => None,
            Self::Reconciling => Some(condition::RECONCILING),
            Self::Stalled => Some(condition::STALLED),
        };
        let ours = [condition::RECONCILING, condition::STALLED];
        old.retain(|there| !ours.contains(&there.type_.as_str()) || Some(there.type_.as_str()) == type_);
        statements.extend(type_.map(|type_| Statement::new(type_, true, why.reason.clone(), why.message.clone())));
    }
}

/// Whether an object with these conditions waits for somebody.
pub fn is_stalled(conditions: &[Condition]) -> bool {
    conditions::is_true(conditions, condition::STALLED)
}

#[cfg(test)]
mod tests {
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
    use k8s_openapi::jiff::Timestamp;

    use super::*;
    use crate::conditions::state;

    #[test]
    fn an_object_is_reconciling_or_stalled_or_neither_and_never_both() {
        let mut conditions = Vec::new();
        for (standing, expected) in [
            (Standing::new(false, false), vec!["Ready", "Reconciling"]),
            (Standing::new(false, true), vec!["Ready", "Stalled"]),
            (Standing::new(false, false), vec!["Ready", "Reconciling"]),
            (Standing::new(true, false), vec!["Ready"]),
        ] {
            let ready = Statement::new(condition::READY, standing == Standing::Settled, "Why", "so it is");
            let mut statements = vec![ready.clone()];
            standing.report(&ready, &mut conditions, &mut statements);
            conditions = state(&conditions, &statements, Some(2), &Time(Timestamp::UNIX_EPOCH));
            let types: Vec<&str> = conditions.iter().map(|there| there.type_.as_str()).collect();
            assert_eq!(types, expected);
            for there in conditions.iter().skip(1) {
                assert_eq!((there.status.as_str(), there.message.as_str()), ("True", "so it is"));
            }
        }
    }
}
