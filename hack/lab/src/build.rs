//! `lab build ...`: makes what the lab runs on, and nothing that is there already.

use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::{Args, Subcommand};

use crate::cache::Cache;
use crate::prerequisites;
use crate::programs::{Programs, go};
use crate::progress::Progress;
use crate::rootfs;

/// What to build. Everything is cached: a second call takes a moment.
#[derive(Debug, Clone, Subcommand)]
pub enum BuildCommand {
    /// Kubernetes, etcd, CoreDNS, containerd, runc and CNI plugins, from their Go modules
    Programs,
    /// The root filesystem of the lab's machines
    Rootfs,
    /// Image archives: Kubernetes', CoreDNS, pause, busybox, and our operator and executor
    Images(Images),
    /// The artifact bundle, with the programs and images in it
    Bundle,
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
    tokio::task::spawn_blocking(move || blocking(&command))
        .await
        .context("the build was cut off")?
}

fn blocking(command: &BuildCommand) -> Result<()> {
    let cache = Cache::from_env();
    let _alone = cache.lock()?;
    let progress = Progress::new();
    prerequisites::install(&cache, &progress)?;
    let programs = Programs::from_env(&cache);
    match command {
        BuildCommand::Programs => go::build(&cache, &programs, &progress),
        BuildCommand::Rootfs => rootfs::machine::build(&cache, &progress).map(drop),
        BuildCommand::Images(_) | BuildCommand::Bundle | BuildCommand::All(_) => {
            go::build(&cache, &programs, &progress)?;
            rootfs::machine::build(&cache, &progress).map(drop)
        }
    }
}
