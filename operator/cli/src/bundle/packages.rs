//! Packages of operating systems, in a repository that apt on machines believes by a key: apt itself finds out what
//! belongs to it, by its distribution's signed lists.

use std::fs;
use std::path::{Path, PathBuf};

use ::bundle::catalogue::{Catalogue, Wanted};
use ::bundle::digest;
use ::bundle::index::{Artifact, Index, Kind};
use ::bundle::packages::{KEY, LIST, Package, RELEASE, Repository, list};
use ::bundle::publish::publish;
use anyhow::{Context, Result};
use clap::Args;
use jiff::Timestamp;

use super::create::download_all;
use crate::download::DownloadOptions;

mod apt;
mod signature;

use apt::Apt;
use signature::Signer;

/// Which packages, where from, and who signs
#[derive(Debug, Args)]
pub struct PackageOptions {
    /// A further package of each of the operating systems; may be given several times
    #[arg(long, value_name = "NAME")]
    os_package: Vec<String>,
    /// Sources of apt (`sources.list` or `.sources`) in place of those of the catalogue
    #[arg(long, value_name = "FILE")]
    os_sources: Option<PathBuf>,
    /// The directory of GnuPG with the key that signs; a key is made there, without a passphrase, if it has none
    #[arg(long, value_name = "DIRECTORY", default_value = "packages.gnupg")]
    gnupg_home: PathBuf,
    /// Which key of that directory signs [default: the only one]
    #[arg(long, value_name = "FINGERPRINT")]
    signing_key: Option<String>,
}

/// Brings the repositories of these operating systems and architectures into the bundle and the index, which is not
/// written yet, each in the place of what there was of it. Returns where their keys lie.
pub async fn bring(
    bundle: &Path,
    index: &mut Index,
    catalogue: &Catalogue,
    (systems, archs): (&[String], &[&str]),
    options: &PackageOptions,
    downloads: &DownloadOptions,
) -> Result<Vec<String>> {
    let mut keys = Vec::new();
    if systems.is_empty() {
        return Ok(keys);
    }
    let signer = Signer::open(&options.gnupg_home, options.signing_key.as_deref())?;
    for os in systems {
        let distribution = catalogue.distribution(os)?;
        for arch in archs {
            let repository = Repository { os, arch };
            let apt = Apt::new(distribution, repository, options.os_sources.as_deref(), downloads)?;
            let names = [distribution.packages.as_slice(), &options.os_package].concat();
            let packages = apt.closure(&names).with_context(|| format!("failed to find packages for {os}/{arch}"))?;
            let wanted: Vec<Wanted> = packages.iter().map(|package| Wanted::package(repository, package)).collect();
            let brought = download_all(bundle, &wanted, index, downloads).await?;
            let mut artifacts: Vec<Artifact> =
                brought.into_iter().map(|brought| brought.artifact.of_repository(repository)).collect();
            artifacts.extend(describe(bundle, index, repository, (&packages, apt.date()?), &signer)?);
            index.replace_repository(repository, artifacts)?;
            keys.push(format!("{}/{KEY}", repository.directory()));
        }
    }
    Ok(keys)
}

/// The list, the signed release and the key. A release that is there stays if it says the same by the same key: a
/// signature is another one each time.
fn describe(
    bundle: &Path,
    index: &Index,
    repository: Repository<'_>,
    (packages, date): (&[Package], Timestamp),
    signer: &Signer,
) -> Result<Vec<Artifact>> {
    let list = list(packages);
    let list_path = repository.list(&digest::of_bytes(list.as_bytes()));
    let (release_path, key_path) =
        (format!("{}/{RELEASE}", repository.directory()), format!("{}/{KEY}", repository.directory()));
    let of = |path: &str| index.artifacts.iter().find(|it| it.is_in_repository() && it.path == path);
    let is_there = |path: &str| of(path).is_some() && bundle.join(path).is_file();
    let same_key = fs::read_to_string(bundle.join(&key_path)).is_ok_and(|key| key == signer.public_key());
    if same_key && [&list_path, &release_path, &key_path].into_iter().all(|path| is_there(path)) {
        return Ok([&list_path, &release_path, &key_path].into_iter().filter_map(|path| of(path)).cloned().collect());
    }
    let signed = signer.sign(&repository.release(&date.strftime("%a, %d %b %Y %H:%M:%S UTC").to_string(), &list))?;
    let version = date.strftime("%Y%m%dT%H%M%SZ").to_string();
    let write = |name: &str, path: &str, text: &str| -> Result<Artifact> {
        publish(&bundle.join(path), |draft| {
            fs::write(draft, text).with_context(|| format!("failed to write {}", draft.display()))
        })?;
        let file = (text.len() as u64, digest::of_bytes(text.as_bytes()));
        Ok(Artifact::new(name, Kind::Repository, &version, repository.arch, path, file).of_repository(repository))
    };
    // apt reads the release first, so it is the last to be replaced.
    Ok(vec![
        write(LIST, &list_path, &list)?,
        write(KEY, &key_path, signer.public_key())?,
        write(RELEASE, &release_path, &signed)?,
    ])
}

/// How `spec.artifacts` names the key.
pub fn say_key(bundle: &Path, key: &str) {
    println!("osPackages: {{signedBy: ...}} is the text of {}", bundle.join(key).display());
}
