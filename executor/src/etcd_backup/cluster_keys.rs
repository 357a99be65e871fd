//! Whether the keys in a backup are those that its cluster has today: with others, nothing that the API server stored
//! can be decrypted. Authorities and the key of service accounts are rotated: nothing in etcd depends on them. So are
//! keys that encrypt: machines must have those that the snapshot was encrypted with.

use std::collections::BTreeMap;

use crds::encryption_entry::{EncryptionEntry, EntryProvider, FIRST_RESOURCES, covers};
use k8s_openapi::ByteString;
use serde::Deserialize;

/// How the entries begin that are rotated: `ca.crt`, `ca-former.crt`.
const ROTATED: [&str; 4] = ["ca", "front-proxy-ca", "etcd-ca", "sa"];
/// How the entries of keys that encrypt begin.
const ENCRYPTION: &str = "encryption";
/// The entries whose keys values in etcd may be encrypted with.
const ENCRYPTED_WITH: [&str; 2] = [KEY, "encryption-former.key"];
/// The entry of what encrypts.
const KEY: &str = "encryption.key";
/// The entries whose keys machines have, or are about to have.
const DECRYPTED_WITH: [&str; 3] = [KEY, "encryption-former.key", NEXT];
/// The entry of what will encrypt.
const NEXT: &str = "encryption-next.key";
/// Entries that a message names of each kind.
const NAMED: usize = 8;

/// A Secret's data: names to values.
type Keys = BTreeMap<String, ByteString>;

/// What there is of the Secret in a bundle.
#[derive(Deserialize)]
struct Stored {
    data: Option<Keys>,
}

/// How the keys of a backup differ from today's.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Difference {
    /// They are another cluster's: in what, by the entries' names.
    OtherCluster(String),
    /// It was encrypted with a key that machines have no more; the entry that keeps it today.
    FormerKey(String),
    /// It was encrypted by a KMS plug-in, by its name and socket, that API servers do not ask any more, or not yet.
    FormerPlugin(String),
    /// It has these resources encrypted, which machines do not decrypt any more.
    FormerResources(Vec<String>),
}

/// How today's keys (the data of a Secret) differ from those of a backup (the Secret); none: what is in the backup can
/// be used with them. Errors: one of both is none, in words that hold nothing of it.
pub(super) fn difference(stored: &[u8], today: &[u8]) -> Result<Option<Difference>, String> {
    // The error of the parser would show what it found.
    let stored: Stored = serde_json::from_slice(stored).map_err(|_| "pki.json is no Secret".to_owned())?;
    let today: Keys = serde_json::from_slice(today).map_err(|_| "today's keys are no data of a Secret".to_owned())?;
    let stored = stored.data.unwrap_or_default();
    let encryption = encryption(&stored, &today);
    let foreign = match &encryption {
        Some(Difference::OtherCluster(entry)) => Some(entry),
        Some(_) | None => None,
    };
    let of_cluster = |keys: Keys| -> Keys { keys.into_iter().filter(|(name, _)| !is_rotated(name)).collect() };
    let lacks_it = !stored.contains_key(ENCRYPTED_WITH[0]) && today.contains_key(ENCRYPTED_WITH[0]);
    let lacking = ENCRYPTED_WITH[0].to_owned();
    let (stored, today) = (of_cluster(stored), of_cluster(today));
    let differing = stored.iter().filter(|(name, value)| today.get(*name).is_some_and(|today| today != *value));
    let missing = today.keys().filter(|name| !stored.contains_key(*name)).chain(lacks_it.then_some(&lacking));
    let surplus = stored.keys().filter(|name| !today.contains_key(*name));
    let kinds = [
        ("other content in", names(foreign.into_iter().chain(differing.map(|(name, _)| name)))),
        ("nothing of", names(missing)),
        ("beside them", names(surplus)),
    ];
    let found: Vec<_> =
        kinds.iter().filter_map(|(kind, names)| names.as_ref().map(|names| format!("{kind} {names}"))).collect();
    Ok(if found.is_empty() { encryption } else { Some(Difference::OtherCluster(found.join("; "))) })
}

/// The first entry of a backup that machines do not decrypt today, or what they do not decrypt of it.
fn encryption(stored: &Keys, today: &Keys) -> Option<Difference> {
    let has = |keys: &Keys, names: &[&'static str]| -> Vec<(&'static str, Encrypts)> {
        let first = keys.get(KEY).map(|value| Encrypts::read(value, &[FIRST_RESOURCES.to_owned()]).resources);
        let resources = first.unwrap_or_else(|| vec![FIRST_RESOURCES.to_owned()]);
        let found = |name: &&'static str| Some((*name, Encrypts::read(keys.get(*name)?, own(name, &resources))));
        names.iter().filter_map(found).collect()
    };
    let (then, mut known) = (has(stored, &ENCRYPTED_WITH), has(today, &DECRYPTED_WITH));
    // The directory of a plug-in's socket is mounted once the API servers are brought it, which no restore does.
    known.retain(|(name, found)| *name != NEXT || !found.is_plugin);
    let is_known = |with: &[u8]| known.iter().any(|(_, today)| today.with == with);
    if let Some((entry, found)) = then.iter().find(|(_, found)| !is_known(&found.with)) {
        let is_kept = |(name, value): &(&String, &ByteString)| {
            name.starts_with(ENCRYPTION) && Encrypts::read(value, &[]).with == found.with
        };
        return Some(match today.iter().find(is_kept) {
            _ if found.is_plugin => Difference::FormerPlugin(String::from_utf8_lossy(&found.with).into_owned()),
            Some((name, _)) => Difference::FormerKey(name.clone()),
            None => Difference::OtherCluster((*entry).to_owned()),
        });
    }
    let decrypts = |with: &[u8], resource: &str| {
        known.iter().any(|(_, today)| today.with == with && covers(&today.resources, resource))
    };
    let lacks = then
        .iter()
        .flat_map(|(_, found)| found.resources.iter().filter(|resource| !decrypts(&found.with, resource)).cloned());
    let lacks: Vec<String> = lacks.collect();
    (!lacks.is_empty()).then_some(Difference::FormerResources(lacks))
}

/// The resources of an entry that says none: of the one that encrypts its own.
fn own<'a>(name: &str, resources: &'a [String]) -> &'a [String] {
    if name == KEY { &[] } else { resources }
}

/// What an entry encrypts, and with what.
struct Encrypts {
    /// The key, whatever its name is, or the plug-in by its name and socket.
    with: Vec<u8>,
    is_plugin: bool,
    resources: Vec<String>,
}

impl Encrypts {
    fn read(value: &ByteString, resources: &[String]) -> Self {
        let of = |with: Vec<u8>, own: Option<Vec<String>>| {
            let first = || vec![FIRST_RESOURCES.to_owned()];
            let others = || if resources.is_empty() { first() } else { resources.to_vec() };
            Self { with, is_plugin: false, resources: own.unwrap_or_else(others) }
        };
        // One that cannot be read is still the same as one that is the same.
        match std::str::from_utf8(&value.0).ok().and_then(EncryptionEntry::parse) {
            None => of(value.0.trim_ascii().to_vec(), None),
            Some(EncryptionEntry { provider: EntryProvider::Secretbox { secret, .. }, resources }) => {
                of(secret.into_bytes(), resources)
            }
            Some(EncryptionEntry { provider: EntryProvider::Kms { plugin, .. }, resources }) => {
                let with = format!("{} at {}", plugin.name, plugin.endpoint).into_bytes();
                Self { is_plugin: true, ..of(with, resources) }
            }
        }
    }
}

fn is_rotated(name: &str) -> bool {
    let stem = name.rsplit_once('.').map_or(name, |(stem, _)| stem);
    ROTATED.contains(&stem.trim_end_matches("-next").trim_end_matches("-former")) || name.starts_with(ENCRYPTION)
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
    use k8s_openapi::ByteString;
    use serde_json::json;

    use super::{Difference, difference};

    fn other(found: &str) -> Option<Difference> {
        Some(Difference::OtherCluster(found.to_owned()))
    }

    #[test]
    fn keys_are_compared_and_what_differs_is_named_and_not_shown() {
        let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "paris-pki"},
            "data": {"encryption.key": "QUFB", "a.key": "QkJC", "b.key": "Q0ND"}});
        let compared =
            |today: serde_json::Value| difference(secret.to_string().as_bytes(), today.to_string().as_bytes()).unwrap();
        assert_eq!(compared(json!({"encryption.key": "QUFB", "a.key": "QkJC", "b.key": "Q0ND"})), None);
        let found = compared(json!({"encryption.key": "QUFB", "a.key": "WFhY", "c.key": "QQ=="}));
        assert_eq!(found, other("other content in a.key; nothing of c.key; beside them b.key"));
        let many: serde_json::Map<_, _> = (0..10).map(|n| (format!("k{n}"), json!("QQ=="))).collect();
        let found = format!("{:?}", compared(many.into()));
        assert!(found.contains("k7 and 2 more") && !found.contains("k8"), "{found}");
    }

    #[test]
    fn a_backup_of_before_a_rotation_or_in_the_middle_of_one_is_of_the_same_cluster() {
        let stored =
            json!({"data": {"encryption.key": "QUFB", "ca.crt": "QkJC", "ca-next.crt": "Q0ND", "sa.pub": "QQ=="}});
        let today =
            json!({"encryption.key": "QUFB", "ca.crt": "Q0ND", "etcd-ca-former.crt": "QQ==", "sa-next.key": "QQ=="});
        assert_eq!(difference(stored.to_string().as_bytes(), today.to_string().as_bytes()), Ok(None));
        let today = json!({"encryption.key": "WFhY", "ca.crt": "QkJC"});
        let found = difference(stored.to_string().as_bytes(), today.to_string().as_bytes()).unwrap();
        assert_eq!(found, other("other content in encryption.key"));
    }

    /// Of the entries of a backup and today's.
    fn of_entries(stored: &[(&str, &str)], today: &[(&str, &str)]) -> Option<Difference> {
        let data = |entries: &[(&str, &str)]| -> serde_json::Map<String, serde_json::Value> {
            let encoded = |value: &str| json!(ByteString(value.as_bytes().to_vec()));
            entries.iter().map(|(name, value)| ((*name).to_owned(), encoded(value))).collect()
        };
        let (stored, today) = (json!({ "data": data(stored) }).to_string(), json!(data(today)).to_string());
        difference(stored.as_bytes(), today.as_bytes()).unwrap()
    }

    #[test]
    fn what_machines_decrypt_may_be_restored_and_a_former_key_is_named_where_it_is_kept() {
        let (key, next, former) = ("encryption.key", "encryption-next.key", "encryption-former.key");
        let retired = "encryption-retired-key1.key";
        let stages: [&[(&str, &str)]; 4] = [
            &[(key, "AAA")],
            &[(key, "AAA"), (next, "key-b:BBB")],
            &[(key, "key-b:BBB"), (former, "AAA")],
            &[(key, "key-b:BBB"), (retired, "AAA")],
        ];
        for (then, stored) in stages.iter().enumerate() {
            for (now, today) in stages.iter().enumerate() {
                let needs = match (then, now) {
                    (0..=2, 3) => Some(Difference::FormerKey(retired.to_owned())),
                    (2 | 3, 0) => other(&format!("other content in {key}")),
                    _ => None,
                };
                assert_eq!(of_entries(stored, today), needs, "of stage {then} in stage {now}");
            }
        }
        assert_eq!(
            of_entries(stages[0], &[(key, "key-b:BBB"), (retired, "AAA"), (next, "AAA\n")]),
            None,
            "it comes back"
        );
        let foreign = of_entries(&[(key, "CCC"), ("a.key", "A")], &[(key, "key-b:BBB"), (retired, "AAA")]);
        assert_eq!(foreign, other("other content in encryption.key; beside them a.key"));
        assert_eq!(of_entries(&[], stages[0]), other("nothing of encryption.key"));
    }

    #[test]
    fn resources_that_machines_do_not_decrypt_any_more_are_named_and_a_plugin_is_known_by_its_socket() {
        let (key, next, former) = ("encryption.key", "encryption-next.key", "encryption-former.key");
        let wide = r#"{"secretbox":{"name":"key1","secret":"AAA"},"resources":["*.apps","configmaps","secrets"]}"#;
        let lacks =
            |names: &[&str]| Some(Difference::FormerResources(names.iter().map(|name| (*name).to_owned()).collect()));
        assert_eq!(of_entries(&[(key, "AAA")], &[(key, wide)]), None, "what is plain is read");
        assert_eq!(of_entries(&[(key, wide)], &[(key, "AAA")]), lacks(&["*.apps", "configmaps"]));
        assert_eq!(of_entries(&[(key, wide)], &[(key, "AAA"), (next, wide)]), None, "it comes back");
        assert_eq!(of_entries(&[(key, wide)], &[(key, "AAA"), (former, wide)]), None);
        let narrow = r#"{"secretbox":{"name":"key1","secret":"AAA"},"resources":["deployments.apps","secrets"]}"#;
        assert_eq!(of_entries(&[(key, narrow)], &[(key, wide)]), None, "a wildcard has it");
        // Where no resources are said, they are those of what encrypts.
        let other = wide.replace("AAA", "BBB").replace("key1", "key-b");
        assert_eq!(of_entries(&[(key, wide)], &[(key, &other), (next, "AAA")]), None);
        let secrets = r#"{"secretbox":{"name":"key1","secret":"AAA"},"resources":["secrets"]}"#;
        assert_eq!(of_entries(&[(key, wide)], &[(key, &other), (former, secrets)]), lacks(&["*.apps", "configmaps"]));

        let kms = r#"{"kms":{"name":"vault","endpoint":"unix:///run/kms/a.sock","timeoutSeconds":3},"written":2}"#;
        let kept = r#"{"kms":{"name":"vault","endpoint":"unix:///run/kms/a.sock","timeoutSeconds":9}}"#;
        let retired = "encryption-retired-kms-vault.key";
        let needs = || Some(Difference::FormerPlugin("vault at unix:///run/kms/a.sock".to_owned()));
        assert_eq!(of_entries(&[(key, kms)], &[(key, "BBB"), (retired, kept)]), needs());
        assert_eq!(of_entries(&[(key, kms)], &[(key, "BBB"), (next, kept)]), needs(), "nothing has it mounted yet");
        assert_eq!(of_entries(&[(key, kms)], &[(key, "BBB"), (former, kept)]), None);
        assert_eq!(of_entries(&[(key, kms)], &[(key, kept), (former, "BBB")]), None);
        let elsewhere = kept.replace("a.sock", "b.sock");
        assert_eq!(of_entries(&[(key, kms)], &[(key, &elsewhere)]), needs());
    }

    #[test]
    fn what_is_no_secret_is_refused_without_showing_it() {
        for (stored, today) in [("hunter2", "{}"), ("{}", "hunter2"), (r#"{"data": {"a": "hunter2!"}}"#, "{}")] {
            let refused = difference(stored.as_bytes(), today.as_bytes()).unwrap_err();
            assert!(!refused.contains("hunter2"), "{refused}");
        }
        assert_eq!(difference(b"{}", b"{}"), Ok(None));
    }
}
