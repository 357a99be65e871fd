//! metrics-server on two clusters: installed, changed, a bad version, removed by hand, pruned, with a cluster that is
//! dead for a while, and with one that is selected no more. And what `spec.addons` of one of them becomes.

use std::fs;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use crds::{Addon, ClusterAddon, ClusterDeployment, Host};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::ResourceExt;
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams};
use lab::cache::Cache;
use lab::images::Reference;
use lab::images::scratch;
use lab::machines::Machine;
use lab::programs::{ADDONS, Programs};
use serde_json::{Value, json};
use tokio::task::block_in_place;

use super::Seen;
use crate::eventually::{Look, eventually};
use crate::lifecycle::stage::{READY, Stage, WORKERS};
use crate::objects;

/// The clusters, in the order in which they get a change.
const NAMES: [&str; 2] = ["one", "two"];
const NAME: &str = "metrics-server";
const SYSTEM: &str = "kube-system";
/// A label of the clusters that get it.
const LABEL: &str = "metrics";
/// What is pruned.
const EXTRA: &str = "metrics-notes";
/// What `spec.addons` of the first cluster has.
const OWN: &str = "own";
/// Until all clusters have a change, and its Pods are ready.
const ROLLED_OUT: Duration = Duration::from_secs(300);
/// It is compared once a minute.
const PUT_BACK: Duration = Duration::from_secs(150);
/// Until a cluster without power does not count any more, and until one with power does.
const NOTICED: Duration = Duration::from_secs(240);

/// All of it.
pub async fn across_clusters(stage: &mut Stage<'_>) -> Result<Seen> {
    let image = image()?;
    clusters(stage).await?;
    let began = Instant::now();
    let mut told = Vec::new();
    for (cluster, machine) in of_clusters(stage).await? {
        bring(stage, &image, &machine).await.with_context(|| format!("of cluster {cluster}"))?;
    }
    own_addon(stage).await?;

    let good = image.to_string();
    wish(stage, "1", &manifests(&good, "15s"), true).await?;
    says(stage, NAME, "2 clusters Ready version 1", ROLLED_OUT).await?;
    for name in NAMES {
        top(stage, name).await?;
    }
    told.push(format!("kubectl top answers on both after {} s", began.elapsed().as_secs()));
    wish(stage, "2", &manifests(&good, "20s"), true).await?;
    says(stage, NAME, "2 clusters Ready version 2", ROLLED_OUT).await?;
    has_resolution(stage, "two", "20s").await?;

    bad_version(stage, &good).await?;
    told.push("a bad version stopped at its canary".into());
    removed_by_hand(stage).await?;
    wish(stage, "2", &manifests(&good, "20s"), false).await?;
    for name in NAMES {
        gone::<ConfigMap>(stage, name, EXTRA).await?;
    }
    told.push("put back, pruned".into());
    dead_and_back(stage, &good).await?;
    told.push("a dead cluster held up nobody, and got the change when it was back".into());
    selected_no_more(stage).await?;
    told.push("removed where it is selected no more".into());
    for name in NAMES {
        stage.scenario.delete_cluster(name, READY).await?;
    }
    Ok(Seen::since(began, told.join("; ")))
}

/// The image, which `lab build addons` has made.
fn image() -> Result<Reference> {
    let mut references = scratch::references(ADDONS).into_iter();
    let image = references.find(|image| image.name.ends_with(NAME)).context("no image is named so")?;
    image.find(&Cache::from_env()).context("run `lab build addons`")?;
    Ok(image)
}

/// Two clusters of one control plane each.
async fn clusters(stage: &Stage<'_>) -> Result<()> {
    let scenario = stage.scenario;
    let own = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"namespace": scenario.name, "name": OWN},
        "data": {"own.yaml": format!(
            "{{apiVersion: v1, kind: ConfigMap, metadata: {{name: {OWN}, namespace: {SYSTEM}}}, data: {{cluster: '{{{{ cluster_name }}}}'}}}}"
        )},
    });
    scenario.apply(&own).await?;
    for (number, name) in NAMES.iter().enumerate() {
        // The machines share one network.
        let mut wish = objects::cluster(&scenario.name, name, &format!("10.{}.0.0/16", 134 + number), &[], &[]);
        wish["metadata"]["labels"] = json!({LABEL: "yes"});
        wish["spec"]["controlPlane"] = json!({"replicas": 1});
        wish["spec"]["workers"] = json!([{"name": WORKERS, "replicas": 0}]);
        if number == 0 {
            wish["spec"]["addons"] = json!({"manifestsRef": {"name": OWN}});
        }
        scenario.apply(&wish).await?;
    }
    for name in NAMES {
        scenario.ready(name, READY).await?;
    }
    Ok(())
}

/// Each cluster with its machine.
async fn of_clusters(stage: &Stage<'_>) -> Result<Vec<(&'static str, Machine)>> {
    let hosts = stage.scenario.api::<Host>().list(&ListParams::default()).await?;
    let mut found = Vec::new();
    for name in NAMES {
        let claims = |host: &&Host| {
            let claim = host.spec.claim_ref.as_ref();
            claim.is_some_and(|claim| claim.name.starts_with(&format!("{name}-control-plane-")))
        };
        let host = hosts.iter().find(claims).with_context(|| format!("no Host is claimed by cluster {name}"))?;
        found.push((name, stage.machine(&host.name_any())?));
    }
    Ok(found)
}

/// Imports the image on the machine: no registry is asked for it.
async fn bring(stage: &Stage<'_>, image: &Reference, machine: &Machine) -> Result<()> {
    let place = machine.root().join("var/tmp/metrics-server.tar");
    fs::copy(image.find(&Cache::from_env())?, &place)
        .with_context(|| format!("failed to write {}", place.display()))?;
    stage.scenario.ssh(machine, "ctr -n k8s.io images import /var/tmp/metrics-server.tar").await?;
    fs::remove_file(&place).with_context(|| format!("failed to remove {}", place.display()))
}

/// What `spec.addons` became: it is there, rendered, is put back, and is said by the ClusterDeployment.
async fn own_addon(stage: &Stage<'_>) -> Result<()> {
    says(stage, "one-addons", "1 cluster Ready", ROLLED_OUT).await?;
    let maps: Api<ConfigMap> = Api::namespaced(stage.scenario.cluster_client("one").await?, SYSTEM);
    let cluster = maps.get(OWN).await?.data.unwrap_or_default().remove("cluster");
    ensure!(cluster.as_deref() == Some("one"), "the ConfigMap of spec.addons says cluster {cluster:?}");
    let deployments = stage.scenario.api::<ClusterDeployment>();
    eventually("AddonsReady of cluster one says what its Addon says", ROLLED_OUT, async || {
        let status = deployments.get("one").await?.status.unwrap_or_default();
        let found = crds::conditions::find(&status.conditions, "AddonsReady");
        let text = found.map(|found| format!("{}: {}", found.status, found.message)).unwrap_or_default();
        let is_well = text.starts_with("True") && text.contains("Addon one-addons: 1 cluster Ready");
        Ok(if is_well { Look::Done(()) } else { Look::Waiting(text) })
    })
    .await
}

fn manifests(image: &str, resolution: &str) -> String {
    let text = include_str!("../../../manifests/metrics-server.yaml");
    text.replace("IMAGE", image).replace("RESOLUTION", resolution)
}

/// Applies the Addon with these manifests, and with what is pruned later.
async fn wish(stage: &Stage<'_>, version: &str, manifests: &str, with_extra: bool) -> Result<()> {
    let mut data = json!({"metrics-server.yaml": manifests});
    if with_extra {
        let extra = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": EXTRA, "namespace": SYSTEM}});
        data["notes.yaml"] = json!(extra.to_string());
    }
    let source = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"namespace": stage.scenario.name, "name": NAME},
        "data": data,
    });
    stage.scenario.apply(&source).await?;
    let addon = json!({
        "apiVersion": "clusterwright.dev/v1alpha1", "kind": "Addon",
        "metadata": {"namespace": stage.scenario.name, "name": NAME},
        "spec": {
            "clusterSelector": {"matchLabels": {LABEL: "yes"}}, "version": version, "resyncSeconds": 60,
            "healthTimeoutSeconds": 120, "rollout": {"canaries": 1},
            "source": {"manifests": {"from": [{"configMapRef": {"name": NAME}}]}},
        },
    });
    stage.scenario.apply(&addon).await?;
    Ok(())
}

async fn says(stage: &Stage<'_>, name: &str, wanted: &str, deadline: Duration) -> Result<()> {
    let addons = stage.scenario.api::<Addon>();
    let said = eventually(&format!("Addon {name} says {wanted:?}"), deadline, async || {
        let message = addons.get(name).await?.status.and_then(|status| status.message).unwrap_or_default();
        Ok(if message.contains(wanted) { Look::Done(()) } else { Look::Waiting(message) })
    })
    .await;
    if said.is_err() {
        // What each cluster says of it.
        for object in stage.scenario.api::<ClusterAddon>().list(&ListParams::default()).await? {
            let status = object.status.clone().unwrap_or_default();
            let (message, unhealthy) = (status.message.unwrap_or_default(), status.unhealthy);
            stage.scenario.say(&format!("ClusterAddon {}: {message} {unhealthy:?}", object.name_any()));
        }
    }
    said
}

/// Waits until `kubectl top nodes` has a line for the Node of the cluster.
async fn top(stage: &Stage<'_>, cluster: &str) -> Result<()> {
    let kubectl = Programs::from_env(&Cache::from_env()).find("kubectl")?;
    let file = tempfile::NamedTempFile::new()?;
    fs::write(file.path(), stage.scenario.kubeconfig(cluster).await?)?;
    eventually(&format!("kubectl top nodes answers on cluster {cluster}"), PUT_BACK, async || {
        let mut command = Command::new(&kubectl);
        command.arg("--kubeconfig").arg(file.path()).args(["top", "nodes", "--no-headers"]);
        let ran = block_in_place(|| command.output()).context("failed to run kubectl")?;
        let said = String::from_utf8_lossy(&ran.stdout).trim().to_owned();
        let is_there = ran.status.success() && said.contains('%') && !said.contains("<unknown>");
        let seen = format!("{said} {}", String::from_utf8_lossy(&ran.stderr).trim());
        Ok(if is_there { Look::Done(()) } else { Look::Waiting(seen) })
    })
    .await
}

async fn deployments(stage: &Stage<'_>, cluster: &str) -> Result<Api<Deployment>> {
    Ok(Api::namespaced(stage.scenario.cluster_client(cluster).await?, SYSTEM))
}

async fn has_resolution(stage: &Stage<'_>, cluster: &str, resolution: &str) -> Result<()> {
    let found = serde_json::to_value(deployments(stage, cluster).await?.get(NAME).await?)?;
    let arguments = found["spec"]["template"]["spec"]["containers"][0]["args"].to_string();
    let wanted = format!("--metric-resolution={resolution}");
    ensure!(arguments.contains(&wanted), "metrics-server of cluster {cluster} has {arguments}, and not {wanted}");
    Ok(())
}

/// A version whose image is nowhere: the first cluster says so, the second keeps what it has, and answers.
async fn bad_version(stage: &Stage<'_>, good: &str) -> Result<()> {
    wish(stage, "3", &manifests(&format!("{good}-of-nowhere"), "20s"), true).await?;
    says(stage, NAME, "canary one has failed, no other cluster gets the change", ROLLED_OUT).await?;
    has_resolution(stage, "two", "20s").await?;
    let found = serde_json::to_value(deployments(stage, "two").await?.get(NAME).await?)?;
    let image = &found["spec"]["template"]["spec"]["containers"][0]["image"];
    ensure!(*image == json!(good), "cluster two has got the bad version: {image}");
    for name in NAMES {
        top(stage, name).await?;
    }
    wish(stage, "2", &manifests(good, "20s"), true).await?;
    says(stage, NAME, "2 clusters Ready version 2", ROLLED_OUT).await
}

async fn removed_by_hand(stage: &Stage<'_>) -> Result<()> {
    let api = deployments(stage, "two").await?;
    let uid = api.get(NAME).await?.uid();
    api.delete(NAME, &DeleteParams::default()).await?;
    eventually("the Deployment that was removed by hand is back on cluster two", PUT_BACK, async || {
        Ok(match api.get_opt(NAME).await? {
            Some(found) if found.uid() != uid => Look::Done(()),
            Some(_) => Look::Waiting("it is not gone yet".into()),
            None => Look::Waiting("it is gone".into()),
        })
    })
    .await?;
    says(stage, NAME, "2 clusters Ready version 2", ROLLED_OUT).await?;
    top(stage, "two").await
}

/// Waits until an object of the system's namespace is gone.
async fn gone<K>(stage: &Stage<'_>, cluster: &str, name: &str) -> Result<()>
where
    K: kube::Resource<DynamicType = (), Scope = k8s_openapi::NamespaceResourceScope>
        + Clone
        + std::fmt::Debug
        + serde::de::DeserializeOwned,
{
    let api: Api<K> = Api::namespaced(stage.scenario.cluster_client(cluster).await?, SYSTEM);
    let kind = K::kind(&());
    eventually(&format!("{kind} {name} is gone from cluster {cluster}"), ROLLED_OUT, async || {
        Ok(if api.get_opt(name).await?.is_none() { Look::Done(()) } else { Look::Waiting("it is there".into()) })
    })
    .await
}

async fn dead_and_back(stage: &Stage<'_>, good: &str) -> Result<()> {
    let clusters = of_clusters(stage).await?;
    let (_, machine) = clusters.iter().find(|(name, _)| *name == "two").context("cluster two has no machine")?;
    stage.kill(machine)?;
    says(stage, NAME, "two does not answer", NOTICED).await?;
    wish(stage, "4", &manifests(good, "25s"), false).await?;
    says(stage, NAME, "1 cluster Ready version 4; two does not answer", ROLLED_OUT).await?;
    top(stage, "one").await?;
    stage.scenario.say(&format!("{} gets its power back", machine.name()));
    block_in_place(|| machine.start())?;
    says(stage, NAME, "2 clusters Ready version 4", NOTICED + ROLLED_OUT).await?;
    has_resolution(stage, "two", "25s").await?;
    top(stage, "two").await
}

/// A cluster that loses the label loses the objects; the other one keeps them until the Addon goes.
async fn selected_no_more(stage: &Stage<'_>) -> Result<()> {
    let patch = Patch::Merge(json!({"metadata": {"labels": {LABEL: Value::Null}}}));
    stage.scenario.api::<ClusterDeployment>().patch("two", &PatchParams::default(), &patch).await?;
    gone::<Deployment>(stage, "two", NAME).await?;
    says(stage, NAME, "1 cluster Ready version 4", ROLLED_OUT).await?;
    top(stage, "one").await?;
    let addons = stage.scenario.api::<Addon>();
    addons.delete(NAME, &DeleteParams::default()).await?;
    eventually(&format!("Addon {NAME} is gone"), ROLLED_OUT, async || {
        let message = addons.get_opt(NAME).await?.map(|addon| addon.status.and_then(|status| status.message));
        Ok(match message {
            None => Look::Done(()),
            Some(message) => Look::Waiting(message.unwrap_or_default()),
        })
    })
    .await?;
    gone::<Deployment>(stage, "one", NAME).await
}
