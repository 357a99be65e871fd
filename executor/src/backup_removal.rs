//! Removes the backup of an EtcdBackup from its storage for the operator.

use backup::{BackupError, Credentials, Store, remove_backup};
use crds::backup::{BackupRemoval, StorageInputs};

use crate::cli::RemoveBackup;
use crate::outcome::INPUTS_REFUSED;
use crate::storage::{failure, read, report};

/// Removes it, and writes what came of it; returns the exit code.
pub async fn remove(args: &RemoveBackup) -> u8 {
    let Some((storage, credentials)) = read(&args.storage) else {
        return INPUTS_REFUSED;
    };
    let removal = match removed(&storage, &credentials, args).await {
        Ok(()) => BackupRemoval { removed: true, ..BackupRemoval::default() },
        Err(error) => {
            let (reason, message) = failure(&error);
            BackupRemoval { removed: false, reason: Some(reason.into()), message: Some(message) }
        }
    };
    report(&args.storage, &removal)
}

async fn removed(storage: &StorageInputs, credentials: &Credentials, args: &RemoveBackup) -> Result<(), BackupError> {
    let store = Store::open(storage, credentials).await?;
    remove_backup(&store, &args.location, &args.backup).await
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    use clap::Parser;
    use serde_json::{Value, json};

    use super::remove;
    use crate::cli::{Cli, Command};

    const LOCATION: &str = "paris/7f1c/20261124T030000Z-9b1d";

    /// A directory with this backup, one whose name begins alike, and one beside it; and where they are.
    fn stored() -> (tempfile::TempDir, PathBuf) {
        let place = tempfile::tempdir().unwrap();
        let root = place.path().join("backups");
        for (location, backup) in [(LOCATION.to_owned(), "nightly"), (format!("{LOCATION}2"), "other")] {
            let directory = root.join(location);
            std::fs::create_dir_all(&directory).unwrap();
            for (file, content) in [("manifest.json", manifest(backup)), ("snapshot.db.age", "x".into())] {
                std::fs::write(directory.join(file), content).unwrap();
            }
        }
        (place, root)
    }

    fn manifest(backup: &str) -> String {
        let object = json!({ "name": "x", "size": 1, "sha256": "", "plainSize": 1, "plainSha256": "" });
        let manifest = json!({
            "format": crds::backup::FORMAT, "backup": backup, "cluster": "paris", "clusterUid": "7f1c",
            "etcdClusterID": "1", "member": "m", "revision": 7, "keys": 5, "etcdVersion": "3.6.16",
            "startedAt": "2026-11-24T03:00:00Z", "completedAt": "2026-11-24T03:00:01Z",
            "snapshot": object, "bundle": object
        });
        manifest.to_string()
    }

    /// The exit code and the message.
    async fn run(root: &Path, location: &str, backup: &str) -> (u8, Value) {
        let (storage, message) = (json!({ "directory": root }).to_string(), root.with_extension("message"));
        let words = [
            "executor",
            "remove-backup",
            "--storage",
            &storage,
            "--termination-message",
            message.to_str().unwrap(),
            "--location",
            location,
            "--backup",
            backup,
        ];
        let Command::RemoveBackup(arguments) = Cli::parse_from(words).command else { panic!("no removal") };
        let code = remove(&arguments).await;
        (code, std::fs::read(message).ok().map_or(Value::Null, |text| serde_json::from_slice(&text).unwrap()))
    }

    #[tokio::test]
    async fn this_very_backup_is_removed_and_none_whose_name_begins_alike() {
        let (_place, root) = stored();
        for _ in 0..2 {
            assert_eq!(run(&root, LOCATION, "nightly").await, (0, json!({ "removed": true })));
            assert!(!root.join(LOCATION).exists());
            assert!(root.join(format!("{LOCATION}2/snapshot.db.age")).exists());
        }
    }

    #[tokio::test]
    async fn what_is_no_backup_of_this_name_is_left_alone() {
        let (_place, root) = stored();
        for (location, backup, words) in [
            (LOCATION, "another", "EtcdBackup nightly, and not of another"),
            ("paris/7f1c", "nightly", "it has paris/7f1c/"),
            ("../backups", "nightly", "delete"),
            ("", "nightly", "delete"),
        ] {
            let (code, message) = run(&root, location, backup).await;
            assert_eq!((code, &message["removed"]), (0, &json!(false)), "{message}");
            assert!(message["message"].as_str().unwrap().contains(words), "{message}");
            assert_eq!(message["reason"], "StorageFailed", "{message}");
        }
        std::fs::write(root.join(LOCATION).join("manifest.json"), "{}").unwrap();
        let (_, message) = run(&root, LOCATION, "nightly").await;
        assert!(message["message"].as_str().unwrap().contains("manifest.json"), "{message}");
        assert!(root.join(LOCATION).join("snapshot.db.age").exists());
    }

    #[tokio::test]
    async fn what_an_interrupted_removal_has_left_is_removed() {
        let (_place, root) = stored();
        std::fs::remove_file(root.join(LOCATION).join("manifest.json")).unwrap();
        assert_eq!(run(&root, LOCATION, "nightly").await, (0, json!({ "removed": true })));
        assert!(!root.join(LOCATION).exists());
    }
}
