//! Installed from a registry that wants a login, upgraded, rolled back, uninstalled and installed again: definitions
//! and objects stay throughout.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use e2e::api_server::ApiServer;
use e2e::helm::{Helm, NAMESPACE};
use e2e::registry::{PASSWORD, Registry, USER};
use serde_json::Value;

use super::rendered::chart;

/// A chart as it was before: another version of it, without one of the definitions, with one replica, and with a role
/// that is no more.
fn former(directory: &Path) -> Result<PathBuf> {
    let former = directory.join("former");
    copy(&chart(), &former)?;
    edit(&former.join("Chart.yaml"), "version: 0.1.0", "version: 0.0.9")?;
    edit(&former.join("values.yaml"), "replicas: 2", "replicas: 1")?;
    std::fs::remove_file(former.join("files/crds/hostpools.yaml"))?;
    let gone = "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: clusterwright-former}\n";
    std::fs::write(former.join("templates/former.yaml"), gone)?;
    Ok(former)
}

fn edit(file: &Path, from: &str, to: &str) -> Result<()> {
    let text = std::fs::read_to_string(file)?;
    ensure!(text.contains(from), "{} has no {from}", file.display());
    Ok(std::fs::write(file, text.replace(from, to))?)
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    std::fs::create_dir_all(to)?;
    for entry in std::fs::read_dir(from)? {
        let entry = entry?;
        let (source, target) = (entry.path(), to.join(entry.file_name()));
        if source.is_dir() {
            copy(&source, &target)?;
        } else {
            std::fs::copy(&source, &target)?;
        }
    }
    Ok(())
}

/// A release on an API server, from a registry.
struct World {
    server: ApiServer,
    registry: Registry,
    helm: Helm,
}

impl World {
    async fn make() -> Result<Self> {
        let server = ApiServer::bare().await?;
        let helm = Helm::new(Some(&server.checked_kubeconfig()?))?;
        Ok(Self { server, registry: Registry::start().await?, helm })
    }

    /// Packages a chart and pushes it.
    fn publish(&self, chart: &Path) -> Result<()> {
        let home = self.helm.home().display().to_string();
        let said = self.helm.run(&["package", &chart.display().to_string(), "--destination", &home])?;
        let package = said.trim().rsplit(' ').next().context("helm names no package")?.to_owned();
        self.helm.run(&["push", &package, &self.place(), "--plain-http"])?;
        Ok(())
    }

    fn place(&self) -> String {
        format!("oci://{}/charts", self.registry.host())
    }

    /// `install` or `upgrade` of the release to a version in the registry.
    fn release(&self, verb: &str, version: &str) -> Result<String> {
        let chart = format!("{}/clusterwright", self.place());
        let common = ["--version", version, "--namespace", NAMESPACE, "--plain-http"];
        let mut arguments = vec![verb, "clusterwright", &chart];
        arguments.extend(common);
        if verb == "install" {
            arguments.push("--create-namespace");
        }
        self.helm.run(&arguments)
    }

    fn get(&self, kind: &str, name: &str) -> Result<Value> {
        let text =
            self.server.kubectl(&["get", kind, name, "--namespace", NAMESPACE, "--ignore-not-found", "-o", "json"])?;
        if text.trim().is_empty() { Ok(Value::Null) } else { Ok(serde_json::from_str(&text)?) }
    }

    fn replicas(&self) -> Result<Value> {
        Ok(self.get("deployment", "clusterwright-operator")?["spec"]["replicas"].take())
    }

    fn has(&self, kind: &str, name: &str) -> Result<bool> {
        Ok(!self.get(kind, name)?.is_null())
    }

    /// Definitions and what was made of them.
    fn all_stays(&self, uid: &Value) -> Result<()> {
        for definition in crds::manifests::all() {
            let name = definition.metadata.name.unwrap_or_default();
            ensure!(self.has("crd", &name)?, "{name} is gone");
        }
        ensure!(self.get("hosts.clusterwright.dev", "stays")?["metadata"]["uid"] == *uid, "the Host is another one");
        Ok(())
    }

    fn make_host(&self) -> Result<Value> {
        let file = self.helm.home().join("host.yaml");
        std::fs::write(
            &file,
            "apiVersion: clusterwright.dev/v1alpha1\nkind: Host\nmetadata: {name: stays}\nspec:\n  address: 192.0.2.9\n  \
             ssh: {credentialsRef: {name: fleet-ssh}, hostKeyPolicy: TrustOnFirstUse}\n",
        )?;
        self.server.kubectl(&["wait", "--for=condition=Established", "crd", "--all"])?;
        self.server.kubectl(&["apply", "--namespace", NAMESPACE, "-f", &file.display().to_string()])?;
        Ok(self.get("hosts.clusterwright.dev", "stays")?["metadata"]["uid"].take())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn objects_outlive_upgrades_roll_backs_and_the_release() -> Result<()> {
    let world = World::make().await?;
    let error = world.publish(&chart()).err().context("the registry takes a chart from anybody")?;
    ensure!(format!("{error:#}").contains("401") || format!("{error:#}").contains("credential"), "{error:#}");
    let login = ["registry", "login", &world.registry.host(), "-u", USER, "-p", PASSWORD, "--plain-http"];
    world.helm.run(&login)?;
    world.publish(&former(world.helm.home())?)?;
    world.publish(&chart())?;

    world.release("install", "0.0.9")?;
    ensure!(world.replicas()? == 1 && world.has("clusterrole", "clusterwright-former")?);
    ensure!(!world.has("crd", "hostpools.clusterwright.dev")?, "the former chart has them");
    let uid = world.make_host()?;

    world.release("upgrade", "0.1.0")?;
    ensure!(world.replicas()? == 2 && !world.has("clusterrole", "clusterwright-former")?);
    world.all_stays(&uid)?;

    world.helm.run(&["rollback", "clusterwright", "1", "--namespace", NAMESPACE])?;
    ensure!(world.replicas()? == 1 && world.has("clusterrole", "clusterwright-former")?);
    // What the former chart has not stays all the same.
    world.all_stays(&uid)?;

    world.release("upgrade", "0.1.0")?;
    world.all_stays(&uid)?;
    world.helm.run(&["uninstall", "clusterwright", "--namespace", NAMESPACE])?;
    for (kind, name) in [
        ("deployment", "clusterwright-operator"),
        ("clusterrole", "clusterwright-operator"),
        ("validatingadmissionpolicy", "clusterwright-claimed-host"),
    ] {
        ensure!(!world.has(kind, name)?, "{kind} {name} is still there");
    }
    world.all_stays(&uid)?;

    world.release("install", "0.1.0")?;
    ensure!(world.replicas()? == 2);
    world.all_stays(&uid)
}
