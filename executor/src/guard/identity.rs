//! Whether a machine is the one that was claimed: by its host key, which ssh is held to, and by its machine-id, which
//! is looked at before anything is put there. Pure.

use crds::Reason;
use crds::inputs::{HostIdentity, HostInputs};

use crate::sanitize::clean;
use crate::unreachable::Unreachable;

/// Begins the script's message on a machine with another machine-id, which follows.
pub const ANOTHER: &str = "clusterwright-machine-id:";
/// The script's exit code then.
pub const CODE: i32 = 77;

/// The beginning of a script where the machine-id is known: it ends on another machine.
pub fn check(identity: Option<&HostIdentity>) -> String {
    // It becomes a part of a script.
    let known = identity
        .and_then(|identity| identity.machine_id.as_deref())
        .filter(|id| !id.is_empty() && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-'));
    known.map_or(String::new(), |id| {
        format!(
            "m=; IFS= read -r m 2>/dev/null </etc/machine-id; \
             if [ \"$m\" != \"{id}\" ]; then echo \"{ANOTHER} $m\" >&2; exit {CODE}; fi; "
        )
    })
}

/// The host keys that ssh may believe: of a machine that was claimed, only that one's, and only those that are pinned
/// where keys are.
pub fn believed(host: &HostInputs) -> Vec<&str> {
    let key = |text: &'_ str| text.split_ascii_whitespace().take(2).map(str::to_owned).collect::<Vec<_>>();
    match &host.identity {
        None => host.host_keys.iter().map(String::as_str).collect(),
        Some(identity) => {
            let pinned =
                |own: &&str| host.host_keys.is_empty() || host.host_keys.iter().any(|pinned| key(pinned) == key(own));
            let own = identity.host_keys.iter().map(String::as_str);
            own.filter(pinned).collect()
        }
    }
}

/// The machine-id that a script saw, if it ended because of it.
pub fn seen(stderr: &str) -> Option<Unreachable> {
    let id = stderr.lines().find_map(|line| line.strip_prefix(ANOTHER))?;
    let id = clean(id, 64);
    let id = if id.is_empty() { "none" } else { id.as_str() };
    Some(another(&format!("its machine-id is {id}")))
}

/// The reason of a failed call to a machine with this identity: a host key that is not its own is another machine's.
pub fn explain(identity: Option<&HostIdentity>, why: Unreachable) -> Unreachable {
    match identity {
        Some(identity) if matches!(why.reason, Reason::HostKeyChanged | Reason::HostKeyUnknown) => {
            let shown = why.message.split_once("(seen: ").and_then(|(_, rest)| rest.split_once(')'));
            let shown = shown.map(|(key, _)| format!(", it shows {key}")).unwrap_or_default();
            let kinds = identity.host_keys.iter().filter_map(|key| key.split(' ').next());
            let kinds: Vec<String> = kinds.map(|kind| clean(kind, 32)).collect();
            another(&format!(
                "its host key is none of those in the Host's spec.identity.hostKeys ({}{shown})",
                kinds.join(", ")
            ))
        }
        _ => why,
    }
}

fn another(because: &str) -> Unreachable {
    Unreachable {
        reason: Reason::MachineIdentityMismatch,
        message: format!(
            "the machine that answers is not the one that was claimed: {because}; nothing was changed on it. Correct the Host's \
             address, port or bastionRef; if it is the right machine and was given new keys or a new machine-id, pin the keys in \
             spec.ssh.hostKeys and remove spec.identity"
        ),
    }
}

#[cfg(test)]
mod tests {
    use crds::Reason;
    use crds::inputs::HostIdentity;

    use super::*;

    fn identity(machine_id: Option<&str>) -> HostIdentity {
        HostIdentity {
            host_keys: vec!["ssh-rsa B2".into(), "ssh-ed25519 AAAA".into()],
            machine_id: machine_id.map(str::to_owned),
        }
    }

    #[test]
    fn only_the_key_of_the_machine_that_was_claimed_is_believed() {
        let believed_of = |pinned: &[&str], identity: Option<HostIdentity>| {
            let mut host = crate::example::model().hosts.into_values().next().unwrap();
            host.host_keys = pinned.iter().map(|key| (*key).to_owned()).collect();
            host.identity = identity;
            believed(&host).into_iter().map(str::to_owned).collect::<Vec<_>>()
        };
        let own = || Some(identity(None));
        assert_eq!(believed_of(&["ssh-rsa B"], None), ["ssh-rsa B"]);
        let both = ["ssh-rsa B2", "ssh-ed25519 AAAA"];
        assert_eq!(believed_of(&[], own()), both);
        assert_eq!(believed_of(&["ssh-ed25519 AAAA host", "ssh-rsa B2"], own()), both);
        assert_eq!(believed_of(&["ssh-rsa B", "ssh-ed25519 AAAA host"], own()), ["ssh-ed25519 AAAA"]);
        // Somebody pinned the keys of another machine.
        assert!(believed_of(&["ssh-rsa B"], own()).is_empty());
    }

    #[test]
    fn a_wrong_key_or_machine_id_is_another_machine_and_silence_is_none() {
        let changed =
            Unreachable { reason: Reason::HostKeyChanged, message: "another host key (seen: SHA256:abc): if".into() };
        let own = identity(None);
        let why = explain(Some(&own), changed.clone());
        assert_eq!(why.reason, Reason::MachineIdentityMismatch);
        assert!(why.message.contains("SHA256:abc"), "{}", why.message);
        assert_eq!(explain(None, changed.clone()), changed);
        let silent = Unreachable { reason: Reason::Unreachable, message: "timed out".into() };
        assert_eq!(explain(Some(&own), silent.clone()), silent);
        assert_eq!(seen("a banner\n"), None);
        let why = seen("a banner\nclusterwright-machine-id: 0123\u{1b}[2J\n").unwrap();
        assert_eq!(why.reason, Reason::MachineIdentityMismatch);
        assert!(why.message.contains("its machine-id is 0123"), "{}", why.message);
    }

    #[test]
    fn a_machine_id_that_is_no_word_becomes_no_part_of_a_script() {
        assert_eq!(check(None), "");
        assert_eq!(check(Some(&identity(Some("$(reboot)")))), "");
        assert!(check(Some(&identity(Some("0123abc")))).contains("!= \"0123abc\""));
    }
}
