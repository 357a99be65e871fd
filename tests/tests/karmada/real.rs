//! A Karmada plane of Karmada's own programs: each is started as the operator's Deployments say. The host is a real API
//! server without nodes; the Pods are processes of this machine. `make karmada` runs it where the programs are given.

mod auto_join;
mod estimators;
mod failover;
mod members;
mod migration;
mod moved;
mod probe;
mod snapshot;
mod story;
mod upgrade;

use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use crds::{KarmadaDeployment, conditions};
use e2e::api_server::{ApiServer, free_node_port, own_address};
use e2e::karmada::definitions_bundle;
use e2e::karmada::given::Given;
use e2e::karmada::node::{CONTROLLERS, Node};
use e2e::karmada::works::administrator;
use e2e::objects::VERSION as KUBERNETES;
use kube::Client;
use kube::api::{Api, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::{FORMER, NAMESPACE, VERSION, begin, rights};

/// Two busy cores start nine programs in less.
const DEADLINE: Duration = Duration::from_secs(300);

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
        Self::start_in(VERSION, KUBERNETES).await
    }

    /// Starts with a plane of these versions of Karmada and Kubernetes; its bundle has the definitions of all versions
    /// whose programs are given.
    async fn start_in(version: &str, kubernetes: &str) -> Result<Self> {
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
                "crds": {"bundle": definitions_bundle::serve(definitions).await?},
                "apiServer": {
                    "serviceType": "NodePort", "loadBalancerApiserverIp": own_address()?.to_string(),
                    "nodePort": free_node_port()?, "version": kubernetes,
                },
                "kubeControllerManager": {"version": kubernetes},
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
        administrator(&self.client, self.name).await
    }
}
