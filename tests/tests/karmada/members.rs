//! Members of the plane: real API servers, in which a real kube-controller-manager makes tokens. Of Karmada itself
//! there is a stand-in.

use std::net::TcpListener;

use anyhow::{Context, Result, ensure};
use crds::karmada_deployment::{KarmadaMemberPhase as Phase, KarmadaMemberStatus};
use e2e::api_server::{ApiServer, own_address};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Secret, ServiceAccount};
use k8s_openapi::api::rbac::v1::ClusterRole;
use kube::api::{Api, ApiResource, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::core::GroupVersionKind;
use kube::{Client, Config, ResourceExt};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::karmada::{Karmada, WORKLOAD};
use crate::{World, clusters, estimators, look};

const RBAC: &str = "rbac.authorization.k8s.io";
const KINDS: [(&str, &str); 8] = [
    ("", "Namespace"),
    ("", "Secret"),
    ("", "ServiceAccount"),
    ("apps", "Deployment"),
    (RBAC, "ClusterRole"),
    (RBAC, "ClusterRoleBinding"),
    (RBAC, "Role"),
    (RBAC, "RoleBinding"),
];

/// Two clusters that become members, beside one that never answers.
pub struct Members {
    push: ApiServer,
    pull: ApiServer,
    karmada: Karmada,
    /// It takes connections, and says nothing.
    _silent: TcpListener,
}

/// Members join, are kept, and leave; one stays a member.
pub async fn join_and_leave(world: &World) -> Result<Members> {
    let members = Members::start(world).await?;
    members.join(world).await?;
    members.push_is_joined(world).await?;
    members.pull_is_joined(world).await?;
    members.drift_is_put_back(world).await?;
    members.a_new_token_is_carried_over(world).await?;
    let both = [("push", "karmada-cluster", members.push.client()), ("pull", "karmada-system", members.pull.client())];
    estimators::are_made(world, both).await?;
    members.leave_with_all_that_runs_there(world).await?;
    members.a_dead_member_is_given_up(world).await?;
    members.joins_again(world).await?;
    Ok(members)
}

impl Members {
    async fn start(world: &World) -> Result<Self> {
        let (push, pull) = tokio::try_join!(ApiServer::bare(), ApiServer::bare())?;
        push.run_controllers("serviceaccount-token")?;
        pull.run_controllers("serviceaccount-token")?;
        let silent = TcpListener::bind((own_address()?, 0))?;
        let mut nowhere: Value = serde_json::from_str(&push.checked_kubeconfig()?)?;
        nowhere["clusters"][0]["cluster"]["server"] = json!(format!("https://{}", silent.local_addr()?));
        for (name, kubeconfig) in [
            ("push", push.checked_kubeconfig()?),
            ("pull", pull.checked_kubeconfig()?),
            ("other", pull.checked_kubeconfig()?),
            ("silent", nowhere.to_string()),
        ] {
            create::<Secret>(
                &world.client,
                Some("fleet"),
                json!({"metadata": {"name": name}, "stringData": {"kubeconfig": kubeconfig}}),
            )
            .await?;
        }
        // What is there already, and is nobody's here.
        create::<Namespace>(&push.client(), None, json!({"metadata": {"name": "karmada-cluster"}})).await?;
        for (server, name) in [(&push, "push"), (&pull, "pull")] {
            create::<ConfigMap>(&server.client(), Some("default"), json!({"metadata": {"name": WORKLOAD}})).await?;
            println!("member {name} is started");
        }
        create::<ServiceAccount>(&push.client(), Some("karmada-cluster"), json!({"metadata": {"name": "somebody"}}))
            .await?;
        let by_hand: DynamicObject = serde_json::from_value(json!({
            "apiVersion": "cluster.karmada.io/v1alpha1", "kind": "Cluster", "metadata": {"name": "byhand"},
            "spec": {"syncMode": "Push", "id": "somebody's"},
        }))?;
        clusters::api(world.client.clone()).create(&PostParams::default(), &by_hand).await?;
        let karmada = Karmada::start(world.client.clone(), world.programs.clone());
        karmada.know("push", push.client());
        karmada.know("pull", pull.client());
        Ok(Self { push, pull, karmada, _silent: silent })
    }

    /// Each by itself: the one that never answers and the one whose name is taken hold up nobody.
    async fn join(&self, world: &World) -> Result<()> {
        let member = |name: &str, mode: &str, secret: &str| json!({"name": name, "syncMode": mode, "kubeConfigSecretName": secret});
        let mut push = member("push", "push", "push");
        push["region"] = json!("r1");
        push["labels"] = json!({"env": "test"});
        push["taints"] = json!([{"key": "edge", "effect": "NoSchedule"}]);
        let all = [
            push,
            member("pull", "pull", "pull"),
            member("byhand", "pull", "other"),
            member("silent", "push", "silent"),
        ];
        world.patch(json!({"spec": {"unjoinPolicy": "Preserve", "members": all}})).await?;
        world
            .until("joined", async |world| {
                let phase = async |name: &str| anyhow::Ok(shown(world, name).await?.map(|member| member.phase));
                Ok(phase("push").await? == Some(Phase::Joined) && phase("pull").await? == Some(Phase::Joined))
            })
            .await?;
        let said = async |name: &str| {
            let member = shown(world, name).await?.with_context(|| format!("nothing is said of {name}"))?;
            anyhow::Ok((member.phase, member.reason, member.message))
        };
        let (phase, reason, message) = said("byhand").await?;
        ensure!(phase == Phase::Blocked && reason == "MemberTaken", "byhand: {reason}: {message}");
        let (phase, reason, message) = said("silent").await?;
        ensure!(phase == Phase::Waiting && reason == "MemberUnreachable", "silent: {reason}: {message}");
        let made = made_for(&self.pull.client(), "byhand").await?;
        ensure!(made.is_empty(), "{made:?}");
        Ok(())
    }

    async fn push_is_joined(&self, world: &World) -> Result<()> {
        let made = made_for(&self.push.client(), "push").await?;
        let expected = [
            "ClusterRole karmada-controller-manager:karmada-push",
            "ClusterRoleBinding karmada-controller-manager:karmada-push",
            "Secret karmada-cluster/karmada-impersonator",
            "Secret karmada-cluster/karmada-push",
            "ServiceAccount karmada-cluster/karmada-impersonator",
            "ServiceAccount karmada-cluster/karmada-push",
        ];
        ensure!(made == expected, "in the member: {made:?}");
        let plane = world.programs.plane().context("the plane does not answer")?;
        let made = made_for(&plane, "push").await?;
        ensure!(made == ["Secret karmada-cluster/push", "Secret karmada-cluster/push-impersonator"], "{made:?}");
        let cluster = clusters::api(world.client.clone()).get("push").await?;
        let spec = &cluster.data["spec"];
        let namespaces: Api<Namespace> = Api::all(self.push.client());
        ensure!(spec["id"] == json!(namespaces.get("kube-system").await?.uid()), "{spec}");
        ensure!(spec["syncMode"] == "Push" && spec["region"] == "r1" && spec["secretRef"]["name"] == "push", "{spec}");
        ensure!(spec["taints"] == json!([{"key": "edge", "effect": "NoSchedule"}]), "{spec}");
        ensure!(cluster.labels().get("env").map(String::as_str) == Some("test"), "{:?}", cluster.labels());
        let owners = get::<Secret>(&plane, "karmada-cluster", "push").await?.metadata.owner_references;
        let owner = owners.into_iter().flatten().next().map(|owner| owner.uid);
        ensure!(owner == cluster.metadata.uid, "the Secret does not go with its Cluster");
        Ok(())
    }

    /// What the agent is given lets it see Clusters and no Secrets, and make no Cluster.
    async fn pull_is_joined(&self, world: &World) -> Result<()> {
        let made = made_for(&self.pull.client(), "pull").await?;
        let expected = [
            "ClusterRole karmada-agent",
            "ClusterRoleBinding karmada-agent",
            "Deployment karmada-system/karmada-agent",
            "Namespace karmada-system",
            "Secret karmada-system/karmada-kubeconfig",
            "ServiceAccount karmada-system/karmada-agent-sa",
        ];
        ensure!(made == expected, "in the member: {made:?}");
        let plane = world.programs.plane().context("the plane does not answer")?;
        let made = made_for(&plane, "pull").await?;
        ensure!(made.len() == 9 && made.contains(&"Namespace karmada-es-pull".to_owned()), "in the plane: {made:?}");
        let secret = get::<Secret>(&self.pull.client(), "karmada-system", "karmada-kubeconfig").await?;
        let text = secret.data.unwrap_or_default().remove("karmada-kubeconfig").context("no kubeconfig")?.0;
        let kubeconfig = Kubeconfig::from_yaml(std::str::from_utf8(&text)?)?;
        let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?;
        let agent = Client::try_from(config)?;
        let seen = clusters::api(agent.clone()).list(&ListParams::default()).await?;
        ensure!(seen.items.len() == 3, "the agent sees {} Clusters", seen.items.len());
        let forbidden = |error: kube::Error| matches!(error, kube::Error::Api(status) if status.code == 403);
        let secrets: Api<Secret> = Api::namespaced(agent.clone(), "karmada-cluster");
        ensure!(secrets.get("push").await.is_err_and(forbidden), "the agent reads others' tokens");
        let another: DynamicObject = serde_json::from_value(json!({
            "apiVersion": "cluster.karmada.io/v1alpha1", "kind": "Cluster", "metadata": {"name": "another"}, "spec": {},
        }))?;
        let created = clusters::api(agent).create(&PostParams::default(), &another).await;
        ensure!(created.is_err_and(forbidden), "the agent makes Clusters");
        Ok(())
    }

    /// In the plane nobody asks for it; a member is looked at now and then.
    async fn drift_is_put_back(&self, world: &World) -> Result<()> {
        let plane = world.programs.plane().context("the plane does not answer")?;
        let bindings = api_of(&plane, RBAC, "ClusterRoleBinding");
        bindings.delete("system:karmada:pull:agent", &DeleteParams::default()).await?;
        world
            .until("bound again in the plane", async |_| {
                Ok(bindings.get_opt("system:karmada:pull:agent").await?.is_some())
            })
            .await?;
        let roles: Api<ClusterRole> = Api::all(self.push.client());
        let name = "karmada-controller-manager:karmada-push";
        let person = PatchParams { field_manager: Some("kubectl-edit".into()), ..PatchParams::default() };
        roles.patch(name, &person, &Patch::Merge(&json!({"rules": []}))).await?;
        look(world).await?;
        world
            .until("put back in the member", async |_| {
                Ok(roles.get(name).await?.rules.is_some_and(|rules| !rules.is_empty()))
            })
            .await?;
        Ok(())
    }

    async fn a_new_token_is_carried_over(&self, world: &World) -> Result<()> {
        let plane = world.programs.plane().context("the plane does not answer")?;
        let token = async || {
            let data = get::<Secret>(&plane, "karmada-cluster", "push").await?.data.unwrap_or_default();
            anyhow::Ok(data.get("token").map(|token| token.0.clone()))
        };
        let before = token().await?;
        // Of the same account it would be the same token again.
        let accounts: Api<ServiceAccount> = Api::namespaced(self.push.client(), "karmada-cluster");
        accounts.delete("karmada-push", &DeleteParams::default()).await?;
        look(world).await?;
        world.until("given another token", async |_| Ok(token().await? != before)).await?;
        let until = async |world: &World| {
            let cluster = clusters::api(world.client.clone()).get("push").await?;
            Ok(cluster.data["status"]["conditions"][0]["status"] == "True")
        };
        world.until("reached with it", until).await?;
        Ok(())
    }

    /// What Karmada runs there stays, and what is not the join's.
    async fn leave_with_all_that_runs_there(&self, world: &World) -> Result<()> {
        let stay = [("pull", "pull", "pull"), ("silent", "push", "silent")];
        world.patch(json!({"spec": {"members": members(&stay)}})).await?;
        world.until("left", async |world| Ok(shown(world, "push").await?.is_none())).await?;
        self.is_left_as_it_was().await?;
        estimators::has_gone(world, "push").await?;
        let cluster = clusters::api(world.client.clone()).get_opt("push").await?;
        ensure!(cluster.is_none(), "its Cluster is there: {cluster:?}");
        let plane = world.programs.plane().context("the plane does not answer")?;
        let made = made_for(&plane, "push").await?;
        ensure!(made.is_empty(), "in the plane: {made:?}");
        let byhand = clusters::api(world.client.clone()).get_opt("byhand").await?;
        ensure!(byhand.is_some(), "the Cluster that somebody made is gone");
        Ok(())
    }

    /// It leaves the plane at once; what is in it is named until a person gives it up.
    async fn a_dead_member_is_given_up(&self, world: &World) -> Result<()> {
        self.pull.stop();
        world.patch(json!({"spec": {"members": members(&[("silent", "push", "silent")])}})).await?;
        world
            .until("out of the plane", async |world| {
                let cluster = clusters::api(world.client.clone()).get_opt("pull").await?;
                let member = shown(world, "pull").await?;
                Ok(cluster.is_none() && member.is_some_and(|member| member.message.contains("force-remove")))
            })
            .await?;
        let plane = world.programs.plane().context("the plane does not answer")?;
        let made = made_for(&plane, "pull").await?;
        ensure!(made.is_empty(), "in the plane: {made:?}");
        estimators::has_gone(world, "pull").await?;
        world.patch(json!({"metadata": {"annotations": {"clusterwright.dev/force-remove": "member.pull"}}})).await?;
        world.until("given up", async |world| Ok(shown(world, "pull").await?.is_none())).await?;
        Ok(())
    }

    async fn joins_again(&self, world: &World) -> Result<()> {
        self.karmada.know("push", self.push.client());
        world.patch(json!({"spec": {"members": members(&[("push", "push", "push")])}})).await?;
        world
            .until("joined again", async |world| {
                Ok(shown(world, "push").await?.is_some_and(|member| member.phase == Phase::Joined))
            })
            .await?;
        Ok(())
    }

    /// Nothing that the join made is in the Push member any more, and all else is.
    pub async fn is_left_as_it_was(&self) -> Result<()> {
        let client = self.push.client();
        let made = made_for(&client, "push").await?;
        ensure!(made.is_empty(), "in the member: {made:?}");
        get::<ConfigMap>(&client, "default", WORKLOAD).await.context("what runs there was deleted")?;
        get::<ServiceAccount>(&client, "karmada-cluster", "somebody").await.context("somebody's was deleted")?;
        Ok(())
    }
}

/// As the spec has them: name, mode and Secret of each.
fn members(all: &[(&str, &str, &str)]) -> Vec<Value> {
    let member = |(name, mode, secret): &(&str, &str, &str)| json!({"name": name, "syncMode": mode, "kubeConfigSecretName": secret});
    all.iter().map(member).collect()
}

/// What the status says of a member.
pub async fn shown(world: &World, name: &str) -> Result<Option<KarmadaMemberStatus>> {
    let members = world.planes().get("k1").await?.status.unwrap_or_default().members;
    Ok(members.into_iter().find(|member| member.name == name))
}

/// What was made for a member behind an API.
pub async fn made_for(client: &Client, member: &str) -> Result<Vec<String>> {
    let labels = ListParams::default().labels(&format!("clusterwright.dev/karmada-member={member}"));
    let mut made = Vec::new();
    for (group, kind) in KINDS {
        for object in api_of(client, group, kind).list(&labels).await? {
            let namespace = object.namespace().map(|namespace| format!("{namespace}/")).unwrap_or_default();
            made.push(format!("{kind} {namespace}{}", object.name_any()));
        }
    }
    made.sort();
    Ok(made)
}

fn api_of(client: &Client, group: &str, kind: &str) -> Api<DynamicObject> {
    Api::all_with(client.clone(), &ApiResource::from_gvk(&GroupVersionKind::gvk(group, "v1", kind)))
}

async fn get<K>(client: &Client, namespace: &str, name: &str) -> Result<K>
where
    K: kube::Resource<DynamicType = (), Scope = k8s_openapi::NamespaceResourceScope>
        + Clone
        + DeserializeOwned
        + std::fmt::Debug,
{
    let api: Api<K> = Api::namespaced(client.clone(), namespace);
    Ok(api.get(name).await?)
}

async fn create<K>(client: &Client, namespace: Option<&str>, object: Value) -> Result<()>
where
    K: kube::Resource<DynamicType = ()> + DeserializeOwned,
{
    let resource = ApiResource::erase::<K>(&());
    let api: Api<DynamicObject> = match namespace {
        Some(namespace) => Api::namespaced_with(client.clone(), namespace, &resource),
        None => Api::all_with(client.clone(), &resource),
    };
    let object: DynamicObject = serde_json::from_value(object)?;
    api.create(&PostParams::default(), &object).await?;
    Ok(())
}
