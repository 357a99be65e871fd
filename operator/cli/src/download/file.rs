//! One file from upstream's server or its mirror.

use std::fs;
use std::path::{Path, PathBuf};

use ::bundle::catalogue::Wanted;
use ::bundle::index::{Artifact, Kind};
use ::bundle::lock::{LockedFile, compare};
use ::bundle::publish::create_dir;
use ::bundle::{checksums, digest};
use anyhow::{Context, Result, bail};
use reqwest::header::{CONTENT_RANGE, HeaderMap, RANGE};
use reqwest::{Response, StatusCode};

use super::{Brought, Downloads, PARTIAL, Trust, append, digest_of, retry};
use crate::progress::Bar;

/// More than any checksum file has.
const CHECKSUMS: usize = 1 << 20;

/// Where upstream says which digest a file has.
pub(super) enum Published<'a> {
    /// It does not.
    Nowhere,
    /// In the checksum file at this URL.
    At(&'a str),
    /// In a list that has been read, and that is called so.
    As { sha256: &'a str, by: String },
}

impl Downloads {
    /// Sees to it that a file is in the bundle.
    pub(super) async fn bring_file(
        &self,
        wanted: &Wanted,
        (kind, url, published): (&Kind, &str, Published<'_>),
        known: Option<&Artifact>,
        bar: &Bar,
    ) -> Result<Brought> {
        let expected = self.expected(url, published, bar).await?;
        let path = self.bundle.join(&wanted.path);
        if let (Some(known), Some(expected)) = (known, &expected) {
            known.check_same(&expected.sha256)?;
        }
        let meant = expected.as_ref().map(|it| &it.sha256).or(known.map(|known| &known.sha256));
        let there = match meant {
            Some(meant) => path.is_file() && digest_of(&path).await? == meant.to_lowercase(),
            None => false,
        };
        let sha256 = match meant {
            Some(meant) if there => meant.to_lowercase(),
            _ => {
                let (part, got) = self.download(url, expected.as_ref(), bar).await?;
                known.map_or(Ok(()), |known| known.check_same(&got))?;
                part.publish(&path)?;
                got
            }
        };
        let trust = expected.map_or(Trust::FirstUse, |expected| expected.trust);
        let checksums = if let Trust::Checksums(by) = &trust { Some(by.clone()) } else { None };
        if trust != Trust::Lock {
            self.keep(|lock| lock.keep_file(url, LockedFile { sha256: sha256.clone(), checksums }))?;
        }
        let size = fs::metadata(&path).with_context(|| format!("failed to look at {}", path.display()))?.len();
        let mut artifact =
            Artifact::new(&wanted.name, kind.clone(), &wanted.version, &wanted.arch, &wanted.path, (size, sha256));
        url.clone_into(&mut artifact.source);
        Ok(Brought { artifact, trust, there })
    }

    /// Sees to it that the lock has the file's digest. Fails where upstream publishes none: somebody has to download
    /// it.
    pub(super) async fn lock_file(&self, url: &str, sums: Option<&str>, bar: &Bar) -> Result<(Trust, String)> {
        let published = sums.map_or(Published::Nowhere, Published::At);
        let Some(Expected { sha256, trust }) = self.expected(url, published, bar).await? else {
            bail!("upstream publishes no checksum of {url}: make a bundle with it, whose lock has its digest");
        };
        if let Trust::Checksums(by) = &trust {
            let file = LockedFile { sha256: sha256.clone(), checksums: Some(by.clone()) };
            self.keep(|lock| lock.keep_file(url, file))?;
        }
        Ok((trust, format!("sha256:{sha256}")))
    }

    /// What the file must be: what the lock says, else what upstream does.
    async fn expected(&self, url: &str, published: Published<'_>, bar: &Bar) -> Result<Option<Expected>> {
        if let Some(locked) = self.with_lock(|lock| lock.file(url).cloned()) {
            return Ok(Some(Expected { sha256: locked.sha256.to_lowercase(), trust: Trust::Lock }));
        }
        let (sha256, by) = match published {
            Published::Nowhere => return Ok(None),
            Published::At(sums) => {
                bar.at("reading upstream's checksum");
                (self.published(url, sums).await?, sums.to_owned())
            }
            Published::As { sha256, by } => (sha256.to_owned(), by),
        };
        Ok(Some(Expected { sha256, trust: Trust::Checksums(by) }))
    }

    /// The digest that upstream publishes of a file.
    async fn published(&self, url: &str, sums: &str) -> Result<String> {
        let place = self.mirror.file(sums);
        let mut attempt = 1;
        let text = loop {
            match self.read_text(&place).await {
                Ok(text) => break text,
                Err(error) => match retry::delay(&error, attempt) {
                    Some(delay) => tokio::time::sleep(delay).await,
                    None => return Err(error),
                },
            }
            attempt += 1;
        };
        let name = url.rsplit('/').next().unwrap_or(url);
        checksums::find(&text, name, &place)
    }

    async fn read_text(&self, url: &str) -> Result<String> {
        let reading = || format!("failed to read {url}");
        let mut answer =
            self.client.get(url).send().await.and_then(Response::error_for_status).with_context(reading)?;
        let mut text = Vec::new();
        while let Some(chunk) = answer.chunk().await.with_context(reading)? {
            text.extend_from_slice(&chunk);
            if text.len() > CHECKSUMS {
                bail!("{url} has more than {CHECKSUMS} bytes, and is no checksum file");
            }
        }
        Ok(String::from_utf8_lossy(&text).into_owned())
    }

    /// Downloads a file, going on where an earlier attempt ended; returns it with its digest.
    async fn download(&self, url: &str, expected: Option<&Expected>, bar: &Bar) -> Result<(Part, String)> {
        let place = self.mirror.file(url);
        let part = Part::new(&self.bundle.join(PARTIAL), url)?;
        // Without a digest nothing would tell that the rest is of another file.
        if expected.is_none() {
            part.remove()?;
        }
        let mut attempt = 1;
        loop {
            let resumed = part.size() > 0;
            match self.continue_download(&place, &part, bar).await {
                Ok(()) => {
                    bar.at("comparing the digest");
                    let got = digest_of(&part.file).await?;
                    let compared = expected.map_or(Ok(()), |expected| expected.compare(url, &place, &got));
                    if compared.is_ok() {
                        return Ok((part, got));
                    }
                    part.remove()?;
                    // What was there of it may have been of another file: once more from the beginning.
                    if !resumed {
                        compared?;
                    }
                }
                Err(error) => match retry::delay(&error, attempt) {
                    Some(delay) => {
                        bar.at(&format!("attempt {attempt} failed: {}", error.root_cause()));
                        tokio::time::sleep(delay).await;
                    }
                    None => return Err(error),
                },
            }
            attempt += 1;
        }
    }

    async fn continue_download(&self, url: &str, part: &Part, bar: &Bar) -> Result<()> {
        let downloading = || format!("failed to download {url}");
        let mut request = self.client.get(url);
        if part.size() > 0 {
            request = request.header(RANGE, format!("bytes={}-", part.size()));
        }
        let answer = request.send().await.with_context(downloading)?;
        if answer.status() == StatusCode::RANGE_NOT_SATISFIABLE {
            // All of it is there, or more: the digest tells.
            return Ok(());
        }
        let answer = answer.error_for_status().with_context(downloading)?;
        let there = match answer.status() {
            StatusCode::PARTIAL_CONTENT if continues(answer.headers(), part.size()) => part.size(),
            StatusCode::PARTIAL_CONTENT => bail!("{url} answers with another part than the one that was asked for"),
            _ => 0,
        };
        bar.at("");
        bar.begin(there, answer.content_length().map(|rest| there + rest));
        append(&part.file, there, None, answer.bytes_stream(), bar).await.with_context(downloading)
    }
}

/// The digest that a file must have.
struct Expected {
    sha256: String,
    trust: Trust,
}

impl Expected {
    fn compare(&self, url: &str, place: &str, got: &str) -> Result<()> {
        match &self.trust {
            Trust::Checksums(sums) if *got != self.sha256 => bail!(
                "{place} has sha256 {got}, and {sums} has {}: nothing of it is used. If that is a mirror, look at it; \
                 if not, upstream has changed one of them, or somebody in between has",
                self.sha256
            ),
            Trust::Checksums(_) => Ok(()),
            Trust::Lock | Trust::FirstUse => compare(url, &self.sha256, got),
        }
    }
}

/// Whether the answer begins at that byte.
fn continues(headers: &HeaderMap, at: u64) -> bool {
    let range = headers.get(CONTENT_RANGE).and_then(|range| range.to_str().ok());
    range.is_some_and(|range| range.starts_with(&format!("bytes {at}-")))
}

/// What there is of a download.
struct Part {
    file: PathBuf,
}

impl Part {
    fn new(directory: &Path, url: &str) -> Result<Self> {
        create_dir(directory)?;
        let name = digest::of_bytes(url.as_bytes());
        Ok(Self { file: directory.join(&name[..32]) })
    }

    fn size(&self) -> u64 {
        fs::metadata(&self.file).map_or(0, |found| found.len())
    }

    fn publish(&self, path: &Path) -> Result<()> {
        if let Some(parent) = path.parent() {
            create_dir(parent)?;
        }
        fs::rename(&self.file, path).with_context(|| format!("failed to move {} into place", path.display()))
    }

    fn remove(&self) -> Result<()> {
        if self.file.exists() {
            fs::remove_file(&self.file).with_context(|| format!("failed to remove {}", self.file.display()))?;
        }
        Ok(())
    }
}
