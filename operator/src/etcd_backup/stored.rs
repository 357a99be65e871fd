//! What the controller of backups reads, and does not watch, of one that is verified or removed: its Jobs, and what its
//! references lead to.

use crds::etcd_backup::VerifyMethod;
use crds::names::label;
use crds::{BackupStorage, ClusterDeployment, EtcdBackup};
use jiff::Timestamp;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{Pod, Secret};
use kube::ResourceExt;
use plan::etcd_backup::is_verified_now;
use plan::inputs::artifacts::ArtifactsSeen;
use plan::inputs::{InputsProblem, StorageSeen};

use crate::backup_storage::look_up;
use crate::context::Context;
use crate::error::Error;
use crate::live;
use crate::playbook_run::inputs::artifacts_seen;

/// What is read of a backup that is verified or removed.
pub(super) struct Stored {
    pub seen: StorageSeen,
    pub identity: Option<Secret>,
    pub artifacts: Result<ArtifactsSeen, InputsProblem>,
    pub jobs: Vec<Job>,
    pub pods: Vec<Pod>,
}

impl Default for Stored {
    fn default() -> Self {
        Self {
            seen: StorageSeen::default(),
            identity: None,
            artifacts: Ok(ArtifactsSeen::default()),
            jobs: Vec::new(),
            pods: Vec::new(),
        }
    }
}

impl Stored {
    /// Nothing where it is neither verified nor removed now.
    pub async fn look_up(
        ctx: &Context,
        backup: &EtcdBackup,
        storage: Option<&BackupStorage>,
        deployment: Option<&ClusterDeployment>,
        now: Timestamp,
    ) -> Result<Self, Error> {
        if backup.metadata.deletion_timestamp.is_none() && !is_verified_now(backup, now) {
            return Ok(Self::default());
        }
        let (namespace, name) = (backup.namespace().unwrap_or_default(), backup.name_any());
        let mut stored = Self {
            jobs: live::labelled(ctx, &namespace, label::BACKUP, &name).await?,
            pods: live::labelled(ctx, &namespace, label::BACKUP, &name).await?,
            ..Self::default()
        };
        if let Some(storage) = storage {
            stored.seen = look_up(ctx, storage).await?;
        }
        let Some(verify) = &backup.spec.verify else {
            return Ok(stored);
        };
        if let Some(reference) = &verify.identity_ref {
            stored.identity = live::get::<Secret>(ctx, &namespace, &reference.name).await?;
        }
        let source = deployment.and_then(|deployment| deployment.spec.artifacts.as_ref());
        if let Some(source) = source.filter(|_| verify.how == VerifyMethod::Restore) {
            stored.artifacts = artifacts_seen(ctx, &namespace, source).await?;
        }
        Ok(stored)
    }
}
