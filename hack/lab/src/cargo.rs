//! Builds the Rust programs that go into images.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::cache::Cache;
use crate::progress::Progress;
use crate::{logged, project};

/// Builds the operator and the executor; gives their paths in this order.
pub fn ours(cache: &Cache, progress: &Progress) -> Result<(PathBuf, PathBuf)> {
    let release = release()?;
    let task = progress.task("operator and executor");
    let mut build = cargo("build");
    build.args([
        "--release",
        "--locked",
        "--package",
        "operator",
        "--package",
        "executor",
    ]);
    logged::run(&mut build, &cache.log("cargo"), &task)?;
    task.done();
    Ok((release.join("operator"), release.join("executor")))
}

/// Builds the pause program, static: nothing else is in its image.
pub fn pause(cache: &Cache, progress: &Progress) -> Result<PathBuf> {
    let release = release()?;
    let task = progress.task("pause");
    let mut build = cargo("rustc");
    build.args(["--release", "--locked", "--package", "pause", "--bin", "pause"]);
    build.args(["--", "-C", "target-feature=+crt-static"]);
    logged::run(&mut build, &cache.log("cargo"), &task)?;
    task.done();
    Ok(release.join("pause"))
}

fn cargo(verb: &str) -> Command {
    let mut cargo = Command::new("cargo");
    cargo.current_dir(project::path("")).arg(verb);
    cargo
}

/// The directory of release builds, wherever the user keeps them.
fn release() -> Result<PathBuf> {
    let said = cargo("metadata")
        .args(["--format-version", "1", "--no-deps", "--locked"])
        .output()
        .context("failed to run cargo metadata")?;
    let metadata: serde_json::Value =
        serde_json::from_slice(&said.stdout).context("failed to read what cargo metadata says")?;
    let target = metadata["target_directory"]
        .as_str()
        .context("cargo metadata names no target directory")?;
    Ok(Path::new(target).join("release"))
}
