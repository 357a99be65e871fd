//! Real storages that do not take a backup: the reason and the words that a person sees, and what is left there.

use std::path::PathBuf;
use std::process::Command;

use backup::{BackupError, Credentials, Store, probe, verify};
use crds::backup::{S3Inputs, StorageInputs};

use super::fixture::{Fixture, NEVER};
use super::object_storage::{Certificate, ObjectStorage, SECRET_KEY, open};
use super::process::Member;
use super::volume::Volume;

/// Set where the test runs again, under another clock.
const SHIFTED: &str = "CLUSTERWRIGHT_TEST_SHIFTED";

/// Reason, whether another attempt may do, and parts of the message.
fn told(error: &BackupError, reason: &str, retriable: bool, parts: &[&str]) {
    println!("{error}");
    assert_eq!((error.reason(), error.retriable()), (reason, retriable), "{error}");
    let text = format!("{error} {error:?}");
    assert!(parts.iter().all(|part| text.contains(part)) && !text.contains(SECRET_KEY), "{parts:?}: {text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn credentials_certificates_and_names_that_are_wrong_are_told_apart() {
    let place = tempfile::tempdir().unwrap();
    let server = ObjectStorage::start(&place.path().join("s3"));
    let inputs = || server.inputs(server.port);
    let endpoint = format!("https://127.0.0.1:{}", server.port);

    let secret = open(inputs(), "another").await;
    let denied = ["403", "SignatureDoesNotMatch", &endpoint, "check the credentials"];
    told(&probe(&secret).await.unwrap_err(), "StorageAccessDenied", false, &denied);
    let nobody = Credentials::from_files([("accessKeyID", &b"AKIANOBODY"[..]), ("secretAccessKey", &b"x"[..])]);
    let key = Store::open(&StorageInputs::S3(inputs()), &nobody).await.unwrap();
    told(&probe(&key).await.unwrap_err(), "StorageAccessDenied", false, &["check the credentials"]);
    told(&verify(&key, "a/b/c").await.unwrap_err(), "StorageAccessDenied", false, &["a/b/c/manifest.json"]);

    let bucket = open(S3Inputs { bucket: "other".to_owned(), ..inputs() }, SECRET_KEY).await;
    told(&probe(&bucket).await.unwrap_err(), "BucketNotFound", false, &["bucket other", "create the bucket"]);
    assert_eq!((server.keys(), server.uploads()), (vec![], vec![]));
}

/// All at once: each is tried again for a while, since a server that is set up anew may have its certificate soon.
#[tokio::test(flavor = "multi_thread")]
async fn a_certificate_of_a_stranger_for_other_names_or_that_has_expired_is_told_with_what_to_do() {
    let place = tempfile::tempdir().unwrap();
    let server = ObjectStorage::start(&place.path().join("s3"));
    let expired = ObjectStorage::with_certificate(&place.path().join("expired"), &Certificate::expired());
    let inputs = || server.inputs(server.port);
    let asked = [
        (S3Inputs { authorities: Some(Certificate::new().pem), ..inputs() }, "in caRef"),
        (S3Inputs { authorities: None, ..inputs() }, "UnknownIssuer; give the authority"),
        (
            S3Inputs { endpoint: format!("https://localhost:{}", server.port), ..inputs() },
            "certificate has in endpoint",
        ),
        (expired.inputs(expired.port), "renew the storage's certificate"),
    ]
    .map(async |(inputs, advice)| {
        let error = verify(&open(inputs, SECRET_KEY).await, "a/b/c").await.unwrap_err();
        told(&error, "StorageCertificateInvalid", false, &["invalid peer certificate", advice]);
    });
    futures::future::join_all(asked).await;
}

/// S3 allows 15 minutes. The client runs under a shifted clock, in a process of its own: a server in Go does not heed
/// it.
#[test]
fn clocks_that_differ_are_said_to() {
    if let Some(endpoint) = std::env::var_os(SHIFTED) {
        let inputs: S3Inputs = serde_json::from_str(endpoint.to_str().unwrap()).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let error = runtime.block_on(async { probe(&open(inputs, SECRET_KEY).await).await.unwrap_err() });
        return told(&error, "StorageClockSkewed", false, &["RequestTimeTooSkewed", "synchronize the clocks"]);
    }
    let place = tempfile::tempdir().unwrap();
    let server = ObjectStorage::start(&place.path().join("s3"));
    let name = "storage_refusals::clocks_that_differ_are_said_to";
    for shift in ["+20m", "-20m"] {
        let output = Command::new("faketime")
            .args(["--exclude-monotonic", "-f", shift])
            .arg(std::env::current_exe().unwrap())
            .args([name, "--exact", "--nocapture"])
            .env(SHIFTED, serde_json::to_string(&server.inputs(server.port)).unwrap())
            .output()
            .unwrap_or_else(|error| panic!("faketime is missing ({error}): run `lab build programs`"));
        let said = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && said.contains("RequestTimeTooSkewed"), "{shift}: {said}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_whose_disk_is_full_is_said_to_be_and_is_left_as_it_was() {
    let place = tempfile::tempdir().unwrap();
    let volume = Volume::mount(&place.path().join("s3"), 20);
    let mut fixture = Fixture::new().await;
    let server = ObjectStorage::start(&place.path().join("s3"));
    let member = Member::alone(fixture.place.path(), &fixture.pki).await;
    member.fill(36).await;
    fixture.store = open(server.inputs(server.port), SECRET_KEY).await;
    let error = fixture.take(&member, NEVER).await.unwrap_err();
    told(&error, "StorageFull", false, &["write paris/7f1c/", "remove old backups"]);
    assert_eq!((server.keys(), server.uploads()), (vec![], vec![]));
    drop((server, volume));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_volume_that_is_full_or_read_only_is_said_to_be_and_serves_once_it_is_not() {
    let mut fixture = Fixture::new().await;
    let place = fixture.place.path().join("backups");
    let volume = Volume::mount(&place, 20);
    let storage = StorageInputs::Directory(place.display().to_string());
    fixture.store = Store::open(&storage, &Credentials::default()).await.unwrap();
    let member = Member::alone(fixture.place.path(), &fixture.pki).await;
    member.fill(12).await;
    let filler = place.join("other");
    std::fs::write(&filler, vec![1; 14 << 20]).unwrap();
    let error = fixture.take(&member, NEVER).await.unwrap_err();
    told(&error, "StorageFull", false, &["snapshot.db.age", "remove old backups", "No space left on device"]);
    assert_eq!(fixture.files(), std::slice::from_ref(&filler));

    std::fs::remove_file(filler).unwrap();
    volume.read_only();
    let error = fixture.take(&member, NEVER).await.unwrap_err();
    told(&error, "StorageAccessDenied", false, &["ead-only file system"]);
    assert_eq!(fixture.files(), Vec::<PathBuf>::new());
    volume.writable();
    fixture.take(&member, NEVER).await.unwrap();
    assert_eq!(fixture.files().len(), 3);
}
