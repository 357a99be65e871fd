//! Helm, with a home of its own, and kubectl's kustomize: what they render, and what Helm does to an API server.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use lab::cache::Cache;
use lab::programs::Programs;
use serde::Deserialize;
use serde_json::Value;

/// The namespace that the kustomization installs the operator into.
pub const NAMESPACE: &str = "clusterwright-system";

/// Rendered objects, by kind, namespace and name.
pub type Objects = BTreeMap<String, Value>;

/// Runs helm.
pub struct Helm {
    home: tempfile::TempDir,
    kubeconfig: Option<PathBuf>,
}

impl Helm {
    /// One without a cluster, if no kubeconfig is given.
    pub fn new(kubeconfig: Option<&str>) -> Result<Self> {
        let home = tempfile::tempdir().context("failed to make a home for helm")?;
        let path = home.path().join("kubeconfig");
        if let Some(kubeconfig) = kubeconfig {
            std::fs::write(&path, kubeconfig)?;
        }
        Ok(Self { kubeconfig: kubeconfig.map(|_| path), home })
    }

    /// A directory that goes with it.
    pub fn home(&self) -> &Path {
        self.home.path()
    }

    /// Runs it; what it printed. An error is what it complained about.
    pub fn run(&self, arguments: &[&str]) -> Result<String> {
        let programs = Programs::from_env(&Cache::from_env());
        let kubeconfig = self.kubeconfig.as_deref().unwrap_or(Path::new("/dev/null"));
        let output = Command::new(programs.find("helm")?)
            .args(arguments)
            .env("HOME", self.home())
            .env("KUBECONFIG", kubeconfig)
            .env_remove("DOCKER_CONFIG")
            .envs(["HELM_CACHE_HOME", "HELM_CONFIG_HOME", "HELM_DATA_HOME"].map(|name| (name, self.home().join(name))))
            .current_dir(self.home())
            .output()
            .context("failed to run helm")?;
        let complaint = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "helm {arguments:?}: {complaint}");
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// What the chart renders, in the namespace of the kustomization, with `--set` for each setting.
    pub fn render(&self, chart: &Path, settings: &[&str]) -> Result<Objects> {
        let chart = chart.display().to_string();
        let mut arguments = vec!["template", "clusterwright", &chart, "--namespace", NAMESPACE];
        arguments.extend(settings.iter().flat_map(|setting| ["--set", setting]));
        objects(&self.run(&arguments)?)
    }
}

/// What the kustomization renders with these of its components.
pub fn kustomized(components: &[&str]) -> Result<Objects> {
    let directory = tempfile::tempdir().context("failed to make a directory for a kustomization")?;
    let up = "../".repeat(directory.path().components().count() - 1);
    let manifests = lab::project::path("manifests").canonicalize()?;
    let relative = |path: PathBuf| format!("{up}{}", path.display().to_string().trim_start_matches('/'));
    let kustomization = serde_json::json!({
        "apiVersion": "kustomize.config.k8s.io/v1beta1", "kind": "Kustomization",
        "resources": [relative(manifests.clone())],
        "components": components.iter().map(|name| relative(manifests.join("components").join(name))).collect::<Vec<_>>(),
    });
    std::fs::write(directory.path().join("kustomization.yaml"), kustomization.to_string())?;
    let programs = Programs::from_env(&Cache::from_env());
    let output =
        Command::new(programs.find("kubectl")?).arg("kustomize").arg(directory.path().canonicalize()?).output();
    let output = output.context("failed to run kubectl kustomize")?;
    ensure!(output.status.success(), "kubectl kustomize: {}", String::from_utf8_lossy(&output.stderr));
    objects(&String::from_utf8_lossy(&output.stdout))
}

/// The objects of some YAML. What has names within a list has no order there, and 1.0 is 1.
fn objects(text: &str) -> Result<Objects> {
    let mut objects = Objects::new();
    for document in serde_yaml::Deserializer::from_str(text) {
        let mut object = Value::deserialize(document).context("what was rendered is no YAML")?;
        if object.is_null() {
            continue;
        }
        normalize(&mut object);
        let part = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or("-").to_owned();
        let key = format!("{} {} {}", part("/kind"), part("/metadata/namespace"), part("/metadata/name"));
        ensure!(objects.insert(key.clone(), object).is_none(), "{key} is rendered twice");
    }
    Ok(objects)
}

fn normalize(value: &mut Value) {
    match value {
        Value::Object(fields) => fields.values_mut().for_each(normalize),
        Value::Array(items) => {
            items.iter_mut().for_each(normalize);
            if items.iter().all(|item| item["name"].is_string()) {
                items.sort_by_key(|item| item["name"].as_str().map(str::to_owned));
            }
        }
        Value::Number(number) => {
            if let Some(float) = number.as_f64() {
                *value = float.into();
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::objects;

    #[test]
    fn what_has_names_has_no_order_and_what_has_none_does() {
        let one = objects("kind: A\nmetadata: {name: a}\nenv: [{name: x}, {name: b}]\nargs: [x, b]\n---\n").unwrap();
        let other = objects("kind: A\nmetadata: {name: a}\nenv: [{name: b}, {name: x}]\nargs: [x, b]\n").unwrap();
        assert_eq!(one, other);
        assert_eq!(objects("kind: A\nmin: 1.0\n").unwrap(), objects("kind: A\nmin: 1\n").unwrap());
        let other = objects("kind: A\nmetadata: {name: a}\nenv: [{name: b}, {name: x}]\nargs: [b, x]\n").unwrap();
        assert_ne!(one, other);
        assert!(objects("kind: A\nmetadata: {name: a}\n---\nkind: A\nmetadata: {name: a}\n").is_err());
    }
}
