//! `wright bundle create`

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use ::bundle::catalogue::Wanted;
use ::bundle::index::Index;
use ::bundle::verify;
use ::bundle::version::minor;
use anyhow::Result;
use clap::Args;
use futures::{StreamExt, TryStreamExt, stream};

use super::packages::{self, PackageOptions};
use super::selection::Selection;
use super::{clear_partial, hold, say_index};
use crate::download::{Brought, DownloadOptions, Downloads, Trust};

/// Download all that machines take for versions of Kubernetes
#[derive(Debug, Args)]
pub struct Create {
    /// The bundle's directory
    #[arg(default_value = "bundle")]
    directory: PathBuf,
    #[command(flatten)]
    selection: Selection,
    /// Programs of Karmada control planes on machines too, of these versions of Karmada
    #[arg(long, value_delimiter = ',', value_name = "VERSION")]
    karmada: Vec<String>,
    /// Packages of these operating systems too, as /etc/os-release has ID and VERSION_ID: debian12
    #[arg(long, value_delimiter = ',', value_name = "OS")]
    os: Vec<String>,
    #[command(flatten)]
    packages: PackageOptions,
    #[command(flatten)]
    downloads: DownloadOptions,
}

impl Create {
    /// Downloads what is not there, and writes the index once all of it is.
    pub async fn run(mut self) -> Result<ExitCode> {
        let (catalogue, mut wanted) = self.selection.wanted()?;
        for (version, arch) in self.karmada.iter().flat_map(|it| self.selection.arch.iter().map(move |arch| (it, arch)))
        {
            for one in catalogue.planes(version, &self.selection.kubernetes, arch.name())? {
                if !wanted.contains(&one) {
                    wanted.push(one);
                }
            }
        }
        let bundle = &self.directory;
        let alone = hold(bundle)?;
        let mut index = Index::read_or_new(bundle)?;
        let first = bring_all(bundle, &wanted, &mut index, &self.downloads).await?;
        let archs: Vec<&str> = self.selection.arch.iter().map(|arch| arch.name()).collect();
        let signed =
            packages::bring(bundle, &mut index, &catalogue, (&self.os, &archs), &self.packages, &self.downloads)
                .await?;
        for version in &self.selection.kubernetes {
            if let Some(minor) = minor(version) {
                index.components.insert(minor, catalogue.components(version)?.clone());
            }
        }
        let digest = index.write(bundle)?;
        clear_partial(bundle)?;
        drop(alone);
        say_first_use(first);
        for problem in verify::lacking(&index) {
            println!("{problem}");
        }
        say_index(bundle, &digest);
        signed.iter().for_each(|key| packages::say_key(bundle, key));
        Ok(ExitCode::SUCCESS)
    }
}

/// Brings all of these into the bundle and the index, which is not written yet. Returns how many were trusted on first
/// use.
pub async fn bring_all(
    bundle: &Path,
    wanted: &[Wanted],
    index: &mut Index,
    options: &DownloadOptions,
) -> Result<usize> {
    let brought = download_all(bundle, wanted, index, options).await?;
    let first = brought.iter().filter(|brought| brought.trust == Trust::FirstUse).count();
    for Brought { artifact, .. } in brought {
        index.insert(artifact)?;
    }
    Ok(first)
}

/// Brings all of these into the bundle, and leaves the index as it is.
pub async fn download_all(
    bundle: &Path,
    wanted: &[Wanted],
    index: &Index,
    options: &DownloadOptions,
) -> Result<Vec<Brought>> {
    let downloads = Downloads::new(bundle, wanted, options)?;
    let one = |wanted: Wanted| {
        let known = wanted.known(index).cloned();
        let downloads = Arc::clone(&downloads);
        async move { downloads.bring(&wanted, known.as_ref()).await }
    };
    let all: Vec<_> = wanted.iter().cloned().map(one).collect();
    stream::iter(all).buffer_unordered(usize::from(options.parallel)).try_collect().await
}

/// Says what the lock is for.
pub fn say_first_use(count: usize) {
    if count > 0 {
        println!(
            "{count} digests were trusted on first use: upstream publishes no checksums of them. They are in {}; keep \
             it, and give --locked the next time",
            ::bundle::lock::FILE
        );
    }
}
