//! `lab build ...`: makes what the lab runs on, and nothing that is there already.

use std::path::{Path, PathBuf};
use std::thread;

use anyhow::{Context, Result, anyhow};
use clap::{Args, Subcommand};

use crate::cache::Cache;
use crate::images::ours::Foundation;
use crate::images::release::{self, Release};
use crate::images::scratch;
use crate::programs::{ADDONS, CHANGES, COMPONENTS, Component, Programs, STORAGES, UPGRADES, go};
use crate::progress::Progress;
use crate::{bundle, cargo, prerequisites, rootfs};

/// What to build. Everything is cached: a second call takes a moment.
#[derive(Debug, Clone, Subcommand)]
pub enum BuildCommand {
    /// Kubernetes, etcd, CoreDNS, containerd, runc and CNI plugins, from their Go modules
    Programs,
    /// The S3 server that `make backups` uses beside versitygw, from its Go module; `all` leaves it out
    Storages,
    /// What `make addons` gives to clusters, from its Go module, and its image; `all` leaves it out
    Addons,
    /// The root filesystem of the lab's machines
    Rootfs,
    /// Image archives: Kubernetes', CoreDNS, pause, busybox, and our operator and executor
    Images(Images),
    /// The artifact bundle, with the programs and images in it
    Bundle,
    /// The artifact bundle of upgrades: with an older minor of Kubernetes in it too; `all` leaves it out
    Upgrades,
    /// The same with more versions of Kubernetes, for `make changes`; `all` leaves it out
    Changes,
    /// OCI layouts of our operator and executor, optimised, for each architecture; `all` leaves it out
    Release(Release),
    /// All of the above
    All(Images),
}

/// How the images of ours are made.
#[derive(Debug, Clone, Default, Args)]
pub struct Images {
    /// A docker-archive or a directory to base our images on, in place of a Debian made from packages
    #[arg(long, value_name = "PATH", env = "CLUSTERWRIGHT_BASE_IMAGE")]
    pub base_image: Option<PathBuf>,
}

/// Builds what `command` names.
pub async fn run(command: BuildCommand) -> Result<()> {
    tokio::task::spawn_blocking(move || blocking(&command)).await.context("the build was cut off")?
}

fn blocking(command: &BuildCommand) -> Result<()> {
    let cache = Cache::from_env();
    let _alone = cache.lock()?;
    let progress = Progress::new();
    prerequisites::install(&cache, &progress)?;
    let programs = Programs::from_env(&cache);
    match command {
        BuildCommand::Storages => go::build(STORAGES, &cache, &programs, &progress),
        BuildCommand::Addons => {
            rootfs::machine::build(&cache, &progress)?;
            go::build(ADDONS, &cache, &programs, &progress)?;
            scratch::build(ADDONS, &cache, &programs, &progress)
        }
        BuildCommand::Programs => go::build(COMPONENTS, &cache, &programs, &progress),
        BuildCommand::Rootfs => rootfs::machine::build(&cache, &progress),
        BuildCommand::Images(options) => images(options, &cache, &programs, &progress),
        BuildCommand::Release(options) => release::build(options, &cache, &progress),
        BuildCommand::Bundle => whole_bundle(&cache.bundle(), COMPONENTS, &cache, &programs, &progress),
        BuildCommand::Upgrades => {
            let components = [COMPONENTS, UPGRADES].concat();
            whole_bundle(&cache.upgrades_bundle(), &components, &cache, &programs, &progress)
        }
        BuildCommand::Changes => {
            let components = [COMPONENTS, UPGRADES, CHANGES].concat();
            whole_bundle(&cache.upgrades_bundle(), &components, &cache, &programs, &progress)
        }
        BuildCommand::All(options) => {
            images(options, &cache, &programs, &progress)?;
            bundle::build(&cache.bundle(), COMPONENTS, &cache, &programs, &progress)
        }
    }
}

/// A bundle of these components, and what it is made of.
fn whole_bundle(
    directory: &Path,
    components: &[Component],
    cache: &Cache,
    programs: &Programs,
    progress: &Progress,
) -> Result<()> {
    side_by_side(|| go::build(components, cache, programs, progress), || rootfs::machine::build(cache, progress))?;
    scratch::build(components, cache, programs, progress)?;
    bundle::build(directory, components, cache, programs, progress)
}

/// Compilers on one side, Debian's packages on the other: the one waits for cores, the other for the network.
fn images(options: &Images, cache: &Cache, programs: &Programs, progress: &Progress) -> Result<()> {
    let (ours, foundation) = side_by_side(
        || {
            go::build(COMPONENTS, cache, programs, progress)?;
            cargo::ours(cache, progress)
        },
        || {
            rootfs::machine::build(cache, progress)?;
            Foundation::prepare(options.base_image.as_deref(), None, cache, progress)
        },
    )?;
    scratch::build(COMPONENTS, cache, programs, progress)?;
    foundation.build(&ours, cache, progress)
}

fn side_by_side<A: Send, B>(
    one: impl FnOnce() -> Result<A> + Send,
    other: impl FnOnce() -> Result<B>,
) -> Result<(A, B)> {
    thread::scope(|scope| {
        let one = scope.spawn(one);
        let other = other();
        let one = one.join().map_err(|_| anyhow!("a part of the build panicked"))?;
        Ok((one?, other?))
    })
}
