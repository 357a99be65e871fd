//! Builds the Rust programs that go into images.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::cache::Cache;
use crate::progress::Progress;
use crate::{logged, project};

/// Where the programs of our images are.
pub struct Ours {
    pub operator: PathBuf,
    pub executor: PathBuf,
    pub guard: PathBuf,
}

/// Builds the operator, the executor and the guard.
pub fn ours(cache: &Cache, progress: &Progress) -> Result<Ours> {
    let (profile, built) = (profile(), built()?);
    let task = progress.task("operator and executor");
    let mut build = cargo("build");
    build.args(["--profile", &profile, "--locked", "--package", "operator", "--package", "executor"]);
    logged::run(&mut build, &cache.log("cargo"), &task)?;
    task.done();
    Ok(Ours { operator: built.join("operator"), executor: built.join("executor"), guard: guard(cache, progress)? })
}

/// Builds the pause program, static: nothing else is in its image.
pub fn pause(cache: &Cache, progress: &Progress) -> Result<PathBuf> {
    let (profile, built) = (profile(), built()?);
    let task = progress.task("pause");
    let mut build = cargo("rustc");
    build.args(["--profile", &profile, "--locked", "--package", "pause", "--bin", "pause"]);
    build.args(["--", "-C", "target-feature=+crt-static"]);
    logged::run(&mut build, &cache.log("cargo"), &task)?;
    task.done();
    Ok(built.join("pause"))
}

/// Builds the guard, static: it is copied to machines as it is. Its path holds the hash of its sources.
fn guard(cache: &Cache, progress: &Progress) -> Result<PathBuf> {
    let task = progress.task("guard");
    let log = cache.log("cargo");
    let mut build = clean(Command::new(project::path("hack/guard")));
    logged::run(&mut build, &log, &task)?;
    // It is built now; asked again, the script says where and nothing else.
    let said = clean(Command::new(project::path("hack/guard"))).output().context("failed to run hack/guard")?;
    let path = String::from_utf8_lossy(&said.stdout);
    task.done();
    Ok(PathBuf::from(path.trim_end()))
}

fn cargo(verb: &str) -> Command {
    let mut cargo = clean(Command::new("cargo"));
    cargo.current_dir(project::path("")).arg(verb);
    // Optimising all of the operator again for one changed line would take minutes.
    if std::env::var_os("CARGO_INCREMENTAL").is_none() {
        cargo.env("CARGO_INCREMENTAL", "1");
    }
    cargo
}

/// The command without what tells it who called the caller.
fn clean(mut command: Command) -> Command {
    for (name, _) in std::env::vars_os() {
        if name.to_str().is_some_and(says_who_runs) {
            command.env_remove(name);
        }
    }
    command
}

/// Whether `cargo run` and `cargo test` set this variable for what they start. A dependency's build script looks at
/// some of them: passed on, they would have it and all above it compiled again at each change of caller.
fn says_who_runs(name: &str) -> bool {
    matches!(name, "CARGO_CRATE_NAME" | "CARGO_BIN_NAME" | "CARGO_PRIMARY_PACKAGE" | "OUT_DIR")
        || ["CARGO_PKG_", "CARGO_MANIFEST_", "CARGO_BIN_EXE_"].iter().any(|prefix| name.starts_with(prefix))
}

/// The profile of the programs in our images: `CLUSTERWRIGHT_PROFILE`, default `lab`.
fn profile() -> String {
    std::env::var("CLUSTERWRIGHT_PROFILE").unwrap_or_else(|_| "lab".into())
}

/// The directory of what is built with that profile, wherever the user keeps it.
fn built() -> Result<PathBuf> {
    let said = cargo("metadata")
        .args(["--format-version", "1", "--no-deps", "--locked"])
        .output()
        .context("failed to run cargo metadata")?;
    let metadata: serde_json::Value =
        serde_json::from_slice(&said.stdout).context("failed to read what cargo metadata says")?;
    let target = metadata["target_directory"].as_str().context("cargo metadata names no target directory")?;
    Ok(Path::new(target).join(profile()))
}

#[cfg(test)]
mod tests {
    use super::says_who_runs;

    #[test]
    fn a_users_settings_reach_cargo_and_the_callers_name_does_not() {
        assert!(says_who_runs("CARGO_PKG_NAME") && says_who_runs("CARGO_MANIFEST_DIR"));
        assert!(!says_who_runs("CARGO_HOME") && !says_who_runs("CARGO_TARGET_DIR") && !says_who_runs("RUSTFLAGS"));
    }
}
