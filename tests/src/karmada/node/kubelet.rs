//! Who runs the Pods.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::PoisonError;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use k8s_openapi::api::core::v1::{Pod, Service};
use kube::api::{Api, ListParams, Patch, PatchParams};
use kube::{Client, Config, ResourceExt};
use serde_json::Value;
use tokio::net::TcpStream;

use super::super::given::Given;
use super::Node;
use super::container::{Container, Start};
use super::services::{Endpoint, Services};
use super::status::{Process, status};
use super::volumes::{variables, volumes};

/// How long a program that has ended is left alone.
const BACK_OFF: Duration = Duration::from_secs(2);
/// How long one that has been ready may fail its probe: three periods.
const PATIENCE: Duration = Duration::from_secs(15);

/// The Pods of a namespace, and what each of them runs.
pub(super) struct Kubelet {
    pub(super) client: Client,
    pub(super) pods: Api<Pod>,
    pub(super) services: (Api<Service>, Services),
    pub(super) given: Given,
    pub(super) environment: Vec<(&'static str, String)>,
    pub(super) node: Node,
    pub(super) net: u8,
    /// How many Pods there ever were: each has an address of its own.
    pub(super) count: u8,
    pub(super) running: BTreeMap<String, Running>,
}

pub(super) struct Running {
    process: Process,
    container: Option<Container>,
    since: Instant,
    /// When it has passed its probe last.
    passed: Option<Instant>,
    probe: Probe,
    reported: Value,
}

impl Kubelet {
    /// Looks at all Pods once.
    pub(super) async fn pass(&mut self) -> Result<()> {
        let pods = self.pods.list(&ListParams::default()).await?.items;
        let is_there =
            |name: &String| pods.iter().any(|pod| pod.name_any() == *name && pod.metadata.deletion_timestamp.is_none());
        self.running.retain(|name, _| is_there(name));
        self.node.endpoints.lock().retain(|name, _| is_there(name));
        for pod in &pods {
            self.register(pod);
        }
        let services = self.services.0.list(&ListParams::default()).await?.items;
        let hosts = self.services.1.serve(&services).await?;
        for pod in &pods {
            if let Err(error) = self.keep(pod, &hosts).await {
                println!("{}: {error:#}", pod.name_any());
            }
        }
        Ok(())
    }

    /// Gives a Pod its address: its names lead to it before it runs.
    fn register(&mut self, pod: &Pod) {
        let mut endpoints = self.node.endpoints.lock();
        endpoints.entry(pod.name_any()).or_insert_with(|| {
            self.count += 1;
            Endpoint::new(pod, Ipv4Addr::new(127, self.net, 0, self.count))
        });
    }

    /// Runs a Pod, and says how it is.
    async fn keep(&mut self, pod: &Pod, hosts: &str) -> Result<()> {
        let name = pod.name_any();
        let address = self.node.endpoints.lock().get(&name).context("it has no address")?.address;
        let may_start = |running: &Running| running.container.is_none() && running.since.elapsed() > BACK_OFF;
        if self.running.get(&name).is_none_or(may_start) {
            self.run(pod, address, hosts).await?;
        }
        let running = self.running.get_mut(&name).context("it was not started")?;
        running.look(hosts).await?;
        let ready = running.process.is_ready;
        let mut component = String::new();
        if let Some(endpoint) = self.node.endpoints.lock().get_mut(&name) {
            (endpoint.ready, endpoint.pid) = (ready, running.container.as_ref().map(Container::pid));
            component = endpoint.component();
        }
        let seconds = running.since.elapsed().as_secs_f32();
        let status = status(pod, &running.process, address);
        if running.reported != status {
            self.pods.patch_status(&name, &PatchParams::default(), &Patch::Merge(&status)).await?;
            running.reported = status;
        }
        let mut order = self.node.order.lock().unwrap_or_else(PoisonError::into_inner);
        if ready && !order.contains(&component) {
            println!("{component} is ready {seconds:.1} s after its start");
            order.push(component);
        }
        Ok(())
    }

    async fn run(&mut self, pod: &Pod, address: Ipv4Addr, hosts: &str) -> Result<()> {
        let name = pod.name_any();
        let container = Container::start(&Start {
            given: &self.given,
            pod,
            volumes: volumes(&self.client, pod).await?,
            root: self.node.root(&name),
            address,
            hosts,
            environment: &self.environment,
            variables: variables(&self.client, pod).await?,
        })?;
        let before = self.running.remove(&name).map(|before| before.process);
        let again = |before: Process| Process { restarts: before.restarts + 1, has_ended: false, ..before };
        let running = Running {
            process: before.map(again).unwrap_or_default(),
            container: Some(container),
            since: Instant::now(),
            passed: None,
            probe: probe(pod, address)?,
            reported: Value::Null,
        };
        self.running.insert(name, running);
        Ok(())
    }
}

impl Running {
    async fn look(&mut self, hosts: &str) -> Result<()> {
        let Some(container) = &mut self.container else { return Ok(()) };
        container.resolve(hosts)?;
        if let Some(how) = container.ended()? {
            self.container = None;
            self.process = Process { is_ready: false, has_ended: true, exit: how.code(), ..self.process };
            return Ok(());
        }
        let passes = match &self.probe {
            Probe::Get(client, path) => client.request_text(http::Request::get(path).body(Vec::new())?).await.is_ok(),
            Probe::Connect(at) => TcpStream::connect(at).await.is_ok(),
        };
        if passes {
            self.passed = Some(Instant::now());
        }
        self.process.is_ready = self.passed.is_some_and(|at| at.elapsed() < PATIENCE);
        Ok(())
    }
}

/// How it is looked whether it is ready.
enum Probe {
    /// What is asked, and for which path.
    Get(Client, String),
    /// A port that it opens.
    Connect(SocketAddr),
}

fn probe(pod: &Pod, address: Ipv4Addr) -> Result<Probe> {
    let container = pod.spec.as_ref().and_then(|spec| spec.containers.first()).context("it has no container")?;
    let probe = container.readiness_probe.clone().context("it has no probe")?;
    if let Some(socket) = probe.tcp_socket {
        let port: u16 = serde_json::from_value(serde_json::to_value(socket.port)?)?;
        return Ok(Probe::Connect(SocketAddr::from((address, port))));
    }
    let probe = probe.http_get.context("it has no probe that is known here")?;
    let scheme = probe.scheme.unwrap_or_default().to_lowercase();
    let port = serde_json::to_value(probe.port)?;
    let mut config = Config::new(format!("{scheme}://{address}:{port}").parse()?);
    // A kubelet verifies no certificate either.
    config.accept_invalid_certs = true;
    config.connect_timeout = Some(Duration::from_secs(2));
    config.read_timeout = Some(Duration::from_secs(5));
    Ok(Probe::Get(Client::try_from(config)?, probe.path.unwrap_or_default()))
}
