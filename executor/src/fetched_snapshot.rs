//! Fetches the snapshot of a backup for a member of a Karmada control plane's etcd, whose data is made of it next, by
//! another program in the same Pod. It has the key of this one snapshot, and no identity.

use std::io;
use std::path::Path;

use backup::{BackupError, Credentials, Identities, ObjectKey, Source, Store};
use crds::backup::StorageInputs;
use tokio::fs::File;
use tracing::error;

use crate::cli::FetchSnapshot;
use crate::outcome::INPUTS_REFUSED;
use crate::storage::{failure, read};

/// It was not fetched.
const NOT_FETCHED: u8 = 20;

/// Fetches it; returns the exit code. Unless that is 0 there is no file.
pub async fn fetch(args: &FetchSnapshot) -> u8 {
    let Some((storage, credentials)) = read(&args.storage) else {
        return INPUTS_REFUSED;
    };
    let Err(why) = fetched(&storage, &credentials, args).await else {
        return 0;
    };
    error!(why, "the snapshot was not fetched");
    let _ = std::fs::remove_file(&args.to);
    if let Err(error) = std::fs::write(&args.storage.termination_message, why) {
        error!(%error, "failed to write why");
    }
    NOT_FETCHED
}

async fn fetched(storage: &StorageInputs, credentials: &Credentials, args: &FetchSnapshot) -> Result<(), String> {
    let refused = |error: BackupError| failure(&error).1;
    let identities = Identities::of_object(key(&args.key)?);
    clear(&args.clear).map_err(|error| format!("{} cannot be removed: {error}", args.clear.display()))?;
    let store = Store::open(storage, credentials).await.map_err(refused)?;
    let source = Source::open(&store, &args.location, &identities).await.map_err(refused)?;
    let found = &source.manifest().snapshot.plain_sha256;
    if *found != args.sha256 {
        return Err(format!(
            "the snapshot at {} has SHA-256 {found}, and {} is wanted: it was exchanged since its keys were fetched",
            args.location, args.sha256
        ));
    }
    let unwritten = |error: io::Error| format!("{} cannot be written: {error}", args.to.display());
    let mut file = File::create(&args.to).await.map_err(unwritten)?;
    backup::fetch(&source, &mut file, |_| ()).await.map_err(refused)?;
    file.sync_all().await.map_err(unwritten)
}

/// The key, which no message shows.
fn key(file: &Path) -> Result<ObjectKey, String> {
    let bytes =
        std::fs::read(file).map_err(|error| format!("the key at {} cannot be read: {error}", file.display()))?;
    bytes
        .try_into()
        .map_err(|bytes: Vec<u8>| format!("the key at {} has {} bytes, and not 16", file.display(), bytes.len()))
}

fn clear(directory: &Path) -> io::Result<()> {
    match std::fs::remove_dir_all(directory) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use clap::Parser;
    use serde_json::json;

    use super::fetch;
    use crate::cli::{Cli, Command};

    async fn fetched(place: &Path, key: &[u8]) -> (u8, String) {
        std::fs::write(place.join("key"), key).unwrap();
        let storage = json!({ "directory": place.join("backups") }).to_string();
        let path = |name: &str| place.join(name).display().to_string();
        let words = [
            "executor",
            "fetch-snapshot",
            "--storage",
            &storage,
            "--location",
            "_karmada/k1/u/1",
            "--key",
            &path("key"),
            "--sha256",
            "a0",
            "--to",
            &path("snapshot.db"),
            "--clear",
            &path("data"),
            "--termination-message",
            &path("message"),
        ];
        let Command::FetchSnapshot(arguments) = Cli::parse_from(words).command else { panic!("no fetch") };
        let code = fetch(&arguments).await;
        (code, std::fs::read_to_string(place.join("message")).unwrap_or_default())
    }

    #[tokio::test]
    async fn what_is_not_fetched_is_no_file_and_what_an_attempt_before_left_is_gone() {
        let place = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(place.path().join("data/member")).unwrap();
        let (code, said) = fetched(place.path(), b"hunter2").await;
        assert_eq!((code, said.contains("has 7 bytes"), said.contains("hunter2")), (20, true, false), "{said}");
        assert!(place.path().join("data").exists(), "nothing is removed for a key that is none");
        let (code, said) = fetched(place.path(), &[7; 16]).await;
        assert_eq!((code, said.is_empty()), (20, false), "{said}");
        assert!(!place.path().join("data").exists() && !place.path().join("snapshot.db").exists());
    }
}
