//! The answer of a machine to a call, as a value. Pure.

use crds::Reason;
use crds::playbook_run::{Fence, FenceOwner};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde_json::Value;

use super::call::{BEGUN, MISSING};
use super::{identity, said};
use crate::sanitize::clean;
use crate::unreachable::{self, Unreachable};

/// Characters of a name that a machine tells.
const OWNER_LIMIT: usize = 512;

/// Characters of an architecture.
const UNAME_LIMIT: usize = 32;

/// How a call ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Output {
    /// The exit code of ssh, which is the command's, if it came so far.
    pub code: Option<i32>,
    /// The beginning of what came.
    pub stdout: Vec<u8>,
    /// The errors of ssh and the command.
    pub stderr: Vec<u8>,
}

/// The answer of a machine.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    /// The guard did it, with this result.
    Done(Value),
    /// It has no guard, or another; its architecture as `uname -m` says it.
    Missing(String),
}

/// The answer in a call's output, or why there is none.
pub fn understand(output: &Output) -> Result<Answer, Unreachable> {
    let (stdout, stderr) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    let lines: Vec<&str> = stdout.lines().collect();
    if !lines.contains(&BEGUN) {
        return Err(shut_out(output.code, &stderr));
    }
    match output.code {
        Some(0) => {
            if let Some(uname) = lines.iter().find_map(|line| line.strip_prefix(MISSING)) {
                return Ok(Answer::Missing(clean(uname.trim(), UNAME_LIMIT)));
            }
            let objects = lines.iter().rev().filter(|line| line.starts_with('{'));
            let said = objects.filter_map(|line| serde_json::from_str(line).ok()).next();
            Ok(Answer::Done(said.unwrap_or(Value::Null)))
        }
        code => {
            if let Some((reason, message)) = said(&stderr) {
                return Err(Unreachable { reason, message });
            }
            if let Some(why) = identity::seen(&stderr).filter(|_| code == Some(identity::CODE)) {
                return Err(why);
            }
            if code == Some(255) {
                return Err(unreachable::explain(&stderr));
            }
            let message = format!(
                "the guard could not be installed ({}): {}",
                code.map_or("killed".to_owned(), |code| format!("code {code}")),
                clean(&stderr, 512)
            );
            Err(Unreachable { reason: Reason::GuardFailed, message })
        }
    }
}

/// Why not even the script began: ssh, or sudo.
fn shut_out(code: Option<i32>, stderr: &str) -> Unreachable {
    let has = |text: &str| stderr.contains(text);
    if has("sudo: command not found") || has("sudo: not found") {
        return Unreachable {
            reason: Reason::GuardFailed,
            message: "the machine has no sudo: install it, or let the Host's user be root".to_owned(),
        };
    }
    if has("sudo:") || has("sudoers") || has("Sorry, try again") {
        return Unreachable {
            reason: Reason::AuthenticationFailed,
            message: format!(
                "sudo does not let the user become root with what the Host's credentials give: {}",
                clean(stderr, 256)
            ),
        };
    }
    let mut why = unreachable::explain(stderr);
    if why.message.is_empty() {
        why.message = match code {
            Some(code) => format!("ssh ended with code {code} and said nothing"),
            None => "ssh was killed".to_owned(),
        };
    }
    // ssh connected, and the login shell did not run the command.
    if why.reason == Reason::Unreachable && code.is_some_and(|code| code != 255) {
        why = Unreachable {
            reason: Reason::GuardFailed,
            message: format!("no command could be run on the machine: {}", why.message),
        };
    }
    why
}

/// The fence in an answer; the lowest where the machine knows none.
pub fn fence(answer: &Value) -> Fence {
    let number = |key: &str| answer.get(key).and_then(Value::as_i64).unwrap_or_default().max(0);
    Fence { epoch: number("epoch"), token: number("token") }
}

/// Whose that fence is, as far as the machine says; nothing where it knows none.
pub fn owner(answer: &Value) -> Option<FenceOwner> {
    let text = |key: &str| clean(answer.get(key).and_then(Value::as_str).unwrap_or_default(), OWNER_LIMIT);
    let (cluster, run, claim) = (text("cluster"), text("run"), text("claim"));
    let is_known = !cluster.is_empty() && !run.is_empty();
    is_known.then(|| FenceOwner {
        cluster,
        run,
        machine_uid: Some(claim).filter(|claim| !claim.is_empty()),
        compared_since: text("comparedSince").parse::<Timestamp>().ok().map(Time),
    })
}

#[cfg(test)]
mod tests {
    use crds::playbook_run::Fence;
    use serde_json::{Value, json};

    use super::{Answer, Output, fence, owner, understand};

    fn output(code: i32, stdout: &str, stderr: &str) -> Output {
        Output { code: Some(code), stdout: stdout.into(), stderr: stderr.into() }
    }

    #[test]
    fn an_answer_is_read_whatever_stands_around_it() {
        let check = |stdout: &str, expected: Answer| {
            assert_eq!(understand(&output(0, stdout, "a banner")), Ok(expected), "{stdout}");
        };
        check(
            "motd\nclusterwright-begun\n{\"epoch\":3,\"token\":41}\n",
            Answer::Done(json!({"epoch": 3, "token": 41})),
        );
        check("clusterwright-begun\nclusterwright-guard-missing x86_64\n", Answer::Missing("x86_64".into()));
        check("clusterwright-begun\nclusterwright-guard-missing\n", Answer::Missing(String::new()));
        check("clusterwright-begun\n", Answer::Done(Value::Null));
    }

    fn check(code: i32, stdout: &str, stderr: &str, reason: &str, part: &str) {
        let why = understand(&output(code, stdout, stderr)).unwrap_err();
        assert_eq!(why.reason, reason, "{stderr}");
        assert!(why.message.contains(part), "{}", why.message);
    }

    #[test]
    fn a_script_that_began_and_failed_says_why() {
        let begun = "clusterwright-begun\n";
        check(79, begun, "clusterwright-guard: refused: fence 1-1 is lower than 1-2\n", "Fenced", "lower than 1-2");
        check(78, begun, "clusterwright-guard: failed: disk full\n", "GuardFailed", "disk full");
        check(1, begun, "mktemp: No space left on device\n", "GuardFailed", "No space left on device");
        let read_only = "mktemp: failed to create file: Read-only file system\n";
        check(1, begun, read_only, "GuardFailed", "Read-only file system");
        check(126, begun, "guard: Exec format error\n", "GuardFailed", "Exec format error");
        check(255, begun, "Connection reset by peer\n", "Unreachable", "reset by peer");
    }

    #[test]
    fn what_kept_the_script_from_beginning_is_told_apart() {
        check(255, "", "root@h: Permission denied (publickey).\n", "AuthenticationFailed", "Permission denied");
        check(255, "", "REMOTE HOST IDENTIFICATION HAS CHANGED\n", "HostKeyChanged", "another host key");
        check(1, "", "sudo: a password is required\n", "AuthenticationFailed", "sudo does not let");
        check(1, "", "Sorry, try again.\nsudo: 3 incorrect password attempts\n", "AuthenticationFailed", "incorrect");
        check(127, "", "bash: line 1: sudo: command not found\n", "GuardFailed", "no sudo");
        check(1, "", "This account is not available.\n", "GuardFailed", "not available");
        check(255, "", "", "Unreachable", "said nothing");
    }

    #[test]
    fn a_machine_that_lies_about_its_fence_does_no_harm() {
        assert_eq!(fence(&json!({"epoch": 3, "token": 41})), Fence { epoch: 3, token: 41 });
        for lie in [json!({}), Value::Null, json!([1]), json!({"epoch": "x", "token": -7})] {
            assert_eq!(fence(&lie), Fence::default());
            assert_eq!(owner(&lie), None);
        }
        let said = json!({"epoch": 3, "token": 41, "cluster": "b", "run": "fleet/b-join\u{1b}[1m", "claim": "u"});
        let whose = owner(&said).unwrap();
        assert_eq!((whose.cluster.as_str(), whose.machine_uid.as_deref()), ("b", Some("u")));
        assert!(!whose.run.contains('\u{1b}'), "{}", whose.run);
        let since = |text: &str| {
            let said = json!({"epoch": 3, "token": 41, "cluster": "b", "run": "fleet/b-join", "comparedSince": text});
            owner(&said).unwrap().compared_since.map(|since| since.0.to_string())
        };
        assert_eq!(since("2026-05-01T00:00:00Z").as_deref(), Some("2026-05-01T00:00:00Z"));
        assert_eq!(since("yesterday"), None);
    }
}
