//! Which files the chart is written from, and where they go.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::template::{definition, template};

/// Files of the kustomization, and the templates that they become.
const TEMPLATES: [(&str, &str); 14] = [
    ("admission/deletion-protection.yaml", "admission-deletion-protection.yaml"),
    ("admission/host.yaml", "admission-host.yaml"),
    ("components/karmada/host.yaml", "karmada-host.yaml"),
    ("components/karmada/identity.yaml", "karmada-identity.yaml"),
    ("components/monitoring/alerts.yaml", "alerts.yaml"),
    ("components/monitoring/service-monitor.yaml", "service-monitor.yaml"),
    ("components/network-policy/executors.yaml", "network-policy-executors.yaml"),
    ("components/network-policy/operator.yaml", "network-policy-operator.yaml"),
    ("components/secure-metrics/rbac.yaml", "rbac-metrics.yaml"),
    ("deployment.yaml", "deployment.yaml"),
    ("rbac/karmada.yaml", "rbac-karmada.yaml"),
    ("rbac/operator.yaml", "rbac-operator.yaml"),
    ("rbac/people.yaml", "rbac-people.yaml"),
    ("service.yaml", "service.yaml"),
];
/// The directory of the chart that holds definitions, and nothing else.
const DEFINITIONS: &str = "files/crds";
const DASHBOARD: (&str, &str) = ("components/monitoring/dashboard.json", "files/dashboard.json");

/// Paths within the chart, and what is in them.
pub type Files = BTreeMap<PathBuf, String>;

/// All files of the chart that are written, from the directory of the kustomization.
pub fn all(manifests: &Path) -> Result<Files> {
    let mut files = Files::new();
    for (source, target) in TEMPLATES {
        let path = manifests.join(source);
        let text = template(&read(&path)?).with_context(|| format!("{} cannot be a template", path.display()))?;
        files.insert(Path::new("templates").join(target), text);
    }
    for path in definitions(&manifests.join("crds"))? {
        let text = definition(&read(&path)?).with_context(|| format!("{} is no definition", path.display()))?;
        files.insert(Path::new(DEFINITIONS).join(path.file_name().unwrap_or_default()), text);
    }
    files.insert(DASHBOARD.1.into(), read(&manifests.join(DASHBOARD.0))?);
    Ok(files)
}

/// Definitions in the chart's directory of which the kustomization has none.
pub fn left_over(chart: &Path, files: &Files) -> Result<Vec<PathBuf>> {
    let directory = chart.join(DEFINITIONS);
    if !directory.is_dir() {
        return Ok(Vec::new());
    }
    let mut found = definitions(&directory)?;
    found.retain(|path| path.strip_prefix(chart).is_ok_and(|path| !files.contains_key(path)));
    Ok(found)
}

/// Writes the files into the chart's directory, and removes definitions that are no more.
pub fn write(chart: &Path, files: &Files) -> Result<()> {
    for path in left_over(chart, files)? {
        fs::remove_file(&path).with_context(|| format!("failed to remove {}", path.display()))?;
    }
    for (path, text) in files {
        let path = chart.join(path);
        let directory = path.parent().context("a file lies in a directory")?;
        fs::create_dir_all(directory).with_context(|| format!("failed to create {}", directory.display()))?;
        fs::write(&path, text).with_context(|| format!("failed to write {}", path.display()))?;
    }
    Ok(())
}

fn read(path: &Path) -> Result<String> {
    fs::read_to_string(path).with_context(|| format!("failed to read {}", path.display()))
}

fn definitions(directory: &Path) -> Result<Vec<PathBuf>> {
    let reading = || format!("failed to read {}", directory.display());
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).with_context(reading)? {
        let path = entry.with_context(reading)?.path();
        let is_yaml = path.extension().is_some_and(|extension| extension == "yaml");
        if is_yaml && path.file_stem().is_some_and(|name| name != "kustomization") {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}
