//! The backups that are in a storage.

use std::collections::BTreeMap;

use crds::backup::{BackupManifest, MANIFEST_FILE};
use futures::{StreamExt, TryStreamExt};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use crate::error::BackupError;
use crate::location::Location;
use crate::store::Store;

/// Manifests that are read at the same time.
const AT_ONCE: usize = 8;
/// Manifests that are read at most in search of the newest.
const MOST: usize = 32;

/// What is in a storage.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Found {
    /// Backups: locations that have a manifest, whatever it says.
    pub backups: u64,
    /// Bytes of their objects.
    pub size: u64,
    /// Location and completion of the one that was completed last. None where there is no backup, or none of the 32
    /// that were written last has a manifest that can be read.
    pub newest: Option<(String, Time)>,
}

/// What a listing shows of a location.
#[derive(Default)]
struct Listed {
    size: u64,
    /// When the storage got the manifest, in seconds since 1970.
    manifest: Option<i64>,
}

/// Lists the backups of a storage, at whatever depth. Manifests that cannot be read count as backups. Of those that
/// were written last, a few are read: which is newest they say themselves, also where the storage was copied.
pub async fn list(store: &Store) -> Result<Found, BackupError> {
    let mut locations: BTreeMap<Location, Listed> = BTreeMap::new();
    let mut objects = store.list(None).await?;
    while let Some(object) = objects.try_next().await? {
        let Some(location) = Location::containing(&object.location) else { continue };
        let listed = locations.entry(location).or_default();
        listed.size += object.size;
        if object.location.filename() == Some(MANIFEST_FILE) {
            listed.manifest = Some(object.last_modified.timestamp());
        }
    }
    let mut backups: Vec<(i64, Location)> = Vec::new();
    let mut size = 0;
    for (location, listed) in locations {
        if let Some(written) = listed.manifest {
            size += listed.size;
            backups.push((written, location));
        }
    }
    backups.sort_by_key(|(written, _)| std::cmp::Reverse(*written));
    Ok(Found { backups: backups.len() as u64, size, newest: newest(store, &backups).await })
}

/// The newest by what the manifests say: of the first eight that can be read.
async fn newest(store: &Store, latest: &[(i64, Location)]) -> Option<(String, Time)> {
    for some in latest[..latest.len().min(MOST)].chunks(AT_ONCE) {
        let read = some.iter().map(|(_, location)| completed_at(store, location));
        let read: Vec<_> =
            futures::stream::iter(read).buffer_unordered(AT_ONCE).filter_map(std::future::ready).collect().await;
        if let Some((location, time)) = read.into_iter().max_by_key(|(_, time)| *time) {
            return Some((location.to_string(), Time(time)));
        }
    }
    None
}

async fn completed_at<'a>(store: &Store, location: &'a Location) -> Option<(&'a Location, Timestamp)> {
    let read = match store.get(&location.object(MANIFEST_FILE)).await {
        Ok(Some(text)) => BackupManifest::parse(&text).map_err(|error| error.to_string()),
        Ok(None) => Err("it was removed".to_owned()),
        Err(error) => Err(error.to_string()),
    };
    match read {
        Ok(manifest) => Some((location, manifest.completed_at.0)),
        Err(problem) => {
            tracing::warn!(storage = store.name(), %location, problem, "a backup's manifest cannot be read");
            None
        }
    }
}
