//! Addons on real API servers, with the real operator: a metadata cluster and two others. No controller of Kubernetes
//! runs there: what is applied is there, and no Pod of it.

#[path = "addons/charts.rs"]
mod charts;
#[path = "addons/kubelet.rs"]
mod kubelet;

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use crds::{Addon, ClusterAddon, conditions};
use e2e::api_server::ApiServer;
use e2e::operator_process::Operator;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Namespace;
use kube::api::{Api, ApiResource, DeleteParams, DynamicObject, Patch, PatchParams, PostParams};
use kube::core::GroupVersionKind;
use kube::{Client, ResourceExt};
use serde_json::{Value, json};
use tokio::time::sleep;

const NAMESPACE: &str = "addons";
const DEADLINE: Duration = Duration::from_secs(45);

/// What is applied: a definition and an object of it, a ConfigMap that is rendered, a Deployment.
const MANIFESTS: &str = "
apiVersion: example.com/v1
kind: Widget
metadata: {name: first, namespace: default}
spec: {size: 3}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: settings, namespace: default}
data: {cluster: '{{ cluster_name }}', version: '{{ addon_version }}'}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: agent, namespace: default}
spec:
  replicas: 0
  selector: {matchLabels: {app: agent}}
  template:
    metadata: {labels: {app: agent}}
    spec: {containers: [{name: agent, image: 'agent:{{ addon_version }}'}]}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {kind: Widget, plural: widgets, singular: widget}
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}
";
const EXTRA: &str = "{apiVersion: v1, kind: ConfigMap, metadata: {name: extra, namespace: default}}";

/// The metadata cluster, the clusters `home` and `edge`, and the operator.
struct World {
    metadata: ApiServer,
    home: ApiServer,
    edge: ApiServer,
    operator: Operator,
    begun: Instant,
}

fn api(client: &Client, group: &str, kind: &str, plural: &str, namespace: &str) -> Api<DynamicObject> {
    let kind = GroupVersionKind::gvk(group, "v1", kind);
    Api::namespaced_with(client.clone(), namespace, &ApiResource::from_gvk_with_plural(&kind, plural))
}

fn config_maps(server: &ApiServer, namespace: &str) -> Api<DynamicObject> {
    api(&server.client(), "", "ConfigMap", "configmaps", namespace)
}

impl World {
    async fn start() -> Result<Self> {
        let (metadata, home, edge) = (ApiServer::shared().await?, ApiServer::bare().await?, ApiServer::bare().await?);
        let client = metadata.client();
        let namespaces: Api<Namespace> = Api::all(client.clone());
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}});
        namespaces.create(&PostParams::default(), &serde_json::from_value(namespace)?).await?;
        let world = Self {
            operator: Operator::start(&metadata, "operator-a", NAMESPACE)?,
            metadata,
            home,
            edge,
            begun: Instant::now(),
        };
        for (name, server) in [("home", &world.home), ("edge", &world.edge)] {
            let secret = json!({
                "apiVersion": "v1", "kind": "Secret", "metadata": {"name": format!("{name}-kubeconfig")},
                "stringData": {"kubeconfig": server.checked_kubeconfig()?},
            });
            world.put("", "Secret", "secrets", &secret).await?;
            let cluster = json!({
                "apiVersion": "clusterwright.dev/v1alpha1", "kind": "Cluster",
                "metadata": {"name": name, "labels": {"stage": "test"}},
                "spec": {"kubeconfigRef": {"name": format!("{name}-kubeconfig")}},
            });
            world.ours(&cluster, "clusters").await?;
        }
        Ok(world)
    }

    async fn put(&self, group: &str, kind: &str, plural: &str, object: &Value) -> Result<()> {
        let api = api(&self.metadata.client(), group, kind, plural, NAMESPACE);
        let name = object["metadata"]["name"].as_str().context("no name")?;
        api.patch(name, &PatchParams::apply("test").force(), &Patch::Apply(object)).await?;
        Ok(())
    }

    /// An object of ours.
    async fn ours(&self, object: &Value, plural: &str) -> Result<()> {
        let kind = GroupVersionKind::gvk("clusterwright.dev", "v1alpha1", object["kind"].as_str().context("no kind")?);
        let resource = ApiResource::from_gvk_with_plural(&kind, plural);
        let api: Api<DynamicObject> = Api::namespaced_with(self.metadata.client(), NAMESPACE, &resource);
        let name = object["metadata"]["name"].as_str().context("no name")?;
        api.patch(name, &PatchParams::apply("test").force(), &Patch::Apply(object)).await?;
        Ok(())
    }

    async fn source(&self, text: &str) -> Result<()> {
        let object =
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "agent"}, "data": {"all.yaml": text}});
        self.put("", "ConfigMap", "configmaps", &object).await
    }

    async fn addon(&self, version: &str, more: Value) -> Result<()> {
        let mut spec = json!({
            "clusterSelector": {"matchLabels": {"stage": "test"}}, "version": version,
            "source": {"manifests": {"template": true, "from": [{"configMapRef": {"name": "agent"}}]}},
        });
        spec.as_object_mut().context("no spec")?.extend(more.as_object().cloned().unwrap_or_default());
        let object = json!({"apiVersion": "clusterwright.dev/v1alpha1", "kind": "Addon", "metadata": {"name": "agent"}, "spec": spec});
        self.ours(&object, "addons").await
    }

    fn addons(&self) -> Api<Addon> {
        Api::namespaced(self.metadata.client(), NAMESPACE)
    }

    fn cluster_addons(&self) -> Api<ClusterAddon> {
        Api::namespaced(self.metadata.client(), NAMESPACE)
    }

    /// Has the operator look at a cluster now, as an administrator who does not wait for the next comparison.
    async fn poke(&self, name: &str) -> Result<()> {
        let annotations = json!({"metadata": {"annotations": {"poked-at": Timestamp::now().to_string()}}});
        self.cluster_addons().patch(name, &PatchParams::default(), &Patch::Merge(annotations)).await?;
        Ok(())
    }

    /// Waits until the sentence of an Addon, or of a ClusterAddon, has this.
    async fn says(&self, name: &str, wanted: &str) -> Result<()> {
        self.until(&format!("{name} to say {wanted:?}"), async || {
            let message = match name {
                "agent" => self.addons().get(name).await?.status.and_then(|status| status.message),
                name => self.cluster_addons().get(name).await?.status.and_then(|status| status.message),
            };
            let message = message.unwrap_or_default();
            Ok((message.contains(wanted), message))
        })
        .await
    }

    async fn until(&self, what: &str, look: impl AsyncFn() -> Result<(bool, String)>) -> Result<()> {
        let until = Instant::now() + DEADLINE;
        loop {
            let seen = match look().await {
                Ok((true, _)) => {
                    println!("{:5.1} s: {what}", self.begun.elapsed().as_secs_f32());
                    return Ok(());
                }
                Ok((false, seen)) => seen,
                Err(error) => format!("{error:#}"),
            };
            ensure!(Instant::now() < until, "waited for {what}; last seen: {seen}\n{}", self.operator.log());
            sleep(Duration::from_millis(200)).await;
        }
    }

    /// Waits until a ConfigMap of the add-on is on a cluster with this value, or is not there.
    async fn has(&self, server: &ApiServer, name: &str, key: &str, wanted: Option<&str>) -> Result<()> {
        let api = config_maps(server, "default");
        self.until(&format!("{name}.{key} to be {wanted:?}"), async || {
            let found = api.get_opt(name).await?;
            let value = found.as_ref().map(|found| found.data["data"][key].as_str().unwrap_or("").to_owned());
            Ok((value.as_deref() == wanted, format!("{value:?}")))
        })
        .await
    }

    /// Resource versions of what the operator writes.
    async fn versions(&self) -> Result<Vec<Option<String>>> {
        let mut versions: Vec<Option<String>> = Vec::new();
        for addon in self.addons().list(&Default::default()).await? {
            versions.push(addon.resource_version());
        }
        for object in self.cluster_addons().list(&Default::default()).await? {
            versions.push(object.resource_version());
        }
        for server in [&self.home, &self.edge] {
            versions.push(config_maps(server, "default").get("settings").await?.resource_version());
        }
        Ok(versions)
    }

    async fn patch_on_edge(&self, kind: (&str, &str, &str), name: &str, manager: &str, patch: Value) -> Result<()> {
        let api = api(&self.edge.client(), kind.0, kind.1, kind.2, "default");
        let params = PatchParams { field_manager: Some(manager.into()), ..PatchParams::default() };
        api.patch(name, &params, &Patch::Merge(patch)).await?;
        Ok(())
    }
}

const DEPLOYMENT: (&str, &str, &str) = ("apps", "Deployment", "deployments");
const CONFIG_MAP: (&str, &str, &str) = ("", "ConfigMap", "configmaps");

/// It is applied to both clusters, rendered for each, and nothing is written at rest.
async fn applies(world: &World) -> Result<()> {
    world.source(&format!("{MANIFESTS}---\n{EXTRA}\n")).await?;
    world.addon("1", json!({"rollout": {"canaries": 1}})).await?;
    world.says("agent", "2 clusters Ready version 1").await?;
    for (name, server) in [("home", &world.home), ("edge", &world.edge)] {
        world.has(server, "settings", "cluster", Some(name)).await?;
        let widgets = api(&server.client(), "example.com", "Widget", "widgets", "default");
        let widget = widgets.get("first").await?;
        ensure!(widget.labels().get("clusterwright.dev/addon").map(String::as_str) == Some("agent"), "{widget:?}");
    }
    let status = world.cluster_addons().get("agent-edge").await?.status.context("no status")?;
    ensure!(status.objects == 5 && status.inventory[0].kind == "CustomResourceDefinition", "{:?}", status.inventory);
    ensure!(conditions::is_true(&status.conditions, "Healthy"), "{:?}", status.conditions);
    sleep(Duration::from_secs(1)).await;
    let before = world.versions().await?;
    world.operator.answers("/readyz", "ok").await?;
    sleep(Duration::from_secs(3)).await;
    ensure!(
        world.versions().await? == before,
        "something is written at rest: {before:?} {:?}",
        world.versions().await?
    );
    Ok(())
}

/// What was changed by hand is put back, what another manager has set is named, and taken over when that is wanted.
async fn keeps(world: &World) -> Result<()> {
    world.patch_on_edge(CONFIG_MAP, "settings", "kubectl-edit", json!({"data": {"version": "by hand"}})).await?;
    config_maps(&world.edge, "default").delete("extra", &DeleteParams::default()).await?;
    world.poke("agent-edge").await?;
    world.has(&world.edge, "settings", "version", Some("1")).await?;
    world.has(&world.edge, "extra", "x", Some("")).await?;
    world.patch_on_edge(DEPLOYMENT, "agent", "autoscaler", json!({"spec": {"replicas": 7}})).await?;
    world.poke("agent-edge").await?;
    world.says("agent-edge", "Deployment default/agent: autoscaler has set .spec.replicas").await?;
    world.says("agent", "1 cluster failed: ClusterAddon agent-edge: Deployment default/agent").await?;
    world.addon("1", json!({"conflicts": "Force"})).await?;
    world.says("agent", "2 clusters Ready version 1").await?;
    let deployment = api(&world.edge.client(), "apps", "Deployment", "deployments", "default").get("agent").await?;
    ensure!(deployment.data["spec"]["replicas"] == 0, "{:?}", deployment.data["spec"]);
    Ok(())
}

/// Another version reaches both; what left the source goes; a mistake in the source changes nothing.
async fn upgrades(world: &World) -> Result<()> {
    world.source(MANIFESTS).await?;
    world.addon("2", json!({})).await?;
    world.says("agent", "2 clusters Ready version 2").await?;
    for server in [&world.home, &world.edge] {
        world.has(server, "settings", "version", Some("2")).await?;
        world.has(server, "extra", "x", None).await?;
    }
    world.source("{{ no_such_fact }}").await?;
    world.addon("3", json!({})).await?;
    world.says("agent", "all.yaml, line 1: no_such_fact is not defined").await?;
    world.source(MANIFESTS).await?;
    world.addon("2", json!({})).await?;
    world.says("agent", "2 clusters Ready version 2").await?;
    world.has(&world.edge, "settings", "version", Some("2")).await
}

/// A cluster that does not answer holds up no other, and gets what it missed when it does.
async fn survives_a_dead_cluster(world: &World) -> Result<()> {
    world.edge.stop();
    world.addon("3", json!({})).await?;
    world.has(&world.home, "settings", "version", Some("3")).await?;
    world.says("agent-edge", "does not answer").await?;
    world.says("agent", "1 cluster Ready version 3; edge does not answer").await?;
    world.edge.resume().await?;
    world.says("agent", "2 clusters Ready version 3").await?;
    world.has(&world.edge, "settings", "version", Some("3")).await
}

/// From a cluster that is selected no more it is removed; an Addon that goes leaves its objects, or takes them along.
async fn leaves(world: &World) -> Result<()> {
    let labelled = |stage: &str| Patch::Merge(json!({"metadata": {"labels": {"stage": stage}}}));
    let clusters: Api<crds::Cluster> = Api::namespaced(world.metadata.client(), NAMESPACE);
    clusters.patch("edge", &PatchParams::default(), &labelled("other")).await?;
    world.has(&world.edge, "settings", "version", None).await?;
    world.says("agent", "1 cluster Ready version 3").await?;
    clusters.patch("edge", &PatchParams::default(), &labelled("test")).await?;
    world.says("agent", "2 clusters Ready version 3").await?;
    world.addon("3", json!({"deletionPolicy": "Orphan"})).await?;
    world.gone().await?;
    world.has(&world.edge, "settings", "version", Some("3")).await?;
    world.addon("3", json!({})).await?;
    world.says("agent", "2 clusters Ready version 3").await?;
    world.gone().await?;
    for server in [&world.home, &world.edge] {
        world.has(server, "settings", "version", None).await?;
        let definitions: Api<
            k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
        > = Api::all(server.client());
        ensure!(definitions.get_opt("widgets.example.com").await?.is_none(), "its definition is still there");
    }
    Ok(())
}

/// What a cluster's runs have applied becomes the Addon's of its ClusterDeployment: what has left the manifests goes.
async fn adopts(world: &World) -> Result<()> {
    let applied = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings", "namespace": "default"},
        "data": {"version": "of a run", "former": "x"},
    });
    let params = PatchParams { force: true, ..PatchParams::apply("clusterwright") };
    let maps = config_maps(&world.edge, "default");
    maps.patch("settings", &params, &Patch::Apply(&applied)).await?;
    world
        .source("{apiVersion: v1, kind: ConfigMap, metadata: {name: settings}, data: {version: '{{ addon_version }}'}}")
        .await?;
    // No such ClusterDeployment is there, and nobody collects garbage here.
    let owner = json!([{
        "apiVersion": "clusterwright.dev/v1alpha1", "kind": "ClusterDeployment", "name": "edge", "uid": "edge", "controller": true,
    }]);
    let object = json!({
        "apiVersion": "clusterwright.dev/v1alpha1", "kind": "Addon", "metadata": {"name": "agent", "ownerReferences": owner},
        "spec": {
            "clusterRef": {"name": "edge"}, "version": "1", "conflicts": "Force",
            "source": {"manifests": {"template": true, "from": [{"configMapRef": {"name": "agent"}}]}},
        },
    });
    world.ours(&object, "addons").await?;
    world.says("agent", "1 cluster Ready version 1").await?;
    world.has(&world.edge, "settings", "version", Some("1")).await?;
    let found = maps.get("settings").await?;
    ensure!(found.data["data"]["former"].is_null(), "what has left the manifests is still there: {:?}", found.data);
    let managers: Vec<Option<&str>> = found.managed_fields().iter().map(|entry| entry.manager.as_deref()).collect();
    ensure!(managers == [Some("clusterwright-addon")], "{managers:?}");
    world.gone().await?;
    world.has(&world.edge, "settings", "version", None).await
}

/// Manifests of a bundle, as `wright` has added and signed them.
async fn of_bundle(world: &World) -> Result<()> {
    let place = tempfile::tempdir()?;
    let file = place.path().join("one.yaml");
    std::fs::write(&file, "{apiVersion: v1, kind: ConfigMap, metadata: {name: settings}, data: {version: bundled}}")?;
    let entry = bundle::addons::manifests("agent", "1.0", &[file], false)?;
    let mut index = bundle::index::Index::new();
    bundle::addons::write(&entry, place.path())?;
    index.insert(entry.artifact)?;
    let digest = index.write(place.path())?;
    let address = format!("127.0.0.1:{}", e2e::api_server::free_port()?).parse()?;
    let server = tokio::spawn(lab::serve::run(lab::serve::ServeBundle {
        listen: address,
        directory: Some(place.path().to_owned()),
    }));
    let from = |sha256: &str| {
        let entry =
            json!({"url": format!("http://{address}"), "name": "agent", "version": "1.0", "indexSHA256": sha256});
        json!({"source": {"manifests": {"from": [{"bundle": entry}]}}})
    };
    world.addon("1", from(&"0".repeat(64))).await?;
    world.says("agent", "index.json has the SHA-256").await?;
    world.addon("1", from(&digest)).await?;
    world.says("agent", "2 clusters Ready version 1").await?;
    world.has(&world.edge, "settings", "version", Some("bundled")).await?;
    // What is frozen does not need the bundle any more.
    server.abort();
    world.has(&world.home, "settings", "version", Some("bundled")).await?;
    world.gone().await
}

impl World {
    /// Deletes the Addon, and waits until it is gone.
    async fn gone(&self) -> Result<()> {
        self.addons().delete("agent", &DeleteParams::default()).await?;
        self.until("the Addon to be gone", async || {
            let there = self.addons().get_opt("agent").await?;
            let message = there.as_ref().and_then(|addon| addon.status.clone()).and_then(|status| status.message);
            Ok((there.is_none(), message.unwrap_or_default()))
        })
        .await
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_addon_is_applied_to_clusters_kept_there_and_removed() -> Result<()> {
    let world = World::start().await?;
    applies(&world).await?;
    keeps(&world).await?;
    upgrades(&world).await?;
    survives_a_dead_cluster(&world).await?;
    leaves(&world).await?;
    adopts(&world).await?;
    of_bundle(&world).await?;
    charts::all(&world).await
}
