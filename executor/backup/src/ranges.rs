//! An object read in ranges: a request that is cut off is repeated alone. Each is a task of its own: what has come is
//! used while the next is received and decrypted.

use bytes::Bytes;
use futures::{Stream, StreamExt};
use object_store::path::Path;
use tokio::task::JoinSet;

use crate::error::{BackupError, StorageFailure};
use crate::store::Store;

/// Each request reads so much.
const RANGE: u64 = 8 << 20;
/// Requests at the same time.
const AHEAD: usize = 2;

/// The bytes of an object of this size, in order. Memory: three ranges.
pub fn ranges<'a>(
    store: &'a Store,
    path: &'a Path,
    size: u64,
) -> impl Stream<Item = Result<Bytes, BackupError>> + Send + 'a {
    let starts = (0..size.div_ceil(RANGE)).map(|index| index * RANGE);
    let requests = starts.map(move |start| request(store.clone(), path.clone(), start..(start + RANGE).min(size)));
    futures::stream::iter(requests).buffered(AHEAD)
}

async fn request(store: Store, path: Path, range: std::ops::Range<u64>) -> Result<Bytes, BackupError> {
    let failed = |problem: String| store.failed(format!("read {path}"), StorageFailure::Failed, problem);
    // Of one task, which ends with it.
    let mut tasks = JoinSet::new();
    let (task_store, task_path) = (store.clone(), path.clone());
    tasks.spawn(async move { task_store.range(&task_path, range).await });
    match tasks.join_next().await {
        Some(Ok(read)) => read,
        Some(Err(error)) => Err(failed(error.to_string())),
        None => Err(failed("it was not begun".to_owned())),
    }
}
