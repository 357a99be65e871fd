//! Members of a plane of Karmada's own programs: real API servers with their own controllers, which make Pods that
//! nobody runs. A Pod is known by its UID.

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use e2e::api_server::ApiServer;
use e2e::karmada::given::Given;
use e2e::karmada::node::{CONTROLLERS, Node};
use e2e::karmada::works::{objects, settings};
use k8s_openapi::api::authentication::v1::TokenReview;
use k8s_openapi::api::core::v1::{Secret, ServiceAccount};
use kube::api::{Api, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams};
use kube::{Client, ResourceExt};
use serde_json::{Value, json};
use tokio::time::sleep;

use super::World;

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

    pub(super) fn name(&self) -> &'static str {
        self.name
    }

    pub(super) fn api(&self, group: &str, kind: &str) -> Api<DynamicObject> {
        objects(&self.client, group, "v1", kind)
    }

    /// Whether its API server lets in who has this token.
    async fn believes(&self, token: &str) -> Result<bool> {
        let review: TokenReview = serde_json::from_value(json!({"spec": {"token": token}}))?;
        let reviews: Api<TokenReview> = Api::all(self.client.clone());
        let reviewed = reviews.create(&PostParams::default(), &review).await?;
        Ok(reviewed.status.is_some_and(|status| status.authenticated == Some(true)))
    }

    /// The UIDs of what the plane runs here; none of the three may be missing.
    pub(super) async fn running(&self) -> Result<BTreeSet<String>> {
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

    pub(super) async fn runs_nothing(&self) -> Result<bool> {
        let pods = self.api("", "Pod").list(&ListParams::default().labels("app=web")).await?.items;
        let deployment = self.api("apps", "Deployment").get_opt("web").await?;
        Ok(pods.is_empty() && deployment.is_none() && self.api("", "ConfigMap").get_opt("settings").await?.is_none())
    }
}

/// Members `m1` to `m4`, each in a network of its own.
pub(super) async fn start_four(world: &World) -> Result<[Member; 4]> {
    Ok([
        Member::start(world, "m1", world.net + 1).await?,
        Member::start(world, "m2", world.net + 2).await?,
        Member::start(world, "m3", world.net + 3).await?,
        Member::start(world, "m4", world.net + 4).await?,
    ])
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs Karmada's programs: make karmada"]
async fn members_join_run_what_a_policy_gives_them_and_leave_with_or_without_it() -> Result<()> {
    let world = World::start().await?;
    world.until("ready", World::is_ready).await?;
    let members = start_four(&world).await?;
    join(&world, &members, &["push", "push", "pull", "pull"]).await?;
    propagate(&world).await?;
    run_all(&world, &members).await?;
    let [kept, push, pulled, pull] = &members;
    a_new_token_is_propagated_with(&world, kept).await?;
    leaves_with_all(&world, kept, &["m2", "m3", "m4"]).await?;
    leaves_with_all(&world, pulled, &["m2", "m4"]).await?;
    leave_with_nothing(&world, &[push, pull]).await
}

/// Waits until all of them run what [`propagate`] gives them.
pub(super) async fn run_all(world: &World, members: &[Member]) -> Result<()> {
    world
        .until("propagated", async |_| {
            for member in members {
                member.running().await?;
            }
            Ok(true)
        })
        .await
}

/// With the token that was deleted, nothing reaches the member any more.
async fn a_new_token_is_propagated_with(world: &World, member: &Member) -> Result<()> {
    let plane = world.plane().await?;
    let secrets: Api<Secret> = Api::namespaced(plane.clone(), "karmada-cluster");
    let token = async || {
        let data = secrets.get(member.name).await?.data.unwrap_or_default();
        anyhow::Ok(data.get("token").map(|token| String::from_utf8_lossy(&token.0).into_owned()).unwrap_or_default())
    };
    let before = token().await?;
    let accounts: Api<ServiceAccount> = Api::namespaced(member.client.clone(), "karmada-cluster");
    accounts.delete(&format!("karmada-{}", member.name), &DeleteParams::default()).await?;
    world.until("given another token", async |_| Ok(token().await? != before)).await?;
    world.until("refused with the former one", async |_| Ok(!member.believes(&before).await?)).await?;
    // An API server believes for ten seconds what it has believed.
    sleep(Duration::from_secs(12)).await;
    a_change_reaches(world, std::slice::from_ref(member), "after the token").await
}

/// Changes the ConfigMap in the plane, and waits until the members have it so.
pub(super) async fn a_change_reaches(world: &World, members: &[Member], value: &str) -> Result<()> {
    let change = Patch::Merge(json!({"data": {"a": value}}));
    objects(&world.plane().await?, "", "v1", "ConfigMap").patch("settings", &PatchParams::default(), &change).await?;
    world
        .until(&format!("{value}: propagated"), async |_| {
            let mut all = true;
            for member in members {
                let settings = member.api("", "ConfigMap").get("settings").await?;
                all &= settings.data["data"]["a"] == *value;
            }
            Ok(all)
        })
        .await
}

pub(super) fn wanted(names: &[(&str, &str)]) -> Value {
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
pub(super) async fn propagate(world: &World) -> Result<()> {
    let plane = world.plane().await?;
    let selected = |version: &str, kind: &str, name: &str| json!({"apiVersion": version, "kind": kind, "name": name});
    let policy = json!({
        "apiVersion": "policy.karmada.io/v1alpha1", "kind": "PropagationPolicy", "metadata": {"name": "all"},
        "spec": {
            "resourceSelectors": [selected("apps/v1", "Deployment", "web"), selected("v1", "ConfigMap", "settings")],
            "placement": {"clusterAffinity": {"clusterNames": ["m1", "m2", "m3", "m4"]}},
        },
    });
    for (group, version, kind, object) in [
        ("apps", "v1", "Deployment", web()?),
        ("", "v1", "ConfigMap", settings()?),
        ("policy.karmada.io", "v1alpha1", "PropagationPolicy", serde_json::from_value(policy)?),
    ] {
        objects(&plane, group, version, kind).create(&PostParams::default(), &object).await?;
    }
    Ok(())
}

/// The Deployment that members are to have.
pub(super) fn web() -> Result<DynamicObject> {
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
    Ok(serde_json::from_value(web)?)
}

/// What they are to have beside it.
/// Takes a member out: these stay.
async fn take_out(world: &World, policy: &str, stay: &[&str]) -> Result<()> {
    let mode = |name: &'static str| (name, if ["m3", "m4"].contains(&name) { "pull" } else { "push" });
    let names: Vec<(&str, &str)> =
        ["m1", "m2", "m3", "m4"].into_iter().filter(|name| stay.contains(name)).map(mode).collect();
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

async fn leave_with_nothing(world: &World, members: &[&Member]) -> Result<()> {
    take_out(world, "Delete", &[]).await?;
    world.until("all have left", async |world| Ok(world.members().await?.is_empty())).await?;
    for member in members {
        world.until(&format!("{} has nothing left", member.name), async |_| member.runs_nothing().await).await?;
    }
    Ok(())
}
