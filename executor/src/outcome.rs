//! The final report of a run: exit code and termination message.
//!
//! | code | meaning | another attempt may help |
//! |---|---|---|
//! | 0 | every step is done on every host | |
//! | 10 | the inputs are refused | no |
//! | 11 | a host key is not the pinned one, or a machine is another than was claimed | no |
//! | 12 | SSH refuses the credentials | no |
//! | 20 | a step failed | yes |
//! | 21 | hosts could not be reached | yes |
//! | 30 | canceled (143 after SIGTERM) | yes |
//! | 31 | the deadline is over | yes |
//! | 40 | a failure of the executor itself | yes |

use crds::Reason;
use std::path::Path;
use std::{fs, io};

use crds::playbook_run::{HostResult, RunOutcome, RunPhase};
use serde_json::{Value, json};

use crate::sanitize::cut;
use crate::stop::Stop;

/// The inputs are refused.
pub const INPUTS_REFUSED: u8 = 10;
/// The executor itself failed.
pub const INTERNAL: u8 = 40;

const HOST_KEY: u8 = 11;
const AUTHENTICATION: u8 = 12;
const STEP_FAILED: u8 = 20;
const HOSTS_UNREACHABLE: u8 = 21;
const CANCELED: u8 = 30;
const DEADLINE: u8 = 31;
const TERMINATED: u8 = 143;

/// Longest termination message, in bytes; Kubernetes keeps a little more.
const MESSAGE_LIMIT: usize = 2048;

/// The exit code of a run that came to an outcome. Of several kinds of failure the one counts that another
/// attempt helps most.
pub fn exit_code(outcome: &RunOutcome, hosts: &[HostResult], stop: Option<Stop>) -> u8 {
    match outcome.phase {
        RunPhase::Succeeded => 0,
        RunPhase::Canceled if stop == Some(Stop::Terminated) => TERMINATED,
        RunPhase::Canceled => CANCELED,
        RunPhase::DeadlineExceeded => DEADLINE,
        RunPhase::Pending | RunPhase::Running | RunPhase::Failed | RunPhase::Unknown => {
            let kinds = hosts.iter().filter_map(|host| host.failure.as_ref()).map(|failure| kind(&failure.reason));
            kinds.max_by_key(|code| weight(*code)).unwrap_or(STEP_FAILED)
        }
    }
}

fn kind(reason: &str) -> u8 {
    match Reason::from_name(reason) {
        Some(Reason::HostKeyChanged | Reason::HostKeyUnknown | Reason::MachineIdentityMismatch) => HOST_KEY,
        Some(Reason::AuthenticationFailed) => AUTHENTICATION,
        Some(Reason::Unreachable) => HOSTS_UNREACHABLE,
        _ => STEP_FAILED,
    }
}

fn weight(code: u8) -> u8 {
    match code {
        HOST_KEY => 0,
        AUTHENTICATION => 1,
        HOSTS_UNREACHABLE => 2,
        _ => 3,
    }
}

/// An outcome before, or without, any host: nothing was done.
pub fn nothing_done(reason: Reason, message: &str, digest: &str, hosts: usize, retriable: bool) -> RunOutcome {
    RunOutcome {
        phase: RunPhase::Failed,
        retriable,
        reason: reason.into(),
        message: crate::sanitize::clean(message, 1024),
        step: None,
        hosts_ok: 0,
        hosts_failed: i32::try_from(hosts).unwrap_or(i32::MAX),
        digest: digest.to_owned(),
    }
}

/// The termination message: the outcome's fields, and short names of the ones that decide when the status was
/// lost.
pub fn termination_message(outcome: &RunOutcome) -> String {
    let mut outcome = outcome.clone();
    for limit in [1024, 512, 256, 128, 0] {
        outcome.message = cut(&outcome.message, limit);
        let mut message = serde_json::to_value(&outcome).unwrap_or(Value::Null);
        if let Some(fields) = message.as_object_mut() {
            fields.insert("outcome".to_owned(), json!(outcome.phase));
            fields.insert("counts".to_owned(), json!({"ok": outcome.hosts_ok, "failed": outcome.hosts_failed}));
        }
        let text = message.to_string();
        if text.len() <= MESSAGE_LIMIT {
            return text;
        }
    }
    String::new()
}

/// Writes the termination message. The file is there already when the kubelet made it.
pub fn write_termination_message(path: &Path, outcome: &RunOutcome) -> io::Result<()> {
    fs::write(path, termination_message(outcome))
}

#[cfg(test)]
mod tests {
    use crds::playbook_run::{HostFailure, HostResult, RunOutcome, RunPhase};

    use super::{Reason, exit_code, nothing_done, termination_message};
    use crate::stop::Stop;

    #[test]
    fn the_exit_code_is_the_one_of_the_failure_that_may_heal_best() {
        let check = |reasons: &[&str], expected: u8| {
            let hosts: Vec<_> = reasons
                .iter()
                .map(|reason| HostResult {
                    failure: Some(HostFailure {
                        step: "node".into(),
                        task: String::new(),
                        reason: (*reason).to_owned(),
                        message: String::new(),
                    }),
                    ..HostResult::default()
                })
                .collect();
            assert_eq!(
                exit_code(&nothing_done(Reason::Internal, "", "", 1, true), &hosts, None),
                expected,
                "{reasons:?}"
            );
        };
        check(&["HostKeyChanged"], 11);
        check(&["HostKeyUnknown", "HostKeyChanged"], 11);
        check(&["MachineIdentityMismatch"], 11);
        check(&["HostKeyChanged", "AuthenticationFailed"], 12);
        check(&["AuthenticationFailed", "Unreachable"], 21);
        check(&["Unreachable", "DigestMismatch"], 20);
        check(&[], 20);
    }

    #[test]
    fn a_run_that_was_stopped_says_so() {
        let check = |phase: RunPhase, stop: Option<Stop>, expected: u8| {
            let outcome = RunOutcome { phase, ..nothing_done(Reason::Internal, "", "", 1, true) };
            assert_eq!(exit_code(&outcome, &[], stop), expected);
        };
        check(RunPhase::Succeeded, None, 0);
        check(RunPhase::Canceled, Some(Stop::Terminated), 143);
        check(RunPhase::Canceled, Some(Stop::Interrupted), 30);
        check(RunPhase::DeadlineExceeded, Some(Stop::DeadlineExceeded), 31);
    }

    #[test]
    fn a_termination_message_is_short_and_reads_as_the_outcome() {
        for message in ["short".to_owned(), "é".repeat(2000), "\"\\".repeat(1000), "\u{1}😀".repeat(1000)] {
            let outcome =
                nothing_done(Reason::InputsInvalid, &message, &format!("sha256:{}", "a".repeat(64)), 500, false);
            let text = termination_message(&outcome);
            assert!(text.len() <= 2048, "{} bytes", text.len());
            let read: RunOutcome = serde_json::from_str(&text).unwrap();
            assert_eq!((read.phase, &read.reason, &read.digest), (outcome.phase, &outcome.reason, &outcome.digest));
            let fields: serde_json::Value = serde_json::from_str(&text).unwrap();
            assert_eq!((&fields["outcome"], &fields["counts"]["failed"]), (&"Failed".into(), &500.into()));
        }
    }
}
