//! `wright bundle`: thin over the library of the same name.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use ::bundle::publish::create_dir;
use anyhow::{Context, Result, bail};
use clap::{Subcommand, ValueEnum};

use crate::download::PARTIAL;

mod add;
mod addons;
mod create;
mod import;
mod inspect;
mod lock;
mod packages;
mod prune;
mod push;
mod selection;
mod serve;
mod signature;

/// Make, check, change, carry and serve artifact bundles.
#[derive(Debug, Subcommand)]
pub enum BundleCommand {
    /// Download all that machines take for versions of Kubernetes, into a new bundle or one that is there
    Create(create::Create),
    /// Write down the digest of all that machines take from upstream, for clusters without a bundle
    Lock(lock::Lock),
    /// Compare every file with its digest, and say what machines would not find
    Verify(inspect::Verify),
    /// Say what differs between two bundles; exits with 1 if something does
    Diff(inspect::Diff),
    /// Add a component, an image, packages, programs that were built elsewhere, or what Addons install
    #[command(subcommand)]
    Add(add::Add),
    /// Remove what is not needed any more
    Prune(prune::Prune),
    /// Serve the bundle over HTTP
    Serve(serve::Serve),
    /// Push the whole bundle to a registry, for `import` on another site, or into an S3 bucket
    Push(push::Push),
    /// Add a bundle that was carried here, from a directory, a tar or a registry
    Import(import::Import),
}

/// Does what was asked. The code is 1 where the answer is no.
pub async fn run(command: BundleCommand) -> Result<ExitCode> {
    match command {
        BundleCommand::Create(command) => command.run().await,
        BundleCommand::Lock(command) => command.run().await,
        BundleCommand::Verify(command) => command.run(),
        BundleCommand::Diff(command) => command.run(),
        BundleCommand::Add(command) => command.run().await,
        BundleCommand::Prune(command) => command.run(),
        BundleCommand::Serve(command) => command.run().await,
        BundleCommand::Push(command) => command.run().await,
        BundleCommand::Import(command) => command.run().await,
    }
}

/// An architecture that upstream publishes for and that machines may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub enum Arch {
    Amd64,
    Arm64,
}

impl Arch {
    /// As Kubernetes names it.
    fn name(self) -> &'static str {
        match self {
            Self::Amd64 => "amd64",
            Self::Arm64 => "arm64",
        }
    }
}

/// `NAME=VERSION`, for clap.
fn parse_component(text: &str) -> Result<(String, String)> {
    match text.split_once('=') {
        Some((name, version)) if !name.is_empty() && !version.is_empty() => Ok((name.to_owned(), version.to_owned())),
        _ => bail!("give NAME=VERSION, such as etcd=3.6.17"),
    }
}

/// Keeps other calls from changing the bundle until it is dropped.
fn hold(bundle: &Path) -> Result<File> {
    create_dir(&bundle.join(PARTIAL))?;
    let path = bundle.join(PARTIAL).join("lock");
    let file = File::create(&path).with_context(|| format!("failed to create {}", path.display()))?;
    if file.try_lock().is_err() {
        bail!("another wright is changing {}: wait until it has ended", bundle.display());
    }
    Ok(file)
}

/// What is left of downloads goes once all of them have ended well.
fn clear_partial(bundle: &Path) -> Result<()> {
    let path = bundle.join(PARTIAL);
    std::fs::remove_dir_all(&path).with_context(|| format!("failed to remove {}", path.display()))
}

/// How `spec.artifacts` names the bundle.
fn say_index(bundle: &Path, index_sha256: &str) {
    println!("indexSHA256: {index_sha256}  ({})", bundle.join(::bundle::index::FILE).display());
}

/// The directory of a bundle that must be there.
fn existing(bundle: &Path) -> Result<PathBuf> {
    if !bundle.join(::bundle::index::FILE).is_file() {
        bail!("{} is no bundle: it has no {}", bundle.display(), ::bundle::index::FILE);
    }
    Ok(bundle.to_owned())
}
