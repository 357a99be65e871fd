//! Reads an object back as it is stored, and compares it with what was written.

use crds::backup::ObjectManifest;
use futures::TryStreamExt;
use object_store::path::Path;

use crate::digest::Summing;
use crate::error::BackupError;
use crate::ranges::ranges;
use crate::store::Store;

/// Reads all of an object; an error unless size and SHA-256 are those that were written.
pub async fn read_back(store: &Store, path: &Path, written: &ObjectManifest) -> Result<(), BackupError> {
    let differs = |problem| {
        let (storage, object) = (store.name().to_owned(), path.to_string());
        Err(BackupError::ReadBack { storage, object, problem })
    };
    match store.size(path).await? {
        Some(size) if size == written.size => (),
        Some(size) => return differs(format!("it has {size} bytes, and {} were written", written.size)),
        None => return differs("it is not there".to_owned()),
    }
    let mut ranges = std::pin::pin!(ranges(store, path, written.size));
    let mut summing = Summing::default();
    while let Some(bytes) = ranges.try_next().await? {
        summing.update(&bytes);
    }
    let sum = summing.finish();
    if sum.sha256 == written.sha256 && sum.size == written.size {
        return Ok(());
    }
    differs(format!("its SHA-256 is {}, and {} was written", sum.sha256, written.sha256))
}
