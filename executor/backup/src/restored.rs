//! Restores the snapshot of a backup into an etcd of one member beside the executor, and reads all that is in it.

mod decoding;
mod etcd;
mod registry;
mod secretbox;

use std::path::{Path, PathBuf};

use crds::backup::VerificationInputs;
use tokio::fs::File;

use crate::directory;
use crate::error::BackupError;
use crate::programs::Programs;
use crate::source::Source;
use crate::verification::{Bundle, KEYS_FILE, verify_decrypted};
use etcd::Etcd;
use registry::Contents;
use secretbox::EncryptionKeys;

/// What a restored etcd needs beside its database: a log, written in files of 64 MiB.
const BESIDE: u64 = 256 << 20;

/// What was found in a backup that was restored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Restored {
    /// Keys at the revision.
    pub keys: i64,
    /// The manifest's revision; the newest one where that was compacted away while the snapshot was taken.
    pub revision: i64,
    /// Objects of Kubernetes that were read and decoded.
    pub objects: u64,
    /// Values among them that were decrypted with the cluster's key.
    pub decrypted: u64,
    /// Values that a KMS plug-in of the cluster has encrypted. They were read and not decrypted: no backup has its key.
    pub sealed: u64,
    /// Values of another form than Kubernetes' own, of kinds that are not its own: they were read.
    pub others: u64,
}

/// Verifies a backup as [`verify_decrypted`] does, restores its snapshot below a directory, starts etcd from it on the
/// loopback interface, and compares: the revision, the number of keys at the manifest's revision, every object below
/// `/registry`. Nothing is left below the directory. Errors: what differs (`BackupCorrupt`); there is no room for it,
/// or etcd was not started, which says nothing of the backup (`VerificationNotMade`).
pub async fn verify_restored(
    source: &Source<'_>,
    wanted: &VerificationInputs,
    programs: &Programs,
    directory: &Path,
) -> Result<Restored, BackupError> {
    let needed = source.manifest().snapshot.plain_size.saturating_mul(2).saturating_add(BESIDE);
    let free = directory::free_space(directory).map_err(|error| not_made("look at the room for it", &error))?;
    if free < needed {
        return Err(BackupError::NoRoom { place: directory.display().to_string(), needed, free });
    }
    let place = tempfile::tempdir_in(directory).map_err(|error| not_made("make a directory for it", &error))?;
    let (snapshot, bundle) = snapshot(source, wanted, place.path()).await?;
    let key = encryption_key(&bundle).map_err(|problem| source.corrupt(problem))?;
    let data = etcd::restore(source, programs, &snapshot, place.path()).await?;
    tokio::fs::remove_file(&snapshot).await.map_err(|error| not_made("remove the snapshot", &error))?;
    let mut etcd = Etcd::start(source, programs, &data, needed).await?;
    let read = registry::read(&mut etcd.client, source.manifest(), key.as_ref()).await;
    let contents = match read {
        Ok(contents) => contents,
        Err(registry::Failure::Differs(problem)) => return Err(source.corrupt(problem)),
        Err(registry::Failure::Broken(problem)) => return Err(etcd.broken(source, problem).await),
        Err(registry::Failure::Compacted) => {
            return Err(etcd.broken(source, "the newest revision is not kept".to_owned()).await);
        }
    };
    etcd.stop().await;
    let Contents { keys, revision, objects, decrypted, sealed, others } = contents;
    Ok(Restored { keys, revision, objects, decrypted, sealed, others })
}

/// The snapshot in a file below the directory, and the bundle.
async fn snapshot(
    source: &Source<'_>,
    wanted: &VerificationInputs,
    place: &Path,
) -> Result<(PathBuf, Bundle), BackupError> {
    let path = place.join("snapshot.db");
    let mut file = File::create_new(&path).await.map_err(|error| not_made("write the snapshot", &error))?;
    let bundle = verify_decrypted(source, wanted, &mut file).await?;
    Ok((path, bundle))
}

fn encryption_key(bundle: &Bundle) -> Result<Option<EncryptionKeys>, String> {
    let keys = bundle.get(KEYS_FILE).map(Vec::as_slice).unwrap_or_default();
    EncryptionKeys::of_secret(keys).map_err(|problem| format!("its bundle: {KEYS_FILE}: {problem}"))
}

fn not_made(action: &'static str, error: &std::io::Error) -> BackupError {
    BackupError::Verification { action, problem: error.to_string() }
}
