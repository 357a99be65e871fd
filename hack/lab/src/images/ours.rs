//! The operator's and the executor's images: a Debian, what they need installed on it, and our own files on top, so
//! that a change of ours costs seconds. `operator/Containerfile` and `executor/Containerfile` say the same.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use bundle::tree::Tree;

use super::archive::{Layer, Settings, is_fresh, write};
use super::debian::Base;
use super::{Architecture, EXECUTOR, OPERATOR, Reference};
use crate::cache::{Cache, publish};
use crate::cargo::Ours;
use crate::programs::Programs;
use crate::progress::Progress;
use crate::rootfs::recipe_hash;
use crate::{logged, project};

/// Who runs in both images: nobody in particular, and never root.
const USER: u32 = 65532;

/// The layers that our files go on.
pub struct Foundation {
    base: Layer,
    operator: Layer,
    executor: Layer,
}

impl Foundation {
    /// Prepares what changes seldom: packages and Ansible; for this machine, where no architecture is named.
    pub fn prepare(
        given: Option<&Path>,
        architecture: Option<Architecture>,
        cache: &Cache,
        progress: &Progress,
    ) -> Result<Self> {
        let requirements = project::path("executor/ansible/requirements.txt");
        let wheels = wheels(&requirements, architecture, cache, progress)?;
        let base = Base::prepare(given, architecture, cache, progress)?;
        let operator = base.run("operator", include_str!("operator.sh"), &[], cache, progress)?;
        let executor = base.run("executor", include_str!("executor.sh"), &[requirements, wheels], cache, progress)?;
        Ok(Self { base: base.layer, operator, executor })
    }

    /// Writes both images with these programs, if they have changed.
    pub fn build(&self, programs: &Ours, cache: &Cache, progress: &Progress) -> Result<()> {
        let tree = operator_tree(&programs.operator);
        self.image(&OPERATOR, "/usr/local/bin/operator", &self.operator, &tree, cache, progress)?;

        let own = Architecture::own().context("no image is made for machines of this architecture")?;
        let tree = executor_tree(
            &programs.executor,
            &Programs::from_env(cache).find("helm")?,
            &[(own, programs.guard.clone())],
        )?;
        self.image(&EXECUTOR, "/usr/local/bin/executor", &self.executor, &tree, cache, progress)
    }

    /// The layers below the operator.
    pub fn of_operator(&self) -> Vec<Layer> {
        vec![self.base.clone(), self.operator.clone()]
    }

    /// The layers below the executor.
    pub fn of_executor(&self) -> Vec<Layer> {
        vec![self.base.clone(), self.executor.clone()]
    }

    fn image(
        &self,
        reference: &Reference,
        entrypoint: &str,
        installed: &Layer,
        top: &Tree,
        cache: &Cache,
        progress: &Progress,
    ) -> Result<()> {
        let settings = settings(entrypoint);
        let layers = [self.base.clone(), installed.clone()];
        let recipe = format!(
            "{}\n{}\n{}\n{}",
            serde_json::to_string(&settings)?,
            self.base.digest,
            installed.digest,
            top.fingerprint()?
        );
        let archive = reference.archive(cache);
        if !is_fresh(&archive, &recipe) {
            let task = progress.task(reference.to_string());
            write(&archive, reference, &settings, &layers, top, &recipe)?;
            task.done();
        }
        Ok(())
    }
}

/// What both images run, and as whom.
pub fn settings(entrypoint: &str) -> Settings {
    Settings {
        entrypoint: vec![entrypoint.to_owned()],
        environment: vec![
            "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin".to_owned(),
            "LC_ALL=C.UTF-8".to_owned(),
            "HOME=/work".to_owned(),
        ],
        user: format!("{USER}:{USER}"),
        directory: "/work".to_owned(),
        ..Settings::default()
    }
}

/// Our files in the operator's image.
pub fn operator_tree(operator: &Path) -> Tree {
    let mut tree = Tree::new();
    tree.program("/usr/local/bin/operator", operator);
    tree
}

/// Our files in the executor's image, with a guard for each architecture of machines.
pub fn executor_tree(executor: &Path, helm: &Path, guards: &[(Architecture, PathBuf)]) -> Result<Tree> {
    let mut tree = Tree::new();
    tree.program("/usr/local/bin/executor", executor);
    // Charts are installed with it.
    tree.program("/usr/local/bin/helm", helm);
    tree.directory("/opt/clusterwright", 0o755, 0);
    // Not for here: the executor copies each machine's own to it.
    tree.directory("/opt/clusterwright/guard", 0o755, 0);
    for (architecture, guard) in guards {
        tree.program(&format!("/opt/clusterwright/guard/{}", architecture.name()), guard);
    }
    tree.copy("/opt/clusterwright/ansible", &project::path("executor/ansible"), is_left_over)?;
    Ok(tree)
}

/// What running Ansible or its linter leaves in the collection's directory.
fn is_left_over(name: &str) -> bool {
    matches!(name, ".ansible" | "__pycache__" | ".pytest_cache" | ".cache") || name.ends_with(".retry")
}

/// The Python packages that the executor's image installs, fetched by this machine's pip: it knows how to reach them.
fn wheels(
    requirements: &Path,
    architecture: Option<Architecture>,
    cache: &Cache,
    progress: &Progress,
) -> Result<PathBuf> {
    let machine = architecture.map_or(std::env::consts::ARCH, Architecture::machine);
    let text =
        std::fs::read_to_string(requirements).with_context(|| format!("failed to read {}", requirements.display()))?;
    // Its name inside the image is the last part: the same for every content.
    let place = cache.downloads(&format!("python-{}-{machine}", recipe_hash(&[&text]))).join("wheels");
    if place.is_dir() {
        return Ok(place);
    }
    let task = progress.task("Python packages");
    let log = cache.log("wheels");
    let environment = tempfile::tempdir().context("failed to create a directory for pip")?;
    logged::run(Command::new("/usr/bin/python3").args(["-m", "venv"]).arg(environment.path()), &log, &task)?;
    publish(&place, |draft| {
        let mut pip = Command::new(environment.path().join("bin/pip"));
        pip.args(["download", "--require-hashes", "--no-deps", "--only-binary=:all:", "--progress-bar=off"]).args([
            "--python-version=3.11",
            "--implementation=cp",
            "--abi=cp311",
            "--abi=abi3",
            "--abi=none",
        ]);
        for glibc in ["manylinux2014", "manylinux_2_28", "manylinux_2_34"] {
            pip.arg(format!("--platform={glibc}_{machine}"));
        }
        logged::run(pip.arg("--requirement").arg(requirements).arg("--dest").arg(draft), &log, &task)
    })?;
    task.done();
    Ok(place)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn left_overs_of_ansible_stay_out_of_the_image() {
        assert!(is_left_over("__pycache__") && is_left_over("site.retry"));
        assert!(!is_left_over("roles") && !is_left_over("events.py"));
    }
}
