//! The Services of a namespace: each has an address of its own on this machine's loopback, by which the first Pod that
//! is ready is reached, and names that the Pods know. A port of nodes is one of this machine's own address.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anyhow::{Context, Result};
use k8s_openapi::api::core::v1::{Pod, Service};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kube::ResourceExt;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

use crate::api_server::own_address;

/// Where an estimator is asked. Nobody can say at which address it listens, so there is room for one.
const ESTIMATOR_PORT: u16 = 10352;

/// A Pod that is there.
#[derive(Clone, Debug)]
pub struct Endpoint {
    name: String,
    labels: BTreeMap<String, String>,
    pub address: Ipv4Addr,
    pub ready: bool,
    /// Its process; none: it does not run.
    pub pid: Option<u32>,
}

impl Endpoint {
    /// The component that it is of.
    pub fn component(&self) -> String {
        self.labels.get("app.kubernetes.io/name").cloned().unwrap_or_default()
    }

    /// One that is not ready.
    pub fn new(pod: &Pod, address: Ipv4Addr) -> Self {
        Self { name: pod.name_any(), labels: pod.labels().clone(), address, ready: false, pid: None }
    }
}

/// What Services lead to; clones are the same.
#[derive(Clone, Default)]
pub struct Endpoints(Arc<Mutex<BTreeMap<String, Endpoint>>>);

impl Endpoints {
    /// The Pods by their names.
    pub fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Endpoint>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn selected(&self, selector: &BTreeMap<String, String>) -> Vec<Endpoint> {
        let is_selected = |one: &&Endpoint| selector.iter().all(|(key, value)| one.labels.get(key) == Some(value));
        self.lock().values().filter(is_selected).cloned().collect()
    }
}

/// The Services that are served.
pub struct Services {
    endpoints: Endpoints,
    namespace: String,
    /// The second number of all addresses.
    net: u8,
    addresses: BTreeMap<String, Ipv4Addr>,
    listeners: JoinSet<()>,
}

impl Services {
    pub fn new(endpoints: Endpoints, namespace: &str, net: u8) -> Self {
        let namespace = namespace.to_owned();
        Self { endpoints, namespace, net, addresses: BTreeMap::new(), listeners: JoinSet::new() }
    }

    /// Serves those that are new; what `/etc/hosts` of a Pod says of all.
    pub async fn serve(&mut self, services: &[Service]) -> Result<String> {
        let mut hosts = "127.0.0.1 localhost\n".to_owned();
        for service in services {
            let (name, spec) = (service.name_any(), service.spec.clone().unwrap_or_default());
            let selector = spec.selector.unwrap_or_default();
            if spec.cluster_ip.as_deref() == Some("None") {
                for pod in self.endpoints.selected(&selector) {
                    hosts.push_str(&self.line(pod.address, &format!("{}.{name}", pod.name)));
                }
                continue;
            }
            let is_new = !self.addresses.contains_key(&name);
            let number = u8::try_from(self.addresses.len() + 1)?;
            let address = *self.addresses.entry(name.clone()).or_insert(Ipv4Addr::new(127, self.net, 1, number));
            hosts.push_str(&self.line(address, &name));
            for port in spec.ports.into_iter().flatten().filter(|_| is_new) {
                let Some(IntOrString::Int(target)) = port.target_port else { continue };
                let target = u16::try_from(target)?;
                // An estimator listens at all addresses of this machine, that of its Service among them.
                if target == ESTIMATOR_PORT {
                    continue;
                }
                self.listen(IpAddr::from(address), u16::try_from(port.port)?, &selector, target).await?;
                if let Some(node_port) = port.node_port {
                    self.listen(own_address()?, u16::try_from(node_port)?, &selector, target).await?;
                }
            }
        }
        Ok(hosts)
    }

    async fn listen(&mut self, at: IpAddr, port: u16, selector: &BTreeMap<String, String>, target: u16) -> Result<()> {
        let at = SocketAddr::new(at, port);
        let listener = TcpListener::bind(at).await.with_context(|| format!("failed to listen at {at}"))?;
        let (endpoints, selector) = (self.endpoints.clone(), selector.clone());
        self.listeners.spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let Some(pod) = endpoints.selected(&selector).into_iter().find(|pod| pod.ready) else { continue };
                tokio::spawn(async move {
                    let Ok(mut behind) = TcpStream::connect((pod.address, target)).await else { return };
                    // Either end may break off; both notice.
                    let _ = tokio::io::copy_bidirectional(&mut stream, &mut behind).await;
                });
            }
        });
        Ok(())
    }

    /// The names of a host in the namespace, short and long.
    fn line(&self, address: Ipv4Addr, name: &str) -> String {
        let name = format!("{name}.{}.svc", self.namespace);
        format!("{address} {name} {name}.cluster.local\n")
    }
}
