//! What a run that brings a backup to the machines is given: what its `restoreRef` leads to, the identity that decrypts
//! the backup, the keys of the storage, and the cluster's own, which the backup must have, too.

use crds::backup::{IDENTITY_SECRET, PKI_SECRET};
use crds::cluster_deployment::RestoredFrom;
use crds::etcd_restore::IDENTITY_KEY;
use crds::step::{Intent, Step};
use crds::{BackupStorage, ClusterDeployment, EtcdBackup, EtcdRestore, PlaybookRun};
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use kube::ResourceExt;
use plan::cluster_deployment::restoring::{identity, pending};
use plan::etcd_restore::storage_of;
use plan::inputs::RestoreSeen;

use super::backup::of_storage;
use crate::backup_storage::look_up;
use crate::cluster_deployment::pki_owner;
use crate::context::Context;
use crate::error::{Error, ResultExt};
use crate::live;
use crate::pki::material::Data;

/// What the run's `restoreRef` leads to, or, of an install, what its cluster begins with; none: it has none, or there
/// is no such EtcdRestore.
pub(super) async fn seen(
    ctx: &Context,
    run: &PlaybookRun,
    deployment: Option<&ClusterDeployment>,
) -> Result<Option<RestoreSeen>, Error> {
    let namespace = run.namespace().unwrap_or_default();
    if run.spec.intent == Intent::Install && run.spec.steps.contains(&Step::StageBackup) {
        return match deployment.and_then(|deployment| Some((deployment, pending(deployment)?))) {
            Some((deployment, pending)) => of_install(ctx, deployment, pending).await.map(Some),
            None => Ok(None),
        };
    }
    let Some(reference) = &run.spec.restore_ref else {
        return Ok(None);
    };
    let Some(restore) = live::get::<EtcdRestore>(ctx, &namespace, &reference.name).await? else {
        return Ok(None);
    };
    let backup = match &restore.spec.source.backup_ref {
        Some(backup) => live::get::<EtcdBackup>(ctx, &namespace, &backup.name).await?,
        None => None,
    };
    let storage = match storage_of(&restore, backup.as_ref()) {
        Some(name) => live::get::<BackupStorage>(ctx, &namespace, name).await?,
        None => None,
    };
    let seen = match &storage {
        Some(storage) => look_up(ctx, storage).await?,
        None => Default::default(),
    };
    let identity = live::get::<Secret>(ctx, &namespace, &restore.spec.identity_ref.name).await?;
    Ok(Some(RestoreSeen { restore: Some(restore), backup, storage, seen, identity }))
}

async fn of_install(
    ctx: &Context,
    deployment: &ClusterDeployment,
    pending: &RestoredFrom,
) -> Result<RestoreSeen, Error> {
    let namespace = deployment.namespace().unwrap_or_default();
    let storage = live::get::<BackupStorage>(ctx, &namespace, &pending.storage_ref.name).await?;
    let seen = match &storage {
        Some(storage) => look_up(ctx, storage).await?,
        None => Default::default(),
    };
    let identity = match identity(deployment, pending) {
        Some(reference) => live::get::<Secret>(ctx, &namespace, &reference.name).await?,
        None => None,
    };
    Ok(RestoreSeen { restore: None, backup: None, storage, seen, identity })
}

/// The files of the run's Secret.
pub(super) async fn files(ctx: &Context, run: &PlaybookRun, deployment: &ClusterDeployment) -> Result<Data, Error> {
    let owner = pki_owner(deployment);
    let keys = owner.find(ctx, &owner.keys_secret()).await?.and_then(|secret| secret.data).unwrap_or_default();
    let keys = serde_json::to_vec(&keys).doing(|| format!("write the keys of {}", owner.title()))?;
    let mut files = Data::from([(PKI_SECRET.to_owned(), ByteString(keys))]);
    if let Some(seen) = seen(ctx, run, Some(deployment)).await? {
        let identity = seen.identity.and_then(|secret| secret.data?.remove(IDENTITY_KEY));
        files.extend(identity.map(|identity| (IDENTITY_SECRET.to_owned(), identity)));
        files.extend(of_storage(seen.seen.credentials));
    }
    Ok(files)
}
