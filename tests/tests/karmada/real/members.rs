//! Members of a plane of Karmada's own programs: real API servers with their own controllers, which make Pods that
//! nobody runs. A Pod is known by its UID.

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use e2e::api_server::ApiServer;
use k8s_openapi::api::core::v1::Secret;
use kube::api::{Api, ApiResource, DynamicObject, ListParams, PostParams};
use kube::core::GroupVersionKind;
use kube::{Client, ResourceExt};
use serde_json::{Value, json};
use tokio::time::sleep;

use super::given::Given;
use super::node::Node;
use super::{CONTROLLERS, World};

/// The namespace of the agent.
const AGENTS: &str = "karmada-system";

pub(super) struct Member {
    name: &'static str,
    pub(super) client: Client,
    _node: Node,
    _server: ApiServer,
}

impl Member {
    /// A cluster, and the Secret by which it is reached; its agent, if it gets one, runs.
    pub(super) async fn start(world: &World, name: &'static str, net: u8) -> Result<Self> {
        let server = ApiServer::bare().await?;
        server.run_controllers(CONTROLLERS)?;
        let kubeconfig = server.checked_kubeconfig()?;
        let secret = json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": {"name": format!("{name}-kubeconfig")},
            "stringData": {"kubeconfig": kubeconfig},
        });
        let secrets: Api<Secret> = Api::namespaced(world.client.clone(), "fleet");
        secrets.create(&PostParams::default(), &serde_json::from_value(secret)?).await?;
        let (url, ..) = server.for_programs();
        let (host, port) = url.trim_start_matches("https://").rsplit_once(':').context("its address has no port")?;
        let environment =
            vec![("KUBERNETES_SERVICE_HOST", host.to_owned()), ("KUBERNETES_SERVICE_PORT", port.to_owned())];
        let client = server.client();
        let node = Node::start(client.clone(), AGENTS, Given::from_env()?, net, environment)?;
        Ok(Self { name, client, _node: node, _server: server })
    }

    fn api(&self, group: &str, kind: &str) -> Api<DynamicObject> {
        objects(&self.client, group, "v1", kind)
    }

    /// The UIDs of what the plane runs here; none of the three may be missing.
    async fn running(&self) -> Result<BTreeSet<String>> {
        let uid = |object: &DynamicObject| object.uid().unwrap_or_default();
        let mut uids = BTreeSet::from([
            uid(&self.api("apps", "Deployment").get("web").await?),
            uid(&self.api("", "ConfigMap").get("settings").await?),
        ]);
        let pods = self.api("", "Pod").list(&ListParams::default().labels("app=web")).await?.items;
        ensure!(pods.len() == 2, "{} Pods run in {}", pods.len(), self.name);
        uids.extend(pods.iter().map(uid));
        Ok(uids)
    }

    async fn runs_nothing(&self) -> Result<bool> {
        let pods = self.api("", "Pod").list(&ListParams::default().labels("app=web")).await?.items;
        let deployment = self.api("apps", "Deployment").get_opt("web").await?;
        Ok(pods.is_empty() && deployment.is_none() && self.api("", "ConfigMap").get_opt("settings").await?.is_none())
    }
}

pub(super) fn objects(client: &Client, group: &str, version: &str, kind: &str) -> Api<DynamicObject> {
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
    Api::namespaced_with(client.clone(), "default", &resource)
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs Karmada's programs: make karmada"]
async fn members_join_run_what_a_policy_gives_them_and_leave_with_or_without_it() -> Result<()> {
    let world = World::start().await?;
    world.until("ready", World::is_ready).await?;
    let members = [
        Member::start(&world, "m1", world.net + 1).await?,
        Member::start(&world, "m2", world.net + 2).await?,
        Member::start(&world, "m3", world.net + 3).await?,
    ];
    let modes = ["push", "push", "pull"];
    join(&world, &members, &modes).await?;
    propagate(&world).await?;
    world
        .until("propagated", async |_| {
            for member in &members {
                member.running().await?;
            }
            Ok(true)
        })
        .await?;
    let [kept, deleted, pulled] = &members;
    leaves_with_all(&world, kept, &["m2", "m3"]).await?;
    leaves_with_all(&world, pulled, &["m2"]).await?;
    leaves_with_nothing(&world, deleted).await
}

fn wanted(names: &[(&str, &str)]) -> Value {
    let member = |(name, mode): &(&str, &str)| json!({"name": name, "syncMode": mode, "kubeConfigSecretName": format!("{name}-kubeconfig")});
    names.iter().map(member).collect()
}

pub(super) async fn join(world: &World, members: &[Member], modes: &[&str]) -> Result<()> {
    let names: Vec<(&str, &str)> = members.iter().map(|member| member.name).zip(modes.iter().copied()).collect();
    world.patch(json!({"spec": {"members": wanted(&names)}})).await?;
    let count = i32::try_from(members.len())?;
    world.until("joined", async |world| Ok(world.joined().await? == count)).await
}

/// A ConfigMap and a Deployment, for every member.
async fn propagate(world: &World) -> Result<()> {
    let plane = world.plane().await?;
    let web = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "labels": {"app": "web"}},
        "spec": {
            "replicas": 2, "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {"containers": [{"name": "web", "image": "web.test/web:1"}]},
            },
        },
    });
    let settings =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings"}, "data": {"a": "b"}});
    let selected = |version: &str, kind: &str, name: &str| json!({"apiVersion": version, "kind": kind, "name": name});
    let policy = json!({
        "apiVersion": "policy.karmada.io/v1alpha1", "kind": "PropagationPolicy", "metadata": {"name": "all"},
        "spec": {
            "resourceSelectors": [selected("apps/v1", "Deployment", "web"), selected("v1", "ConfigMap", "settings")],
            "placement": {"clusterAffinity": {"clusterNames": ["m1", "m2", "m3"]}},
        },
    });
    for (group, version, kind, object) in [
        ("apps", "v1", "Deployment", web),
        ("", "v1", "ConfigMap", settings),
        ("policy.karmada.io", "v1alpha1", "PropagationPolicy", policy),
    ] {
        let object: DynamicObject = serde_json::from_value(object)?;
        objects(&plane, group, version, kind).create(&PostParams::default(), &object).await?;
    }
    Ok(())
}

/// Takes a member out: these stay.
async fn take_out(world: &World, policy: &str, stay: &[&str]) -> Result<()> {
    let mode = |name: &'static str| (name, if name == "m3" { "pull" } else { "push" });
    let names: Vec<(&str, &str)> =
        ["m1", "m2", "m3"].into_iter().filter(|name| stay.contains(name)).map(mode).collect();
    world.patch(json!({"spec": {"unjoinPolicy": policy, "members": wanted(&names)}})).await
}

/// Nothing of it is made anew, and none of it goes.
async fn leaves_with_all(world: &World, member: &Member, stay: &[&str]) -> Result<()> {
    let before = member.running().await?;
    take_out(world, "Preserve", stay).await?;
    let name = member.name;
    world
        .until(&format!("{name} has left"), async |world| Ok(!world.members().await?.contains(&name.to_owned())))
        .await?;
    sleep(Duration::from_secs(10)).await;
    let after = member.running().await?;
    ensure!(after == before, "{name}: {before:?} became {after:?}");
    Ok(())
}

async fn leaves_with_nothing(world: &World, member: &Member) -> Result<()> {
    take_out(world, "Delete", &[]).await?;
    world.until("all have left", async |world| Ok(world.members().await?.is_empty())).await?;
    world.until("nothing is left there", async |_| member.runs_nothing().await).await
}
