//! Builds a component's programs from its Go module. One build at a time: two would fight over memory and cores.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::slice;

use anyhow::Result;

use super::{Component, Programs};
use crate::cache::{Cache, create_dir, publish};
use crate::images::Architecture;
use crate::progress::{Progress, Task};
use crate::{logged, project};

/// Builds what is not there yet, component by component.
pub fn build(components: &[Component], cache: &Cache, programs: &Programs, progress: &Progress) -> Result<()> {
    for component in components.iter().filter(|it| !programs.has(it)) {
        let task = progress.task(format!("{} {}", component.name, component.version));
        publish(&programs.bin(component), |draft| compile(component, None, draft, cache, &task))?;
        task.done();
    }
    Ok(())
}

/// The directory of a component's programs for that architecture, built if they are not there. Only of a component
/// without C libraries.
pub fn for_architecture(
    component: &Component,
    architecture: Architecture,
    cache: &Cache,
    progress: &Progress,
) -> Result<PathBuf> {
    let programs = Programs::from_env(cache);
    if Some(architecture) == Architecture::own() {
        build(slice::from_ref(component), cache, &programs, progress)?;
        return Ok(programs.bin(component));
    }
    let place = cache.programs().join(component.name).join(component.version).join(architecture.name());
    if !place.is_dir() {
        let task = progress.task(format!("{} {} for {}", component.name, component.version, architecture.name()));
        publish(&place, |draft| compile(component, Some(architecture), draft, cache, &task))?;
        task.done();
    }
    Ok(place)
}

fn compile(
    component: &Component,
    architecture: Option<Architecture>,
    into: &Path,
    cache: &Cache,
    task: &Task,
) -> Result<()> {
    create_dir(into)?;
    let log = cache.log(&format!("{}-{}", component.name, component.version));
    // Commands whose names are their packages' last parts are linked side by side by one call.
    if component.programs.iter().all(|(name, package)| package.ends_with(&format!("/{name}"))) {
        let packages = component.programs.iter().map(|(_, package)| *package);
        return logged::run(go_build(component, architecture).arg("-o").arg(into).args(packages), &log, task);
    }
    for (name, package) in component.programs {
        logged::run(go_build(component, architecture).arg("-o").arg(into.join(name)).arg(package), &log, task)?;
    }
    Ok(())
}

fn go_build(component: &Component, architecture: Option<Architecture>) -> Command {
    let mut go = Command::new("go");
    go.current_dir(project::path("hack/programs").join(component.folder))
        .env("CGO_ENABLED", if component.cgo { "1" } else { "0" })
        .args(["build", "-v", "-trimpath", "-mod=readonly"])
        .args(["-tags", component.tags])
        .args(["-ldflags", &link_flags(component)]);
    if let Some(architecture) = architecture {
        go.env("GOARCH", architecture.name());
    }
    go
}

fn link_flags(component: &Component) -> String {
    let mut parts = component.version.split('.');
    let (major, minor) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    let mut flags = String::from("-s -w");
    for (variable, value) in component.variables {
        let value = value.replace("{v}", component.version).replace("{major}", major).replace("{minor}", minor);
        flags.push_str(&format!(" -X {variable}={value}"));
    }
    if component.cgo {
        flags.push_str(" -extldflags -static");
    }
    flags
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::programs::component;

    #[test]
    fn kubernetes_is_told_its_version() {
        assert_eq!(
            link_flags(component("kubernetes").unwrap()),
            "-s -w -X k8s.io/component-base/version.gitVersion=v1.35.4 \
             -X k8s.io/component-base/version.gitMajor=1 -X k8s.io/component-base/version.gitMinor=35 \
             -X k8s.io/component-base/version.gitTreeState=clean -X k8s.io/component-base/version.gitCommit=unknown"
        );
    }

    #[test]
    fn a_program_with_c_libraries_is_linked_statically() {
        assert!(link_flags(component("runc").unwrap()).ends_with("-extldflags -static"));
    }
}
