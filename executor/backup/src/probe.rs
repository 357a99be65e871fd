//! Whether a storage can be used.

use bytes::Bytes;
use futures::TryStreamExt;
use object_store::path::Path;

use crate::error::{BackupError, StorageFailure};
use crate::store::Store;

/// Directories of probes begin with it.
const PROBE: &str = ".clusterwright-probe-";

/// Writes an object, reads it back, lists it and deletes it: what a backup needs. The error names the act that failed.
pub async fn probe(store: &Store) -> Result<(), BackupError> {
    let random: u64 = rand::random();
    let directory = Path::from(format!("{PROBE}{random:016x}"));
    let object = directory.clone().join("object");
    let text = Bytes::from(format!("written by Clusterwright to see that it can be: {random}\n"));
    store.put(&object, text.clone()).await?;
    let used = used(store, &directory, &object, &text).await;
    let deleted = store.delete(&object).await;
    used.and(deleted)?;
    match store.get(&object).await? {
        None => Ok(()),
        Some(_) => Err(wrong(store, format!("delete {object}"), "it is there all the same")),
    }
}

async fn used(store: &Store, directory: &Path, object: &Path, text: &Bytes) -> Result<(), BackupError> {
    match store.get(object).await? {
        Some(found) if found == *text => (),
        Some(_) => return Err(wrong(store, format!("read {object}"), "it has other bytes than were written")),
        None => return Err(wrong(store, format!("read {object}"), "it is not there, though it was just written")),
    }
    let listed: Vec<_> = store.list(Some(directory)).await?.try_collect().await?;
    if listed.iter().any(|found| found.location == *object) {
        return Ok(());
    }
    Err(wrong(store, format!("list {directory}"), "the object that was just written is not in the list"))
}

fn wrong(store: &Store, action: String, problem: &str) -> BackupError {
    store.failed(action, StorageFailure::Failed, problem.to_owned())
}
