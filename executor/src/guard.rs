//! The guard on the machines, as the executor uses it: it is put there over SSH before Ansible starts, takes each
//! machine over for this run, and reports at the end whether the machine is quiet.

pub mod answer;
pub mod binary;
pub mod call;
pub mod end_budget;
pub mod exchange;
pub mod identity;
pub mod machines;

use crds::Reason;
use crds::playbook_run::Fence;

/// The variable of a host that says where its shells are, one for each step.
pub const RUN_VARIABLE: &str = "clusterwright_guard_run";

/// The guard's message in a text, without its mark: the reason and its words.
pub fn said(text: &str) -> Option<(Reason, String)> {
    let words = text.split_once(guard::MARKER)?.1;
    let words = words.lines().next().unwrap_or_default();
    if let Some(words) = words.strip_prefix("refused:") {
        return Some((Reason::Fenced, fenced(words)));
    }
    if let Some(words) = words.strip_prefix("busy:") {
        return Some((Reason::CommandRunning, crate::sanitize::clean(words, 512)));
    }
    if let Some(words) = words.strip_prefix("differs:") {
        let words = crate::sanitize::clean(words, 512);
        return Some((Reason::EpochDiffers, format!("nothing was touched on this machine: {words}")));
    }
    let words = words.strip_prefix("failed:").unwrap_or(words);
    let words = crate::sanitize::clean(words, 512);
    Some((Reason::GuardFailed, format!("the guard on the machine failed: {words}")))
}

/// The message of a host on which a newer run works.
pub fn fenced(words: &str) -> String {
    let words = crate::sanitize::clean(words, 512);
    let said = if words.is_empty() { String::new() } else { format!(": {words}") };
    format!("a newer run works on this host, so this one may not{said}")
}

/// True for the reasons of a host that accepts SSH logins.
pub fn answers(reason: &str) -> bool {
    Reason::among(reason, &[Reason::Fenced, Reason::GuardFailed, Reason::EpochDiffers, Reason::NotReached])
}

/// Where the shells of a run are on a machine.
pub fn run_directory(directory: &str, fence: Fence) -> String {
    format!("{directory}/runs/{}-{}", fence.epoch, fence.token)
}

#[cfg(test)]
mod tests {
    use super::said;
    use crds::Reason;

    #[test]
    fn the_guards_words_are_found_in_what_ansible_makes_of_them() {
        let check = |text: &str, reason: Reason, part: &str| {
            let (found, message) = said(text).unwrap();
            assert_eq!(found, reason, "{text}");
            assert!(message.contains(part), "{message}");
        };
        check(
            "non-zero return code: clusterwright-guard: refused: fence 1-2 is lower than 1-3\nmore",
            Reason::Fenced,
            "a newer run works on this host, so this one may not: fence 1-2 is lower than 1-3",
        );
        check(
            "clusterwright-guard: differs: claim epoch 3 was expected",
            Reason::EpochDiffers,
            "nothing was touched on this machine: claim epoch 3 was expected",
        );
        check(
            "Premature end of stream >>> clusterwright-guard: failed: No space left on device",
            Reason::GuardFailed,
            "No space left on device",
        );
        check(
            "clusterwright-guard: busy: an earlier command of this run (process 7) is still at work",
            Reason::CommandRunning,
            "an earlier command of this run (process 7) is still at work",
        );
        assert_eq!(said("refused: by somebody else"), None);
    }
}
