//! Backups that are taken, given up, found and removed.

use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use backup::{list, read_manifest, remove, verify};
use crds::backup::{BUNDLE_FILE, MANIFEST_FILE, SNAPSHOT_FILE};
use sha2::{Digest, Sha256};

use super::fixture::{Fixture, NEVER};
use super::process::{Member, programs};

#[tokio::test(flavor = "multi_thread")]
async fn a_backup_can_be_decrypted_and_etcd_reads_it() {
    let fixture = Fixture::new().await;
    let member = Member::alone(fixture.place.path(), &fixture.pki).await;
    member.fill(40).await;
    let manifest = fixture.take(&member, NEVER).await.unwrap();
    assert_eq!((manifest.keys, manifest.revision, manifest.member.as_str()), (40, 41, "cp-0"));
    assert!(manifest.etcd_version.starts_with("3."), "{}", manifest.etcd_version);
    assert!(manifest.completed_at >= manifest.started_at);
    let progress = fixture.progress.lock().unwrap().clone();
    assert!(progress.is_sorted() && progress.last() == Some(&manifest.snapshot.plain_size), "{progress:?}");

    let snapshot = fixture.decrypted(SNAPSHOT_FILE);
    assert_eq!(manifest.snapshot.plain_size, snapshot.len() as u64);
    assert_eq!(manifest.snapshot.plain_sha256, hex::encode(Sha256::digest(&snapshot)));
    let (body, trailer) = snapshot.split_at(snapshot.len() - 32);
    assert_eq!(Sha256::digest(body).as_slice(), trailer);
    let read = fixture.place.path().join("snapshot.db");
    std::fs::write(&read, &snapshot).unwrap();
    let mut etcdutl = Command::new(programs().join("etcdutl"));
    let status = etcdutl.args(["snapshot", "status", "--write-out", "json"]).arg(&read).output().unwrap();
    let status: serde_json::Value = serde_json::from_slice(&status.stdout).unwrap();
    assert_eq!((&status["revision"], &status["totalKey"]), (&41.into(), &40.into()), "{status}");
    let mut client = member.client().await;
    let header = client.status().await.unwrap().take_header().unwrap();
    assert_eq!(manifest.etcd_cluster_id, format!("{:x}", header.cluster_id()));

    let mut bundle = tar::Archive::new(std::io::Cursor::new(fixture.decrypted(BUNDLE_FILE)));
    let names: Vec<_> = bundle.entries().unwrap().map(|entry| entry.unwrap().path().unwrap().into_owned()).collect();
    assert_eq!(names, [PathBuf::from("pki/ca.key"), PathBuf::from("cluster.yaml")]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_backup_is_found_verified_kept_from_others_and_removed() {
    let fixture = Fixture::new().await;
    let (store, location) = (&fixture.store, fixture.inputs.location.as_str());
    let member = Member::alone(fixture.place.path(), &fixture.pki).await;
    assert_eq!(list(store).await.unwrap().backups, 0);
    assert_eq!(verify(store, location).await.unwrap_err().reason(), "BackupCorrupt");
    let manifest = fixture.take(&member, NEVER).await.unwrap();
    assert_eq!(read_manifest(store, location).await.unwrap(), manifest);
    assert_eq!(verify(store, location).await.unwrap(), manifest);
    let sizes: u64 = fixture.files().iter().map(|file| file.metadata().unwrap().len()).sum();
    let found = list(store).await.unwrap();
    assert_eq!((found.backups, found.size), (1, sizes));
    assert_eq!(found.newest, Some((location.to_owned(), manifest.completed_at.clone())));

    let again = fixture.take(&member, NEVER).await.unwrap_err();
    assert_eq!((again.reason(), again.retriable()), ("BackupExists", false), "{again}");
    assert_eq!(verify(store, location).await.unwrap(), manifest);

    std::fs::write(fixture.file(BUNDLE_FILE), "short").unwrap();
    let damaged = verify(store, location).await.unwrap_err();
    assert!(damaged.to_string().contains(BUNDLE_FILE) && damaged.reason() == "BackupCorrupt", "{damaged}");
    std::fs::write(fixture.file(MANIFEST_FILE), "{}").unwrap();
    let found = list(store).await.unwrap();
    assert_eq!((found.backups, found.newest), (1, None));

    std::fs::write(fixture.file("snapshot.db.age#7"), "cut off").unwrap();
    let above = remove(store, "paris").await.unwrap_err();
    assert!(above.reason() == "StorageFailed" && above.to_string().contains(location), "{above}");
    remove(store, location).await.unwrap();
    remove(store, location).await.unwrap();
    assert_eq!(fixture.files(), Vec::<PathBuf>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_that_breaks_in_the_middle_leaves_nothing() {
    let fixture = Fixture::new().await;
    let member = Member::alone(fixture.place.path(), &fixture.pki).await;
    member.fill(24).await;
    let error = fixture.take(&member, 20 << 20).await.unwrap_err();
    assert_eq!((error.reason(), error.retriable()), ("SnapshotInterrupted", true), "{error}");
    assert!(error.to_string().contains("cp-0"), "{error}");
    assert_eq!(fixture.files(), Vec::<PathBuf>::new());
    fixture.take(&member, NEVER).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_backup_that_is_given_up_leaves_nothing() {
    let mut fixture = Fixture::new().await;
    fixture.inputs.bytes_per_second = Some(4 << 20);
    let member = Member::alone(fixture.place.path(), &fixture.pki).await;
    member.fill(24).await;
    let taking = fixture.take(&member, NEVER);
    assert!(tokio::time::timeout(Duration::from_secs(3), taking).await.is_err(), "the limit was not kept");
    let since = Instant::now();
    while !fixture.files().is_empty() {
        assert!(since.elapsed() < Duration::from_secs(10), "{:?}", fixture.files());
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
