//! A repository with the versions of the chart in `tests/charts`, served until this is dropped.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use lab::cache::Cache;
use lab::programs::Programs;
use tokio::task::JoinHandle;

/// The chart.
pub const NAME: &str = "agent";

/// A repository.
pub struct Charts {
    /// Where it is.
    pub url: String,
    /// The digest of each version's archive, as `source.chart.digest` has it.
    pub digests: BTreeMap<&'static str, String>,
    server: JoinHandle<Result<()>>,
    _directory: tempfile::TempDir,
}

impl Charts {
    /// Serves these versions at this address.
    pub fn serve(address: SocketAddr, versions: &[&'static str]) -> Result<Self> {
        let directory = tempfile::tempdir()?;
        let place = directory.path().to_string_lossy();
        let mut digests = BTreeMap::new();
        for version in versions.iter().copied() {
            let chart = lab::project::path("tests/charts").join(NAME);
            let arguments = ["package", &chart.to_string_lossy(), "--version", version, "--destination", &place];
            helm(directory.path(), &arguments)?;
            let digest = bundle::digest::of_file(&directory.path().join(format!("{NAME}-{version}.tgz")))?;
            digests.insert(version, format!("sha256:{}", digest.trim_start_matches("sha256:")));
        }
        helm(directory.path(), &["repo", "index", &place])?;
        let server = tokio::spawn(lab::serve::run(lab::serve::ServeBundle {
            listen: address,
            directory: Some(directory.path().to_owned()),
        }));
        Ok(Self { url: format!("http://{address}"), digests, server, _directory: directory })
    }
}

impl Drop for Charts {
    fn drop(&mut self) {
        self.server.abort();
    }
}

/// The Helm that the executor's image has.
pub fn program() -> Result<std::path::PathBuf> {
    Programs::from_env(&Cache::from_env()).find("helm")
}

fn helm(home: &Path, arguments: &[&str]) -> Result<()> {
    let ran = Command::new(program()?).args(arguments).env("HOME", home).output().context("failed to run Helm")?;
    ensure!(ran.status.success(), "helm {}: {}", arguments.join(" "), String::from_utf8_lossy(&ran.stderr));
    Ok(())
}
