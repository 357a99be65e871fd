//! Backups of a real etcd that are read again, whole and damaged.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::{fs, io};

use age::secrecy::ExposeSecret;
use age::x25519::Identity;
use backup::{BackupError, Identities, Source, fetch, unpack};
use crds::backup::{BUNDLE_FILE, MANIFEST_FILE, SNAPSHOT_FILE};
use serde_json::{Value, json};
use tokio::io::AsyncWrite;

use super::fixture::{Fixture, NEVER};
use super::process::Member;

fn identities(identities: &[&Identity]) -> Identities {
    let lines: Vec<_> = identities.iter().map(|identity| identity.to_string().expose_secret().to_owned()).collect();
    Identities::parse(lines.join("\n").as_bytes()).unwrap()
}

/// A backup of some megabytes, of a member that is gone.
async fn taken() -> Fixture {
    let fixture = Fixture::new().await;
    let member = Member::alone(fixture.place.path(), &fixture.pki).await;
    member.fill(12).await;
    fixture.take(&member, NEVER).await.unwrap();
    fixture
}

/// The snapshot, and what progress was reported.
async fn fetched(fixture: &Fixture, identities: &Identities) -> Result<(Vec<u8>, Vec<u64>), BackupError> {
    let (mut snapshot, mut progress) = (Vec::new(), Vec::new());
    let source = Source::open(&fixture.store, &fixture.inputs.location, identities).await?;
    fetch(&source, &mut snapshot, |bytes| progress.push(bytes)).await?;
    Ok((snapshot, progress))
}

/// Why a backup is not fetched.
async fn refused(fixture: &Fixture) -> BackupError {
    fetched(fixture, &identities(&[&fixture.identity])).await.unwrap_err()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_backup_is_fetched_as_etcd_sent_it_and_its_bundle_unpacked() {
    let fixture = taken().await;
    let expected = fixture.decrypted(SNAPSHOT_FILE);
    let stranger = Identity::generate();
    for identities in [identities(&[&fixture.identity]), identities(&[&stranger, &fixture.identity])] {
        let (snapshot, progress) = fetched(&fixture, &identities).await.unwrap();
        assert!(snapshot == expected);
        assert!(progress.is_sorted() && progress.last() == Some(&(expected.len() as u64)), "{progress:?}");
        let source = Source::open(&fixture.store, &fixture.inputs.location, &identities).await.unwrap();
        assert_eq!(unpack(&source).await.unwrap(), fixture.bundle.iter().cloned().collect());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_identity_of_none_of_its_recipients_is_said_to_be_that() {
    let fixture = taken().await;
    let stranger = Identity::generate();
    let strangers = identities(&[&stranger]);
    let source = Source::open(&fixture.store, &fixture.inputs.location, &strangers).await.unwrap();
    let mut nothing = Vec::new();
    let of_snapshot = fetch(&source, &mut nothing, |_| ()).await.unwrap_err();
    let of_bundle = unpack(&source).await.unwrap_err();
    for error in [of_snapshot, of_bundle] {
        assert_eq!((error.reason(), error.retriable()), ("IdentityDoesNotMatch", false), "{error}");
        let text = format!("{error} {error:?}");
        assert!(text.contains(&stranger.to_public().to_string()) && !text.contains("SECRET"), "{text}");
    }
    assert_eq!(nothing, b"");
}

#[tokio::test(flavor = "multi_thread")]
async fn one_changed_bit_wherever_it_is_makes_a_backup_unusable() {
    let fixture = taken().await;
    let file = fixture.file(SNAPSHOT_FILE);
    let whole = fs::read(&file).unwrap();
    let header = whole.windows(4).position(|part| part == b"\n---").unwrap();
    let payload = header + whole[header + 1..].iter().position(|byte| *byte == b'\n').unwrap() + 2;
    let last = whole.len() - 1;
    // The version, the recipient's share and key, the header's MAC, the nonce, chunks, the last one's end.
    for at in [3, 30, header - 5, header + 8, payload + 3, payload + 20, whole.len() / 2, last - 20, last] {
        let mut changed = whole.clone();
        changed[at] ^= 1;
        fs::write(&file, changed).unwrap();
        let error = refused(&fixture).await;
        assert_eq!((error.reason(), error.retriable()), ("BackupCorrupt", false), "{at}: {error}");
        assert!(error.to_string().contains(SNAPSHOT_FILE), "{at}: {error}");
    }
    // The storage answers with what is shorter or longer than it was.
    for other in [&whole[..last], &whole[..payload], &[&whole[..], b"x"].concat()] {
        fs::write(&file, other).unwrap();
        assert_eq!(refused(&fixture).await.reason(), "BackupCorrupt");
    }
    fs::write(&file, &whole).unwrap();
    let bundle = fixture.file(BUNDLE_FILE);
    let mut changed = fs::read(&bundle).unwrap();
    let middle = changed.len() / 2;
    changed[middle] ^= 1;
    fs::write(bundle, changed).unwrap();
    let identities = identities(&[&fixture.identity]);
    let source = Source::open(&fixture.store, &fixture.inputs.location, &identities).await.unwrap();
    let error = unpack(&source).await.unwrap_err();
    assert!(error.reason() == "BackupCorrupt" && error.to_string().contains(BUNDLE_FILE), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_manifest_that_says_anything_else_makes_a_backup_unusable() {
    let fixture = taken().await;
    let file = fixture.file(MANIFEST_FILE);
    let whole: Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
    let digest = "0".repeat(64);
    let size = &whole["snapshot"]["size"].as_u64().unwrap();
    let plain = whole["snapshot"]["plainSize"].as_u64().unwrap();
    for (field, value) in [
        ("size", json!(size - 1)),
        ("sha256", json!(digest)),
        ("plainSize", json!(plain - 512)),
        ("plainSize", json!(plain + 512)),
        ("plainSha256", json!(digest)),
        ("name", json!(BUNDLE_FILE)),
    ] {
        let mut changed = whole.clone();
        changed["snapshot"][field] = value.clone();
        fs::write(&file, changed.to_string()).unwrap();
        let error = refused(&fixture).await;
        assert_eq!(error.reason(), "BackupCorrupt", "{field} {value}: {error}");
    }
    let mut changed = whole;
    for field in ["size", "plainSize"] {
        changed["bundle"][field] = json!(65_u64 << 20);
    }
    fs::write(&file, changed.to_string()).unwrap();
    fs::File::options().write(true).open(fixture.file(BUNDLE_FILE)).unwrap().set_len(65 << 20).unwrap();
    let identities = identities(&[&fixture.identity]);
    let source = Source::open(&fixture.store, &fixture.inputs.location, &identities).await.unwrap();
    let error = unpack(&source).await.unwrap_err();
    assert!(error.to_string().contains("at most"), "{error}");
}

/// Takes so many bytes, and no more.
struct Full(usize);

impl AsyncWrite for Full {
    fn poll_write(mut self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        if self.0 == 0 {
            return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
        }
        let taken = bytes.len().min(self.0);
        self.0 -= taken;
        Poll::Ready(Ok(taken))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_receiver_that_takes_no_more_is_told_from_a_backup_that_is_damaged() {
    let fixture = taken().await;
    let identities = identities(&[&fixture.identity]);
    let source = Source::open(&fixture.store, &fixture.inputs.location, &identities).await.unwrap();
    let error = fetch(&source, &mut Full(1 << 20), |_| ()).await.unwrap_err();
    assert!(matches!(error, BackupError::Receiver { .. }) && error.retriable(), "{error}");
}
