//! Takes a backup.

use std::io;

use bytes::Bytes;
use crds::backup::{BUNDLE_FILE, BackupInputs, BackupManifest, FORMAT, ObjectManifest, SNAPSHOT_FILE};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use tokio::io::{AsyncRead, AsyncWrite};

use crate::bundle::{self, BundleFile};
use crate::channel::EtcdTls;
use crate::digest::{Sum, Summing};
use crate::encryption::Recipients;
use crate::error::{BackupError, EtcdFailure, StorageFailure};
use crate::location::Location;
use crate::manifest::{self, Outcome};
use crate::member::{Member, MemberState};
use crate::pace::Pace;
use crate::read_back::read_back;
use crate::remove::Unfinished;
use crate::snapshot::{Sink, object, store_snapshot};
use crate::store::Store;
use crate::upload::part_size;

/// A backup that is wanted.
pub struct Task<'a> {
    /// What it is to be: location, recipients, limit and names. `storage` of it is not read.
    pub inputs: &'a BackupInputs,
    /// The Host whose member is read.
    pub member: &'a str,
    /// The member's client URL, `https://10.0.0.1:2379`; its certificate has to name this host.
    pub url: &'a str,
    /// How the member is known, and what it knows us by.
    pub tls: &'a EtcdTls,
    /// The files of the bundle.
    pub bundle: &'a [BundleFile],
    /// Where it is kept.
    pub store: &'a Store,
}

/// Takes a backup, reads it back, and returns its manifest, which is written last.
///
/// `connect` returns a stream to the member's client port, and is called anew for each connection. `progress` is called
/// with the bytes of the snapshot that are stored, at most once a second and at the end. After an error, or when the
/// future is dropped, nothing is left at the location as far as the storage can be reached; what is left is reported in
/// the log. A backup that is there already is not touched.
pub async fn take<C, F, S>(
    task: &Task<'_>,
    connect: C,
    progress: impl FnMut(u64),
) -> Result<BackupManifest, BackupError>
where
    C: Fn() -> F + Send + Sync + 'static,
    F: Future<Output = io::Result<S>> + Send,
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let recipients = Recipients::parse(&task.inputs.recipients)?;
    let location = Location::parse(&task.inputs.location).map_err(|problem| {
        let action = format!("use location {:?}", task.inputs.location);
        task.store.failed(action, StorageFailure::Rejected, problem)
    })?;
    manifest::refuse_existing(task.store, &location).await?;
    let mut member = Member::connect(task.member, task.url, task.tls, connect).await?;
    let state = member.inspect().await?;
    tracing::info!(member = task.member, revision = state.revision, size = state.database_size, "reads a snapshot");
    let unfinished = Unfinished::new(task.store, &location);
    let manifest = match store_objects(task, &location, &recipients, member, &state, progress).await {
        Ok(manifest) => manifest,
        Err(error) => {
            unfinished.clean().await;
            return Err(error);
        }
    };
    match manifest::write(task.store, &location, &manifest).await {
        Outcome::Written => {
            unfinished.keep();
            Ok(manifest)
        }
        Outcome::Absent(error) => {
            unfinished.clean().await;
            Err(error)
        }
        Outcome::Unclear(error) => {
            unfinished.keep();
            Err(error)
        }
    }
}

/// Stores snapshot and bundle, reads both back, and returns the manifest that makes them a backup.
async fn store_objects(
    task: &Task<'_>,
    location: &Location,
    recipients: &Recipients,
    member: Member,
    state: &MemberState,
    progress: impl FnMut(u64),
) -> Result<BackupManifest, BackupError> {
    let started_at = now();
    let path = location.object(SNAPSHOT_FILE);
    let sink = Sink { store: task.store, path: &path, recipients, part_size: part_size(state.database_size) };
    let corrupt = |answer| BackupError::Etcd {
        failure: EtcdFailure::Corrupt,
        action: "read the snapshot",
        member: task.member.to_owned(),
        url: task.url.to_owned(),
        answer,
    };
    let messages = member.snapshot().await?;
    let pace = Pace::new(task.inputs.bytes_per_second);
    let (plain, stored) = store_snapshot(messages, &sink, pace, progress, corrupt).await?;
    let snapshot = object(SNAPSHOT_FILE, plain, stored);
    let bundle = store_bundle(task, location, recipients, &started_at).await?;
    for object in [&snapshot, &bundle] {
        read_back(task.store, &location.object(&object.name), object).await?;
    }
    Ok(BackupManifest {
        format: FORMAT.to_owned(),
        backup: task.inputs.backup.clone(),
        cluster: task.inputs.cluster.clone(),
        cluster_uid: task.inputs.cluster_uid.clone(),
        etcd_cluster_id: state.cluster_id.clone(),
        member: task.member.to_owned(),
        revision: state.revision,
        keys: state.keys,
        etcd_version: state.version.clone(),
        kubernetes_version: task.inputs.kubernetes_version,
        started_at,
        completed_at: now(),
        snapshot,
        bundle,
    })
}

async fn store_bundle(
    task: &Task<'_>,
    location: &Location,
    recipients: &Recipients,
    time: &Time,
) -> Result<ObjectManifest, BackupError> {
    let path = location.object(BUNDLE_FILE);
    let failed =
        |error: io::Error| task.store.failed(format!("encrypt {path}"), StorageFailure::Failed, error.to_string());
    let packed = bundle::pack(task.bundle, u64::try_from(time.0.as_second()).unwrap_or(0))?;
    let mut encryption = recipients.encrypt()?;
    let mut cipher = encryption.push(&packed).map_err(failed)?;
    cipher.extend(encryption.finish().map_err(failed)?);
    let (plain, stored) = (sum(&packed), sum(&cipher));
    task.store.put(&path, Bytes::from(cipher)).await?;
    Ok(object(BUNDLE_FILE, plain, stored))
}

fn sum(bytes: &[u8]) -> Sum {
    let mut summing = Summing::default();
    summing.update(bytes);
    summing.finish()
}

/// Now, in whole seconds, as the API has times.
fn now() -> Time {
    let now = Timestamp::now();
    Time(Timestamp::from_second(now.as_second()).unwrap_or(now))
}
