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

/// A gap from which on it is reported what came in the way.
const LONG: Duration = Duration::from_secs(3);

/// What has been written.
#[derive(Clone, Debug)]
pub struct Written {
    /// Writes that were answered well.
    pub count: u64,
    /// The longest time between two of them.
    pub gap: Duration,
    /// What came in the way in it, each with the milliseconds since the last write.
    in_the_way: Vec<String>,
    /// The same since the last write.
    since: Vec<String>,
    last: Instant,
}

impl Written {
    /// For the table: `435 writes, longest gap 1.4 s`.
    pub fn told(&self) -> String {
        let gap = self.gap.as_secs_f64();
        let why = if self.gap < LONG { String::new() } else { format!(" ({})", self.in_the_way.join("; ")) };
        format!("{} writes, longest gap {gap:.1} s{why}", self.count)
    }

    fn write(&mut self) {
        self.end_gap();
        (self.count, self.last) = (self.count + 1, Instant::now());
        self.since.clear();
    }

    fn fail(&mut self, why: &str) {
        let short: String = why.chars().take(80).collect();
        self.since.push(format!("{} ms: {short}", self.last.elapsed().as_millis()));
    }

    fn end_gap(&mut self) {
        let gap = self.last.elapsed();
        if gap > self.gap {
            self.gap = gap;
            self.in_the_way.clone_from(&self.since);
        }
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
        let (in_the_way, since) = (Vec::new(), Vec::new());
        let nothing = Written { count: 0, gap: Duration::ZERO, in_the_way, since, last: Instant::now() };
        let written = Arc::new(Mutex::new(nothing));
        let latencies = Arc::new(Mutex::new(Vec::new()));
        let task = tokio::spawn(write(kubeconfig, written.clone(), latencies.clone()));
        Ok(Self { written, latencies, task })
    }

    /// What has been written so far, the wait that lasts yet among the gaps.
    pub fn written(&self) -> Written {
        let mut written = self.written.lock().unwrap_or_else(PoisonError::into_inner).clone();
        written.end_gap();
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
        if let Some(with) = client.take() {
            number += 1;
            let object = json!({
                "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "written"},
                "data": {"number": number.to_string()},
            });
            let api: Api<ConfigMap> = Api::namespaced(with.clone(), "default");
            let params = PatchParams::apply("writer").force();
            let patch = Patch::Apply(&object);
            let begun = Instant::now();
            let answer = tokio::time::timeout(PATIENCE, api.patch("written", &params, &patch)).await;
            let mut written = written.lock().unwrap_or_else(PoisonError::into_inner);
            match answer {
                Ok(Ok(_)) => {
                    latencies.lock().unwrap_or_else(PoisonError::into_inner).push(begun.elapsed());
                    written.write();
                    client = Some(with);
                }
                // The connection may lead to a machine that is no more.
                Ok(Err(error)) => written.fail(&error.to_string()),
                Err(_) => written.fail("no answer"),
            }
        }
        tokio::time::sleep(PAUSE).await;
    }
}
