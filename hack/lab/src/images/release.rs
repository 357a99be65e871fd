//! What `make images` writes: a layout of the operator's image and one of the executor's, for several architectures.
//! The executor has the guard for all of them, and sends each machine its own.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use clap::Args;

use super::Architecture;
use super::archive::Layer;
use super::layout::{self, Image, Labels};
use super::materials::{Components, bill, crates, packages};
use super::ours::{self, Foundation};
use super::provenance::statement;
use crate::cache::Cache;
use crate::cargo;
use crate::programs::{component, go};
use crate::progress::Progress;
use crate::{emulation, prerequisites, project};

/// What is released, and where to.
#[derive(Debug, Clone, Args)]
pub struct Release {
    /// The version, which is the tag
    #[arg(long, value_name = "VERSION")]
    pub version: String,
    /// The directory that gets a layout for each image
    #[arg(long, value_name = "DIR")]
    pub output: PathBuf,
    /// What the images are for
    #[arg(long = "arch", value_enum, value_delimiter = ',', default_values_t = Architecture::ALL)]
    pub architectures: Vec<Architecture>,
}

/// The images of one architecture, before they are in a layout.
struct Both {
    operator: Image,
    executor: Image,
}

/// Builds what is missing, and writes both layouts.
pub fn build(release: &Release, cache: &Cache, progress: &Progress) -> Result<()> {
    let (revision, created) = commit()?;
    let labels = |name: &str| Labels {
        name: name.to_owned(),
        version: release.version.clone(),
        revision: revision.clone(),
        created: created.clone(),
    };
    prerequisites::install_for_release(&release.architectures, cache, progress)?;
    let mut guards = Vec::new();
    for architecture in Architecture::ALL {
        if release.architectures.contains(&architecture) {
            guards.push((architecture, cargo::guard_for(architecture, cache, progress)?));
        }
    }
    let scratch = tempfile::tempdir().context("failed to create a directory for layers")?;
    let (mut operators, mut executors) = (Vec::new(), Vec::new());
    for architecture in &release.architectures {
        let place = scratch.path().join(architecture.name());
        let both = images(*architecture, &guards, &place, (&labels("operator"), &labels("executor")), cache, progress)?;
        operators.push(both.operator);
        executors.push(both.executor);
    }
    let names: Vec<&str> = release.architectures.iter().map(|it| it.name()).collect();
    for (name, images) in [("operator", operators), ("executor", executors)] {
        let labels = labels(name);
        let directory = release.output.join(name);
        let task = progress.task(format!("layout of the {name}"));
        let digest = layout::write(&directory, &labels, &images, |digest| statement(&labels, digest, &names))?;
        task.done();
        println!("{} {digest}", directory.display());
    }
    Ok(())
}

fn images(
    architecture: Architecture,
    guards: &[(Architecture, PathBuf)],
    place: &Path,
    (operator, executor): (&Labels, &Labels),
    cache: &Cache,
    progress: &Progress,
) -> Result<Both> {
    emulation::enable(architecture)?;
    let programs = cargo::for_release(architecture, cache, progress)?;
    let foundation = Foundation::prepare(None, Some(architecture), cache, progress)?;
    let tree = ours::operator_tree(&programs.operator);
    let operator = image(architecture, "operator", foundation.of_operator(), &tree, place, operator)?;
    let helm = go::for_architecture(component("helm")?, architecture, cache, progress)?.join("helm");
    let tree = ours::executor_tree(&programs.executor, &helm, guards)?;
    let executor = image(architecture, "executor", foundation.of_executor(), &tree, place, executor)?;
    Ok(Both { operator, executor })
}

fn image(
    architecture: Architecture,
    name: &str,
    mut layers: Vec<Layer>,
    top: &bundle::tree::Tree,
    place: &Path,
    labels: &Labels,
) -> Result<Image> {
    let mut components: Components = crates(name, &architecture.target())?;
    let files: Vec<&Path> = layers.iter().map(|layer| layer.file.as_path()).collect();
    components.extend(packages(&files, architecture.name())?);
    layers.push(Layer::keep(&place.join(format!("{name}.tar")), |path| {
        let file = std::fs::File::create(path).with_context(|| format!("failed to create {}", path.display()))?;
        top.write(std::io::BufWriter::with_capacity(1 << 20, file))
    })?);
    Ok(Image {
        architecture: architecture.name(),
        settings: ours::settings(&format!("/usr/local/bin/{name}")),
        layers,
        materials: bill(labels, architecture.name(), &components),
    })
}

/// The commit that is checked out, and when it was made. What is not committed would be in no provenance.
fn commit() -> Result<(String, String)> {
    let changed = git(&["status", "--porcelain"])?;
    if !changed.is_empty() {
        bail!("these files are not committed, and an image says of which commit it is:\n{changed}");
    }
    let said = git(&["show", "--no-patch", "--format=%H %cd", "--date=format-local:%Y-%m-%dT%H:%M:%SZ", "HEAD"])?;
    let (revision, created) = said.split_once(' ').context("git names no commit")?;
    Ok((revision.to_owned(), created.to_owned()))
}

fn git(arguments: &[&str]) -> Result<String> {
    let said = Command::new("git").current_dir(project::path("")).env("TZ", "UTC").args(arguments).output();
    let said = said.context("failed to run git")?;
    if !said.status.success() {
        bail!("git {}: {}", arguments.join(" "), String::from_utf8_lossy(&said.stderr).trim());
    }
    Ok(String::from_utf8_lossy(&said.stdout).trim().to_owned())
}
