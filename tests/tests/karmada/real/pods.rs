//! What nodes of the host cluster would do: each workload's Pod runs as a process, is asked by its own probe whether it
//! is ready, is started anew when it ends or its template changes, and its workload says so.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::apps::v1::{Deployment, StatefulSet};
use k8s_openapi::api::core::v1::{Secret, Service};
use kube::api::{Api, ListParams, Patch, PatchParams};
use kube::{Client, Config, Resource, ResourceExt};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::time::sleep;

use super::container::{Container, Start, tail};
use super::given::Given;
use super::services::{Endpoint, Endpoints, Services};
use crate::NAMESPACE;

/// How long a program that has ended is left alone.
const BACK_OFF: Duration = Duration::from_secs(1);

/// What is seen of the Pods; clones are the same.
#[derive(Clone)]
pub struct Pods {
    endpoints: Endpoints,
    directory: Arc<tempfile::TempDir>,
    order: Arc<Mutex<Vec<String>>>,
}

/// Who runs them.
struct Node {
    host: Client,
    given: Given,
    services: Services,
    seen: Pods,
    net: u8,
    running: BTreeMap<String, Pod>,
    /// How many Pods there ever were: each has an address of its own.
    count: u8,
}

struct Pod {
    template: Value,
    /// None: it has ended.
    container: Option<Container>,
    since: Instant,
    probe: Client,
    path: String,
    address: Ipv4Addr,
}

/// A StatefulSet or a Deployment.
struct Workload {
    name: String,
    object: Value,
}

impl Pods {
    /// Begins to run what the namespace has, and goes on for as long as the test runs.
    pub fn start(host: Client, given: Given) -> Result<Self> {
        let net = u8::try_from(16 + std::process::id() % 200)?;
        let directory = Arc::new(tempfile::tempdir()?);
        let seen = Self { endpoints: Endpoints::default(), directory, order: Arc::default() };
        let services = Services::new(seen.endpoints.clone(), net);
        let running = BTreeMap::new();
        let mut node = Node { host, given, services, seen: seen.clone(), net, running, count: 0 };
        tokio::spawn(async move {
            loop {
                if let Err(error) = node.pass().await {
                    println!("the node: {error:#}");
                }
                sleep(Duration::from_millis(300)).await;
            }
        });
        Ok(seen)
    }

    /// The workloads in the order in which each was ready first.
    pub fn order(&self) -> Vec<String> {
        self.order.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The ends of what those have printed that are not ready.
    pub fn complaints(&self) -> String {
        let pods: Vec<Endpoint> = self.endpoints.lock().values().filter(|pod| !pod.ready).cloned().collect();
        let said = |pod: &Endpoint| format!("== {}\n{}\n", pod.name, self.log(pod.name.trim_end_matches("-0")));
        pods.iter().map(said).collect()
    }

    /// The end of what the program of a workload has printed.
    pub fn log(&self, workload: &str) -> String {
        tail(&self.root(workload))
    }

    fn root(&self, workload: &str) -> PathBuf {
        self.directory.path().join(workload)
    }
}

impl Node {
    async fn pass(&mut self) -> Result<()> {
        let sets: Api<StatefulSet> = Api::namespaced(self.host.clone(), NAMESPACE);
        let deployments: Api<Deployment> = Api::namespaced(self.host.clone(), NAMESPACE);
        let workloads = [list(&sets).await?, list(&deployments).await?];
        let is_wanted = |name: &String| workloads.iter().flatten().any(|workload| workload.name == *name);
        self.running.retain(|name, _| is_wanted(name));
        self.seen.endpoints.lock().retain(|name, _| is_wanted(name));
        for workload in workloads.iter().flatten() {
            self.register(workload)?;
        }
        let services: Api<Service> = Api::namespaced(self.host.clone(), NAMESPACE);
        let hosts = self.services.serve(&services.list(&ListParams::default()).await?.items).await?;
        let [of_sets, of_deployments] = &workloads;
        for workload in of_sets {
            let ready = self.keep(workload, &hosts).await;
            report(&sets, workload, ready).await?;
        }
        for workload in of_deployments {
            let ready = self.keep(workload, &hosts).await;
            report(&deployments, workload, ready).await?;
        }
        Ok(())
    }

    /// Gives the Pod of a workload its address: its names lead to it before it runs.
    fn register(&mut self, workload: &Workload) -> Result<()> {
        let replicas = workload.object["spec"]["replicas"].as_i64();
        ensure!(replicas == Some(1), "{} wants {replicas:?} Pods; one runs here", workload.name);
        let mut endpoints = self.seen.endpoints.lock();
        if !endpoints.contains_key(&workload.name) {
            self.count += 1;
            let labels = &workload.object["spec"]["template"]["metadata"]["labels"];
            let endpoint = Endpoint {
                name: format!("{}-0", workload.name),
                labels: serde_json::from_value(labels.clone())?,
                address: Ipv4Addr::new(127, self.net, 0, self.count),
                ready: false,
            };
            endpoints.insert(workload.name.clone(), endpoint);
        }
        Ok(())
    }

    /// Runs the Pod of a workload as it is wanted; whether it is ready.
    async fn keep(&mut self, workload: &Workload, hosts: &str) -> Result<bool> {
        let template = &workload.object["spec"]["template"];
        if self.running.get(&workload.name).is_some_and(|pod| pod.template != *template) {
            self.running.remove(&workload.name);
        }
        let ended = self.running.get(&workload.name).is_some_and(|pod| pod.container.is_none());
        if !self.running.contains_key(&workload.name) || ended {
            self.start(workload, hosts).await?;
        }
        let pod = self.running.get_mut(&workload.name).context("it was not started")?;
        let ready = pod.is_ready(hosts).await?;
        if let Some(endpoint) = self.seen.endpoints.lock().get_mut(&workload.name) {
            endpoint.ready = ready;
        }
        let mut order = self.seen.order.lock().unwrap_or_else(PoisonError::into_inner);
        if ready && !order.contains(&workload.name) {
            println!("{} is ready {:.1} s after its start", workload.name, pod.since.elapsed().as_secs_f32());
            order.push(workload.name.clone());
        }
        Ok(ready)
    }

    async fn start(&mut self, workload: &Workload, hosts: &str) -> Result<()> {
        let name = &workload.name;
        if self.running.get(name).is_some_and(|pod| pod.since.elapsed() < BACK_OFF) {
            return Ok(());
        }
        let endpoint = self.seen.endpoints.lock().get(name).cloned().context("it has no address")?;
        let secrets: Api<Secret> = Api::namespaced(self.host.clone(), NAMESPACE);
        let secret = secrets.get(name).await?.data.unwrap_or_default();
        let template = &workload.object["spec"]["template"];
        let container = Container::start(&Start {
            given: &self.given,
            pod: &endpoint.name,
            template,
            secret: &secret,
            root: self.seen.root(name),
            address: endpoint.address,
            hosts,
        })?;
        let probe = &template["spec"]["containers"][0]["readinessProbe"]["httpGet"];
        let scheme = probe["scheme"].as_str().unwrap_or_default().to_lowercase();
        let mut config = Config::new(format!("{scheme}://{}:{}", endpoint.address, probe["port"]).parse()?);
        // A kubelet verifies no certificate either.
        config.accept_invalid_certs = true;
        config.connect_timeout = Some(Duration::from_secs(2));
        config.read_timeout = Some(Duration::from_secs(5));
        let pod = Pod {
            template: template.clone(),
            container: Some(container),
            since: Instant::now(),
            probe: Client::try_from(config)?,
            path: probe["path"].as_str().unwrap_or_default().to_owned(),
            address: endpoint.address,
        };
        self.running.insert(name.clone(), pod);
        Ok(())
    }
}

impl Pod {
    async fn is_ready(&mut self, hosts: &str) -> Result<bool> {
        let Some(container) = &mut self.container else { return Ok(false) };
        container.resolve(hosts)?;
        if let Some(how) = container.ended()? {
            self.container = None;
            println!("the program at {} ended: {how}", self.address);
            return Ok(false);
        }
        let request = http::Request::get(&self.path).body(Vec::new())?;
        Ok(self.probe.request_text(request).await.is_ok())
    }
}

async fn list<K>(api: &Api<K>) -> Result<Vec<Workload>>
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Serialize + std::fmt::Debug,
{
    let listed = api.list(&ListParams::default()).await?;
    listed.iter().map(|one| Ok(Workload { name: one.name_any(), object: serde_json::to_value(one)? })).collect()
}

/// Writes whether it is ready, if that is not what it says.
async fn report<K>(api: &Api<K>, workload: &Workload, ready: Result<bool>) -> Result<()>
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + std::fmt::Debug,
{
    let ready = ready.unwrap_or_else(|error| {
        println!("{}: {error:#}", workload.name);
        false
    });
    let (generation, ready) = (&workload.object["metadata"]["generation"], i64::from(ready));
    let now = &workload.object["status"];
    if now["observedGeneration"] == *generation && now["readyReplicas"].as_i64().unwrap_or_default() == ready {
        return Ok(());
    }
    let mut status = json!({
        "observedGeneration": generation, "replicas": 1, "updatedReplicas": 1,
        "readyReplicas": ready, "availableReplicas": ready,
    });
    if workload.object["spec"]["serviceName"].is_string() {
        status["currentRevision"] = json!("a");
        status["updateRevision"] = json!("a");
    }
    let patch = Patch::Merge(json!({ "status": status }));
    let written = api.patch_status(&workload.name, &PatchParams::default(), &patch).await;
    written.map(drop).with_context(|| format!("failed to write the status of {}", workload.name))
}
