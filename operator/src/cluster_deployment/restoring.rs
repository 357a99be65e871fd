//! The backup that a cluster begins with: what is observed of it and of its keys, and how they get into the cluster's
//! Secret. What fetches them may write one Secret that is there for nothing else; the cluster's own is made from it
//! here, once it is known to hold keys.

use std::sync::Arc;

use crds::names::{fetched_keys_secret, label, pki_secret};
use crds::{ClusterDeployment, Machine};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Secret;
use kube::ResourceExt;
use plan::cluster_deployment::key_transfer::{KeyTransfer, KeysSeen, RestoringSeen};
use plan::cluster_deployment::pki::TABLE;
use plan::cluster_deployment::restoring::{pending, restored_from};

use super::pki_owner;
use crate::backup_storage::look_up;
use crate::context::Context;
use crate::error::{Error, ResultExt};
use crate::owned::{drop_owned, owned_by};
use crate::pki::Pki;
use crate::pki::material::Data;
use crate::{execute, executor_job, live, permission};

/// What is known; nothing of a cluster that begins without a backup, or stands.
pub(super) async fn seen(ctx: &Context, deployment: &ClusterDeployment) -> Result<RestoringSeen, Error> {
    let (namespace, name) = (deployment.namespace().unwrap_or_default(), deployment.name_any());
    let Some(from) = &deployment.spec.restore_from else {
        return Ok(RestoringSeen::default());
    };
    if restored_from(deployment).is_some_and(|known| known.restored_at.is_some()) {
        return Ok(RestoringSeen::default());
    }
    let backup = from.source.backup_ref.as_ref();
    let backup = backup.and_then(|backup| ctx.cache.etcd_backups.get(&namespace, &backup.name));
    let storage = from.source.storage(backup.as_deref());
    let storage = storage.and_then(|storage| ctx.cache.backup_storages.get(&namespace, &storage.name));
    let looked_up = match &storage {
        Some(storage) => look_up(ctx, storage).await?,
        None => Default::default(),
    };
    let identity = &from.identity_ref.name;
    let identity = plan::inputs::identity(identity, live::get(ctx, &namespace, identity).await?.as_ref());
    let former = pending(deployment).map(|pending| ctx.cache.machines.of_cluster(&namespace, &pending.cluster));
    let former: Vec<Arc<Machine>> = former.unwrap_or_default();
    Ok(RestoringSeen {
        image: ctx.settings.executor_image.clone(),
        backup: backup.map(Arc::unwrap_or_clone),
        storage: storage.map(Arc::unwrap_or_clone),
        seen: looked_up,
        identity: identity.is_ok(),
        jobs: live::labelled(ctx, &namespace, label::RESTORE_FROM, &name).await?,
        pods: live::labelled(ctx, &namespace, label::RESTORE_FROM, &name).await?,
        keys: keys(ctx, deployment).await?,
        former: former.into_iter().map(Arc::unwrap_or_clone).collect(),
    })
}

/// How far the keys are.
async fn keys(ctx: &Context, deployment: &ClusterDeployment) -> Result<KeysSeen, Error> {
    let Some(fetched) = fetched(ctx, deployment).await? else {
        return Ok(KeysSeen::Absent);
    };
    let name = deployment.name_any();
    if let Err(error) = Pki::from_data(TABLE, &fetched_keys_secret(&name), &fetched) {
        return Ok(KeysSeen::Unusable(error.to_string()));
    }
    let own = pki_owner(deployment).find(ctx, &pki_secret(&name)).await?.map(|secret| secret.data.unwrap_or_default());
    Ok(match own {
        None => KeysSeen::Fetched,
        Some(own) if own == fetched => KeysSeen::InPlace,
        Some(_) => KeysSeen::Differ,
    })
}

/// What the Job has written.
async fn fetched(ctx: &Context, deployment: &ClusterDeployment) -> Result<Option<Data>, Error> {
    let secret = pki_owner(deployment).find(ctx, &fetched_keys_secret(&deployment.name_any())).await?;
    let data = secret.filter(|secret| owned_by(secret, deployment.uid().as_deref())).and_then(|secret| secret.data);
    Ok(data.filter(|data| !data.is_empty()))
}

/// Makes what fetches the keys: the right to write them before the Job that uses it.
pub(super) async fn fetch(ctx: &Context, transfer: &KeyTransfer) -> Result<(), Error> {
    execute::create_ours(ctx, &transfer.secret).await?;
    permission::permit(ctx, &transfer.permission).await?;
    executor_job::create(ctx, &transfer.job).await
}

/// Makes the cluster's keys of what was fetched, unless there are some.
pub(super) async fn take(ctx: &Context, deployment: &ClusterDeployment) -> Result<(), Error> {
    let name = deployment.name_any();
    let Some(data) = fetched(ctx, deployment).await? else {
        return Ok(());
    };
    let keys = Pki::from_data(TABLE, &fetched_keys_secret(&name), &data);
    keys.doing(|| format!("read the keys that were fetched for cluster {name}"))?;
    let secret = pki_owner(deployment).secret(&pki_secret(&name), data);
    // One that is there meanwhile counts; whether it is the same is seen next.
    execute::create_once(ctx, &secret).await.map(drop)
}

/// Removes what fetched the keys: the right first.
pub(super) async fn discard(ctx: &Context, deployment: &ClusterDeployment) -> Result<(), Error> {
    let (namespace, name) = (deployment.namespace().unwrap_or_default(), deployment.name_any());
    let (fetched, uid) = (fetched_keys_secret(&name), deployment.uid());
    permission::withdraw(ctx, &namespace, &fetched, uid.as_deref()).await?;
    let jobs: Vec<Job> = live::labelled(ctx, &namespace, label::RESTORE_FROM, &name).await?;
    for job in jobs.iter().filter(|job| owned_by(*job, uid.as_deref())) {
        execute::delete(ctx, job, None).await?;
    }
    drop_owned::<Secret>(ctx, &namespace, &fetched, uid.as_deref()).await
}
