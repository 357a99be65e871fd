//! One image from its registry or a mirror, as an archive.

use std::collections::HashMap;
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use ::bundle::catalogue::{Origin, Wanted};
use ::bundle::image::{Blob, Content, check_configuration, content, extract, manifest_of, write_archive};
use ::bundle::index::{Artifact, Kind};
use ::bundle::lock::image_key;
use ::bundle::publish::{create_dir, publish};
use anyhow::{Context, Result, bail, ensure};
use oci_client::Reference;
use oci_client::client::BlobResponse;
use tokio::sync::Mutex;

use super::registry::by_digest;
use super::{Brought, Downloads, Trust, append, digest_of, retry};
use crate::progress::Bar;

/// Configurations and layers that were downloaded. Several images may have the same.
#[derive(Debug)]
pub struct Blobs {
    directory: PathBuf,
    /// Who downloads one now.
    busy: Mutex<HashMap<String, Arc<Mutex<()>>>>,
}

impl Blobs {
    /// Blobs below `directory`, which need not be there.
    pub fn new(directory: PathBuf) -> Self {
        Self { directory, busy: Mutex::default() }
    }

    async fn turn(&self, digest: &str) -> Arc<Mutex<()>> {
        self.busy.lock().await.entry(digest.to_owned()).or_default().clone()
    }
}

/// An image of one architecture, as its registry has it.
struct Found {
    /// Where its blobs are.
    place: Reference,
    manifest: Vec<u8>,
    digest: String,
    blobs: Vec<Blob>,
}

impl Downloads {
    /// Sees to it that an image's archive is in the bundle.
    pub(super) async fn bring_image(
        &self,
        wanted: &Wanted,
        reference: &str,
        known: Option<&Artifact>,
        bar: &Bar,
    ) -> Result<Brought> {
        let key = image_key(reference, &wanted.arch);
        let locked = self.with_lock(|lock| lock.image(&key).map(str::to_owned));
        let path = self.bundle.join(&wanted.path);
        let there = manifest_of(&path);
        if let (Some(locked), Some(there)) = (&locked, &there)
            && locked == there
        {
            return self.brought(wanted, reference, locked, (Trust::Lock, true)).await;
        }
        bar.at("reading the manifest");
        let found = self.find_image(reference, &wanted.arch, locked.as_deref()).await?;
        // The same manifest gives the same archive, and another one never does.
        refuse_another(known, &found)?;
        let trust = if locked.is_some() { Trust::Lock } else { Trust::FirstUse };
        if there.as_ref() != Some(&found.digest) {
            self.archive_image(wanted, &found, bar).await?;
        }
        self.keep(|lock| lock.keep_image(&key, &found.digest))?;
        let there = there.as_ref() == Some(&found.digest);
        self.brought(wanted, reference, &found.digest, (trust, there)).await
    }

    /// Sees to it that a program is in the bundle that upstream publishes in an image alone, at this path in it.
    pub(super) async fn bring_program(
        &self,
        wanted: &Wanted,
        (reference, inside): (&str, &str),
        known: Option<&Artifact>,
        bar: &Bar,
    ) -> Result<Brought> {
        let key = image_key(reference, &wanted.arch);
        let locked = self.with_lock(|lock| lock.image(&key).map(str::to_owned));
        let trust = if locked.is_some() { Trust::Lock } else { Trust::FirstUse };
        let path = self.bundle.join(&wanted.path);
        if let (Some(locked), Some(known)) = (&locked, known)
            && known.manifest == *locked
            && path.is_file()
            && digest_of(&path).await? == known.sha256
        {
            return Ok(Brought { artifact: known.clone(), trust, there: true });
        }
        bar.at("reading the manifest");
        let found = self.find_image(reference, &wanted.arch, locked.as_deref()).await?;
        // One that was built elsewhere has none, and its digest is compared.
        refuse_another(known.filter(|known| !known.manifest.is_empty()), &found)?;
        self.bring_blobs(&found, &wanted.arch, bar).await?;
        bar.at("taking the program out");
        let (directory, blobs) = (self.blobs.directory.clone(), found.blobs.clone());
        let (image, inside, into) = (reference.to_owned(), inside.to_owned(), path.clone());
        let written = tokio::task::spawn_blocking(move || {
            publish(&into, |draft| extract(draft, &image, &inside, (&directory, &blobs)))
        });
        written.await.context("taking a program out of its image was cut off")??;
        self.keep(|lock| lock.keep_image(&key, &found.digest))?;
        self.brought(wanted, reference, &found.digest, (trust, false)).await
    }

    /// Sees to it that the lock has the digest of an image's manifest.
    pub(super) async fn lock_image(&self, reference: &str, arch: &str, bar: &Bar) -> Result<(Trust, String)> {
        let key = image_key(reference, arch);
        if let Some(locked) = self.with_lock(|lock| lock.image(&key).map(str::to_owned)) {
            return Ok((Trust::Lock, locked));
        }
        bar.at("reading the manifest");
        let found = self.find_image(reference, arch, None).await?;
        self.keep(|lock| lock.keep_image(&key, &found.digest))?;
        Ok((Trust::FirstUse, found.digest))
    }

    async fn brought(
        &self,
        wanted: &Wanted,
        reference: &str,
        manifest: &str,
        (trust, there): (Trust, bool),
    ) -> Result<Brought> {
        let path = self.bundle.join(&wanted.path);
        let size = fs::metadata(&path).with_context(|| format!("failed to look at {}", path.display()))?.len();
        let file = (size, digest_of(&path).await?);
        let kind = if matches!(wanted.origin, Origin::Program { .. }) { Kind::File } else { Kind::Image };
        let mut artifact = Artifact::new(&wanted.name, kind, &wanted.version, &wanted.arch, &wanted.path, file);
        reference.clone_into(&mut artifact.source);
        manifest.clone_into(&mut artifact.manifest);
        Ok(Brought { artifact, trust, there })
    }

    /// The image for that architecture; the one with the locked digest, if there is one.
    async fn find_image(&self, reference: &str, arch: &str, locked: Option<&str>) -> Result<Found> {
        let place = self.mirror.image(reference)?;
        let asked = locked.map_or_else(|| place.clone(), |digest| by_digest(&place, digest));
        let (mut manifest, mut digest) = self.read_manifest(&asked).await?;
        let mut found = content(&manifest, reference, arch)?;
        if let Content::List(of_arch) = &found {
            ensure!(locked.is_none(), "the lock's digest of {reference} is that of a list of images, and not of one");
            (manifest, digest) = self.read_manifest(&by_digest(&place, of_arch)).await?;
            found = content(&manifest, reference, arch)?;
        }
        let Content::Image(blobs) = found else { bail!("the manifest of {reference} for {arch} is a list again") };
        Ok(Found { place, manifest, digest, blobs })
    }

    async fn read_manifest(&self, image: &Reference) -> Result<(Vec<u8>, String)> {
        let mut attempt = 1;
        loop {
            match self.registry.manifest(image).await {
                Ok(found) => return Ok(found),
                Err(error) => match retry::delay(&error, attempt) {
                    Some(delay) => tokio::time::sleep(delay).await,
                    None => return Err(error),
                },
            }
            attempt += 1;
        }
    }

    /// Downloads all of an image. Fails if it is of another architecture.
    async fn bring_blobs(&self, found: &Found, arch: &str, bar: &Bar) -> Result<()> {
        bar.begin(0, Some(found.blobs.iter().map(|blob| blob.size).sum()));
        for blob in &found.blobs {
            self.bring_blob(&found.place, blob, bar).await?;
        }
        let directory = &self.blobs.directory;
        // The configuration is the first of them.
        let config = found.blobs.first().map(|blob| directory.join(digits(&blob.digest))).unwrap_or_default();
        let config = fs::read(&config).with_context(|| format!("failed to read {}", config.display()))?;
        check_configuration(&config, &found.place.to_string(), arch)
    }

    async fn archive_image(&self, wanted: &Wanted, found: &Found, bar: &Bar) -> Result<()> {
        self.bring_blobs(found, &wanted.arch, bar).await?;
        let name = format!("{}:{}", wanted.name, wanted.version);
        let directory = self.blobs.directory.clone();
        bar.at("writing the archive");
        let (path, arch) = (self.bundle.join(&wanted.path), wanted.arch.clone());
        let (manifest, blobs) = (found.manifest.clone(), found.blobs.clone());
        let written = tokio::task::spawn_blocking(move || {
            publish(&path, |draft| write_archive(draft, &name, &arch, &manifest, (&directory, &blobs)))
        });
        written.await.context("writing an archive was cut off")?
    }

    /// Downloads a blob, going on where an earlier attempt ended, unless it is there.
    async fn bring_blob(&self, image: &Reference, blob: &Blob, bar: &Bar) -> Result<()> {
        let turn = self.blobs.turn(&blob.digest).await;
        let _alone = turn.lock().await;
        create_dir(&self.blobs.directory)?;
        let path = self.blobs.directory.join(digits(&blob.digest));
        if path.is_file() {
            bar.advance(usize::try_from(blob.size)?);
            return Ok(());
        }
        let part = path.with_extension("part");
        let mut attempt = 1;
        loop {
            let resumed = part.exists();
            match self.continue_blob(image, blob, &part, bar).await {
                Ok(()) => {
                    let got = digest_of(&part).await?;
                    if got == digits(&blob.digest) {
                        return fs::rename(&part, &path)
                            .with_context(|| format!("failed to move {} into place", path.display()));
                    }
                    fs::remove_file(&part).with_context(|| format!("failed to remove {}", part.display()))?;
                    if !resumed {
                        bail!(
                            "{} of {image} came with the digest sha256:{got}: nothing of it is used. Look at the \
                             registry, or at its mirror",
                            blob.digest
                        );
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

    async fn continue_blob(&self, image: &Reference, blob: &Blob, part: &PathBuf, bar: &Bar) -> Result<()> {
        let downloading = || format!("failed to download {} of {image}", blob.digest);
        let there = fs::metadata(part).map_or(0, |found| found.len());
        if there >= blob.size && there > 0 {
            return Ok(());
        }
        bar.at("");
        let client = &self.registry.client;
        if there == 0 {
            let stream = client.pull_blob_stream(image, blob.digest.as_str()).await.with_context(downloading)?;
            let appended = append(part, 0, Some(blob.size), stream, bar).await;
            // If all of it came, the digest tells what is wrong.
            let whole = fs::metadata(part).is_ok_and(|found| found.len() == blob.size);
            return if whole { Ok(()) } else { appended.with_context(downloading) };
        }
        let answer = client.pull_blob_stream_partial(image, blob.digest.as_str(), there, None).await;
        let (there, stream) = match answer.with_context(downloading)? {
            BlobResponse::Full(stream) => (0, stream),
            BlobResponse::Partial(stream) => (there, stream),
        };
        append(part, there, Some(blob.size), stream, bar).await.with_context(downloading)
    }
}

/// Fails if the bundle has the artifact from another image than the one that was found.
fn refuse_another(known: Option<&Artifact>, found: &Found) -> Result<()> {
    let Some(known) = known.filter(|known| known.manifest != found.digest) else { return Ok(()) };
    let manifest = if known.manifest.is_empty() { "an archive" } else { &known.manifest };
    bail!(
        "{known} is in the bundle as another image ({manifest}; the registry has {}): a cluster that has the former \
         would refuse the latter (ComponentChanged); remove the former with prune",
        found.digest
    )
}

fn digits(digest: &str) -> &str {
    digest.trim_start_matches("sha256:")
}
