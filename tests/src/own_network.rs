//! A network of the owner's: a plugin given as manifests, and beside it what serves Services in place of kube-proxy.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use crds::names::condition;
use crds::{ClusterDeployment, Conditions};
use k8s_openapi::api::apps::v1::DaemonSet;
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kube::api::ListParams;
use kube::{Api, Client, ResourceExt};
use lab::cache::Cache;
use lab::machines::Machine;
use lab::programs::Programs;
use serde_json::{Value, json};

use crate::eventually::{Look, eventually};
use crate::scenario::Scenario;

/// The ConfigMap with its manifests.
const MANIFESTS: &str = "network-plugin";
/// Where the manifests have the program, below a machine's root.
const PROGRAM: &str = "opt/services/service-proxy";
/// As the manifests name it.
const SERVICES: &str = "services";
const NAMESPACE: &str = "kube-system";
const READY: Duration = Duration::from_secs(120);

/// Brings its manifests, and to the machines the program that they run.
pub async fn bring(scenario: &Scenario, machines: &[Machine]) -> Result<()> {
    let program = Programs::from_env(&Cache::from_env()).find("kube-proxy")?;
    for machine in machines {
        let path = machine.root().join(PROGRAM);
        let folder = path.parent().context("the program is in no folder")?;
        fs::create_dir_all(folder).with_context(|| format!("failed to create {}", folder.display()))?;
        fs::copy(&program, &path).with_context(|| format!("failed to write {}", path.display()))?;
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).context("failed to let it be executed")?;
    }
    let plugin = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"namespace": scenario.name, "name": MANIFESTS},
        "data": {
            "network-plugin.yaml": include_str!("../manifests/network-plugin.yaml"),
            "service-proxy.yaml": include_str!("../manifests/service-proxy.yaml"),
        },
    });
    scenario.apply(&plugin).await.map(drop)
}

/// Wishes it of a cluster, which then has no kube-proxy.
pub fn wish(cluster: &mut Value) {
    let spec = &mut cluster["spec"];
    spec["networking"]["plugin"] = json!({"name": "manifests", "manifestsRef": {"name": MANIFESTS}});
    spec["configuration"]["kubeProxy"] = json!({"mode": "None"});
}

/// Whether it is wished of a cluster.
pub fn is_wished(cluster: &Value) -> bool {
    cluster["spec"]["configuration"]["kubeProxy"]["mode"] == "None"
}

/// What is wished serves Services on all Nodes, and of kube-proxy there is nothing: in the cluster, in what kubeadm
/// goes by, and on the machines, which are those with a Node.
pub async fn serves(scenario: &Scenario, cluster: &str, client: &Client, machines: &[&Machine]) -> Result<()> {
    runs_on_every_node(client, machines.len()).await?;
    let sets: Api<DaemonSet> = Api::namespaced(client.clone(), NAMESPACE);
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), NAMESPACE);
    ensure!(sets.get_opt("kube-proxy").await?.is_none(), "there is a DaemonSet kube-proxy");
    ensure!(maps.get_opt("kube-proxy").await?.is_none(), "there is a ConfigMap kube-proxy");
    let pods: Api<Pod> = Api::namespaced(client.clone(), NAMESPACE);
    let pods = pods.list(&ListParams::default().labels("k8s-app=kube-proxy")).await?;
    ensure!(pods.items.is_empty(), "there are Pods of kube-proxy");
    let noted = maps.get("kubeadm-config").await?.data.unwrap_or_default();
    let noted = noted.get("ClusterConfiguration").context("kubeadm has noted nothing")?;
    ensure!(noted.contains("proxy:\n  disabled: true"), "kubeadm would install kube-proxy: {noted}");
    for machine in machines {
        let images = scenario.ssh(machine, "ctr -n k8s.io images ls -q").await?;
        ensure!(!images.contains("/kube-proxy"), "{} has the image of kube-proxy: {images}", machine.name());
        let rules = scenario.ssh(machine, "iptables-save -t nat | grep -c KUBE-SVC || true").await?;
        ensure!(rules.trim() != "0", "{} has no rules of Services", machine.name());
    }
    let deployments = scenario.api::<ClusterDeployment>();
    eventually("AddonsReady is about CoreDNS alone", READY, async || {
        let deployment = deployments.get(cluster).await?;
        let addons = deployment.condition(condition::ADDONS_READY).context("there is no AddonsReady")?;
        let said = format!("AddonsReady is {}: {}", addons.status, addons.message);
        Ok(match said == "AddonsReady is True: coredns is rolled out; the network plugin serves Services" {
            true => Look::Done(()),
            false => Look::Waiting(said),
        })
    })
    .await
}

async fn runs_on_every_node(client: &Client, nodes: usize) -> Result<()> {
    let sets: Api<DaemonSet> = Api::namespaced(client.clone(), NAMESPACE);
    eventually("Services are served on every Node", READY, async || {
        let set = sets.get(SERVICES).await?;
        let ready = set.status.as_ref().map(|status| status.number_ready).unwrap_or_default();
        Ok(match usize::try_from(ready).is_ok_and(|ready| ready == nodes) {
            true => Look::Done(()),
            false => Look::Waiting(format!("{ready} of {nodes} Pods of {} are Ready", set.name_any())),
        })
    })
    .await
}
