//! Fetches the snapshot of a backup.

use tokio::io::AsyncWrite;
use tokio::time::{Duration, Instant};

use crate::decryption::decrypt;
use crate::digest::SnapshotCheck;
use crate::error::BackupError;
use crate::source::Source;

/// How often progress is reported at most.
const REPORT: Duration = Duration::from_secs(1);

/// Writes the snapshot, decrypted, into a sink, which is flushed and not closed. `progress` is called with the bytes
/// that were written, at most once a second and at the end.
///
/// Well only if everything agrees: size and SHA-256 of what is stored and of what was decrypted with the manifest, each
/// chunk with its authentication, and the digest that etcd put at the snapshot's end. **After an error the sink may
/// have got bytes, even all of them**: what it wrote may not be used.
pub async fn fetch(
    source: &Source<'_>,
    sink: &mut (impl AsyncWrite + Unpin),
    mut progress: impl FnMut(u64),
) -> Result<(), BackupError> {
    let object = &source.manifest().snapshot;
    let mut check = SnapshotCheck::default();
    let (mut reported, mut written) = (Instant::now(), 0);
    let seen = |piece: &[u8]| {
        check.update(piece);
        written += piece.len() as u64;
        if reported.elapsed() >= REPORT {
            reported = Instant::now();
            progress(written);
        }
    };
    decrypt(source, object, sink, seen).await?;
    let corrupt = |problem: String| source.corrupt(format!("{}: {problem}", object.name));
    let sum = check.finish().map_err(corrupt)?;
    if (sum.size, &sum.sha256) != (object.plain_size, &object.plain_sha256) {
        return Err(corrupt(format!(
            "decrypted it has {} bytes with the SHA-256 {}, and its manifest says {} and {}",
            sum.size, sum.sha256, object.plain_size, object.plain_sha256
        )));
    }
    progress(sum.size);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use age::secrecy::ExposeSecret;
    use bytes::Bytes;
    use crds::backup::{BUNDLE_FILE, FORMAT, MANIFEST_FILE, SNAPSHOT_FILE, StorageInputs};
    use serde_json::json;
    use sha2::{Digest, Sha256};

    use crate::credentials::Credentials;
    use crate::encryption::Recipients;
    use crate::identities::Identities;
    use crate::location::Location;
    use crate::pace::Pace;
    use crate::snapshot::{Sink, object, store_snapshot};
    use crate::store::Store;

    const ALONE: &str = "CLUSTERWRIGHT_TEST_ALONE";
    const MESSAGE: usize = 1 << 20;

    /// The most memory that the process had at once since it was asked to forget, in bytes.
    fn peak() -> u64 {
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
        line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() * 1024
    }

    /// What is measured is the process's: it runs again, with this test alone, and with one arena of glibc's allocator,
    /// for how much each thread's keeps for itself differs from run to run.
    #[test]
    fn a_large_snapshot_is_fetched_in_the_memory_of_a_few_ranges() {
        if std::env::var_os(ALONE).is_some() {
            return tokio::runtime::Runtime::new().unwrap().block_on(fetch_a_large_snapshot());
        }
        let name = "fetch::tests::a_large_snapshot_is_fetched_in_the_memory_of_a_few_ranges";
        let mut again = std::process::Command::new(std::env::current_exe().unwrap());
        let output =
            again.args([name, "--exact", "--nocapture"]).env(ALONE, "1").env("MALLOC_ARENA_MAX", "1").output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && said.contains("of memory for"), "{said}");
    }

    async fn fetch_a_large_snapshot() {
        let place = tempfile::tempdir().unwrap();
        let directory = StorageInputs::Directory(place.path().display().to_string());
        let store = Store::open(&directory, &Credentials::default()).await.unwrap();
        let identity = age::x25519::Identity::generate();
        let recipients = Recipients::parse(&[identity.to_public().to_string()]).unwrap();
        let location = Location::parse("c/u/1").unwrap();
        let path = location.object(SNAPSHOT_FILE);
        let messages = 256;
        let mut hash = Some(Sha256::new());
        let snapshot = (0..=messages).filter_map(|index: usize| {
            if index == messages {
                return hash.take().map(|hash| Bytes::copy_from_slice(&hash.finalize()));
            }
            let message = Bytes::from(vec![index.to_le_bytes()[0]; MESSAGE]);
            hash.as_mut()?.update(&message);
            Some(message)
        });
        let sink = Sink { store: &store, path: &path, recipients: &recipients, part_size: 8 << 20 };
        let none = |_| BackupError::Receiver { problem: String::new() };
        let stream = futures::stream::iter(snapshot.map(Ok));
        let (plain, stored) =
            store_snapshot((stream, std::future::pending()), &sink, Pace::new(None), |_| (), none).await.unwrap();
        let bundle = json!({"name": BUNDLE_FILE, "size": 0, "sha256": "", "plainSize": 0, "plainSha256": ""});
        store.put(&location.object(BUNDLE_FILE), Bytes::new()).await.unwrap();
        let manifest = json!({
            "format": FORMAT, "backup": "b", "cluster": "c", "clusterUid": "u", "etcdClusterID": "1", "member": "m",
            "revision": 1, "keys": 1, "etcdVersion": "3.6.0", "startedAt": "2026-03-01T12:00:00Z",
            "completedAt": "2026-03-01T12:00:00Z", "snapshot": object(SNAPSHOT_FILE, plain, stored), "bundle": bundle,
        });
        store.put(&location.object(MANIFEST_FILE), Bytes::from(manifest.to_string())).await.unwrap();

        let identities = Identities::parse(identity.to_string().expose_secret().as_bytes()).unwrap();
        let source = Source::open(&store, "c/u/1", &identities).await.unwrap();
        std::fs::write("/proc/self/clear_refs", "5").unwrap();
        let (before, mut fetched) = (peak(), 0);
        fetch(&source, &mut tokio::io::sink(), |bytes| fetched = bytes).await.unwrap();
        assert_eq!(fetched, source.manifest().snapshot.plain_size);
        let grown = peak() - before;
        println!("{} MiB of memory for {} MiB", grown >> 20, fetched >> 20);
        assert!(grown < 32 << 20, "{} MiB", grown >> 20);
    }
}
