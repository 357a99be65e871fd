//! Bundles that differ from the lab's in their index, each served at a port of its own.

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result, ensure};
use lab::cache::Cache;
use lab::rootfs::Release;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::task::JoinHandle;

/// What the lab's machines have, as bundles name it.
const MACHINES_OS: [(&str, Release); 2] = [("debian12", Release::Debian12), ("debian13", Release::Debian13)];
/// Debian's own keys.
const KEYRING: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";

/// A bundle that is served until this is dropped.
pub struct Bundle {
    /// Where it is.
    pub url: String,
    /// SHA-256 of its index.
    pub index_sha256: String,
    /// The public key of its packages; empty: it has none.
    pub packages_key: String,
    server: JoinHandle<Result<()>>,
    _directory: TempDir,
}

impl Bundle {
    /// Serves the lab's bundle at a port, with the index as `change` makes it.
    pub fn serve(port: u16, change: impl FnOnce(&mut Value)) -> Result<Self> {
        let real = Cache::from_env().bundle();
        let directory = tempfile::tempdir()?;
        for part in ["files", "images"] {
            std::os::unix::fs::symlink(real.join(part), directory.path().join(part))?;
        }
        let mut index = read(&real)?;
        change(&mut index);
        std::fs::write(directory.path().join("index.json"), serde_json::to_vec(&index)?)?;
        Self::serve_directory(port, directory)
    }

    /// Serves a bundle that `wright` has made for the lab's version of Kubernetes, of a mirror of upstream.
    /// The packages for machines in it are from Debian's own servers.
    pub async fn made_by_wright(port: u16) -> Result<Self> {
        let mirror = lab::upstream::router(&Cache::from_env().bundle())?;
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
        let host = listener.local_addr()?.to_string();
        let mirror = tokio::spawn(lab::upstream::serve(listener, mirror));
        let directory = tempfile::tempdir()?;
        let place = directory.path().display().to_string();
        let kubernetes = lab::programs::component("kubernetes").context("the lab runs Kubernetes")?.version;
        let arch = lab::images::architecture();
        let create = ["wright", "bundle", "create", &place, "--kubernetes", kubernetes, "--arch", arch];
        let url = format!("http://{host}");
        let from = ["--mirror", &url, "--image-mirror", &host, "--insecure-registry", &host];
        let made = wright::run(create.into_iter().chain(from).map(Into::into)).await;
        mirror.abort();
        ensure!(made? == ExitCode::SUCCESS, "wright bundle create failed");
        let keys = directory.path().join("gnupg").display().to_string();
        for (os, release) in MACHINES_OS {
            let sources = sources(directory.path(), release)?;
            let add = ["wright", "bundle", "add", "packages", os, "--arch", arch, "--bundle", &place];
            let from = ["--gnupg-home", &keys, "--os-sources", &sources];
            let added = wright::run(add.into_iter().chain(from).map(Into::into)).await?;
            ensure!(added == ExitCode::SUCCESS, "wright bundle add packages failed");
        }
        Self::serve_directory(port, directory)
    }

    /// Serves the lab's bundle at a port, with what each of these `wright bundle add` adds to it.
    pub async fn extended(port: u16, additions: &[Vec<String>]) -> Result<Self> {
        let directory = tempfile::tempdir()?;
        link_all(&Cache::from_env().bundle(), directory.path())?;
        let place = directory.path().display().to_string();
        for addition in additions {
            let arguments = ["wright", "bundle", "add"].into_iter().chain(addition.iter().map(String::as_str));
            let added = wright::run(arguments.chain(["--bundle", &place]).map(Into::into)).await?;
            ensure!(added == ExitCode::SUCCESS, "wright bundle add {addition:?} failed");
        }
        Self::serve_directory(port, directory)
    }

    fn serve_directory(port: u16, directory: TempDir) -> Result<Self> {
        let index_sha256 = bundle::digest::of_file(&directory.path().join("index.json"))?;
        let key = format!("os/{}/{}/packages.asc", MACHINES_OS[0].0, lab::images::architecture());
        let packages_key = std::fs::read_to_string(directory.path().join(key)).unwrap_or_default();
        let address = format!("172.30.0.1:{port}");
        let server = tokio::spawn(lab::serve::run(lab::serve::ServeBundle {
            listen: address.parse()?,
            directory: Some(directory.path().to_owned()),
        }));
        Ok(Self { url: format!("http://{address}"), index_sha256, packages_key, server, _directory: directory })
    }
}

impl Drop for Bundle {
    fn drop(&mut self) {
        self.server.abort();
    }
}

/// All files of a bundle as links in folders of their own, but for the index, which is a copy.
fn link_all(from: &Path, to: &Path) -> Result<()> {
    for entry in std::fs::read_dir(from).with_context(|| format!("failed to read {}", from.display()))? {
        let entry = entry?;
        let (source, copy) = (entry.path(), to.join(entry.file_name()));
        if entry.file_name() == "index.json" {
            std::fs::copy(source, copy)?;
        } else if source.is_dir() {
            std::fs::create_dir(&copy)?;
            link_all(&source, &copy)?;
        } else {
            std::os::unix::fs::symlink(source, copy)?;
        }
    }
    Ok(())
}

/// The sources that the lab's machines are made of, for apt to verify them by Debian's keys.
fn sources(directory: &Path, release: Release) -> Result<String> {
    let path = lab::rootfs::machine::find(&Cache::from_env(), release)?.join("etc/apt/sources.list");
    let text = std::fs::read_to_string(&path).with_context(|| format!("failed to read {}", path.display()))?;
    let signed = directory.join("sources.list");
    std::fs::write(&signed, text.replace("deb ", &format!("deb [signed-by={KEYRING}] ")))?;
    Ok(signed.display().to_string())
}

/// The index of the lab's own bundle.
pub fn index() -> Result<Value> {
    read(&Cache::from_env().bundle())
}

fn read(bundle: &Path) -> Result<Value> {
    let path = bundle.join("index.json");
    let text = std::fs::read(&path).with_context(|| format!("failed to read {}", path.display()))?;
    Ok(serde_json::from_slice(&text)?)
}

/// Lets the bundle have a newer version of everything but Kubernetes, whose files are missing: who takes one, fails.
pub fn make_newer(index: &mut Value) {
    index["components"] = json!({});
    let artifacts = index["artifacts"].as_array().cloned().unwrap_or_default();
    let newer = artifacts.into_iter().filter(|artifact| {
        let name = artifact["name"].as_str().unwrap_or_default();
        !name.starts_with("kube") && !name.starts_with("registry.k8s.io/kube-")
    });
    let newer: Vec<Value> = newer
        .map(|mut artifact| {
            artifact["version"] = json!("99.0.0");
            artifact["path"] = json!("files/missing");
            artifact
        })
        .collect();
    if let Some(artifacts) = index["artifacts"].as_array_mut() {
        artifacts.extend(newer);
    }
}
