//! Looks at a storage of backups for the operator: whether it can be used, and what is in it.

use std::fs;
use std::path::Path;

use backup::{BackupError, Credentials, Store};
use crds::Reason;
use crds::backup::{STORAGE_PREFIX, StorageInputs, StorageLook};
use crds::backup_storage::NewestBackup;
use serde::Serialize;
use tracing::error;

use crate::cli::Storage;
use crate::outcome::INPUTS_REFUSED;
use crate::sanitize::cut;
use crate::secrets::Secrets;

/// Longest message, in characters: with the rest it fits into a termination message.
const MESSAGE_LIMIT: usize = 600;
const INTERNAL: u8 = crate::outcome::INTERNAL;

/// Looks, and writes what was found; returns the exit code.
pub async fn look(args: &Storage) -> u8 {
    let Some((storage, credentials)) = read(args) else {
        return INPUTS_REFUSED;
    };
    let look = found(&storage, &credentials).await.unwrap_or_else(|error| unusable(&error));
    report(args, &look)
}

/// The storage and its credentials, by the arguments; none where they cannot be read, which is logged.
pub(crate) fn read(args: &Storage) -> Option<(StorageInputs, Credentials)> {
    let storage = serde_json::from_str(&args.storage);
    let storage = storage.inspect_err(|error| error!(%error, "--storage is no storage")).ok()?;
    let secrets = args.secrets.as_deref().map_or(Ok(Secrets::default()), Secrets::read);
    let secrets = secrets.inspect_err(|error| error!(%error, "failed to read --secrets")).ok()?;
    Some((storage, credentials(&secrets)))
}

/// Writes what came out; returns the exit code.
pub(crate) fn report(args: &Storage, message: &impl Serialize) -> u8 {
    match write(&args.termination_message, message) {
        Ok(()) => 0,
        Err(error) => {
            error!(%error, file = %args.termination_message.display(), "failed to write what came out");
            INTERNAL
        }
    }
}

/// The reason and the message of a failure.
pub(crate) fn failure(error: &BackupError) -> (Reason, String) {
    let reason = Reason::from_name(error.reason()).unwrap_or(Reason::StorageFailed);
    (reason, cut(&error.to_string(), MESSAGE_LIMIT))
}

/// The credentials in a directory, whether it is a Secret of the user's or a run's.
fn credentials(secrets: &Secrets) -> Credentials {
    Credentials::from_files(
        secrets.iter().map(|(name, content)| (name.strip_prefix(STORAGE_PREFIX).unwrap_or(name), content)),
    )
}

async fn found(storage: &StorageInputs, credentials: &Credentials) -> Result<StorageLook, BackupError> {
    let store = Store::open(storage, credentials).await?;
    backup::probe(&store).await?;
    let found = backup::list(&store).await?;
    let newest =
        found.newest.map(|(location, completed_at)| NewestBackup { location: cut(&location, 512), completed_at });
    Ok(StorageLook {
        reachable: true,
        backups: Some(found.backups),
        size: Some(found.size),
        free: store.free_space().await?,
        newest,
        ..StorageLook::default()
    })
}

fn unusable(error: &BackupError) -> StorageLook {
    let (reason, message) = failure(error);
    StorageLook { reachable: false, reason: Some(reason.into()), message: Some(message), ..StorageLook::default() }
}

fn write(file: &Path, message: &impl Serialize) -> std::io::Result<()> {
    fs::write(file, serde_json::to_vec(message)?)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use clap::Parser;
    use serde_json::{Value, json};

    use super::look;
    use crate::cli::{Cli, Command};

    /// The exit code and the message for these arguments.
    async fn looked(place: &Path, storage: &str, secrets: Option<&Path>) -> (u8, Value) {
        let message = place.join("message");
        let mut words =
            vec!["executor", "storage", "--storage", storage, "--termination-message", message.to_str().unwrap()];
        if let Some(secrets) = secrets {
            words.extend(["--secrets", secrets.to_str().unwrap()]);
        }
        let Command::Storage(arguments) = Cli::parse_from(words).command else { panic!("no storage") };
        let code = look(&arguments).await;
        (code, std::fs::read(message).ok().map_or(Value::Null, |text| serde_json::from_slice(&text).unwrap()))
    }

    #[tokio::test]
    async fn a_directory_is_reported_with_what_is_in_it_and_what_is_free() {
        let place = tempfile::tempdir().unwrap();
        let storage = json!({"directory": place.path().join("backups")}).to_string();
        let (code, message) = looked(place.path(), &storage, None).await;
        assert_eq!(
            (code, &message["reachable"], &message["backups"], &message["size"]),
            (0, &json!(true), &json!(0), &json!(0))
        );
        assert!(message["free"].as_u64().unwrap() > 0 && message.get("newest").is_none(), "{message}");
    }

    #[tokio::test]
    async fn a_storage_that_cannot_be_used_says_why_and_is_no_failure() {
        let place = tempfile::tempdir().unwrap();
        std::fs::write(place.path().join("file"), "").unwrap();
        let storage = json!({"directory": place.path().join("file/backups")}).to_string();
        let (code, message) = looked(place.path(), &storage, None).await;
        assert_eq!((code, &message["reachable"]), (0, &json!(false)));
        assert!(
            message["reason"].is_string() && message["message"].as_str().unwrap().contains("file/backups"),
            "{message}"
        );
        // Half of its credentials.
        std::fs::write(place.path().join("secretAccessKey"), "hunter2hunter2").unwrap();
        let bucket = r#"{"s3": {"endpoint": "http://127.0.0.1:9", "bucket": "b", "region": "r", "pathStyle": true}}"#;
        let (code, message) = looked(place.path(), bucket, Some(place.path())).await;
        assert_eq!((code, &message["reachable"]), (0, &json!(false)), "{message}");
        let text = message.to_string();
        assert!(text.len() < 3000 && !text.contains("hunter2"), "{text}");
    }

    #[tokio::test]
    async fn arguments_that_cannot_be_read_are_refused() {
        let place = tempfile::tempdir().unwrap();
        for storage in ["", "{}", r#"{"tape": 1}"#, r#"{"s3": {"endpoint": "http://s3"}}"#] {
            assert_eq!(looked(place.path(), storage, None).await, (10, Value::Null), "{storage}");
        }
    }
}
