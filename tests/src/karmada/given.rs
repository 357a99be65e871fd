//! Karmada's own programs, and the definitions of its release: given by whoever runs the test, in
//! `CLUSTERWRIGHT_PROGRAMS/karmada/<version>`. Nothing here builds or fetches them.

use std::io::Read;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use lab::cache::Cache;
use lab::programs::Programs;

use super::VERSION;
use crate::objects::OLDER;

/// The programs, by version.
#[derive(Clone)]
pub struct Given {
    directory: PathBuf,
}

impl Given {
    /// Those that are given, [`VERSION`] among them; an error says where they are looked for.
    pub fn from_env() -> Result<Self> {
        let given = std::env::var_os("CLUSTERWRIGHT_PROGRAMS").filter(|value| !value.is_empty());
        let given = given.context("CLUSTERWRIGHT_PROGRAMS is not set: `make karmada` says what it must hold")?;
        let own = Self { directory: Path::new(&given).join("karmada") };
        let wanted = own.directory.join(VERSION);
        ensure!(own.has(VERSION), "{} has no programs: `make karmada` says what it must hold", wanted.display());
        Ok(own)
    }

    /// Where they are: a folder for each version.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Whether those of a version are given.
    pub fn has(&self, version: &str) -> bool {
        self.directory.join(version).join("bin").join("karmada-webhook").is_file()
    }

    /// The program of a container with this image: Karmada's are given, Kubernetes' and etcd are those of the lab; with
    /// the tag of its older minor of Kubernetes they are of that.
    pub fn program(&self, name: &str, image: &str) -> Result<PathBuf> {
        if !name.starts_with("karmada-") {
            let programs = Programs::from_env(&Cache::from_env());
            return match image.ends_with(&format!(":v{OLDER}")) {
                true => programs.find_older(name),
                false => programs.find(name),
            };
        }
        let version = image.rsplit_once(":v").with_context(|| format!("{image} has no version"))?.1;
        let path = self.directory.join(version).join("bin").join(name);
        ensure!(path.is_file(), "{} is missing", path.display());
        Ok(path)
    }

    /// Upstream's command line of [`VERSION`], where it is given as well.
    pub fn karmadactl(&self) -> Option<PathBuf> {
        Some(self.directory.join(VERSION).join("bin").join("karmadactl")).filter(|path| path.is_file())
    }

    /// The archive of a release's definitions.
    pub fn definitions_archive(&self, version: &str) -> PathBuf {
        self.directory.join(version).join("crds.tar.gz")
    }

    /// The definitions of a release in one file, as a bundle has them.
    pub fn definitions(&self, version: &str) -> Result<String> {
        let path = self.definitions_archive(version);
        let file = std::fs::File::open(&path).with_context(|| format!("failed to open {}", path.display()))?;
        let mut archive = tar::Archive::new(flate2::read::GzDecoder::new(file));
        let mut documents = Vec::new();
        for entry in archive.entries()? {
            let mut entry = entry?;
            let name = entry.path()?.to_string_lossy().into_owned();
            if name.contains("crds/bases/") && name.ends_with(".yaml") {
                let mut document = String::new();
                entry.read_to_string(&mut document)?;
                documents.push(document);
            }
        }
        ensure!(!documents.is_empty(), "{} has no crds/bases", path.display());
        Ok(documents.join("\n---\n"))
    }
}
