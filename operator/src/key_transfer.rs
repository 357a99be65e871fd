//! The keys of the backup that a cluster, or a Karmada control plane, begins with or is set back to: what is observed
//! of them, and how they get into the object's Secret. What fetches them may write one Secret that is there for nothing
//! else; the object's own is made from it here, once it is known to hold keys.

use crds::backup::SNAPSHOT_KEY;
use crds::cluster_deployment::RestoreFrom;
use crds::names::{fetched_keys_secret, label};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Secret;
use plan::key_transfer::{KeyTransfer, KeysSeen, RestoringSeen, SnapshotKey};
use plan::rotation::Subject;

use crate::backup_storage::look_up;
use crate::context::Context;
use crate::error::{Error, ResultExt};
use crate::owned::{drop_owned, owned_by};
use crate::pki::material::Data;
use crate::pki::{Pki, PkiOwner};
use crate::{execute, executor_job, live, permission};

/// What is known of the backup and of its keys, which are to become the object's.
pub(crate) async fn seen(ctx: &Context, owner: &PkiOwner, from: &RestoreFrom) -> Result<RestoringSeen, Error> {
    look(ctx, owner, from, |_, own, fetched| own == fetched).await
}

/// The same for an object whose keys stay: what is in the backup has to be encrypted with one of them. Its authorities,
/// and whom they trust, may be others.
pub(crate) async fn seen_in_place(ctx: &Context, owner: &PkiOwner, from: &RestoreFrom) -> Result<RestoringSeen, Error> {
    look(ctx, owner, from, decrypts).await
}

fn decrypts(owner: &PkiOwner, own: &Data, fetched: &Data) -> bool {
    let keys = |data: &Data| {
        let pki = Pki::from_data(owner.table, &owner.keys_secret(), data).ok()?;
        Some(pki.seen().rings.remove(&Subject::EncryptionKey)?.trusted)
    };
    keys(own).zip(keys(fetched)).is_some_and(|(own, fetched)| fetched.is_subset(&own))
}

async fn look(
    ctx: &Context,
    owner: &PkiOwner,
    from: &RestoreFrom,
    fits: fn(&PkiOwner, &Data, &Data) -> bool,
) -> Result<RestoringSeen, Error> {
    let (namespace, name) = (&owner.namespace, &owner.name);
    let backup = from.source.backup_ref.as_ref();
    let backup = backup.and_then(|backup| ctx.cache.etcd_backups.get(namespace, &backup.name));
    let storage = from.source.storage(backup.as_deref());
    let storage = storage.and_then(|storage| ctx.cache.backup_storages.get(namespace, &storage.name));
    let looked_up = match &storage {
        Some(storage) => look_up(ctx, storage).await?,
        None => Default::default(),
    };
    let identity = &from.identity_ref.name;
    let identity = plan::inputs::identity(identity, live::get(ctx, namespace, identity).await?.as_ref());
    let fetched = fetched(ctx, owner).await?;
    let snapshot_key = fetched.as_ref().and_then(|fetched| fetched.get(SNAPSHOT_KEY));
    Ok(RestoringSeen {
        image: ctx.settings.executor_image.clone(),
        backup: backup.map(std::sync::Arc::unwrap_or_clone),
        storage: storage.map(std::sync::Arc::unwrap_or_clone),
        seen: looked_up,
        identity: identity.is_ok(),
        jobs: live::labelled(ctx, namespace, label::RESTORE_FROM, name).await?,
        pods: live::labelled(ctx, namespace, label::RESTORE_FROM, name).await?,
        snapshot_key: snapshot_key.map(|key| SnapshotKey(key.0.clone())),
        keys: keys(ctx, owner, fetched, fits).await?,
        former: Vec::new(),
    })
}

/// How far the keys are.
async fn keys(
    ctx: &Context,
    owner: &PkiOwner,
    fetched: Option<Data>,
    fits: fn(&PkiOwner, &Data, &Data) -> bool,
) -> Result<KeysSeen, Error> {
    let Some(fetched) = fetched else {
        return Ok(KeysSeen::Absent);
    };
    let fetched = without_snapshot(fetched);
    if let Err(error) = Pki::from_data(owner.table, &fetched_keys_secret(&owner.name), &fetched) {
        return Ok(KeysSeen::Unusable(error.to_string()));
    }
    let own = owner.find(ctx, &owner.keys_secret()).await?.map(|secret| secret.data.unwrap_or_default());
    Ok(match own {
        None => KeysSeen::Fetched,
        Some(own) if fits(owner, &own, &fetched) => KeysSeen::InPlace,
        Some(_) => KeysSeen::Differ,
    })
}

/// What the Job has written.
async fn fetched(ctx: &Context, owner: &PkiOwner) -> Result<Option<Data>, Error> {
    let secret = owner.find(ctx, &fetched_keys_secret(&owner.name)).await?;
    let data = secret.filter(|secret| owned_by(secret, uid(owner))).and_then(|secret| secret.data);
    Ok(data.filter(|data| !data.is_empty()))
}

/// The key of the snapshot is none of the object's.
fn without_snapshot(mut fetched: Data) -> Data {
    fetched.remove(SNAPSHOT_KEY);
    fetched
}

fn uid(owner: &PkiOwner) -> Option<&str> {
    owner.reference.as_ref().map(|owner| owner.uid.as_str())
}

/// Makes what fetches the keys: the right to write them before the Job that uses it.
pub(crate) async fn fetch(ctx: &Context, transfer: &KeyTransfer) -> Result<(), Error> {
    execute::create_ours(ctx, &transfer.secret).await?;
    permission::permit(ctx, &transfer.permission).await?;
    executor_job::create(ctx, &transfer.job).await
}

/// Makes the object's keys of what was fetched, unless there are some.
pub(crate) async fn take(ctx: &Context, owner: &PkiOwner) -> Result<(), Error> {
    let Some(data) = fetched(ctx, owner).await?.map(without_snapshot) else {
        return Ok(());
    };
    let keys = Pki::from_data(owner.table, &fetched_keys_secret(&owner.name), &data);
    keys.doing(|| format!("read the keys that were fetched for {}", owner.title()))?;
    let secret = owner.secret(&owner.keys_secret(), data);
    // One that is there meanwhile counts; whether it is the same is seen next.
    execute::create_once(ctx, &secret).await.map(drop)
}

/// Removes what fetched the keys: the right first.
pub(crate) async fn discard(ctx: &Context, owner: &PkiOwner) -> Result<(), Error> {
    let (namespace, fetched) = (&owner.namespace, fetched_keys_secret(&owner.name));
    permission::withdraw(ctx, namespace, &fetched, uid(owner)).await?;
    let jobs: Vec<Job> = live::labelled(ctx, namespace, label::RESTORE_FROM, &owner.name).await?;
    for job in jobs.iter().filter(|job| owned_by(*job, uid(owner))) {
        execute::delete(ctx, job, None).await?;
    }
    drop_owned::<Secret>(ctx, namespace, &fetched, uid(owner)).await
}

#[cfg(test)]
mod tests {
    use crds::KarmadaDeployment;
    use plan::encryption::Scheme;
    use plan::karmada_deployment::pki::TABLE;
    use plan::rotation::{Move, Subject};
    use serde_json::json;

    use super::decrypts;
    use crate::karmada_deployment::pki_owner;
    use crate::pki::Pki;

    #[test]
    fn what_is_encrypted_with_a_key_of_the_plane_is_read_whatever_became_of_its_authorities() {
        let object: KarmadaDeployment = serde_json::from_value(json!({
            "apiVersion": "clusterwright.dev/v1alpha1", "kind": "KarmadaDeployment",
            "metadata": { "name": "k1", "namespace": "fleet", "uid": "u1" },
            "spec": { "version": "1.18.2", "crds": { "bundle": { "url": "https://bundle.example.com" } } }
        }))
        .unwrap();
        let (owner, now) = (pki_owner(&object), "2026-11-27T00:00:00Z".parse().unwrap());
        let made = || Pki::generate(TABLE, &Scheme::default(), now).unwrap();
        let rotated = |pki: &Pki, subject: Subject, moves: &[Move]| {
            let scheme = Scheme::default();
            let next = |pki: Pki, next: &Move| pki.rotated(subject, *next, &scheme, now).unwrap();
            moves.iter().fold(pki.clone(), next)
        };
        let (backup, whole) = (made(), [Move::Begin(1), Move::Sign, Move::Complete]);
        let check = |own: &Pki, expected: bool| assert_eq!(decrypts(&owner, &own.data(), &backup.data()), expected);
        check(&backup, true);
        let others = rotated(&rotated(&backup, Subject::Ca, &whole), Subject::ServiceAccountKey, &whole);
        assert_ne!(others.data(), backup.data());
        check(&others, true);
        check(&rotated(&backup, Subject::EncryptionKey, &whole[..2]), true);
        check(&rotated(&backup, Subject::EncryptionKey, &whole), false);
        check(&made(), false);
        assert!(!decrypts(&owner, &backup.data(), &Default::default()));
    }
}
