//! What planes in Pods are made of: a registry of the lab's network with the image of each program, and the lab's
//! bundle with the definitions. Karmada's programs are given; etcd and Kubernetes' own are the lab's.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Result;
use bundle::tree::Tree;
use lab::cache::Cache;
use lab::images::archive::{self, Settings};
use lab::images::{EXECUTOR, Reference};
use lab::programs::{Programs, component};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::task::{JoinHandle, block_in_place};

use super::VERSION;
use super::given::Given;
use super::on_machines::PROGRAMS;
use crate::bundle::Bundle;
use crate::objects::VERSION as KUBERNETES;

/// Those that run for a member, or in it.
const OF_MEMBERS: [&str; 2] = ["karmada-agent", "karmada-scheduler-estimator"];
/// Kubernetes' own programs that a plane has.
const OF_KUBERNETES: [&str; 2] = ["registry.k8s.io/kube-apiserver", "registry.k8s.io/kube-controller-manager"];

/// The registry and the bundle, for as long as this is kept.
pub struct InPods {
    /// The lab's bundle, with the definitions of [`VERSION`].
    pub bundle: Bundle,
    /// Where the registry is, `HOST:PORT`; it speaks plain HTTP.
    pub registry: String,
    /// The version of etcd, as its image is tagged.
    pub etcd: &'static str,
    images: Vec<(String, PathBuf)>,
    server: JoinHandle<Result<()>>,
    _archives: TempDir,
}

impl InPods {
    /// Serves the bundle at the one port and the registry at the other.
    pub async fn serve(bundle: u16, registry: u16) -> Result<Self> {
        let given = Given::from_env()?;
        let folder = TempDir::new()?;
        let etcd = component("etcd")?.version;
        let images = block_in_place(|| images(&given, etcd, folder.path()))?;
        let definitions = folder.path().join("definitions.yaml");
        fs::write(&definitions, given.definitions(VERSION)?)?;
        let file = definitions.display().to_string();
        let bundle =
            Bundle::extended(bundle, &[vec!["manifests".into(), format!("karmada-crds={VERSION}"), file]]).await?;
        let address = format!("172.30.0.1:{registry}");
        let router = block_in_place(|| lab::upstream::registry(&images))?;
        let listener = tokio::net::TcpListener::bind(&address).await?;
        let server = tokio::spawn(lab::upstream::serve(listener, router));
        Ok(Self { bundle, registry: address, etcd, images, server, _archives: folder })
    }

    /// `spec.images` of a plane whose images are here.
    pub fn spec(&self) -> Value {
        let registry = &self.registry;
        json!({"karmada": format!("{registry}/karmada"), "kubernetes": format!("{registry}/kubernetes")})
    }

    /// Whole names of the images that a plane runs on its host.
    pub fn of_host(&self) -> Vec<String> {
        let names = self.images.iter().map(|(name, _)| name).filter(|name| !name.contains(OF_MEMBERS[0]));
        names.map(|name| format!("{}/{name}", self.registry)).collect()
    }

    /// Lets the machines of a ClusterDeployment pull from here, also the executor under the name that the operator has
    /// for it.
    pub fn wish(&self, cluster: &mut Value) {
        let (executors, _) = EXECUTOR.name.split_once('/').unwrap_or_default();
        let mirrors = [self.registry.as_str(), executors]
            .map(|prefix| json!({"prefix": prefix, "endpoints": [format!("http://{}", self.registry)]}));
        cluster["spec"]["containerRuntime"] = json!({"registryMirrors": mirrors});
    }
}

impl Drop for InPods {
    fn drop(&mut self) {
        self.server.abort();
    }
}

/// The name of each image in the registry, and its archive.
fn images(given: &Given, etcd: &str, folder: &Path) -> Result<Vec<(String, PathBuf)>> {
    let cache = Cache::from_env();
    let mut images = Vec::new();
    for name in PROGRAMS.into_iter().chain(OF_MEMBERS) {
        let tag = format!("v{VERSION}");
        let program = given.program(name, &format!("{name}:{tag}"))?;
        images.push((format!("karmada/{name}:{tag}"), image(folder, (name, &tag), "/bin", &[(name, program)])?));
    }
    let programs = Programs::from_env(&cache);
    // Data of a backup is made by the image of etcd itself.
    let programs = [("etcd", programs.find("etcd")?), ("etcdutl", programs.find("etcdutl")?)];
    images.push((format!("kubernetes/etcd:{etcd}"), image(folder, ("etcd", etcd), "/usr/local/bin", &programs)?));
    images.push((format!("executor:{}", EXECUTOR.version), EXECUTOR.find(&cache)?));
    for name in OF_KUBERNETES {
        let reference = Reference { name, version: format!("v{KUBERNETES}").into() };
        let last = name.rsplit('/').next().unwrap_or(name);
        images.push((format!("kubernetes/{last}:{}", reference.version), reference.find(&cache)?));
    }
    Ok(images)
}

/// An image of programs in a directory, and of nothing else: no user has a name in it.
fn image(
    folder: &Path,
    (name, tag): (&'static str, &str),
    directory: &str,
    programs: &[(&str, PathBuf)],
) -> Result<PathBuf> {
    let reference = Reference { name, version: tag.to_owned().into() };
    let archive = folder.join(reference.file());
    let mut tree = Tree::new();
    let above: Vec<&Path> = Path::new(directory).ancestors().collect();
    for above in above.into_iter().rev().skip(1) {
        tree.directory(&above.display().to_string(), 0o755, 0);
    }
    for (name, program) in programs {
        tree.program(&format!("{directory}/{name}"), program);
    }
    archive::write(&archive, &reference, &Settings::default(), &[], &tree, "")?;
    Ok(archive)
}
