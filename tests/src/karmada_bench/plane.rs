//! A plane of Karmada's own programs, and the operator that made it: a process of its own, on an API server that is the
//! host, too. What it deploys there are processes of this machine.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use crds::{KarmadaDeployment, KarmadaDeploymentStatus, conditions};
use k8s_openapi::api::core::v1::{Namespace, Secret};
use kube::Client;
use kube::api::{Api, Patch, PatchParams, PostParams};
use serde_json::{Map, Value, json};

use super::processes::{Named, named};
use crate::api_server::{ApiServer, free_node_port, own_address};
use crate::eventually::{Look, eventually};
use crate::karmada::VERSION;
use crate::karmada::definitions_bundle;
use crate::karmada::given::Given;
use crate::karmada::node::{CONTROLLERS, Node};
use crate::karmada::works::{administrator, kubeconfig};
use crate::operator_process::Operator;
use crate::usage::is_running;

/// Where the KarmadaDeployment is.
const NAMESPACE: &str = "fleet";
/// Where its Pods are.
const PODS: &str = "planes";
/// Its name.
pub const NAME: &str = "k1";
/// Two busy cores start its programs in less.
const DEADLINE: Duration = Duration::from_secs(400);

/// A plane, for as long as this is kept.
pub struct Plane {
    client: Client,
    host: ApiServer,
    operator: Operator,
    node: Node,
}

impl Plane {
    /// Makes a plane whose spec has these fields, too, and waits until it works. With the operator of this program, or
    /// the one that the lab runs.
    pub async fn start(operator: Option<&Path>, fields: Map<String, Value>) -> Result<Self> {
        let given = Given::from_env()?;
        let definitions = vec![(VERSION, given.definitions(VERSION)?)];
        let host = ApiServer::shared().await?;
        let client = host.client();
        for namespace in [NAMESPACE, PODS] {
            make_namespace(&client, namespace).await?;
        }
        let operator = match operator {
            Some(program) => Operator::start_program(program, &host, "operator-a", NAMESPACE)?,
            None => Operator::start(&host, "operator-a", NAMESPACE)?,
        };
        operator.answers("/readyz", "ok: leads").await?;
        host.run_controllers(CONTROLLERS)?;
        let net = u8::try_from(16 + std::process::id() % 200)?;
        let node = Node::start(client.clone(), PODS, given, net, Vec::new())?;
        let plane = Self { client, host, operator, node };
        let mut spec = json!({
            "version": VERSION, "hostNamespace": PODS,
            "crds": {"bundle": definitions_bundle::serve(definitions).await?},
            "apiServer": {
                "serviceType": "NodePort", "loadBalancerApiserverIp": own_address()?.to_string(),
                "nodePort": free_node_port()?,
            },
        });
        spec.as_object_mut().context("the spec is no object")?.extend(fields);
        let object = json!({
            "apiVersion": "clusterwright.dev/v1alpha1", "kind": "KarmadaDeployment", "metadata": {"name": NAME},
            "spec": spec,
        });
        plane.planes().create(&PostParams::default(), &serde_json::from_value(object)?).await?;
        plane.until_ready().await?;
        Ok(plane)
    }

    /// The KarmadaDeployments of its namespace.
    pub fn planes(&self) -> Api<KarmadaDeployment> {
        Api::namespaced(self.client.clone(), NAMESPACE)
    }

    /// Gives the operator the kubeconfig of a cluster, for a member of this name.
    pub async fn give(&self, name: &str, kubeconfig: &str) -> Result<()> {
        let secret = json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": {"name": format!("{name}-kubeconfig")},
            "stringData": {"kubeconfig": kubeconfig},
        });
        let secrets: Api<Secret> = Api::namespaced(self.client.clone(), NAMESPACE);
        secrets.create(&PostParams::default(), &serde_json::from_value(secret)?).await?;
        Ok(())
    }

    /// Wants these members, all of them Push, and no other.
    pub async fn want(&self, names: &[String]) -> Result<()> {
        let member = |name: &String| {
            let secret = format!("{name}-kubeconfig");
            json!({"name": name, "syncMode": "push", "kubeConfigSecretName": secret})
        };
        let members: Vec<Value> = names.iter().map(member).collect();
        let patch = Patch::Merge(json!({"spec": {"members": members}}));
        self.planes().patch(NAME, &PatchParams::default(), &patch).await?;
        Ok(())
    }

    /// A client of the plane itself, with all rights.
    pub async fn administrator(&self) -> Result<Client> {
        administrator(&self.client, NAME).await
    }

    /// The kubeconfig of its administrator.
    pub async fn kubeconfig(&self) -> Result<String> {
        kubeconfig(&self.client, NAME).await
    }

    /// The one of its host, with all rights.
    pub fn host_kubeconfig(&self) -> Result<String> {
        self.host.checked_kubeconfig()
    }

    /// An error, with what it has said, once the operator has ended: one that gets no answer for ten seconds loses its
    /// Lease.
    pub fn check(&self) -> Result<()> {
        ensure!(is_running(self.operator.pid()), "the operator has ended:\n{}", self.operator.log());
        Ok(())
    }

    /// What its status says now, and why something in it is not well.
    pub async fn complaints(&self) -> String {
        let status = self.planes().get(NAME).await.ok().and_then(|plane| plane.status);
        let members = status.as_ref().map(|status| serde_json::to_string(&status.members).unwrap_or_default());
        format!(
            "{:?} {members:?}\n{}\n{}",
            status.and_then(|it| it.message),
            self.node.complaints(),
            self.operator.log()
        )
    }

    /// The processes of the plane, its host and the operator; and this one, which runs the Pods and their network.
    pub fn processes(&self) -> Vec<Named> {
        let own = [("operator".to_owned(), self.operator.pid()), ("simulation".to_owned(), std::process::id())];
        [named("host", self.host.pids()), named("plane", self.node.pids()), own.to_vec()].concat()
    }

    async fn until_ready(&self) -> Result<()> {
        let mut said = String::new();
        let ready = eventually("a plane of Karmada's own programs", DEADLINE, async || {
            if let Err(ended) = self.check() {
                return Ok(Look::Done(Err(ended)));
            }
            let status = self.planes().get(NAME).await?.status.unwrap_or_default();
            let message = status.message.clone().unwrap_or_default();
            if message != said {
                println!("the plane: {message}");
                said.clone_from(&message);
            }
            Ok(if is_ready(&status) { Look::Done(Ok(())) } else { Look::Waiting(message) })
        });
        match ready.await {
            Ok(ready) => ready,
            Err(error) => Err(error.context(self.complaints().await)),
        }
    }
}

fn is_ready(status: &KarmadaDeploymentStatus) -> bool {
    conditions::is_true(&status.conditions, "Ready")
}

async fn make_namespace(client: &Client, name: &str) -> Result<()> {
    let namespaces: Api<Namespace> = Api::all(client.clone());
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
    namespaces.create(&PostParams::default(), &serde_json::from_value(namespace)?).await?;
    Ok(())
}
