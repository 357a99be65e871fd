//! What is downloaded for versions of Kubernetes, by the catalogue.

use std::path::{Path, PathBuf};

use ::bundle::catalogue::{Catalogue, Wanted};
use anyhow::Result;
use clap::Args;

use super::Arch;

/// Versions of Kubernetes, and machines
#[derive(Debug, Args)]
pub struct Selection {
    /// Versions of Kubernetes
    #[arg(long, required = true, value_delimiter = ',', value_name = "VERSION")]
    pub kubernetes: Vec<String>,
    /// Architectures of machines
    #[arg(long, required = true, value_delimiter = ',')]
    pub arch: Vec<Arch>,
    /// A folder with another catalogue than the one that comes with this program
    #[arg(long, value_name = "FOLDER")]
    catalogue: Option<PathBuf>,
}

impl Selection {
    /// The catalogue, and each artifact once that machines of these versions and architectures take.
    pub fn wanted(&mut self) -> Result<(Catalogue, Vec<Wanted>)> {
        self.kubernetes.sort();
        self.kubernetes.dedup();
        self.arch.sort();
        self.arch.dedup();
        let catalogue = catalogue(self.catalogue.as_deref())?;
        let mut wanted = Vec::new();
        for version in &self.kubernetes {
            for arch in &self.arch {
                for one in catalogue.wanted(version, arch.name())? {
                    if !wanted.contains(&one) {
                        wanted.push(one);
                    }
                }
            }
        }
        Ok((catalogue, wanted))
    }
}

/// The catalogue in that folder, or the one that is built in.
pub fn catalogue(folder: Option<&Path>) -> Result<Catalogue> {
    folder.map_or_else(Catalogue::built_in, Catalogue::read)
}
