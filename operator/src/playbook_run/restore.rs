//! What a run that brings a backup to the machines is given: what its `restoreRef` leads to, the identity that decrypts
//! the backup, the keys of the storage, and the cluster's own, which the backup must have, too.

use crds::backup::{IDENTITY_SECRET, PKI_SECRET};
use crds::etcd_restore::IDENTITY_KEY;
use crds::references::LocalRef;
use crds::step::{Intent, Step};
use crds::{BackupStorage, EtcdBackup, EtcdRestore, PlaybookRun};
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use kube::ResourceExt;
use plan::cluster_deployment::restoring::{identity, pending};
use plan::etcd_restore::storage_of;
use plan::inputs::RestoreSeen;
use plan::karmada_deployment::restore::installed_from;

use super::backup::of_storage;
use crate::backup_storage::look_up;
use crate::cluster_deployment::pki_owner;
use crate::context::Context;
use crate::error::{Error, ResultExt};
use crate::former::Former;
use crate::karmada_deployment;
use crate::live;
use crate::pki::material::Data;

/// What the run's `restoreRef` leads to, or, of an install, what its cluster or plane begins with; none: it has none,
/// or there is no such EtcdRestore.
pub(super) async fn seen(
    ctx: &Context,
    run: &PlaybookRun,
    former: Option<&Former>,
) -> Result<Option<RestoreSeen>, Error> {
    let namespace = run.namespace().unwrap_or_default();
    if run.spec.intent == Intent::Install && run.spec.steps.contains(&Step::StageBackup) {
        return match former.and_then(begun_with) {
            Some((storage, identity)) => of_install(ctx, &namespace, storage, identity).await.map(Some),
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

/// The storage and the identity of the backup that an install brings; none: it brings none.
fn begun_with(former: &Former) -> Option<(&LocalRef, Option<&LocalRef>)> {
    match former {
        Former::Cluster(deployment) => {
            let pending = pending(deployment)?;
            Some((&pending.storage_ref, identity(deployment, pending)))
        }
        Former::Plane(plane) => {
            let from = plane.spec.restore_from.as_ref()?;
            Some((&installed_from(plane)?.storage_ref, Some(&from.identity_ref)))
        }
    }
}

async fn of_install(
    ctx: &Context,
    namespace: &str,
    of_storage: &LocalRef,
    of_identity: Option<&LocalRef>,
) -> Result<RestoreSeen, Error> {
    let storage = live::get::<BackupStorage>(ctx, namespace, &of_storage.name).await?;
    let seen = match &storage {
        Some(storage) => look_up(ctx, storage).await?,
        None => Default::default(),
    };
    let identity = match of_identity {
        Some(reference) => live::get::<Secret>(ctx, namespace, &reference.name).await?,
        None => None,
    };
    Ok(RestoreSeen { restore: None, backup: None, storage, seen, identity })
}

/// The files of the run's Secret.
pub(super) async fn files(ctx: &Context, run: &PlaybookRun, former: &Former) -> Result<Data, Error> {
    let owner = match former {
        Former::Cluster(deployment) => pki_owner(deployment),
        Former::Plane(plane) => karmada_deployment::pki_owner(plane),
    };
    let keys = owner.find(ctx, &owner.keys_secret()).await?.and_then(|secret| secret.data).unwrap_or_default();
    let keys = serde_json::to_vec(&keys).doing(|| format!("write the keys of {}", owner.title()))?;
    let mut files = Data::from([(PKI_SECRET.to_owned(), ByteString(keys))]);
    if let Some(seen) = seen(ctx, run, Some(former)).await? {
        let identity = seen.identity.and_then(|secret| secret.data?.remove(IDENTITY_KEY));
        files.extend(identity.map(|identity| (IDENTITY_SECRET.to_owned(), identity)));
        files.extend(of_storage(seen.seen.credentials));
    }
    Ok(files)
}
