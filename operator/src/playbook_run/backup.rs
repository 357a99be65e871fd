//! What a run that takes a backup is given: what its `backupRef` leads to, a client's certificate of etcd, the keys of
//! the storage, and the files that are stored beside the snapshot.

mod host_access;

use crds::backup::{BUNDLE_PREFIX, ETCD_SECRETS, HOST_KUBECONFIG_SECRET, STORAGE_PREFIX, STORAGE_SECRETS};
use crds::{BackupStorage, ClusterDeployment, EtcdBackup, KarmadaDeployment, MachineSet, PlaybookRun};
use jiff::Timestamp;
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use kube::{Resource, ResourceExt};
use plan::inputs::{BackupSeen, PlaneSeen, etcd_client_values, etcd_without_machine};
use plan::karmada_deployment::forwarding_host;
use plan::rotation::Subject;
use serde::Serialize;
use serde_json::json;

use crate::backup_storage::look_up;
use crate::cluster_deployment::pki_owner;
use crate::context::Context;
use crate::error::{Error, ResultExt};
use crate::karmada_deployment::pki_owner as plane_pki_owner;
use crate::live;
use crate::pki::authority::Leaf;
use crate::pki::material::Data;
use crate::pki::{self, PkiOwner};

/// What the run's `backupRef` leads to; none: it has none, or there is no such EtcdBackup.
pub(super) async fn seen(
    ctx: &Context,
    run: &PlaybookRun,
    deployment: Option<&ClusterDeployment>,
) -> Result<Option<BackupSeen>, Error> {
    let namespace = run.namespace().unwrap_or_default();
    let Some(reference) = &run.spec.backup_ref else {
        return Ok(None);
    };
    let Some(backup) = live::get::<EtcdBackup>(ctx, &namespace, &reference.name).await? else {
        return Ok(None);
    };
    let storage = live::get::<BackupStorage>(ctx, &namespace, &backup.spec.storage_ref.name).await?;
    let seen = match &storage {
        Some(storage) => look_up(ctx, storage).await?,
        None => Default::default(),
    };
    let plane = match &backup.spec.karmada_deployment_ref {
        Some(reference) => plane_seen(ctx, &namespace, &reference.name).await?,
        None => None,
    };
    let mut found = BackupSeen { backup, storage, seen, plane, etcd_client: None };
    if let Some(secret) = etcd_without_machine(&found, deployment).and_then(|etcd| etcd.secret) {
        found.etcd_client = live::get::<Secret>(ctx, &namespace, secret).await?;
    }
    Ok(Some(found))
}

async fn plane_seen(ctx: &Context, namespace: &str, name: &str) -> Result<Option<PlaneSeen>, Error> {
    let Some(object) = live::get::<KarmadaDeployment>(ctx, namespace, name).await? else {
        return Ok(None);
    };
    let has_keys = pki::read(ctx, &plane_pki_owner(&object)).await?.is_some();
    let host_problem = host_access::problem(ctx, &object).await?;
    Ok(Some(PlaneSeen { object, has_keys, host_problem }))
}

/// The files of the run's Secret.
pub(super) async fn files(
    ctx: &Context,
    run: &PlaybookRun,
    deployment: Option<&ClusterDeployment>,
) -> Result<Data, Error> {
    let Some(seen) = seen(ctx, run, deployment).await? else {
        return Ok(Data::new());
    };
    let plane = seen.plane.as_ref().map(|plane| &plane.object);
    let owner = deployment.map(pki_owner).or_else(|| plane.map(plane_pki_owner));
    let secret = etcd_without_machine(&seen, deployment).and_then(|etcd| etcd.secret);
    let mut files = match (secret, &owner) {
        (Some(secret), _) => of_others(secret, seen.etcd_client.as_ref())?,
        (None, Some(owner)) => of_etcd(ctx, owner).await?,
        (None, None) => Data::new(),
    };
    if let Some(owner) = &owner {
        files.extend([in_bundle("pki.json", &keys(ctx, owner).await?)?]);
    }
    files.extend(match (deployment, plane) {
        (Some(deployment), _) => wanted_of_cluster(ctx, deployment).await?,
        (None, Some(plane)) => Data::from([in_bundle("karmadadeployment.json", &plain(plane))?]),
        (None, None) => Data::from([in_bundle("etcdbackup.json", &plain(&seen.backup))?]),
    });
    files.extend(of_storage(seen.seen.credentials));
    if let Some(plane) = plane.filter(|plane| forwarding_host(plane).is_some()) {
        files.insert(HOST_KUBECONFIG_SECRET.to_owned(), host_access::kubeconfig(ctx, plane).await?);
    }
    Ok(files)
}

/// How an etcd is spoken to that is on no machine of ours: by what its administrator gave.
fn of_others(name: &str, secret: Option<&Secret>) -> Result<Data, Error> {
    let values = etcd_client_values(name, secret);
    // It was looked at before the run began: only a change since then can be in the way.
    let values = values
        .map_err(|problem| std::io::Error::other(problem.message))
        .doing(|| "read the client certificate of etcd".into())?;
    Ok(ETCD_SECRETS.into_iter().map(str::to_owned).zip(values).collect())
}

/// The keys of a storage, by the Secret that has them.
pub(super) fn of_storage(credentials: Option<Secret>) -> impl Iterator<Item = (String, ByteString)> {
    let values = credentials.and_then(|secret| secret.data).unwrap_or_default();
    let wanted = values.into_iter().filter(|(key, _)| STORAGE_SECRETS.contains(&key.as_str()));
    wanted.map(|(key, value)| (format!("{STORAGE_PREFIX}{key}"), value))
}

/// A certificate of its own, which nothing else has, and etcd's authority.
async fn of_etcd(ctx: &Context, owner: &PkiOwner) -> Result<Data, Error> {
    let doing = || format!("make a certificate for the backup of {}", owner.title());
    let pki = pki::get(ctx, owner).await?;
    let authority = pki.authority(Subject::EtcdCa).doing(doing)?;
    let leaf = Leaf { common_name: "clusterwright-backup".into(), ..Leaf::default() };
    let client = authority.signer().issue(&leaf, owner.renewal.validity, Timestamp::now()).doing(doing)?;
    let contents = [authority.trusted(), client.certificate, client.key];
    let files = ETCD_SECRETS.into_iter().zip(contents);
    Ok(files.map(|(name, content)| (name.to_owned(), ByteString(content.into()))).collect())
}

/// The Secret with the authorities and keys, without an owner: that is how it is taken over by the object that it is
/// restored for.
async fn keys(ctx: &Context, owner: &PkiOwner) -> Result<serde_json::Value, Error> {
    let name = owner.keys_secret();
    let keys = owner.find(ctx, &name).await?.unwrap_or_default();
    Ok(json!({
        "apiVersion": "v1", "kind": "Secret", "type": "Opaque", "metadata": { "name": name }, "data": keys.data
    }))
}

/// What was wanted of a cluster.
async fn wanted_of_cluster(ctx: &Context, deployment: &ClusterDeployment) -> Result<Data, Error> {
    let namespace = deployment.namespace().unwrap_or_default();
    let name = deployment.name_any();
    let sets = live::machine_sets(ctx, &namespace, &name).await?;
    let sets: Vec<_> = sets.iter().map(|set| plain::<MachineSet>(set)).collect();
    let objects = [
        ("clusterdeployment.json", plain(deployment)),
        ("machinesets.json", json!({ "apiVersion": "v1", "kind": "List", "items": sets })),
    ];
    objects.iter().map(|(file, object)| in_bundle(file, object)).collect()
}

/// A file of the bundle.
fn in_bundle(file: &str, object: &serde_json::Value) -> Result<(String, ByteString), Error> {
    let text = serde_json::to_vec_pretty(object).doing(|| format!("write {file} of the backup"))?;
    Ok((format!("{BUNDLE_PREFIX}{file}"), ByteString(text)))
}

/// An object without what only its API server has a use for.
fn plain<K: Resource<DynamicType = ()> + Clone + Serialize>(object: &K) -> serde_json::Value {
    let mut object = object.clone();
    let meta = object.meta_mut();
    (meta.managed_fields, meta.resource_version) = (None, None);
    json!(object)
}

#[cfg(test)]
mod tests {
    use crds::MachineSet;

    use super::plain;

    #[test]
    fn what_is_kept_of_an_object_can_be_applied_elsewhere() {
        let set = serde_json::json!({
            "apiVersion": "clusterwright.dev/v1alpha1", "kind": "MachineSet",
            "metadata": { "name": "s", "uid": "u", "resourceVersion": "7", "managedFields": [{ "manager": "x" }] },
            "spec": { "clusterName": "paris", "role": "worker", "replicas": 2, "kubernetesVersion": "1.35.4" }
        });
        let set: MachineSet = serde_json::from_value(set).unwrap();
        let kept = plain(&set);
        assert_eq!(kept["metadata"], serde_json::json!({ "name": "s", "uid": "u" }));
        assert_eq!((kept["kind"].as_str(), kept["spec"]["replicas"].as_i64()), (Some("MachineSet"), Some(2)));
    }
}
