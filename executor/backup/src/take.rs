//! Takes a backup.

use std::future::pending;
use std::io;

use bytes::Bytes;
use crds::backup::{BUNDLE_FILE, BackupInputs, BackupManifest, FORMAT, ObjectManifest, SNAPSHOT_FILE};
use futures::future::BoxFuture;
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

/// The file of a bundle with the members of an etcd that others run.
const MEMBERS_FILE: &str = "members.json";

/// A backup that is wanted.
pub struct Task<'a> {
    /// What it is to be: location, recipients, limit and names. `storage` of it is not read.
    pub inputs: &'a BackupInputs,
    /// The Host whose member is read, or `HOST:PORT` of its endpoint.
    pub member: &'a str,
    /// The member's client URL, `https://10.0.0.1:2379`; its certificate has to name this host.
    pub url: &'a str,
    /// How the member is known, and what it knows us by.
    pub tls: &'a EtcdTls,
    /// The files of the bundle.
    pub bundle: &'a [BundleFile],
    /// Where it is kept.
    pub store: &'a Store,
    /// How its machine writes the snapshot to its disk first, and sends it from there; none: the member is read.
    pub spool: Option<Spool<'a>>,
}

/// Has the member's machine write its snapshot, of a database of so many bytes, to its disk, and returns what it sends
/// from there. An error of the stream says what the machine complained.
pub type Spool<'a> = &'a (dyn Fn(u64) -> BoxFuture<'a, io::Result<SpooledSnapshot>> + Send + Sync);
/// A snapshot that comes from a machine's disk, to its end.
pub type SpooledSnapshot = Box<dyn AsyncRead + Send + Unpin>;

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
    let (machine, prefix) = match &task.inputs.etcd {
        Some(etcd) => ("", etcd.prefix.as_deref()),
        None => (task.member, None),
    };
    let mut member = Member::connect(machine, task.url, task.tls, connect).await?.below(prefix);
    let state = member.inspect().await?;
    let bundle = bundle(task, &mut member).await?;
    tracing::info!(member = task.member, revision = state.revision, size = state.database_size, "reads a snapshot");
    let unfinished = Unfinished::new(task.store, &location);
    let stored = Box::pin(store_objects(task, &location, &recipients, (member, &state), &bundle, progress));
    let manifest = match stored.await {
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

/// The files of the bundle; of an etcd that is on no machine of ours, its members are among them.
async fn bundle(task: &Task<'_>, member: &mut Member) -> Result<Vec<BundleFile>, BackupError> {
    let mut files = task.bundle.to_vec();
    if task.inputs.etcd.is_some() {
        files.push((MEMBERS_FILE.to_owned(), format!("{:#}\n", member.members().await?).into_bytes()));
    }
    Ok(files)
}

/// Stores snapshot and bundle, reads both back, and returns the manifest that makes them a backup.
async fn store_objects(
    task: &Task<'_>,
    location: &Location,
    recipients: &Recipients,
    (member, state): (Member, &MemberState),
    bundle: &[BundleFile],
    progress: impl FnMut(u64),
) -> Result<BackupManifest, BackupError> {
    let started_at = now();
    let path = location.object(SNAPSHOT_FILE);
    let sink = Sink { store: task.store, path: &path, recipients, part_size: part_size(state.database_size) };
    let machine = member.name().to_owned();
    let corrupt = |answer| BackupError::Etcd {
        failure: EtcdFailure::Corrupt,
        action: "read the snapshot",
        member: machine,
        url: task.url.to_owned(),
        answer,
    };
    let pace = Pace::new(task.inputs.bytes_per_second);
    let (plain, stored) = match task.spool {
        // Its pages are free again once it is on the disk.
        Some(spool) => {
            let spooled = member.hang_up();
            let messages = (spooled.snapshot(spool(state.database_size).await), pending());
            Box::pin(store_snapshot(messages, &sink, pace, progress, corrupt)).await?
        }
        None => {
            let brake = member.outgrown(state.database_size);
            let messages = (member.snapshot().await?, brake);
            Box::pin(store_snapshot(messages, &sink, pace, progress, corrupt)).await?
        }
    };
    let snapshot = object(SNAPSHOT_FILE, plain, stored);
    let bundle = store_bundle(task, location, recipients, bundle, &started_at).await?;
    for object in [&snapshot, &bundle] {
        read_back(task.store, &location.object(&object.name), object).await?;
    }
    Ok(BackupManifest {
        format: FORMAT.to_owned(),
        backup: task.inputs.backup.clone(),
        cluster: task.inputs.cluster.clone(),
        cluster_uid: task.inputs.cluster_uid.clone(),
        karmada_deployment: task.inputs.karmada_deployment.clone(),
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
    files: &[BundleFile],
    time: &Time,
) -> Result<ObjectManifest, BackupError> {
    let path = location.object(BUNDLE_FILE);
    let failed =
        |error: io::Error| task.store.failed(format!("encrypt {path}"), StorageFailure::Failed, error.to_string());
    let packed = bundle::pack(files, u64::try_from(time.0.as_second()).unwrap_or(0))?;
    let mut encryption = recipients.encrypt()?;
    encryption.write(&packed).map_err(failed)?;
    let mut cipher = encryption.ready();
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
