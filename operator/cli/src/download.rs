//! Downloads into a bundle: files from upstream or a mirror, and images from registries, each held to its digest.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use ::bundle::catalogue::{Origin, Wanted};
use ::bundle::digest;
use ::bundle::index::{Artifact, Kind};
use ::bundle::lock::Lock;
use anyhow::{Context, Result, bail};
use bytes::Bytes;
use reqwest::Client;

use crate::progress::{self, Bar, Progress};

mod file;
mod image;
mod mirror;
mod options;
pub mod registry;
mod retry;

use file::Published;
pub use mirror::Mirror;
pub use options::{Connection, DownloadOptions};
use registry::Registry;

/// Name of the directory for downloads that are not finished.
pub const PARTIAL: &str = ".partial";

/// Downloads of one command.
#[derive(Debug)]
pub struct Downloads {
    client: Client,
    registry: Registry,
    mirror: Mirror,
    bundle: PathBuf,
    lock: Mutex<Lock>,
    lock_path: PathBuf,
    locked: bool,
    progress: Progress,
    blobs: image::Blobs,
    /// How many artifacts have been brought, and how many there will be.
    brought: AtomicUsize,
    count: usize,
}

/// An artifact that is in the bundle now.
#[derive(Debug)]
pub struct Brought {
    /// Its entry of the index.
    pub artifact: Artifact,
    /// What its digest was compared with.
    pub trust: Trust,
    /// Whether it had been there before.
    pub there: bool,
}

/// What a digest was compared with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Trust {
    /// The lock.
    Lock,
    /// Upstream's checksum file at this URL, or the list that a distribution signs.
    Checksums(String),
    /// Nothing: it is the first.
    FirstUse,
}

impl Trust {
    /// What is said of an artifact with that digest.
    fn said(&self, digest: &str) -> String {
        match self {
            Self::Lock => "its digest is that of the lock".to_owned(),
            Self::Checksums(url) => format!("its digest is that of {url}"),
            Self::FirstUse => format!("TRUSTED ON FIRST USE, with the digest {digest}"),
        }
    }
}

impl Downloads {
    /// Downloads of these into `bundle`, as the options say. Fails with all that the lock has no digest of, if nothing
    /// else may be taken.
    pub fn new(bundle: &Path, wanted: &[Wanted], options: &DownloadOptions) -> Result<Arc<Self>> {
        let lock_path = options.lock.clone().unwrap_or_else(|| bundle.join(::bundle::lock::FILE));
        let downloads = Self {
            client: options.connection.client()?,
            registry: options.connection.registry()?,
            mirror: options.mirror(),
            bundle: bundle.to_owned(),
            lock: Mutex::new(Lock::read(&lock_path)?),
            lock_path,
            locked: options.locked,
            progress: Progress::new(),
            blobs: image::Blobs::new(bundle.join(PARTIAL).join("blobs")),
            brought: AtomicUsize::new(0),
            count: wanted.len(),
        };
        downloads.check_locked(wanted)?;
        Ok(Arc::new(downloads))
    }

    fn check_locked(&self, wanted: &[Wanted]) -> Result<()> {
        if !self.locked {
            return Ok(());
        }
        let missing: Vec<String> = wanted.iter().filter_map(|wanted| self.unlocked(wanted)).collect();
        if missing.is_empty() {
            return Ok(());
        }
        bail!(
            "--locked, and {} has no digest of\n  {}\nnothing was downloaded: leave --locked out once, and look at \
             what is trusted on first use",
            self.lock_path.display(),
            missing.join("\n  ")
        )
    }

    fn unlocked(&self, wanted: &Wanted) -> Option<String> {
        let key = key(wanted);
        let known = self.with_lock(|lock| lock.file(&key).is_some() || lock.image(&key).is_some());
        (!known).then_some(key)
    }

    /// Sees to it that the artifact is in the bundle, and says so. `known` is its entry of the index, if it has one.
    pub async fn bring(&self, wanted: &Wanted, known: Option<&Artifact>) -> Result<Brought> {
        let name = format!("{} {} {}/{}", wanted.name, wanted.version, wanted.os(), wanted.arch);
        let bar = self.progress.bar(&name);
        let brought = match &wanted.origin {
            Origin::Url { kind, url, checksums } => {
                let published = checksums.as_deref().map_or(Published::Nowhere, Published::At);
                self.bring_file(wanted, (kind, url, published), known, &bar).await
            }
            Origin::Package { os, url, sha256 } => {
                let published = Published::As { sha256, by: format!("the list that {os} signs") };
                self.bring_file(wanted, (&Kind::Package, url, published), known, &bar).await
            }
            Origin::Registry { reference } => self.bring_image(wanted, reference, known, &bar).await,
            Origin::Program { reference, path } => self.bring_program(wanted, (reference, path), known, &bar).await,
        };
        drop(bar);
        let brought = brought.with_context(|| format!("failed to bring {name}"))?;
        let number = self.brought.fetch_add(1, Ordering::Relaxed) + 1;
        self.progress.say(&format!("[{number}/{}] {}", self.count, line(&name, &brought)));
        Ok(brought)
    }

    /// Sees to it that the lock has the artifact's digest, as upstream says it, and says so. Nothing of the artifact is
    /// downloaded.
    pub async fn lock(&self, wanted: &Wanted) -> Result<Trust> {
        let name = format!("{} {} {}/{}", wanted.name, wanted.version, wanted.os(), wanted.arch);
        let bar = self.progress.bar(&name);
        let locked = match &wanted.origin {
            Origin::Url { url, checksums, .. } => self.lock_file(url, checksums.as_deref(), &bar).await,
            Origin::Package { .. } => bail!("{name} is a package, and machines take packages from their own sources"),
            Origin::Registry { reference } | Origin::Program { reference, .. } => {
                self.lock_image(reference, &wanted.arch, &bar).await
            }
        };
        drop(bar);
        let (trust, digest) = locked.with_context(|| format!("failed to lock {name}"))?;
        let number = self.brought.fetch_add(1, Ordering::Relaxed) + 1;
        self.progress.say(&format!("[{number}/{}] {name}: {}", self.count, trust.said(&digest)));
        Ok(trust)
    }

    /// The file of the lock.
    pub fn lock_path(&self) -> &Path {
        &self.lock_path
    }

    fn with_lock<T>(&self, read: impl FnOnce(&Lock) -> T) -> T {
        read(&self.lock.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Changes the lock, and writes it.
    fn keep(&self, change: impl FnOnce(&mut Lock) -> Result<()>) -> Result<()> {
        let mut lock = self.lock.lock().unwrap_or_else(PoisonError::into_inner);
        let before = lock.clone();
        change(&mut lock)?;
        if *lock == before && self.lock_path.exists() { Ok(()) } else { lock.write(&self.lock_path) }
    }
}

/// What the lock calls it.
fn key(wanted: &Wanted) -> String {
    match &wanted.origin {
        Origin::Url { url, .. } | Origin::Package { url, .. } => url.clone(),
        Origin::Registry { reference } | Origin::Program { reference, .. } => {
            ::bundle::lock::image_key(reference, &wanted.arch)
        }
    }
}

fn line(name: &str, brought: &Brought) -> String {
    let artifact = &brought.artifact;
    let how =
        if brought.there { "was there".to_owned() } else { format!("downloaded, {}", progress::bytes(artifact.size)) };
    let digest =
        if artifact.manifest.is_empty() { format!("sha256:{}", artifact.sha256) } else { artifact.manifest.clone() };
    format!("{name}: {how}; {}", brought.trust.said(&digest))
}

/// The SHA-256 of a file, on a thread where that may take its time.
async fn digest_of(path: &Path) -> Result<String> {
    let path = path.to_owned();
    tokio::task::spawn_blocking(move || digest::of_file(&path)).await.context("hashing was cut off")?
}

/// Writes what is streamed at the end of a file that has `there` bytes.
async fn append<E>(
    file: &Path,
    there: u64,
    limit: Option<u64>,
    mut stream: impl futures::Stream<Item = Result<Bytes, E>> + Unpin,
    bar: &Bar,
) -> Result<()>
where
    E: std::error::Error + Send + Sync + 'static,
{
    use futures::StreamExt;
    use tokio::io::AsyncWriteExt;

    let writing = || format!("failed to write {}", file.display());
    let mut out = tokio::fs::OpenOptions::new().create(true).append(true).open(file).await.with_context(writing)?;
    out.set_len(there).await.with_context(writing)?;
    let mut size = there;
    while let Some(chunk) = stream.next().await {
        // What has come is kept: the next attempt goes on from there.
        let chunk = match chunk {
            Ok(chunk) => chunk,
            Err(error) => {
                out.flush().await.with_context(writing)?;
                return Err(error).context("it ended too early");
            }
        };
        size += chunk.len() as u64;
        if let Some(limit) = limit.filter(|limit| size > *limit) {
            bail!("more than {limit} bytes came");
        }
        out.write_all(&chunk).await.with_context(writing)?;
        bar.advance(chunk.len());
    }
    out.flush().await.with_context(writing)
}
