//! Revisions of etcd, which every object has as its resourceVersion: they tell what was written since a plane was made
//! of its backup.

use crds::karmada_deployment::KarmadaRestoredFrom;
use serde_json::Value;

/// Revisions are raised by so much at least: agents and informers know those that were given out since the backup.
pub(in super::super) const BUMP: i64 = 1_000_000_000;

/// By how much they are raised.
pub(super) fn bump(record: &KarmadaRestoredFrom) -> i64 {
    record.bump.unwrap_or(BUMP)
}

/// By how much those of a backup with this revision are raised where the plane had been restored like that before:
/// above all that it has given out since.
pub(super) fn bump_after(former: Option<&KarmadaRestoredFrom>, revision: i64) -> i64 {
    let given_out = |former: &KarmadaRestoredFrom| former.revision.saturating_add(bump(former)).saturating_add(BUMP);
    former.map_or(BUMP, |former| BUMP.max(given_out(former).saturating_sub(revision)))
}

/// Whether an object of the restored plane was written there, and not only before the backup.
pub(in super::super) fn is_written_since(record: &KarmadaRestoredFrom, live: &Value) -> bool {
    let version = live["metadata"]["resourceVersion"].as_str().and_then(|text| text.parse::<i64>().ok());
    version.is_some_and(|version| version > record.revision.saturating_add(bump(record)))
}

#[cfg(test)]
mod tests {
    use crds::karmada_deployment::KarmadaRestoredFrom;
    use serde_json::{Value, json};

    use super::{BUMP, bump, bump_after, is_written_since};

    fn record(revision: i64, bump: Option<i64>) -> KarmadaRestoredFrom {
        serde_json::from_value(json!({
            "backup": "nightly", "plane": "k0", "planeUID": "uid-0", "storageRef": {"name": "bucket"}, "location": "l",
            "takenAt": "2026-11-27T03:00:00Z", "revision": revision, "size": 9, "sha256": "a0", "etcdVersion": "3.6.6",
            "dnsDomain": "cluster.local", "bump": bump,
        }))
        .unwrap()
    }

    fn check(version: Value, expected: bool) {
        let record = record(77, None);
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

    #[test]
    fn each_restore_raises_revisions_above_all_that_those_before_it_have_given_out() {
        let mut former: Option<KarmadaRestoredFrom> = None;
        let mut highest = 0;
        // An old backup, the same again, one of after the second restore, and the old one once more.
        for revision in [77, 77, 3 * BUMP, 77] {
            let next = record(revision, Some(bump_after(former.as_ref(), revision)));
            let first = revision + bump(&next);
            assert!(first > highest && bump(&next) >= BUMP, "{revision}: {first} of {highest}");
            highest = first + BUMP / 2;
            former = Some(next);
        }
        assert_eq!(bump_after(None, 77), BUMP);
        assert_eq!(bump(&record(77, None)), BUMP);
    }
}
