//! `wright bundle prune`

use std::path::PathBuf;
use std::process::ExitCode;

use ::bundle::prune::{Keep, plan};
use anyhow::Result;
use clap::Args;

use super::{clear_partial, existing, hold, parse_component, say_index};
use crate::progress::bytes;

/// Remove what is not needed any more
#[derive(Debug, Args)]
pub struct Prune {
    /// The bundle's directory
    #[arg(default_value = "bundle")]
    directory: PathBuf,
    /// Keep these versions of Kubernetes and their components; without it, only files go that the index does not name
    #[arg(long, value_delimiter = ',', value_name = "VERSION")]
    kubernetes: Vec<String>,
    /// Keep this version of a component too, e.g. one that a cluster has frozen; may be given several times
    #[arg(long, value_parser = parse_component, value_name = "NAME=VERSION", requires = "kubernetes")]
    keep: Vec<(String, String)>,
    /// Say what would be removed, and remove nothing
    #[arg(long)]
    dry_run: bool,
}

impl Prune {
    /// Prints a line for each artifact and file that goes.
    pub fn run(self) -> Result<ExitCode> {
        let bundle = existing(&self.directory)?;
        let alone = hold(&bundle)?;
        let plan = plan(&bundle, &Keep { kubernetes: self.kubernetes, components: self.keep })?;
        for minor in &plan.minors {
            println!("- the table of components for Kubernetes {minor}");
        }
        for artifact in &plan.artifacts {
            println!("- {artifact}");
        }
        let listed = |file: &&String| plan.artifacts.iter().any(|artifact| artifact.path == **file);
        for file in plan.files.iter().filter(|file| !listed(file)) {
            println!("- {file}, which the index does not name");
        }
        let size = plan.files.iter().filter_map(|file| Some(std::fs::metadata(bundle.join(file)).ok()?.len())).sum();
        if self.dry_run {
            println!("{} files with {} would be removed", plan.files.len(), bytes(size));
            return Ok(ExitCode::SUCCESS);
        }
        let count = plan.files.len();
        let digest = plan.apply(&bundle)?;
        clear_partial(&bundle)?;
        drop(alone);
        println!("{count} files with {} were removed", bytes(size));
        say_index(&bundle, &digest);
        Ok(ExitCode::SUCCESS)
    }
}
