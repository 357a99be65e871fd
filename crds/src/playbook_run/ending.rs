//! How the end of a run stands in its conditions: as a Job's, `Complete` or `Failed` is True. Whoever decides by the
//! reason reads here what is written here.

use crate::conditions::{self, Statement};
use crate::names::condition;

use super::{PlaybookRunStatus, RunPhase};

/// The conditions of a run that ended in this phase.
pub fn end(phase: RunPhase, reason: &str, message: &str) -> Vec<Statement> {
    let has_succeeded = phase == RunPhase::Succeeded;
    let complete = Statement::new(condition::COMPLETE, has_succeeded, reason, message);
    let failed = Statement::new(condition::FAILED, true, reason, message);
    match has_succeeded {
        true => vec![complete],
        false => vec![complete, failed],
    }
}

impl PlaybookRunStatus {
    /// The reason of its end in its conditions; none while it is not over.
    pub fn end_reason(&self) -> Option<&str> {
        let ended = [condition::COMPLETE, condition::FAILED];
        let mut stated = ended.iter().filter_map(|type_| conditions::find(&self.conditions, type_));
        let ended = stated.find(|condition| condition.status == "True")?;
        Some(ended.reason.as_str())
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
    use k8s_openapi::jiff::Timestamp;

    use super::*;

    #[test]
    fn the_reason_of_an_end_is_found_whatever_the_end() {
        let ends = [
            (RunPhase::Succeeded, "Complete"),
            (RunPhase::Failed, "StepFailed"),
            (RunPhase::Canceled, "Paused"),
            (RunPhase::DeadlineExceeded, "DeadlineExceeded"),
            (RunPhase::Unknown, "ExecutorKilled"),
        ];
        for (phase, reason) in ends {
            let conditions = conditions::state(&[], &end(phase, reason, "so"), None, &Time(Timestamp::UNIX_EPOCH));
            let status = PlaybookRunStatus { phase: Some(phase), conditions, ..PlaybookRunStatus::default() };
            assert_eq!(status.end_reason(), Some(reason));
        }
        let works = Statement::new(condition::COMPLETE, false, "Running", "works");
        let status = PlaybookRunStatus {
            conditions: conditions::state(&[], &[works], None, &Time(Timestamp::UNIX_EPOCH)),
            ..PlaybookRunStatus::default()
        };
        assert_eq!(status.end_reason(), None);
    }
}
