//! A snapshot on its way from a member into the storage: checked, encrypted and measured while it passes.

use std::pin::pin;

use bytes::Bytes;
use crds::backup::ObjectManifest;
use futures::{Stream, TryStreamExt};
use object_store::path::Path;
use tokio::time::{Duration, Instant};

use crate::digest::{SnapshotCheck, Sum, Summing};
use crate::encryption::Recipients;
use crate::error::{BackupError, StorageFailure};
use crate::pace::Pace;
use crate::store::Store;
use crate::upload::Upload;

/// How often progress is reported at most.
const REPORT: Duration = Duration::from_secs(1);

/// What a snapshot is stored with.
pub struct Sink<'a> {
    /// Where it goes.
    pub store: &'a Store,
    /// The object.
    pub path: &'a Path,
    /// Whom it is encrypted for.
    pub recipients: &'a Recipients,
    /// Of the upload, in bytes.
    pub part_size: usize,
}

/// Stores a snapshot, and returns size and SHA-256 of it and of what was stored. `corrupt` makes the error of one that
/// is not what its member meant to send. The upload of one that failed is aborted.
pub async fn store_snapshot(
    messages: impl Stream<Item = Result<Bytes, BackupError>>,
    sink: &Sink<'_>,
    pace: Pace,
    progress: impl FnMut(u64),
    corrupt: impl FnOnce(String) -> BackupError,
) -> Result<(Sum, Sum), BackupError> {
    let mut upload = Upload::begin(sink.store, sink.path, sink.part_size).await?;
    match pump(messages, sink, pace, progress, corrupt, &mut upload).await {
        Ok(sums) => Ok(sums),
        Err(error) => {
            upload.abort().await;
            Err(error)
        }
    }
}

/// Size and SHA-256 of the snapshot, and of what was stored of it.
async fn pump(
    messages: impl Stream<Item = Result<Bytes, BackupError>>,
    sink: &Sink<'_>,
    mut pace: Pace,
    mut progress: impl FnMut(u64),
    corrupt: impl FnOnce(String) -> BackupError,
    upload: &mut Upload,
) -> Result<(Sum, Sum), BackupError> {
    let mut messages = pin!(messages);
    let (mut plain, mut cipher) = (SnapshotCheck::default(), Summing::default());
    let mut encryption = sink.recipients.encrypt()?;
    let failed = |error: std::io::Error| {
        sink.store.failed(format!("encrypt {}", sink.path), StorageFailure::Failed, error.to_string())
    };
    let mut reported = Instant::now();
    while let Some(message) = messages.try_next().await? {
        plain.update(&message);
        let encrypted = encryption.push(&message).map_err(failed)?;
        cipher.update(&encrypted);
        upload.write(&encrypted).await?;
        if reported.elapsed() >= REPORT {
            reported = Instant::now();
            progress(upload.stored());
        }
        pace.spend(message.len()).await;
    }
    let plain = plain.finish().map_err(corrupt)?;
    let rest = encryption.finish().map_err(failed)?;
    cipher.update(&rest);
    upload.write(&rest).await?;
    upload.finish().await?;
    progress(plain.size);
    Ok((plain, cipher.finish()))
}

/// An object of a manifest.
pub fn object(name: &str, plain: Sum, stored: Sum) -> ObjectManifest {
    ObjectManifest {
        name: name.to_owned(),
        size: stored.size,
        sha256: stored.sha256,
        plain_size: plain.size,
        plain_sha256: plain.sha256,
    }
}
