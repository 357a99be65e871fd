//! Takes the backup, and verifies it.

use std::future::ready;
use std::io;

use backup::{BackupError, EtcdTls, SpooledSnapshot, Store, Task};
use crds::Reason;
use crds::backup::BackupManifest;
use crds::etcd_backup::BackupContent;
use futures::future::BoxFuture;

use super::abandoned::{abandoned, cleaned};
use super::answer::Answer;
use super::events::Events;
use super::member_stream::MemberStream;
use super::secrets::{bundle, credentials, tls};
use super::settings::Settings;
use crate::secrets::Secrets;

/// Reads the member of a host into the storage, until it is there, it failed, or nobody waits for it any more.
pub(super) async fn take(settings: &Settings, host: &str) -> Answer {
    let Some(words) = settings.connect.get(host) else {
        return Answer::failed(&format!("{host} is no host of this run"));
    };
    let secrets = match Secrets::read(&settings.secrets) {
        Ok(secrets) => secrets,
        Err(error) => return Answer::failed(&format!("failed to read the run's secrets: {error}")),
    };
    let taken = tokio::select! {
        taken = taken(settings, host, words, &secrets) => Some(taken),
        _ = abandoned() => None,
    };
    match taken {
        Some(Ok(manifest)) => Answer::done(format!(
            "the member of {host} is stored: {} keys at revision {}",
            manifest.keys, manifest.revision
        )),
        Some(Err(error)) => error.into(),
        None => {
            cleaned().await;
            Answer::failed("the backup was given up: the run was stopped")
        }
    }
}

async fn taken(
    settings: &Settings,
    host: &str,
    words: &[String],
    secrets: &Secrets,
) -> Result<BackupManifest, BackupError> {
    let store = Store::open(&settings.inputs.storage, &credentials(secrets)).await?;
    let (tls, bundle): (EtcdTls, _) = (tls(secrets), bundle(secrets));
    let spool = |database: u64| -> BoxFuture<'_, io::Result<SpooledSnapshot>> {
        match settings.spool.get(host) {
            Some(spooling) => Box::pin(spooling.open(database, secrets)),
            None => Box::pin(ready(Err(io::Error::other("the run's settings do not say how")))),
        }
    };
    let task = Task {
        inputs: &settings.inputs,
        member: host,
        url: &settings.url,
        tls: &tls,
        bundle: &bundle,
        store: &store,
        spool: settings.inputs.spool.then_some(&spool),
    };
    let (words, events) = (words.to_vec(), Events::of_this_run());
    let connect = move || ready(MemberStream::open(&words));
    backup::take(&task, connect, move |bytes| events.progress(bytes)).await
}

/// Asks the storage whether the backup is whole, and reports it to the run.
pub(super) async fn verify(settings: &Settings) -> Answer {
    let secrets = match Secrets::read(&settings.secrets) {
        Ok(secrets) => secrets,
        Err(error) => return Answer::failed(&format!("failed to read the run's secrets: {error}")),
    };
    let manifest = tokio::select! {
        manifest = verified(settings, &secrets) => manifest,
        _ = abandoned() => return Answer::failed("the run was stopped"),
    };
    match manifest {
        Ok(manifest) => reported(settings, &manifest),
        Err(error) => error.into(),
    }
}

async fn verified(settings: &Settings, secrets: &Secrets) -> Result<BackupManifest, BackupError> {
    let store = Store::open(&settings.inputs.storage, &credentials(secrets)).await?;
    backup::verify(&store, &settings.inputs.location).await
}

fn reported(settings: &Settings, manifest: &BackupManifest) -> Answer {
    let (inputs, location) = (&settings.inputs, &settings.inputs.location);
    if (&manifest.backup, &manifest.cluster_uid) != (&inputs.backup, &inputs.cluster_uid) {
        let other = format!("{} of cluster {}", manifest.backup, manifest.cluster);
        return Answer::refused(Reason::BackupExists, format!("at {location} is another backup, {other}"));
    }
    match Events::of_this_run().backup(&content(manifest, location)) {
        Ok(()) => Answer::done(format!("the backup at {location} is whole")),
        Err(error) => Answer::failed(&format!("failed to report the backup at {location}: {error}")),
    }
}

/// The backup as the status of a run has it.
pub(super) fn content(manifest: &BackupManifest, location: &str) -> BackupContent {
    BackupContent {
        location: location.to_owned(),
        revision: manifest.revision,
        keys: manifest.keys,
        size: i64::try_from(manifest.snapshot.plain_size).unwrap_or(i64::MAX),
        sha256: manifest.snapshot.plain_sha256.clone(),
        member: manifest.member.clone(),
        etcd_version: manifest.etcd_version.clone(),
        kubernetes_version: manifest.kubernetes_version,
        karmada_version: manifest.karmada_deployment.as_ref().and_then(|plane| plane.version.clone()),
        started_at: manifest.started_at.clone(),
        completed_at: manifest.completed_at.clone(),
    }
}
