//! A backup of a Karmada plane into a volume of the metadata cluster, read without us.

use std::time::Duration;

use age::x25519::Identity;
use anyhow::{Result, ensure};
use serde_json::json;

use crate::backups::{self, Drill};
use crate::scenario::Scenario;
use crate::volume::Volume;

/// Its BackupStorage, in the namespace of the story.
pub const STORAGE: &str = "volume";
/// What a client of the plane writes all the time.
const WRITTEN: &str = "/registry/configmaps/default/written";
/// A storage is looked at.
const SEEN: Duration = Duration::from_secs(120);

/// A backup of a plane.
pub struct PlaneBackup {
    /// Where it is kept.
    pub volume: Volume,
    /// Its directory there.
    pub location: String,
    /// What decrypts it.
    pub identity: Identity,
}

/// Backs the plane up. What it has is what a client has written, and a bundle of these files with the plane's keys.
pub async fn take(scenario: &Scenario, plane: &str, files: &[&str]) -> Result<PlaneBackup> {
    let volume = Volume::make(scenario, "backups").await?;
    let storage = json!({
        "apiVersion": "clusterwright.dev/v1alpha1", "kind": "BackupStorage",
        "metadata": {"namespace": scenario.name, "name": STORAGE}, "spec": {"volume": {"claimName": "backups"}},
    });
    scenario.apply(&storage).await?;
    backups::storage_is(scenario, STORAGE, "True", SEEN).await?;
    let (identity, of) = (Identity::generate(), json!({"karmadaDeploymentRef": {"name": plane}}));
    let content = backups::take_of(scenario, "first", of, STORAGE, &identity).await?;
    let scratch = tempfile::tempdir()?;
    let snapshot = scratch.path().join("snapshot.db");
    backups::read_with(&volume.path(), &content, &identity, &snapshot, files)?;
    let drill = Drill::start(&snapshot, scratch.path())?;
    ensure!(drill.has(WRITTEN).await?, "what was written is not there");
    scenario.say(&format!("{} keys are backed up at {}", content.keys, content.location));
    Ok(PlaneBackup { volume, location: content.location, identity })
}
