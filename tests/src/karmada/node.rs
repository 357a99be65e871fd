//! What the nodes of a cluster would do: each Pod of a namespace runs as a process, is asked by its own probe whether
//! it is ready, is started anew when it ends, and its status says so. Pods are made by the cluster's own controllers.

mod container;
mod kubelet;
mod services;
pub mod status;
mod volumes;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::Result;
use kube::{Api, Client};
use tokio::time::sleep;

use super::given::Given;
use container::tail;
use kubelet::Kubelet;
use services::{Endpoints, Services};

/// Controllers of a cluster that make Pods of Deployments, and tokens of ServiceAccounts.
pub const CONTROLLERS: &str = "deployment-controller,disruption-controller,garbage-collector-controller,namespace-controller,\
     replicaset-controller,root-ca-certificate-publisher-controller,serviceaccount-controller,\
     serviceaccount-token-controller,statefulset-controller";

/// What is seen of the Pods; clones are the same.
#[derive(Clone)]
pub struct Node {
    directory: Arc<tempfile::TempDir>,
    endpoints: Endpoints,
    /// The components in the order in which a Pod of each was ready first.
    order: Arc<Mutex<Vec<String>>>,
}

impl Node {
    /// Begins to run the Pods of a namespace, and goes on for as long as the test runs. `net` is the second number of
    /// their addresses.
    pub fn start(
        client: Client,
        namespace: &str,
        given: Given,
        net: u8,
        environment: Vec<(&'static str, String)>,
    ) -> Result<Self> {
        let directory = Arc::new(tempfile::tempdir()?);
        let node = Self { directory, endpoints: Endpoints::default(), order: Arc::default() };
        let services = Services::new(node.endpoints.clone(), namespace, net);
        let mut kubelet = Kubelet {
            pods: Api::namespaced(client.clone(), namespace),
            services: (Api::namespaced(client.clone(), namespace), services),
            client,
            given,
            environment,
            node: node.clone(),
            net,
            count: 0,
            running: BTreeMap::new(),
        };
        tokio::spawn(async move {
            loop {
                if let Err(error) = kubelet.pass().await {
                    println!("the node: {error:#}");
                }
                sleep(Duration::from_millis(300)).await;
            }
        });
        Ok(node)
    }

    /// The components in the order in which a Pod of each was ready first.
    pub fn order(&self) -> Vec<String> {
        self.order.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The processes of those that run, by their components.
    pub fn pids(&self) -> Vec<(String, u32)> {
        self.endpoints.lock().values().filter_map(|pod| Some((pod.component(), pod.pid?))).collect()
    }

    /// The ends of what those have printed that are not ready.
    pub fn complaints(&self) -> String {
        let pods: Vec<String> =
            self.endpoints.lock().iter().filter(|(_, pod)| !pod.ready).map(|(name, _)| name.clone()).collect();
        pods.iter().map(|pod| format!("== {pod}\n{}\n", tail(&self.root(pod)))).collect()
    }

    /// The directory that a Pod of this name has as its root.
    pub fn root(&self, pod: &str) -> PathBuf {
        self.directory.path().join(pod)
    }
}
