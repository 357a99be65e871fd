//! Builds the Rust programs that go into images.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result};

use crate::cache::Cache;
use crate::images::Architecture;
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

/// The operator and the executor for an architecture, optimised. No path of this machine is in them, so that another
/// checkout gives the same.
pub fn for_release(architecture: Architecture, cache: &Cache, progress: &Progress) -> Result<Released> {
    let target = architecture.target();
    let task = progress.task(format!("operator and executor for {}", architecture.name()));
    let mut build = for_target(cargo("build"), architecture);
    let (source, home) = (project::path("").canonicalize()?, cargo_home());
    let maps = [(source.display().to_string(), "/src"), (home.display().to_string(), "/cargo")];
    let of_rust: Vec<String> = maps.iter().map(|(from, to)| format!("--remap-path-prefix={from}={to}")).collect();
    let of_c: Vec<String> = maps.iter().map(|(from, to)| format!("-ffile-prefix-map={from}={to}")).collect();
    build.env("RUSTFLAGS", of_rust.join(" ")).env("CFLAGS", of_c.join(" ")).env("CARGO_INCREMENTAL", "0");
    build.args(["--release", "--locked", "--package", "operator", "--package", "executor", "--target", &target]);
    logged::run(&mut build, &cache.log("cargo"), &task)?;
    task.done();
    let built = target_directory()?.join(&target).join("release");
    Ok(Released { operator: built.join("operator"), executor: built.join("executor") })
}

/// The programs of a release.
pub struct Released {
    pub operator: PathBuf,
    pub executor: PathBuf,
}

/// The guard for machines of an architecture.
pub fn guard_for(architecture: Architecture, cache: &Cache, progress: &Progress) -> Result<PathBuf> {
    let program = || {
        let mut script = for_target(clean(Command::new(project::path("hack/guard"))), architecture);
        script.env("GUARD_TARGET", architecture.target());
        script
    };
    built_guard(program, cache, progress)
}

/// Names the linker of another architecture.
fn for_target(mut command: Command, architecture: Architecture) -> Command {
    if Some(architecture) != Architecture::own() {
        let name = architecture.target().replace('-', "_");
        let compiler = format!("{}-linux-gnu-gcc", architecture.machine());
        command.env(format!("CARGO_TARGET_{}_LINKER", name.to_uppercase()), &compiler);
        command.env(format!("CC_{name}"), &compiler);
    }
    command
}

fn cargo_home() -> PathBuf {
    let home = || std::env::var_os("HOME").map_or_else(|| PathBuf::from("/root"), PathBuf::from).join(".cargo");
    std::env::var_os("CARGO_HOME").map_or_else(home, PathBuf::from)
}

/// Builds the guard, static: it is copied to machines as it is. Its path holds the hash of its sources.
fn guard(cache: &Cache, progress: &Progress) -> Result<PathBuf> {
    built_guard(|| clean(Command::new(project::path("hack/guard"))), cache, progress)
}

fn built_guard(script: impl Fn() -> Command, cache: &Cache, progress: &Progress) -> Result<PathBuf> {
    let task = progress.task("guard");
    logged::run(&mut script(), &cache.log("cargo"), &task)?;
    // It is built now; asked again, the script says where and nothing else.
    let said = script().output().context("failed to run hack/guard")?;
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
    Ok(target_directory()?.join(profile()))
}

fn target_directory() -> Result<PathBuf> {
    let said = cargo("metadata")
        .args(["--format-version", "1", "--no-deps", "--locked"])
        .output()
        .context("failed to run cargo metadata")?;
    let metadata: serde_json::Value =
        serde_json::from_slice(&said.stdout).context("failed to read what cargo metadata says")?;
    let target = metadata["target_directory"].as_str().context("cargo metadata names no target directory")?;
    Ok(PathBuf::from(target))
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
