//! A backup that is read.

use crds::backup::BackupManifest;

use crate::error::BackupError;
use crate::identities::Identities;
use crate::location::Location;
use crate::manifest::verify;
use crate::store::Store;

/// A backup that is there with all that its manifest names, in the sizes that it says. What the objects hold is checked
/// when they are read.
pub struct Source<'a> {
    pub(crate) store: &'a Store,
    pub(crate) location: Location,
    pub(crate) identities: &'a Identities,
    manifest: BackupManifest,
}

impl<'a> Source<'a> {
    /// Reads the manifest at a location, and asks for the sizes. Errors: as those of [`verify`].
    pub async fn open(store: &'a Store, location: &str, identities: &'a Identities) -> Result<Self, BackupError> {
        let manifest = verify(store, location).await?;
        let location = Location::parse(location).map_err(|problem| BackupError::Corrupt {
            storage: store.name().to_owned(),
            location: location.to_owned(),
            problem,
        })?;
        Ok(Self { store, location, identities, manifest })
    }

    /// What it is.
    pub fn manifest(&self) -> &BackupManifest {
        &self.manifest
    }

    /// An error of this backup.
    pub fn corrupt(&self, problem: String) -> BackupError {
        let (storage, location) = (self.store.name().to_owned(), self.location.to_string());
        BackupError::Corrupt { storage, location, problem }
    }
}
