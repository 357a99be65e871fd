//! Revisions of etcd, which every object has as its resourceVersion: they tell what was written since a plane was made
//! of its backup.

use crds::karmada_deployment::KarmadaRestoredFrom;
use serde_json::Value;

/// Revisions are raised by so much: agents and informers know those that were given out since the backup.
pub(in super::super) const BUMP: i64 = 1_000_000_000;

/// Whether an object of the restored plane was written there, and not only before the backup.
pub(in super::super) fn is_written_since(record: &KarmadaRestoredFrom, live: &Value) -> bool {
    let version = live["metadata"]["resourceVersion"].as_str().and_then(|text| text.parse::<i64>().ok());
    version.is_some_and(|version| version > record.revision.saturating_add(BUMP))
}

#[cfg(test)]
mod tests {
    use crds::karmada_deployment::KarmadaRestoredFrom;
    use serde_json::{Value, json};

    use super::{BUMP, is_written_since};

    fn check(version: Value, expected: bool) {
        let record: KarmadaRestoredFrom = serde_json::from_value(json!({
            "backup": "nightly", "plane": "k0", "planeUID": "uid-0", "storageRef": {"name": "bucket"}, "location": "l",
            "takenAt": "2026-11-27T03:00:00Z", "revision": 77, "size": 9, "sha256": "a0", "etcdVersion": "3.6.6",
            "dnsDomain": "cluster.local",
        }))
        .unwrap();
        let live = json!({ "metadata": { "resourceVersion": version } });
        assert_eq!(is_written_since(&record, &live), expected, "{live}");
    }

    #[test]
    fn what_was_written_since_has_a_revision_that_no_object_of_the_backup_has() {
        check(json!("12"), false);
        // A backup may have more than its revision says: it was read just before.
        check(json!("90"), false);
        check(json!((77 + BUMP).to_string()), false);
        check(json!((78 + BUMP).to_string()), true);
        check(json!("unknown"), false);
        check(Value::Null, false);
    }
}
