//! The fleet's objects: Hosts, ClusterDeployments, and what they refer to.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use crds::{ClusterDeployment, Host, conditions};
use e2e::api_server::ApiServer;
use futures::{StreamExt, TryStreamExt, stream};
use k8s_openapi::api::core::v1::{Namespace, Secret};
use kube::api::{Api, ListParams, Patch, PatchParams, PostParams};
use kube::{Client, ResourceExt};
use plan::rotation::Subject;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use crate::targets::Targets;

/// Where all of it is.
pub const NAMESPACE: &str = "fleet";
/// Of Kubernetes.
pub const VERSION: &str = "1.35.4";
/// Objects that are created at once.
const AT_ONCE: usize = 16;
/// Nothing takes longer.
const DEADLINE: Duration = Duration::from_secs(3600);

/// The fleet.
pub struct Fleet {
    client: Client,
    targets: Arc<Targets>,
    machines: usize,
}

/// The name of a cluster.
pub fn name(cluster: usize) -> String {
    format!("cluster-{cluster}")
}

/// The number in a name of ours.
pub fn number(name: &str) -> Option<usize> {
    name.rsplit('-').next()?.parse().ok()
}

impl Fleet {
    pub fn new(server: &ApiServer, targets: Arc<Targets>, machines: usize) -> Self {
        Self { client: server.client(), targets, machines }
    }

    fn api<K>(&self) -> Api<K>
    where
        K: kube::Resource<Scope = kube::core::NamespaceResourceScope>,
        K::DynamicType: Default,
    {
        Api::namespaced(self.client.clone(), NAMESPACE)
    }

    /// The namespace, the credentials, and each cluster's keys, as if they had been restored.
    pub async fn prepare(&self) -> Result<()> {
        let namespaces: Api<Namespace> = Api::all(self.client.clone());
        namespaces.create(&PostParams::default(), &object(json!({"metadata": {"name": NAMESPACE}}))?).await?;
        let key = self.targets.pki.authority(Subject::Ca)?.signer().key();
        let key = json!({
            "metadata": {"name": "fleet-ssh"}, "type": "Opaque", "stringData": {"ssh-privatekey": key},
        });
        self.api::<Secret>().create(&PostParams::default(), &object(key)?).await?;
        let data = self.targets.pki.data();
        let keys = (0..self.targets.len()).map(|cluster| {
            let mut secret = Secret { type_: Some("Opaque".into()), data: Some(data.clone()), ..Secret::default() };
            secret.metadata.name = Some(crds::names::pki_secret(&name(cluster)));
            secret
        });
        self.create(keys).await
    }

    /// Spare Hosts.
    pub async fn create_hosts(&self, numbers: Range<usize>) -> Result<()> {
        let hosts = numbers.map(host).collect::<Result<Vec<Host>>>()?;
        self.create(hosts).await
    }

    /// Clusters.
    pub async fn create_clusters(&self, numbers: Range<usize>) -> Result<()> {
        let clusters = numbers.map(|cluster| self.cluster(cluster));
        self.create(clusters.collect::<Result<Vec<_>>>()?).await
    }

    fn cluster(&self, cluster: usize) -> Result<ClusterDeployment> {
        let port = self.targets.port(cluster).context("no such cluster")?;
        object(json!({
            "apiVersion": "clusterwright.dev/v1alpha1", "kind": "ClusterDeployment", "metadata": {"name": name(cluster)},
            "spec": {
                "kubernetesVersion": VERSION,
                "controlPlane": {"replicas": 1, "endpoint": {"host": lab::network::HOST_ADDRESS, "port": port}},
                "workers": [{"name": "general", "replicas": self.machines - 1}],
                "networking": {
                    "podCIDR": format!("10.{}.{}.0/20", 64 + cluster / 16, cluster % 16 * 16),
                    "serviceCIDR": "10.60.0.0/16",
                },
                "artifacts": {"url": "http://192.0.2.1:8080"},
            },
        }))
    }

    /// One worker more.
    pub async fn grow(&self, cluster: usize) -> Result<()> {
        let workers = json!({"spec": {"workers": [{"name": "general", "replicas": self.machines}]}});
        let patch = Patch::Merge(workers);
        self.api::<ClusterDeployment>().patch(&name(cluster), &PatchParams::default(), &patch).await?;
        Ok(())
    }

    /// Waits until so many Hosts are spare and Ready.
    pub async fn await_hosts(&self, wanted: usize) -> Result<()> {
        let is_spare = |host: &Host| {
            let status = host.status.as_ref();
            host.spec.claim_ref.is_none()
                && status.is_some_and(|status| conditions::is_true(&status.conditions, "Ready"))
        };
        self.count::<Host>("Hosts", wanted, is_spare).await
    }

    /// Waits until so many clusters are Ready with all that they want.
    pub async fn await_clusters(&self, wanted: usize) -> Result<()> {
        let is_ready = |deployment: &ClusterDeployment| {
            let Some(status) = &deployment.status else { return false };
            status.observed_generation == deployment.metadata.generation
                && conditions::is_true(&status.conditions, "Ready")
        };
        self.count::<ClusterDeployment>("clusters", wanted, is_ready).await
    }

    async fn count<K>(&self, what: &str, wanted: usize, is_it: impl Fn(&K) -> bool) -> Result<()>
    where
        K: kube::Resource<Scope = kube::core::NamespaceResourceScope> + Clone + DeserializeOwned + std::fmt::Debug,
        K::DynamicType: Default,
    {
        let until = Instant::now() + DEADLINE;
        loop {
            let listed = self.api::<K>().list(&ListParams::default()).await?;
            let there = listed.iter().filter(|object| is_it(object)).count();
            if there >= wanted {
                return Ok(());
            }
            if Instant::now() > until {
                let first = listed.iter().find(|object| !is_it(object)).map(ResourceExt::name_any);
                anyhow::bail!("{there} of {wanted} {what} are ready, {first:?} is not");
            }
            eprintln!("{there} of {wanted} {what}");
            sleep(Duration::from_secs(5)).await;
        }
    }

    async fn create<K>(&self, objects: impl IntoIterator<Item = K>) -> Result<()>
    where
        K: kube::Resource<Scope = kube::core::NamespaceResourceScope>
            + Clone
            + DeserializeOwned
            + std::fmt::Debug
            + serde::Serialize,
        K::DynamicType: Default,
    {
        let api = self.api::<K>();
        let created = stream::iter(objects).map(|object| {
            let api = api.clone();
            async move { api.create(&PostParams::default(), &object).await }
        });
        created.buffer_unordered(AT_ONCE).try_for_each(async |_| Ok(())).await.context("failed to create an object")
    }
}

fn host(number: usize) -> Result<Host> {
    let address = format!("10.{}.{}.{}", 16 + number / 62_500, number / 250 % 250, 1 + number % 250);
    object(json!({
        "apiVersion": "clusterwright.dev/v1alpha1", "kind": "Host", "metadata": {"name": format!("host-{number}")},
        "spec": {
            "address": address,
            "ssh": {"credentialsRef": {"name": "fleet-ssh"}, "hostKeys": [host_key(number)]},
        },
    }))
}

/// A key in the form of OpenSSH; nobody has its other half.
fn host_key(number: usize) -> String {
    let mut key = b"\0\0\0\x0bssh-ed25519\0\0\0\x20".to_vec();
    key.extend([0; 24]);
    key.extend(u64::try_from(number).unwrap_or_default().to_be_bytes());
    format!("ssh-ed25519 {}", STANDARD.encode(key))
}

fn object<K: DeserializeOwned>(value: Value) -> Result<K> {
    serde_json::from_value(value).context("no such object")
}
