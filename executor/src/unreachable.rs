//! Why a host could not be reached, by the messages of ssh, and what to do about it.

use crate::{guard, sanitize};
use crds::Reason;

/// A reason and a sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unreachable {
    /// `HostKeyChanged`, `HostKeyUnknown`, `MachineIdentityMismatch`, `AuthenticationFailed`, `Fenced`, `EpochDiffers`,
    /// `CommandRunning`, `GuardFailed`, `NotReached` or `Unreachable`.
    pub reason: Reason,
    /// The problem, and what to do about it.
    pub message: String,
}

/// The reason why a host could not be reached, by ssh's message. A changed key comes before a refused login: ssh also
/// reports "Permission denied" after it, when it goes on without passwords.
pub fn explain(message: &str) -> Unreachable {
    by_guard(message).or_else(|| by_host_key(message)).or_else(|| by_login(message)).unwrap_or_else(|| Unreachable {
        reason: Reason::Unreachable,
        message: said(message, &["ssh: connect", "Connection ", "ssh: Could not", "kex_exchange", "timed out"]),
    })
}

/// The guard's refusal. Its text is not shown for Ansible's first command, its exit code is.
fn by_guard(message: &str) -> Option<Unreachable> {
    let exited = |code: u8| message.contains(&format!("exited with result {code}"));
    if let Some((reason, message)) = guard::said(message) {
        Some(Unreachable { reason, message })
    } else if exited(::guard::REFUSED) {
        Some(Unreachable { reason: Reason::Fenced, message: guard::fenced("") })
    } else if exited(::guard::BUSY) {
        Some(Unreachable {
            reason: Reason::CommandRunning,
            message: "an earlier command of this run is still at work on the machine".to_owned(),
        })
    } else {
        None
    }
}

fn by_host_key(message: &str) -> Option<Unreachable> {
    let has = |text: &str| message.contains(text);
    if has("REMOTE HOST IDENTIFICATION HAS CHANGED") {
        let seen = message.split_whitespace().find(|word| word.starts_with("SHA256:"));
        let seen = seen.map(|seen| format!(" (seen: {})", seen.trim_end_matches('.'))).unwrap_or_default();
        Some(Unreachable {
            reason: Reason::HostKeyChanged,
            message: format!(
                "the machine shows another host key than the pinned one{seen}: if it was installed anew, put its new key into the Host's spec.ssh.hostKeys; if not, somebody may be in between"
            ),
        })
    } else if has("Host key verification failed") || has("host key is known for") || has("no hostkey alg") {
        Some(Unreachable {
            reason: Reason::HostKeyUnknown,
            message: "the machine's host key is none of the pinned ones: compare and put it into the Host's spec.ssh.hostKeys"
                .to_owned(),
        })
    } else {
        None
    }
}

fn by_login(message: &str) -> Option<Unreachable> {
    let has = |text: &str| message.contains(text);
    let refused =
        has("Permission denied") || has("Too many authentication failures") || has("Invalid/incorrect password");
    refused.then(|| {
        let said = said(message, &["Permission denied", "Too many", "Invalid/incorrect", "Load key"]);
        Unreachable {
            reason: Reason::AuthenticationFailed,
            message: format!("SSH lets the user in with none of what the Host's credentials give: {said}"),
        }
    })
}

/// The lines that matter; all of it when none does.
fn said(message: &str, marks: &[&str]) -> String {
    // Ansible puts its own words before ssh's.
    let rests = ["via ssh: ", "over ssh: "].iter().filter_map(|words| Some(message.split_once(words)?.1));
    let message = rests.filter(|rest| !rest.trim().is_empty()).min_by_key(|rest| rest.len()).unwrap_or(message);
    let lines = message.lines().filter(|line| marks.iter().any(|mark| line.contains(mark)));
    let mut said: Vec<&str> = lines.map(str::trim).collect();
    said.dedup();
    let text = if said.is_empty() { message.to_owned() } else { said.join("; ") };
    sanitize::clean(text.trim_end_matches('.'), 512)
}

#[cfg(test)]
mod tests {
    use super::explain;

    #[test]
    fn the_reason_follows_from_what_ssh_says() {
        let check = |message: &str, reason: &str, part: &str| {
            let explained = explain(message);
            assert_eq!(explained.reason, reason, "{message}");
            assert!(explained.message.contains(part), "{}", explained.message);
        };
        check(
            "Failed to create temporary directory. Failed command was: ( umask 77 && mkdir ...), exited with result 79",
            "Fenced",
            "a newer run works on this host",
        );
        check(
            "Failed to create temporary directory. Failed command was: ( umask 77 && mkdir ...), exited with result 75",
            "CommandRunning",
            "still at work",
        );
        check(
            "Premature end of stream waiting for become success.\n>>> clusterwright-guard: refused: fence 1-1 is lower than 1-2",
            "Fenced",
            "lower than 1-2",
        );
        check(
            "Failed to connect to the host via ssh: @@@@\n@ WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED! @\n@@@@\nThe fingerprint for the ED25519 key sent by the remote host is\nSHA256:abc/DEF.\nHost key verification failed.",
            "HostKeyChanged",
            "SHA256:abc/DEF)",
        );
        check(
            "Failed to connect to the host via ssh: No ED25519 host key is known for 10.0.0.1 and you have requested strict checking.\nHost key verification failed.",
            "HostKeyUnknown",
            "spec.ssh.hostKeys",
        );
        check(
            "Failed to connect to the host via ssh: root@10.0.0.1: Permission denied (publickey,password).",
            "AuthenticationFailed",
            "Permission denied (publickey,password)",
        );
        check("Invalid/incorrect password: Permission denied, please try again.", "AuthenticationFailed", "incorrect");
        check(
            "Failed to connect to the host via ssh: ssh: connect to host 10.0.0.9 port 22: No route to host",
            "Unreachable",
            "port 22: No route to host",
        );
        check("Data could not be sent to remote host \"10.0.0.1\".", "Unreachable", "could not be sent");
        check(
            "Task failed: Data could not be sent. Make sure this host can be reached over ssh: ssh: connect to host 10.0.0.9 port 22: Connection refused",
            "Unreachable",
            "ssh: connect to host 10.0.0.9 port 22: Connection refused",
        );
        check("", "Unreachable", "");
    }
}
