//! A Karmada plane between real API servers: the host's, whose workloads do not run (that they are ready is written by
//! hand), and the plane's own, which runs with the certificates, the files and the flags that the operator has made.
//! Karmada's own programs are not here: what is not proved is that they start, and that anything is propagated.

mod clusters;
mod estimators;
mod executor;
mod host;
mod karmada;
mod members;
mod network;
mod programs;
mod real;
mod restore;
mod rights;
mod upgrade;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use clap::{Args, FromArgMatches};
use crds::{KarmadaDeployment, conditions};
use e2e::api_server::{ApiServer, free_node_port, own_address};
use e2e::karmada::definitions::stand_ins;
use e2e::karmada::definitions_bundle;
use e2e::karmada::works::OURS;
use e2e::karmada::{FORMER, VERSION};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{Namespace, Secret, Service};
use kube::api::{Api, ApiResource, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams};
use kube::core::GroupVersionKind;
use kube::{Client, ResourceExt};
use operator::settings::Settings;
use serde_json::{Value, json};
use tokio::sync::{Mutex, MutexGuard};
use tokio::time::sleep;

use host::Host;
use network::Network;
use programs::Programs;

/// Where the plane runs on the host. It is not the one that Karmada's own manifests have.
const NAMESPACE: &str = "planes";
const DEADLINE: Duration = Duration::from_secs(150);

/// The metadata cluster, which is the host, and an operator that leads there with one controller.
struct World {
    client: Client,
    host: Host,
    programs: Programs,
    server: ApiServer,
    /// What is served has the same ports in every test: there is one world at a time.
    _turn: MutexGuard<'static, ()>,
}

static TURN: Mutex<()> = Mutex::const_new(());

impl World {
    async fn start() -> Result<Self> {
        let turn = TURN.lock().await;
        let server = ApiServer::own().await?;
        let client = server.client();
        server.define(vec![clusters::definition()?]).await?;
        begin(&server).await?;
        let port = free_node_port()?;
        let network = Network::start(client.clone()).await?;
        let programs = Programs::new(client.clone(), network, port)?;
        let host = Host::start(client.clone(), programs.clone());
        let plane = json!({
            "apiVersion": "clusterwright.dev/v1alpha1", "kind": "KarmadaDeployment", "metadata": {"name": "k1"},
            "spec": {
                "version": FORMER, "hostNamespace": NAMESPACE,
                "crds": {"bundle": definitions_bundle::serve(vec![(FORMER, stand_ins()), (VERSION, stand_ins())]).await?},
                "apiServer": {
                    "serviceType": "NodePort", "loadBalancerApiserverIp": own_address()?.to_string(), "nodePort": port,
                },
                "search": {}, "controllerManager": {"replicas": 2},
            },
        });
        let world = Self { client, host, programs, server, _turn: turn };
        world.planes().create(&PostParams::default(), &serde_json::from_value(plane)?).await?;
        Ok(world)
    }

    fn planes(&self) -> Api<KarmadaDeployment> {
        Api::namespaced(self.client.clone(), "fleet")
    }

    /// What `kubectl get kad` shows: whether it is ready, and the sentence.
    async fn shown(&self) -> Result<(bool, String)> {
        let plane = self.planes().get("k1").await?;
        let status = plane.status.unwrap_or_default();
        let ready = conditions::is_true(&status.conditions, "Ready");
        Ok((ready, status.message.unwrap_or_default()))
    }

    /// Waits until it holds of the world; the sentences that were shown meanwhile.
    async fn until(&self, what: &str, holds: impl AsyncFn(&Self) -> Result<bool>) -> Result<Vec<String>> {
        let (until, mut said) = (Instant::now() + DEADLINE, Vec::<String>::new());
        loop {
            if let Ok((_, message)) = self.shown().await
                && said.last() != Some(&message)
            {
                println!("{what}: {message}");
                said.push(message);
            }
            if holds(self).await? {
                return Ok(said);
            }
            if Instant::now() > until {
                let conditions = self.planes().get("k1").await.ok().and_then(|plane| plane.status);
                let conditions = conditions.map(|status| serde_json::to_string_pretty(&status.conditions));
                bail!("not {what}: {conditions:?}\n{}", self.programs.log("kube-apiserver"));
            }
            sleep(Duration::from_millis(100)).await;
        }
    }

    /// Merges a patch into the KarmadaDeployment.
    async fn patch(&self, patch: Value) -> Result<()> {
        self.planes().patch("k1", &PatchParams::default(), &Patch::Merge(&patch)).await?;
        Ok(())
    }

    /// The API of a kind in the plane, over all of it.
    fn in_plane(&self, group: &str, kind: &str) -> Result<Api<DynamicObject>> {
        let plane = self.programs.plane().context("the plane does not answer")?;
        Ok(Api::all_with(plane, &ApiResource::from_gvk(&GroupVersionKind::gvk(group, "v1", kind))))
    }

    async fn names(&self, group: &str, kind: &str) -> Result<Vec<String>> {
        let listed = self.in_plane(group, kind)?.list(&ListParams::default().labels(OURS)).await?;
        Ok(listed.iter().map(|object| object.name_any()).collect())
    }

    /// The generations of the Deployments on the host, by name.
    async fn generations(&self) -> Result<BTreeMap<String, i64>> {
        let deployments: Api<Deployment> = Api::namespaced(self.client.clone(), NAMESPACE);
        let listed = deployments.list(&ListParams::default()).await?;
        Ok(listed.iter().map(|object| (object.name_any(), object.metadata.generation.unwrap_or_default())).collect())
    }

    async fn is_ready(&self) -> Result<bool> {
        Ok(self.shown().await?.0)
    }
}

/// Makes the namespace `fleet`, and lets an operator lead there, with the rights that are shipped.
async fn begin(server: &ApiServer) -> Result<()> {
    rights::make_namespace(&server.client(), "fleet").await?;
    let config = rights::install(server).await?;
    let command = Settings::augment_args(clap::Command::new("operator"));
    let lease = format!("--lease-namespace={}", e2e::helm::NAMESPACE);
    let arguments =
        ["operator", "--namespace=fleet", lease.as_str(), "--listen=127.0.0.1:0", "--message-interval-seconds=0"];
    let settings = Settings::from_arg_matches(&command.get_matches_from(arguments))?;
    tokio::spawn(async move {
        let never = std::future::pending();
        let ended = operator::serve(config, settings, operator::karmada_deployment::spawn, never).await;
        println!("the operator ended: {ended:?}");
    });
    Ok(())
}

/// Has the operator look again.
async fn look(world: &World) -> Result<()> {
    let time = jiff::Timestamp::now().to_string();
    world.patch(json!({"metadata": {"annotations": {"look": time}}})).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plane_whose_workloads_are_said_to_be_ready_is_made_kept_and_removed() -> Result<()> {
    let world = Arc::new(World::start().await?);
    let since = rights::are_said_to_be_missing(&world).await?;
    let said = world.until("ready", World::is_ready).await?;
    println!("{}", world.server.kubectl(&["--namespace=fleet", "get", "kad"])?);
    is_made_in_order(&world, &said).await?;
    stands_still(&world).await?;
    upgrade::to_the_next_minor(&world).await?;
    drift_is_put_back(&world).await?;
    a_renewed_leaf_rolls_one_deployment(&world).await?;
    what_is_switched_off_goes(&world).await?;
    let member = members::join_and_leave(&world).await?;
    a_dead_api_server_is_said(&world).await?;
    deletion_leaves_nothing(&world).await?;
    rights::are_those_that_are_used(&world, since)?;
    member.is_left_as_it_was().await
}

/// The order of the workloads; and that what they wait for was said.
async fn is_made_in_order(world: &World, said: &[String]) -> Result<()> {
    let order = world.host.order();
    let expected = [
        "etcd",
        "apiserver",
        "kube-controller-manager",
        "aggregated-apiserver",
        "webhook",
        "scheduler",
        "controller-manager",
        "search",
    ];
    ensure!(order == expected.map(|suffix| format!("k1-{suffix}")), "{order:?}");
    let waited = said.iter().any(|message| message.contains("etcd"));
    ensure!(waited, "nothing was said of etcd: {said:?}");
    let apis = world.names("apiregistration.k8s.io", "APIService").await?;
    ensure!(apis == ["v1alpha1.cluster.karmada.io", "v1alpha1.search.karmada.io"], "{apis:?}");
    let definitions = world.in_plane("apiextensions.k8s.io", "CustomResourceDefinition")?;
    let definition = definitions.get("resourcebindings.work.karmada.io").await?;
    let conversion = &definition.data["spec"]["conversion"];
    ensure!(conversion["strategy"] == "Webhook", "{conversion}");
    for kind in ["MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"] {
        let names = world.names("admissionregistration.k8s.io", kind).await?;
        ensure!(names.len() == 1, "{kind}: {names:?}");
    }
    Ok(())
}

/// At rest nothing is written.
async fn stands_still(world: &World) -> Result<()> {
    let version = async || anyhow::Ok(world.planes().get("k1").await?.resource_version());
    let (before, generations) = (version().await?, world.generations().await?);
    world.patch(json!({"metadata": {"annotations": {"look": "1"}}})).await?;
    sleep(Duration::from_secs(3)).await;
    ensure!(world.generations().await? == generations, "Deployments were written");
    let touched = version().await?;
    sleep(Duration::from_secs(1)).await;
    ensure!(version().await? == touched && touched != before, "its status is written again and again");
    Ok(())
}

/// Nobody asks for it: the changes are seen.
async fn drift_is_put_back(world: &World) -> Result<()> {
    let deployments: Api<Deployment> = Api::namespaced(world.client.clone(), NAMESPACE);
    let patch = json!({"spec": {"replicas": 0}});
    let replicas = async || anyhow::Ok(deployments.get("k1-scheduler").await?.spec.and_then(|spec| spec.replicas));
    let wanted = replicas().await?;
    // As a person would; what another controller sets is a conflict, which is said.
    let person = PatchParams { field_manager: Some("kubectl-edit".into()), ..PatchParams::default() };
    deployments.patch("k1-scheduler", &person, &Patch::Merge(&patch)).await?;
    let services: Api<Service> = Api::namespaced(world.client.clone(), NAMESPACE);
    services.delete("k1-webhook", &DeleteParams::default()).await?;
    world
        .in_plane("rbac.authorization.k8s.io", "ClusterRole")?
        .delete_collection(&DeleteParams::default(), &ListParams::default().labels(OURS))
        .await?;
    world
        .until("put back", async |world| {
            let roles = world.names("rbac.authorization.k8s.io", "ClusterRole").await?;
            Ok(replicas().await? == wanted && services.get_opt("k1-webhook").await?.is_some() && roles.len() > 1)
        })
        .await?;
    world.until("ready after drift", World::is_ready).await?;
    Ok(())
}

async fn a_renewed_leaf_rolls_one_deployment(world: &World) -> Result<()> {
    let before = world.generations().await?;
    let secrets: Api<Secret> = Api::namespaced(world.client.clone(), "fleet");
    let gone = json!({"data": {"scheduler-client.crt": null, "scheduler-client.key": null}});
    secrets.patch("k1-certificates", &PatchParams::default(), &Patch::Merge(&gone)).await?;
    world.patch(json!({"metadata": {"annotations": {"look": "3"}}})).await?;
    let changed = async || {
        let now = world.generations().await?;
        let changed = now.iter().filter(|(name, generation)| before.get(*name) != Some(generation));
        anyhow::Ok(changed.map(|(name, _)| name.clone()).collect::<Vec<_>>())
    };
    world.until("rolled", async |_| Ok(!changed().await?.is_empty())).await?;
    world.until("ready with the new leaf", World::is_ready).await?;
    let changed = changed().await?;
    ensure!(changed == ["k1-scheduler"], "{changed:?}");
    Ok(())
}

async fn what_is_switched_off_goes(world: &World) -> Result<()> {
    world.patch(json!({"spec": {"search": null}})).await?;
    world
        .until("without search", async |world| {
            let apis = world.names("apiregistration.k8s.io", "APIService").await?;
            let there = world.generations().await?;
            Ok(apis == ["v1alpha1.cluster.karmada.io"] && !there.contains_key("k1-search"))
        })
        .await?;
    world.until("ready without search", World::is_ready).await?;
    Ok(())
}

async fn a_dead_api_server_is_said(world: &World) -> Result<()> {
    world.programs.kill_api_server();
    world.patch(json!({"metadata": {"annotations": {"look": "4"}}})).await?;
    let said = world.until("told", async |world| Ok(!world.is_ready().await?)).await?;
    let last = said.last().map(String::as_str).unwrap_or_default();
    let (_, message) = world.shown().await?;
    ensure!(message.contains("does not answer"), "{message} {last}");
    Ok(())
}

async fn deletion_leaves_nothing(world: &World) -> Result<()> {
    world.planes().delete("k1", &DeleteParams::default()).await?;
    world.until("gone", async |world| Ok(world.planes().get_opt("k1").await?.is_none())).await?;
    for (group, kind) in [
        ("apps", "Deployment"),
        ("apps", "StatefulSet"),
        ("", "Service"),
        ("", "Secret"),
        ("policy", "PodDisruptionBudget"),
    ] {
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, "v1", kind));
        let api: Api<DynamicObject> = Api::namespaced_with(world.client.clone(), NAMESPACE, &resource);
        let left = api.list(&ListParams::default().labels(OURS)).await?;
        ensure!(left.items.is_empty(), "{kind}: {:?}", left.iter().map(|one| one.name_any()).collect::<Vec<_>>());
    }
    let namespaces: Api<Namespace> = Api::all(world.client.clone());
    ensure!(namespaces.get_opt(NAMESPACE).await?.is_some(), "its namespace, and what else is in it, stays");
    Ok(())
}
