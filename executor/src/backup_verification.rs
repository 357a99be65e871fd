//! Verifies the backup of an EtcdBackup for the operator, from what is stored alone.

use std::path::Path;
use std::time::Duration;

use backup::{
    BackupError, Credentials, Identities, Login, Programs, Restored, Source, Store, verify_decrypted, verify_restored,
    verify_stored,
};
use crds::backup::{StorageInputs, VerificationInputs, VerificationReport};
use crds::etcd_backup::VerifyMethod;
use crds::etcd_restore::IDENTITY_KEY;
use tracing::error;

use crate::cli::VerifyBackup;
use crate::outcome::INPUTS_REFUSED;
use crate::secrets::{Secrets, without_newline};
use crate::storage::{failure, read, report};

/// Verifies it, and writes what came of it; returns the exit code.
pub async fn verify(args: &VerifyBackup) -> u8 {
    let wanted = serde_json::from_str::<VerificationInputs>(&args.backup);
    let wanted = wanted.inspect_err(|error| error!(%error, "--backup is no backup to verify"));
    let (Some((storage, credentials)), Ok(wanted)) = (read(&args.storage), wanted) else {
        return INPUTS_REFUSED;
    };
    let limit = Duration::from_secs(args.deadline_seconds);
    let verified = tokio::time::timeout(limit, verified(&storage, &credentials, args, &wanted)).await;
    let verification = match verified {
        Ok(Ok(message)) => VerificationReport { is_good: Some(true), message: Some(message) },
        Ok(Err(error)) => {
            let (_, message) = failure(&error);
            VerificationReport { is_good: error.is_damage().then_some(false), message: Some(message) }
        }
        Err(_) => {
            let message = format!("it had not ended after {} s, its deadline", args.deadline_seconds);
            VerificationReport { is_good: None, message: Some(message) }
        }
    };
    report(&args.storage, &verification)
}

/// What was seen, in one sentence.
async fn verified(
    storage: &StorageInputs,
    credentials: &Credentials,
    args: &VerifyBackup,
    wanted: &VerificationInputs,
) -> Result<String, BackupError> {
    let store = Store::open(storage, credentials).await?;
    let Some(identities) = identities(args)? else {
        let bytes = verify_stored(&store, wanted).await?;
        return Ok(format!("{bytes} bytes were read, and are those that were stored"));
    };
    let source = Source::open(&store, &wanted.location, &identities).await?;
    match (wanted.how, &wanted.programs) {
        (VerifyMethod::Hash, _) => {
            verify_decrypted(&source, wanted, &mut tokio::io::sink()).await?;
            Ok(format!("{} bytes were read and decrypted, and are those that were stored", stored(&source)))
        }
        (VerifyMethod::Restore, Some(programs)) => {
            let directory = args.scratch.join("programs");
            std::fs::create_dir_all(&directory).map_err(|error| unready(&error))?;
            let programs = Programs::fetch(programs, &login(args)?, &directory).await?;
            let restored = verify_restored(&source, wanted, &programs, &args.scratch).await;
            // What cannot be removed goes with the Pod.
            let _ = std::fs::remove_dir_all(&directory);
            Ok(sentence(&restored?))
        }
        (VerifyMethod::Restore, None) => {
            Err(BackupError::Verification { action: "restore it", problem: "programs are missing in --backup".into() })
        }
    }
}

fn stored(source: &Source<'_>) -> u64 {
    source.manifest().snapshot.size + source.manifest().bundle.size
}

fn sentence(restored: &Restored) -> String {
    let Restored { keys, revision, objects, decrypted, sealed, others } = restored;
    let more = |count: u64, what: &str| if count > 0 { format!(", and {count} {what}") } else { String::new() };
    let sealed = more(*sealed, "values that a KMS plug-in has encrypted were not");
    let others = more(*others, "values of another form");
    format!(
        "restored it has {keys} keys at revision {revision}; {objects} objects were decoded, {decrypted} of them \
         decrypted with the cluster's key{sealed}{others}"
    )
}

/// The identities that it is decrypted with; none where none was given.
fn identities(args: &VerifyBackup) -> Result<Option<Identities>, BackupError> {
    let Some(directory) = &args.identity else { return Ok(None) };
    let files = secrets(directory)?;
    Identities::parse(files.get(IDENTITY_KEY).unwrap_or_default()).map(Some)
}

/// The login of the bundle, by the files of its Secret.
fn login(args: &VerifyBackup) -> Result<Login, BackupError> {
    let Some(directory) = &args.artifacts_login else { return Ok(Login::default()) };
    let files = secrets(directory)?;
    let text = |name: &str| {
        let value = files.get(name).map(without_newline)?;
        std::str::from_utf8(value).ok().map(str::to_owned).filter(|text| !text.is_empty())
    };
    Ok(Login { basic: text("username").zip(text("password")), token: text("token") })
}

fn secrets(directory: &Path) -> Result<Secrets, BackupError> {
    Secrets::read(directory).map_err(|error| unready(&error))
}

fn unready(error: &std::io::Error) -> BackupError {
    BackupError::Verification { action: "prepare the verification", problem: error.to_string() }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use clap::Parser;
    use serde_json::{Value, json};

    use super::verify;
    use crate::cli::{Cli, Command};

    const LOCATION: &str = "paris/7f1c/20261124T030000Z-9b1d";

    /// A directory with a backup of two objects that nothing decrypts.
    fn stored() -> tempfile::TempDir {
        let place = tempfile::tempdir().unwrap();
        let directory = place.path().join("backups").join(LOCATION);
        std::fs::create_dir_all(&directory).unwrap();
        let object = |name: &str| {
            std::fs::write(directory.join(name), name).unwrap();
            let sha256 = sha256(name.as_bytes());
            json!({ "name": name, "size": name.len(), "sha256": sha256, "plainSize": 1, "plainSha256": "00" })
        };
        let manifest = json!({
            "format": crds::backup::FORMAT, "backup": "nightly", "cluster": "paris", "clusterUid": "7f1c",
            "etcdClusterID": "1", "member": "m", "revision": 7, "keys": 5, "etcdVersion": "3.6.16",
            "startedAt": "2026-11-24T03:00:00Z", "completedAt": "2026-11-24T03:00:01Z",
            "snapshot": object("snapshot.db.age"), "bundle": object("cluster.tar.age")
        });
        std::fs::write(directory.join("manifest.json"), manifest.to_string()).unwrap();
        place
    }

    fn sha256(bytes: &[u8]) -> String {
        use sha2::Digest;
        sha2::Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// The exit code and the message.
    async fn run(place: &Path, change: Value, more: &[&str]) -> (u8, Value) {
        let (storage, message) = (json!({ "directory": place.join("backups") }), place.join("message"));
        let mut wanted = json!({
            "how": "Hash", "location": LOCATION, "backup": "nightly", "cluster": "paris", "revision": 7, "keys": 5,
            "size": 1, "sha256": "00"
        });
        wanted.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
        let (storage, wanted) = (storage.to_string(), wanted.to_string());
        let mut words = vec!["executor", "verify-backup", "--storage", &storage, "--backup", &wanted];
        words.extend(["--termination-message", message.to_str().unwrap()]);
        words.extend(more);
        let Command::VerifyBackup(arguments) = Cli::parse_from(words).command else { panic!("no verification") };
        let code = verify(&arguments).await;
        (code, std::fs::read(message).ok().map_or(Value::Null, |text| serde_json::from_slice(&text).unwrap()))
    }

    #[tokio::test]
    async fn what_is_stored_is_read_and_what_differs_is_named() {
        let place = stored();
        let (code, message) = run(place.path(), json!({}), &[]).await;
        assert_eq!((code, &message["isGood"]), (0, &json!(true)), "{message}");
        assert!(message["message"].as_str().unwrap().starts_with("30 bytes were read"), "{message}");
        let (_, message) = run(place.path(), json!({ "revision": 8 }), &[]).await;
        assert_eq!(message["isGood"], false, "{message}");
        assert!(message["message"].as_str().unwrap().contains("revision 7, and 8 was written down"), "{message}");
        let snapshot = place.path().join("backups").join(LOCATION).join("snapshot.db.age");
        std::fs::write(&snapshot, "snapshot.db.agf").unwrap();
        let (_, message) = run(place.path(), json!({}), &[]).await;
        let words = message["message"].as_str().unwrap();
        assert!(message["isGood"] == false && words.contains("snapshot.db.age has 15 bytes"), "{message}");
        assert!(words.contains(&sha256(b"snapshot.db.age")) && words.contains(&sha256(b"snapshot.db.agf")), "{words}");
        std::fs::remove_file(&snapshot).unwrap();
        let (_, message) = run(place.path(), json!({}), &[]).await;
        assert!(message["isGood"] == false && message["message"].as_str().unwrap().contains("missing"), "{message}");
    }

    #[tokio::test]
    async fn what_cannot_be_looked_at_says_nothing_of_the_backup() {
        let place = stored();
        let identity = place.path().join("identity");
        std::fs::create_dir(&identity).unwrap();
        std::fs::write(identity.join("identity"), "age1recipient").unwrap();
        let given = ["--identity", identity.to_str().unwrap()];
        let (code, message) = run(place.path(), json!({}), &given).await;
        assert_eq!((code, message.get("isGood")), (0, None), "{message}");
        assert!(message["message"].as_str().unwrap().contains("public half"), "{message}");
        std::fs::remove_dir_all(place.path().join("backups")).unwrap();
        std::fs::write(place.path().join("backups"), "").unwrap();
        let (code, message) = run(place.path(), json!({}), &[]).await;
        assert_eq!((code, message.get("isGood")), (0, None), "{message}");
        assert_eq!(run(place.path(), json!({ "how": "Guess" }), &[]).await.0, 10);
    }
}
