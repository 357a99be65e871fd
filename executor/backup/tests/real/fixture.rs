//! A backup that is to be taken of a member, into a directory of the test's own.

use std::io::{self, Read};
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Mutex;
use std::task::{Context, Poll};

use age::x25519::Identity;
use backup::{BackupError, BundleFile, Credentials, Store, Task, take};
use crds::backup::{BackupInputs, BackupManifest, StorageInputs};
use tempfile::TempDir;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

use super::process::{Member, Pki};

/// A connection that does not break.
pub const NEVER: usize = usize::MAX;

pub struct Fixture {
    pub place: TempDir,
    pub pki: Pki,
    pub identity: Identity,
    pub store: Store,
    pub inputs: BackupInputs,
    pub bundle: Vec<BundleFile>,
    /// What progress was reported.
    pub progress: Mutex<Vec<u64>>,
}

impl Fixture {
    pub async fn new() -> Self {
        let place = tempfile::tempdir().unwrap();
        let identity = Identity::generate();
        let storage = StorageInputs::Directory(place.path().join("backups").display().to_string());
        let store = Store::open(&storage, &Credentials::default()).await.unwrap();
        let inputs = BackupInputs {
            storage,
            volume_claim: None,
            location: "paris/7f1c/20260301T120000Z-k3x9".to_owned(),
            recipients: vec![identity.to_public().to_string()],
            bytes_per_second: None,
            etcd: None,
            spool: false,
            backup: "nightly".to_owned(),
            cluster: "paris".to_owned(),
            cluster_uid: "7f1c".to_owned(),
            karmada_deployment: None,
            kubernetes_version: None,
        };
        let bundle =
            vec![("pki/ca.key".to_owned(), b"secret".to_vec()), ("cluster.yaml".to_owned(), b"kind: x".to_vec())];
        Self { place, pki: Pki::new(), identity, store, inputs, bundle, progress: Mutex::default() }
    }

    /// Takes the backup over a connection that breaks after so many bytes.
    pub async fn take(&self, member: &Member, limit: usize) -> Result<BackupManifest, BackupError> {
        self.take_as(member, &self.pki, limit).await
    }

    pub async fn take_as(&self, member: &Member, pki: &Pki, limit: usize) -> Result<BackupManifest, BackupError> {
        let seen = |stored| self.progress.lock().unwrap().push(stored);
        self.take_with(member, pki, limit, seen).await
    }

    /// Takes the backup, and shows its progress as it is reported.
    pub async fn take_seen(
        &self,
        member: &Member,
        seen: impl FnMut(u64) + Send,
    ) -> Result<BackupManifest, BackupError> {
        self.take_with(member, &self.pki, NEVER, seen).await
    }

    async fn take_with(
        &self,
        member: &Member,
        pki: &Pki,
        limit: usize,
        seen: impl FnMut(u64) + Send,
    ) -> Result<BackupManifest, BackupError> {
        let (url, port, tls) = (member.url(), member.port, pki.tls());
        let task = Task {
            inputs: &self.inputs,
            member: "cp-0",
            url: &url,
            tls: &tls,
            bundle: &self.bundle,
            store: &self.store,
            spool: None,
        };
        let connect = move || async move {
            let inner = TcpStream::connect(("127.0.0.1", port)).await?;
            Ok(Breaking { inner, left: limit })
        };
        sendable(take(&task, connect, seen)).await
    }

    /// Files in the storage, of whatever name.
    pub fn files(&self) -> Vec<PathBuf> {
        let mut files = Vec::new();
        let mut directories = vec![self.place.path().join("backups")];
        while let Some(directory) = directories.pop() {
            for entry in std::fs::read_dir(directory).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() { directories.push(path) } else { files.push(path) }
            }
        }
        files.sort();
        files
    }

    /// A file of the backup.
    pub fn file(&self, name: &str) -> PathBuf {
        self.place.path().join("backups").join(&self.inputs.location).join(name)
    }

    /// A file of the backup, decrypted.
    pub fn decrypted(&self, name: &str) -> Vec<u8> {
        let cipher = std::fs::read(self.file(name)).unwrap();
        let identities = std::iter::once(&self.identity as &dyn age::Identity);
        let mut plain = Vec::new();
        age::Decryptor::new(&cipher[..]).unwrap().decrypt(identities).unwrap().read_to_end(&mut plain).unwrap();
        plain
    }
}

/// A backup may be taken in a task of its own.
fn sendable<T: Send>(future: T) -> T {
    future
}

/// A connection that is reset after so many bytes were read.
struct Breaking {
    inner: TcpStream,
    left: usize,
}

impl AsyncRead for Breaking {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.left == 0 {
            return Poll::Ready(Err(io::ErrorKind::ConnectionReset.into()));
        }
        let before = buffer.filled().len();
        let polled = Pin::new(&mut self.inner).poll_read(context, buffer);
        self.left = self.left.saturating_sub(buffer.filled().len() - before);
        polled
    }
}

impl AsyncWrite for Breaking {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(context)
    }
}
