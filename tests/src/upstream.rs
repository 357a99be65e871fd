//! Machines without a bundle: a proxy is their way to upstream's servers, and here it stands in for them.

use anyhow::{Result, ensure};
use lab::cache::Cache;
use lab::upstream::proxy::Proxy;
use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::scenario::Scenario;

/// The lab's network: what is reached without the proxy.
const LAB: &str = "172.30.0.0/16";
/// Where upstream's catalogue has programs and images.
const SERVERS: [&str; 4] = ["dl.k8s.io", "github.com", "registry-1.docker.io", "registry.k8s.io"];

/// The way to upstream, until this is dropped.
pub struct Upstream(Proxy);

impl Upstream {
    /// Opens it at a port of the lab's gateway.
    pub async fn start(port: u16) -> Result<Self> {
        let listener = TcpListener::bind(("172.30.0.1", port)).await?;
        Ok(Self(Proxy::start(listener, lab::upstream::router(&Cache::from_env().bundle())?)?))
    }

    /// Lets a cluster take all from there, and trust the proxy's authority for that.
    pub async fn wish(&self, scenario: &Scenario, cluster: &mut Value) -> Result<()> {
        let authority = json!({
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"namespace": scenario.name, "name": "proxy"},
            "data": {"ca.crt": self.0.ca},
        });
        scenario.apply(&authority).await?;
        cluster["spec"]["artifacts"] = json!({"caRef": {"name": "proxy"}});
        let proxy = json!({"httpsProxy": self.0.url, "noProxy": [LAB]});
        cluster["spec"]["configuration"] = json!({"machine": {"proxy": proxy}});
        Ok(())
    }

    /// Refuses what came from elsewhere, or from no more than a part of them.
    pub fn was_all_asked(&self) -> Result<()> {
        let hosts = self.0.hosts();
        ensure!(hosts.iter().eq(&SERVERS), "the proxy was asked for {hosts:?}");
        Ok(())
    }
}
