//! An object of unknown size on its way into the storage, in parts. Memory: the part that is filled, and four that
//! travel.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use object_store::path::Path;
use object_store::{MultipartUpload, PutPayloadMut, Result as StoreResult};
use tokio::runtime::Handle;
use tokio::task::JoinSet;

use crate::error::{BackupError, StorageFailure};
use crate::store::Store;
use crate::text::chain;

/// The usual size of a part; S3 wants 5 MiB at least of all but the last.
const PART: u64 = 8 << 20;
/// Half of what S3 takes for one object: the size that is expected may be exceeded.
const MAX_PARTS: u64 = 5000;
/// Parts that travel at the same time.
const IN_FLIGHT: usize = 4;
/// How long giving up may take.
const ABORT: Duration = Duration::from_secs(10);

/// An upload. Dropped before it was finished, it is aborted.
pub struct Upload {
    store: Store,
    action: String,
    /// None once it is finished or aborted.
    multipart: Option<Box<dyn MultipartUpload>>,
    part_size: usize,
    filling: PutPayloadMut,
    travelling: JoinSet<StoreResult<()>>,
    stored: Arc<AtomicU64>,
}

/// The size of a part of an object that will have about so many bytes.
pub fn part_size(expected: u64) -> usize {
    usize::try_from(PART.max(expected.div_ceil(MAX_PARTS))).unwrap_or(usize::MAX)
}

impl Upload {
    /// Begins an object.
    pub async fn begin(store: &Store, path: &Path, part_size: usize) -> Result<Self, BackupError> {
        let multipart = store.multipart(path).await?;
        Ok(Self {
            store: store.clone(),
            action: format!("write {path}"),
            multipart: Some(multipart),
            part_size,
            filling: PutPayloadMut::new(),
            travelling: JoinSet::new(),
            stored: Arc::default(),
        })
    }

    /// The next bytes; waits while the storage is slower than they come.
    pub async fn write(&mut self, mut bytes: Bytes) -> Result<(), BackupError> {
        while !bytes.is_empty() {
            let room = self.part_size - self.filling.content_length();
            self.filling.push(bytes.split_to(bytes.len().min(room)));
            if self.filling.content_length() == self.part_size {
                self.send().await?;
            }
        }
        self.reap()
    }

    /// Bytes that the storage has, as it goes on.
    pub fn stored(&self) -> Arc<AtomicU64> {
        self.stored.clone()
    }

    /// Sends the rest, and makes the object appear. After an error it may appear all the same.
    pub async fn finish(&mut self) -> Result<(), BackupError> {
        if !self.filling.is_empty() {
            self.send().await?;
        }
        while let Some(part) = self.travelling.join_next().await {
            self.arrived(part)?;
        }
        let Some(mut multipart) = self.multipart.take() else { return Ok(()) };
        match multipart.complete().await {
            Ok(_) => Ok(()),
            Err(error) => {
                self.multipart = Some(multipart);
                Err(self.store.explained(&self.action, &error))
            }
        }
    }

    /// Gives the object up; that this failed is reported in the log.
    pub async fn abort(mut self) {
        self.travelling.shutdown().await;
        if let Some(multipart) = self.multipart.take() {
            abort(multipart, self.store.name(), &self.action).await;
        }
    }

    async fn send(&mut self) -> Result<(), BackupError> {
        while self.travelling.len() >= IN_FLIGHT {
            if let Some(part) = self.travelling.join_next().await {
                self.arrived(part)?;
            }
        }
        let part = std::mem::take(&mut self.filling).freeze();
        let size = part.content_length() as u64;
        if let Some(multipart) = &mut self.multipart {
            let (part, stored) = (multipart.put_part(part), self.stored.clone());
            self.travelling.spawn(async move {
                part.await?;
                stored.fetch_add(size, Ordering::Relaxed);
                Ok(())
            });
        }
        Ok(())
    }

    /// Looks at the parts that have arrived.
    fn reap(&mut self) -> Result<(), BackupError> {
        while let Some(part) = self.travelling.try_join_next() {
            self.arrived(part)?;
        }
        Ok(())
    }

    fn arrived(&self, part: Result<StoreResult<()>, tokio::task::JoinError>) -> Result<(), BackupError> {
        match part {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) => Err(self.store.explained(&self.action, &error)),
            Err(error) => Err(self.store.failed(self.action.as_str(), StorageFailure::Failed, error.to_string())),
        }
    }
}

impl Drop for Upload {
    fn drop(&mut self) {
        let Some(multipart) = self.multipart.take() else { return };
        let (action, storage) = (std::mem::take(&mut self.action), self.store.name().to_owned());
        self.travelling.abort_all();
        if let Ok(runtime) = Handle::try_current() {
            runtime.spawn(async move { abort(multipart, &storage, &action).await });
        }
    }
}

async fn abort(mut multipart: Box<dyn MultipartUpload>, storage: &str, action: &str) {
    let problem = match tokio::time::timeout(ABORT, multipart.abort()).await {
        Ok(Ok(())) => return,
        Ok(Err(error)) => chain(&error),
        Err(_) => "no answer".to_owned(),
    };
    tracing::warn!(storage, action, problem, "failed to abort an upload: its parts may be left");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::credentials::Credentials;
    use crds::backup::StorageInputs;

    #[test]
    fn parts_grow_where_there_would_be_too_many() {
        assert_eq!(part_size(0), 8 << 20);
        assert_eq!(part_size(8 << 30), 8 << 20);
        assert_eq!(part_size(1 << 40), (1_usize << 40).div_ceil(5000));
    }

    #[tokio::test]
    async fn what_is_written_in_pieces_appears_whole_and_what_is_dropped_does_not() {
        let place = tempfile::tempdir().unwrap();
        let inputs = StorageInputs::Directory(place.path().display().to_string());
        let store = Store::open(&inputs, &Credentials::default()).await.unwrap();
        let bytes: Vec<u8> = (0..100_000_u32).flat_map(u32::to_le_bytes).collect();
        let (kept, dropped) = (Path::from("kept/a"), Path::from("dropped/a"));
        let mut upload = Upload::begin(&store, &kept, 4096).await.unwrap();
        for piece in bytes.chunks(10_001) {
            upload.write(Bytes::copy_from_slice(piece)).await.unwrap();
        }
        upload.finish().await.unwrap();
        assert_eq!(upload.stored().load(Ordering::Relaxed), bytes.len() as u64);
        assert!(store.get(&kept).await.unwrap().unwrap() == bytes);

        let mut upload = Upload::begin(&store, &dropped, 4096).await.unwrap();
        upload.write(Bytes::from(bytes)).await.unwrap();
        drop(upload);
        assert_eq!(store.get(&dropped).await.unwrap(), None);
        for _ in 0..200 {
            tokio::time::sleep(Duration::from_millis(10)).await;
            if std::fs::read_dir(place.path().join("dropped")).unwrap().next().is_none() {
                return;
            }
        }
        panic!("what was written of an upload that was dropped is left");
    }
}
