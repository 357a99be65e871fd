//! A snapshot on its way from a member into the storage: checked, encrypted and measured while it passes.

use std::convert::Infallible;
use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use crds::backup::ObjectManifest;
use futures::{Stream, TryStreamExt};
use object_store::path::Path;
use tokio::time::Duration;

use crate::digest::Sum;
use crate::encryption::Recipients;
use crate::error::{BackupError, StorageFailure};
use crate::pace::Pace;
use crate::sealing;
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
/// is not what its member meant to send. The upload of one that failed is aborted, and so is one at the end of `brake`.
pub async fn store_snapshot(
    (messages, brake): (impl Stream<Item = Result<Bytes, BackupError>>, impl Future<Output = BackupError>),
    sink: &Sink<'_>,
    pace: Pace,
    progress: impl FnMut(u64),
    corrupt: impl FnOnce(String) -> BackupError,
) -> Result<(Sum, Sum), BackupError> {
    let mut upload = Upload::begin(sink.store, sink.path, sink.part_size).await?;
    let pumped = tokio::select! {
        pumped = pump(messages, sink, pace, progress, corrupt, &mut upload) => pumped,
        grown = brake => Err(grown),
    };
    match pumped {
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
    let (mut intake, mut sealed, sums) = sealing::begin(sink.recipients.encrypt()?);
    let read = AtomicU64::new(0);
    let reading = async {
        let mut messages = pin!(messages);
        while let Some(message) = messages.try_next().await? {
            let length = message.len();
            read.fetch_add(length as u64, Ordering::Relaxed);
            intake.push(message).await;
            pace.spend(length).await;
        }
        intake.end().await;
        Ok(())
    };
    let stored = upload.stored();
    // Boxed, as all that is large: futures lie on the stack of whoever makes them, each in the next.
    let working = Box::pin(async {
        let uploading = async {
            while let Some(bytes) = sealed.recv().await {
                upload.write(bytes).await?;
            }
            Ok(())
        };
        tokio::try_join!(reading, uploading)?;
        let (plain, stored) = sums
            .finish()
            .await
            .map_err(|problem| sink.store.failed(format!("encrypt {}", sink.path), StorageFailure::Failed, problem))?;
        let plain = plain.finish().map_err(corrupt)?;
        upload.finish().await?;
        Ok((plain, stored))
    });
    let (plain, stored) = tokio::select! {
        done = working => done?,
        // What is stored is encrypted, and a little larger.
        never = report(|| progress(stored.load(Ordering::Relaxed).min(read.load(Ordering::Relaxed)))) => match never {},
    };
    progress(plain.size);
    Ok((plain, stored))
}

/// Reports again and again, also while nothing moves.
async fn report(mut progress: impl FnMut()) -> Infallible {
    loop {
        tokio::time::sleep(REPORT).await;
        progress();
    }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::credentials::Credentials;
    use crate::error::EtcdFailure;
    use crate::upload::part_size;
    use crds::backup::StorageInputs;
    use sha2::{Digest, Sha256};
    use std::future::pending;
    use tempfile::TempDir;

    const MESSAGE: usize = 32 * 1024;
    const ALONE: &str = "CLUSTERWRIGHT_TEST_ALONE";

    async fn store(place: &TempDir) -> Store {
        let directory = StorageInputs::Directory(place.path().display().to_string());
        Store::open(&directory, &Credentials::default()).await.unwrap()
    }

    fn recipients() -> Recipients {
        Recipients::parse(&[age::x25519::Identity::generate().to_public().to_string()]).unwrap()
    }

    fn corrupt(answer: String) -> BackupError {
        let (member, url) = (String::new(), String::new());
        BackupError::Etcd { failure: EtcdFailure::Corrupt, action: "read the snapshot", member, url, answer }
    }

    /// So many messages, and what etcd sends after them.
    fn snapshot(messages: usize) -> impl Iterator<Item = Bytes> {
        let mut hash = Some(Sha256::new());
        (0..=messages).filter_map(move |index| {
            if index == messages {
                return hash.take().map(|hash| Bytes::copy_from_slice(&hash.finalize()));
            }
            let message = Bytes::from(vec![index.to_le_bytes()[0]; MESSAGE]);
            hash.as_mut()?.update(&message);
            Some(message)
        })
    }

    /// The most memory that the process had at once, in bytes.
    fn peak() -> u64 {
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
        line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() * 1024
    }

    /// What is measured is the process's: it runs again, with this test alone, and with one arena of glibc's allocator,
    /// for how much each thread's keeps for itself differs from run to run.
    #[test]
    fn a_large_snapshot_takes_the_memory_of_five_parts() {
        if std::env::var_os(ALONE).is_some() {
            return tokio::runtime::Runtime::new().unwrap().block_on(store_a_large_snapshot());
        }
        let name = "snapshot::tests::a_large_snapshot_takes_the_memory_of_five_parts";
        let mut again = std::process::Command::new(std::env::current_exe().unwrap());
        let output =
            again.args([name, "--exact", "--nocapture"]).env(ALONE, "1").env("MALLOC_ARENA_MAX", "1").output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && said.contains("of memory for"), "{said}");
    }

    async fn store_a_large_snapshot() {
        let place = tempfile::tempdir().unwrap();
        let (store, recipients, path) = (store(&place).await, recipients(), Path::from("a/snapshot"));
        let sink = Sink { store: &store, path: &path, recipients: &recipients, part_size: part_size(0) };
        let (before, messages) = (peak(), 8192);
        let stream = futures::stream::iter(snapshot(messages).map(Ok));
        let (plain, stored) =
            store_snapshot((stream, pending()), &sink, Pace::new(None), |_| (), corrupt).await.unwrap();
        assert_eq!(plain.size, (messages * MESSAGE + 32) as u64);
        assert_eq!(store.size(&path).await.unwrap(), Some(stored.size));
        let grown = peak() - before;
        println!("{} MiB of memory for {} MiB", grown >> 20, plain.size >> 20);
        assert!(grown < 64 << 20, "{} MiB", grown >> 20);
    }

    #[tokio::test]
    async fn a_snapshot_with_one_changed_byte_is_refused_and_not_kept() {
        let place = tempfile::tempdir().unwrap();
        let (store, recipients, path) = (store(&place).await, recipients(), Path::from("a/snapshot"));
        let sink = Sink { store: &store, path: &path, recipients: &recipients, part_size: 1 << 20 };
        let mut messages: Vec<_> = snapshot(100).collect();
        let mut changed = messages[50].to_vec();
        changed[1000] ^= 1;
        messages[50] = Bytes::from(changed);
        let stream = futures::stream::iter(messages.into_iter().map(Ok));
        let refused = store_snapshot((stream, pending()), &sink, Pace::new(None), |_| (), corrupt).await.unwrap_err();
        assert_eq!((refused.reason(), refused.retriable()), ("SnapshotCorrupt", true));
        assert_eq!(std::fs::read_dir(place.path().join("a")).unwrap().count(), 0);
    }
}
