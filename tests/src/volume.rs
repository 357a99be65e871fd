//! A PersistentVolume of the metadata cluster, which is a directory of this machine, and its claim in a namespace.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Result;
use k8s_openapi::api::core::v1::PersistentVolume;
use kube::api::{Api, DeleteParams};
use lab::metadata::NODES;
use serde_json::json;
use tempfile::TempDir;

use crate::eventually::{Look, eventually};
use crate::scenario::Scenario;

/// A volume; its objects are removed by [`Volume::remove`].
pub struct Volume {
    name: String,
    directory: TempDir,
}

impl Volume {
    /// Makes the volume and a claim of that name.
    pub async fn make(scenario: &Scenario, claim: &str) -> Result<Self> {
        let volume = Self { name: format!("{}-{claim}", scenario.name), directory: tempfile::tempdir()? };
        // One that an earlier run left is bound to a claim that is gone.
        volume.delete(scenario).await?;
        let (node, _) = NODES[0];
        let capacity = json!({ "storage": "1Gi" });
        scenario
            .apply(&json!({
                "apiVersion": "v1", "kind": "PersistentVolume", "metadata": { "name": volume.name },
                "spec": {
                    "capacity": capacity, "accessModes": ["ReadWriteOnce"], "persistentVolumeReclaimPolicy": "Retain",
                    "storageClassName": "", "local": { "path": volume.directory.path() },
                    "claimRef": { "namespace": scenario.name, "name": claim },
                    "nodeAffinity": { "required": { "nodeSelectorTerms": [{ "matchExpressions": [
                        { "key": "kubernetes.io/hostname", "operator": "In", "values": [node] }
                    ] }] } }
                }
            }))
            .await?;
        scenario
            .apply(&json!({
                "apiVersion": "v1", "kind": "PersistentVolumeClaim",
                "metadata": { "namespace": scenario.name, "name": claim },
                "spec": {
                    "accessModes": ["ReadWriteOnce"], "storageClassName": "", "volumeName": volume.name,
                    "resources": { "requests": capacity }
                }
            }))
            .await?;
        Ok(volume)
    }

    /// What is in it.
    pub fn path(&self) -> PathBuf {
        Path::new(self.directory.path()).to_owned()
    }

    /// Removes the volume's object; the claim goes with its namespace.
    pub async fn remove(self, scenario: &Scenario) -> Result<()> {
        self.delete(scenario).await
    }

    async fn delete(&self, scenario: &Scenario) -> Result<()> {
        let api: Api<PersistentVolume> = Api::all(scenario.client.clone());
        if api.get_opt(&self.name).await?.is_none() {
            return Ok(());
        }
        api.delete(&self.name, &DeleteParams::default()).await?;
        // Its protection holds it while it is bound to a claim.
        let free = json!({ "metadata": { "finalizers": null } });
        let _ = api.patch(&self.name, &Default::default(), &kube::api::Patch::Merge(&free)).await;
        eventually("the old PersistentVolume is gone", Duration::from_secs(20), async || {
            Ok(match api.get_opt(&self.name).await? {
                None => Look::Done(()),
                Some(_) => Look::Waiting("it is there".into()),
            })
        })
        .await
    }
}
