//! Removes what is at a location.

use std::time::Duration;

use crds::backup::{BackupManifest, MANIFEST_FILE};
use futures::TryStreamExt;
use tokio::runtime::Handle;
use tokio::time::timeout;

use crate::error::{BackupError, StorageFailure};
use crate::location::Location;
use crate::store::Store;

/// How long a backup that failed waits for what it left to be removed.
const CLEAN: Duration = Duration::from_secs(10);

/// Removes the backup at a location: the manifest first, so that it is no backup any more whatever happens then, and
/// the other objects in it. One that is not there is removed already. Of a directory also what no listing shows: files
/// of writes that were cut off. A location with other directories in it is that of no backup, and is refused.
pub async fn remove(store: &Store, location: &str) -> Result<(), BackupError> {
    let parsed = Location::parse(location)
        .map_err(|problem| store.failed(format!("delete {location:?}"), StorageFailure::Rejected, problem))?;
    remove_all(store, &parsed).await
}

/// The same for the backup of an EtcdBackup, by its name: where the manifest is that of another one, or none that this
/// version reads, nothing is touched.
pub async fn remove_backup(store: &Store, location: &str, backup: &str) -> Result<(), BackupError> {
    let refused = |problem| store.failed(format!("delete {location:?}"), StorageFailure::Rejected, problem);
    let parsed = Location::parse(location).map_err(refused)?;
    if let Some(text) = store.get(&parsed.object(MANIFEST_FILE)).await? {
        let manifest = BackupManifest::parse(&text).map_err(|error| refused(format!("{MANIFEST_FILE}: {error}")))?;
        if manifest.backup != backup {
            let problem = format!("it is the backup of EtcdBackup {}, and not of {backup}", manifest.backup);
            return Err(refused(problem));
        }
    }
    remove_all(store, &parsed).await
}

async fn remove_all(store: &Store, location: &Location) -> Result<(), BackupError> {
    let objects: Vec<_> = store.list(Some(location.path())).await?.try_collect().await?;
    if let Some(deeper) =
        objects.iter().find(|object| Location::containing(&object.location).as_ref() != Some(location))
    {
        let problem = format!("it is that of no backup: it has {} below it", deeper.location);
        return Err(store.failed(format!("delete {location}"), StorageFailure::Rejected, problem));
    }
    store.delete(&location.object(MANIFEST_FILE)).await?;
    for object in objects {
        store.delete(&object.location).await?;
    }
    store.delete_directory(location).await
}

/// A backup that is being taken: dropped before it was kept, what was stored of it is removed.
pub struct Unfinished {
    store: Store,
    /// None once it is clear what becomes of it.
    location: Option<Location>,
}

impl Unfinished {
    /// Nothing is stored yet.
    pub fn new(store: &Store, location: &Location) -> Self {
        Self { store: store.clone(), location: Some(location.clone()) }
    }

    /// Leaves it as it is.
    pub fn keep(mut self) {
        self.location = None;
    }

    /// Removes it, for 10 s at most. That this failed is reported in the log.
    pub async fn clean(mut self) {
        if let Some(location) = self.location.take() {
            clean(&self.store, &location).await;
        }
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        if let (Some(location), Ok(runtime)) = (self.location.take(), Handle::try_current()) {
            let store = self.store.clone();
            runtime.spawn(async move { clean(&store, &location).await });
        }
    }
}

async fn clean(store: &Store, location: &Location) {
    let problem = match timeout(CLEAN, remove_all(store, location)).await {
        Ok(Ok(())) => return,
        Ok(Err(error)) => error.to_string(),
        Err(_) => format!("no answer within {} s", CLEAN.as_secs()),
    };
    tracing::warn!(storage = store.name(), %location, problem, "failed to remove what is left of an unfinished backup");
}
