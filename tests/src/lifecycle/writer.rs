//! A client that writes to a cluster all the time, and knows how long it ever had to wait.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::Result;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Client;
use kube::api::{Api, Patch, PatchParams};
use serde_json::json;
use tokio::task::JoinHandle;

use crate::client::client_of;
use crate::scenario::Scenario;

/// Between two writes.
const PAUSE: Duration = Duration::from_millis(100);
/// A write that has not been answered by then is tried again on a connection of its own.
const PATIENCE: Duration = Duration::from_millis(1500);

/// What has been written.
#[derive(Clone, Copy, Debug)]
pub struct Written {
    /// Writes that were answered well.
    pub count: u64,
    /// The longest time between two of them.
    pub gap: Duration,
    last: Instant,
}

impl Written {
    /// For the table: `435 writes, longest gap 1.4 s`.
    pub fn told(&self) -> String {
        let gap = self.gap.as_secs_f64();
        format!("{} writes, longest gap {gap:.1} s", self.count)
    }
}

/// Writes until it is dropped.
pub struct Writer {
    written: Arc<Mutex<Written>>,
    /// How long each write took since this was last asked for.
    latencies: Arc<Mutex<Vec<Duration>>>,
    task: JoinHandle<()>,
}

impl Writer {
    /// Writes to the cluster of this name through its endpoint, from now on.
    pub async fn to(scenario: &Scenario, cluster: &str) -> Result<Self> {
        let kubeconfig = scenario.kubeconfig(cluster).await?;
        let written = Arc::new(Mutex::new(Written { count: 0, gap: Duration::ZERO, last: Instant::now() }));
        let latencies = Arc::new(Mutex::new(Vec::new()));
        let task = tokio::spawn(write(kubeconfig, written.clone(), latencies.clone()));
        Ok(Self { written, latencies, task })
    }

    /// What has been written so far, the wait that lasts yet among the gaps.
    pub fn written(&self) -> Written {
        let mut written = *self.written.lock().unwrap_or_else(PoisonError::into_inner);
        written.gap = written.gap.max(written.last.elapsed());
        written
    }

    /// How long a write took at the 99th percentile, of those since this was last asked for; zero when there were none.
    pub fn slowest_percent(&self) -> Duration {
        let mut latencies = std::mem::take(&mut *self.latencies.lock().unwrap_or_else(PoisonError::into_inner));
        latencies.sort_unstable();
        latencies.get(latencies.len() * 99 / 100).copied().unwrap_or_default()
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn write(kubeconfig: String, written: Arc<Mutex<Written>>, latencies: Arc<Mutex<Vec<Duration>>>) {
    let mut client: Option<Client> = None;
    let mut number: u64 = 0;
    loop {
        if client.is_none() {
            client = client_of(&kubeconfig).await.ok();
        }
        if let Some(with) = client.clone() {
            number += 1;
            let object = json!({
                "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "written"},
                "data": {"number": number.to_string()},
            });
            let api: Api<ConfigMap> = Api::namespaced(with, "default");
            let params = PatchParams::apply("writer").force();
            let patch = Patch::Apply(&object);
            let begun = Instant::now();
            match tokio::time::timeout(PATIENCE, api.patch("written", &params, &patch)).await {
                Ok(Ok(_)) => {
                    latencies.lock().unwrap_or_else(PoisonError::into_inner).push(begun.elapsed());
                    let mut written = written.lock().unwrap_or_else(PoisonError::into_inner);
                    written.count += 1;
                    written.gap = written.gap.max(written.last.elapsed());
                    written.last = Instant::now();
                }
                // The connection may lead to a machine that is no more.
                Ok(Err(_)) | Err(_) => client = None,
            }
        }
        tokio::time::sleep(PAUSE).await;
    }
}
