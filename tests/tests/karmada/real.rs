//! A Karmada plane of Karmada's own programs: each is started as the operator's Deployments say. The host is a real API
//! server without nodes; the Pods are processes of this machine. `make karmada` runs it where the programs are given.

mod auto_join;
mod container;
mod estimators;
mod failover;
mod members;
mod migration;
mod moved;
mod node;
mod services;
mod snapshot;
mod status;
mod story;
mod upgrade;
mod volumes;

use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use crds::{KarmadaDeployment, conditions};
use e2e::api_server::{ApiServer, own_address};
use e2e::karmada::given::Given;
use k8s_openapi::api::core::v1::Secret;
use kube::api::{Api, Patch, PatchParams, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::{FORMER, NAMESPACE, VERSION, begin, bundle, node_port, rights};
use node::Node;

/// Two busy cores start nine programs in less.
const DEADLINE: Duration = Duration::from_secs(300);

/// What makes Pods of Deployments, and tokens of ServiceAccounts.
const CONTROLLERS: &str = "deployment-controller,disruption-controller,garbage-collector-controller,namespace-controller,\
     replicaset-controller,root-ca-certificate-publisher-controller,serviceaccount-controller,\
     serviceaccount-token-controller,statefulset-controller";

/// The metadata cluster, which is the host, with an operator, and nodes that run what it deploys.
struct World {
    client: Client,
    node: Node,
    /// The second number of its Pods' addresses.
    net: u8,
    /// The KarmadaDeployment.
    name: &'static str,
    /// Where its Pods are.
    namespace: &'static str,
    server: ApiServer,
}

impl World {
    async fn start() -> Result<Self> {
        Self::start_in(VERSION).await
    }

    /// Starts with a plane of this version; its bundle has the definitions of all versions whose programs are given.
    async fn start_in(version: &str) -> Result<Self> {
        let given = Given::from_env()?;
        let there = [FORMER, VERSION].into_iter().filter(|version| given.has(version));
        let definitions =
            there.map(|version| Ok((version, given.definitions(version)?))).collect::<Result<Vec<_>>>()?;
        let server = ApiServer::shared().await?;
        let client = server.client();
        begin(&server).await?;
        rights::bind(&client, NAMESPACE).await?;
        server.run_controllers(CONTROLLERS)?;
        let net = u8::try_from(16 + std::process::id() % 200)?;
        let node = Node::start(client.clone(), NAMESPACE, given, net, Vec::new())?;
        let plane = json!({
            "apiVersion": "clusterwright.dev/v1alpha1", "kind": "KarmadaDeployment", "metadata": {"name": "k1"},
            "spec": {
                "version": version, "hostNamespace": NAMESPACE,
                "crds": {"bundle": bundle::serve(definitions).await?},
                "apiServer": {
                    "serviceType": "NodePort", "loadBalancerApiserverIp": own_address()?.to_string(),
                    "nodePort": node_port()?,
                },
                "search": {}, "descheduler": {}, "metricsAdapter": {},
            },
        });
        let world = Self { client, node, net, name: "k1", namespace: NAMESPACE, server };
        world.planes().create(&PostParams::default(), &serde_json::from_value(plane)?).await?;
        Ok(world)
    }

    /// The same host, with nodes for another plane in a namespace of its own; `net` is not that of anyone else.
    async fn beside(&self, name: &'static str, namespace: &'static str, net: u8) -> Result<Self> {
        rights::bind(&self.client, namespace).await?;
        let node = Node::start(self.client.clone(), namespace, Given::from_env()?, net, Vec::new())?;
        Ok(Self { client: self.client.clone(), node, net, name, namespace, server: ApiServer::shared().await? })
    }

    fn planes(&self) -> Api<KarmadaDeployment> {
        Api::namespaced(self.client.clone(), "fleet")
    }

    /// Merges a patch into the KarmadaDeployment.
    async fn patch(&self, patch: Value) -> Result<()> {
        self.planes().patch(self.name, &PatchParams::default(), &Patch::Merge(&patch)).await?;
        Ok(())
    }

    /// Whether it is ready, and the sentence that it shows.
    async fn shown(&self) -> Result<(bool, String)> {
        let status = self.planes().get(self.name).await?.status.unwrap_or_default();
        Ok((conditions::is_true(&status.conditions, "Ready"), status.message.unwrap_or_default()))
    }

    /// Waits until it holds, and prints what is shown meanwhile.
    async fn until(&self, what: &str, holds: impl AsyncFn(&Self) -> Result<bool>) -> Result<()> {
        let (start, mut last) = (Instant::now(), String::new());
        loop {
            if let Ok((_, message)) = self.shown().await
                && last != message
            {
                println!("{what}, {:.1} s: {message}", start.elapsed().as_secs_f32());
                last = message;
            }
            let holds = holds(self).await;
            if matches!(holds, Ok(true)) {
                println!("{what} after {:.1} s", start.elapsed().as_secs_f32());
                return Ok(());
            }
            if start.elapsed() > DEADLINE {
                bail!("not {what} ({holds:?}): {last}\n{}", self.node.complaints());
            }
            sleep(Duration::from_millis(200)).await;
        }
    }

    /// The members that its status has.
    async fn members(&self) -> Result<Vec<String>> {
        let status = self.planes().get(self.name).await?.status.unwrap_or_default();
        Ok(status.members.into_iter().map(|member| member.name).collect())
    }

    /// How many members are reached.
    async fn joined(&self) -> Result<i32> {
        let status = self.planes().get(self.name).await?.status.unwrap_or_default();
        Ok(status.member_counts.map_or(0, |counts| counts.ready))
    }

    async fn is_ready(&self) -> Result<bool> {
        Ok(self.shown().await?.0)
    }

    /// The plane, as its administrator reaches it.
    async fn plane(&self) -> Result<Client> {
        let secrets: Api<Secret> = Api::namespaced(self.client.clone(), "fleet");
        let secret = secrets.get(&format!("{}-kubeconfig", self.name)).await?.data.context("it has no data")?;
        let text = String::from_utf8(secret.get("kubeconfig").context("no kubeconfig")?.0.clone())?;
        let options = KubeConfigOptions::default();
        let config = Config::from_custom_kubeconfig(Kubeconfig::from_yaml(&text)?, &options).await?;
        Ok(Client::try_from(config)?)
    }
}
