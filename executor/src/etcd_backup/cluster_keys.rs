//! Whether the keys in a backup are those that its cluster has today: with others, nothing that the API server stored
//! can be decrypted. Authorities and the key of service accounts are rotated: nothing in etcd depends on them.

use std::collections::BTreeMap;

use k8s_openapi::ByteString;
use serde::Deserialize;

/// How the entries begin that are rotated: `ca.crt`, `ca-former.crt`.
const ROTATED: [&str; 4] = ["ca", "front-proxy-ca", "etcd-ca", "sa"];
/// Entries that a message names of each kind.
const NAMED: usize = 8;

/// A Secret's data: names to values.
type Keys = BTreeMap<String, ByteString>;

/// What there is of the Secret in a bundle.
#[derive(Deserialize)]
struct Stored {
    data: Option<Keys>,
}

/// How today's keys (the data of a Secret) differ from those of a backup (the Secret), by the entries' names; none: they
/// are the same. Errors: one of both is none, in words that hold nothing of it.
pub(super) fn differences(stored: &[u8], today: &[u8]) -> Result<Option<String>, String> {
    // The error of the parser would show what it found.
    let stored: Stored = serde_json::from_slice(stored).map_err(|_| "pki.json is no Secret".to_owned())?;
    let today: Keys = serde_json::from_slice(today).map_err(|_| "today's keys are no data of a Secret".to_owned())?;
    let of_data = |keys: Keys| -> Keys { keys.into_iter().filter(|(name, _)| !is_rotated(name)).collect() };
    let (stored, today) = (of_data(stored.data.unwrap_or_default()), of_data(today));
    let differing = stored.iter().filter(|(name, value)| today.get(*name).is_some_and(|today| today != *value));
    let missing = today.keys().filter(|name| !stored.contains_key(*name));
    let surplus = stored.keys().filter(|name| !today.contains_key(*name));
    let kinds = [
        ("other content in", names(differing.map(|(name, _)| name))),
        ("nothing of", names(missing)),
        ("beside them", names(surplus)),
    ];
    let found: Vec<_> =
        kinds.iter().filter_map(|(kind, names)| names.as_ref().map(|names| format!("{kind} {names}"))).collect();
    Ok((!found.is_empty()).then(|| found.join("; ")))
}

fn is_rotated(name: &str) -> bool {
    let stem = name.rsplit_once('.').map_or(name, |(stem, _)| stem);
    ROTATED.contains(&stem.trim_end_matches("-next").trim_end_matches("-former"))
}

/// `a, b and 3 more`; none of none. The names may be foreign: they are of what was decrypted.
fn names<'a>(names: impl Iterator<Item = &'a String>) -> Option<String> {
    let names: Vec<String> = names.map(|name| crate::sanitize::clean(name, 63)).collect();
    let shown = names.get(..NAMED.min(names.len())).unwrap_or_default().join(", ");
    match names.len().saturating_sub(NAMED) {
        _ if names.is_empty() => None,
        0 => Some(shown),
        others => Some(format!("{shown} and {others} more")),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::differences;

    #[test]
    fn keys_are_compared_and_what_differs_is_named_and_not_shown() {
        let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "paris-pki"},
            "data": {"encryption.key": "QUFB", "a.key": "QkJC", "b.key": "Q0ND"}});
        let compared = |today: serde_json::Value| {
            differences(secret.to_string().as_bytes(), today.to_string().as_bytes()).unwrap()
        };
        assert_eq!(compared(json!({"encryption.key": "QUFB", "a.key": "QkJC", "b.key": "Q0ND"})), None);
        let found = compared(json!({"encryption.key": "QUFB", "a.key": "WFhY", "c.key": "QQ=="})).unwrap();
        assert_eq!(found, "other content in a.key; nothing of c.key; beside them b.key");
        let many: serde_json::Map<_, _> = (0..10).map(|n| (format!("k{n}"), json!("QQ=="))).collect();
        let found = compared(many.into()).unwrap();
        assert!(found.contains("k7 and 2 more") && !found.contains("k8"), "{found}");
    }

    #[test]
    fn a_backup_of_before_a_rotation_or_in_the_middle_of_one_is_of_the_same_cluster() {
        let stored =
            json!({"data": {"encryption.key": "QUFB", "ca.crt": "QkJC", "ca-next.crt": "Q0ND", "sa.pub": "QQ=="}});
        let today =
            json!({"encryption.key": "QUFB", "ca.crt": "Q0ND", "etcd-ca-former.crt": "QQ==", "sa-next.key": "QQ=="});
        assert_eq!(differences(stored.to_string().as_bytes(), today.to_string().as_bytes()), Ok(None));
        let today = json!({"encryption.key": "WFhY", "ca.crt": "QkJC"});
        let found = differences(stored.to_string().as_bytes(), today.to_string().as_bytes()).unwrap();
        assert_eq!(found.as_deref(), Some("other content in encryption.key"));
    }

    #[test]
    fn what_is_no_secret_is_refused_without_showing_it() {
        for (stored, today) in [("hunter2", "{}"), ("{}", "hunter2"), (r#"{"data": {"a": "hunter2!"}}"#, "{}")] {
            let refused = differences(stored.as_bytes(), today.as_bytes()).unwrap_err();
            assert!(!refused.contains("hunter2"), "{refused}");
        }
        assert_eq!(differences(b"{}", b"{}"), Ok(None));
    }
}
