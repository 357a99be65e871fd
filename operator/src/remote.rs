//! The clusters that can be reached: one client and one watch of the Nodes for each Cluster object. What is kept is
//! small. The probe of the Cluster controller decides whether there is contact: without it the watch is off, so that a
//! dead cluster costs its probe and nothing else.

pub(crate) mod drain;
pub(crate) mod etcd_size;
mod key;
pub(crate) mod node_metadata;
mod nodes;
pub mod probe;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use futures::Stream;
use futures::channel::mpsc::{UnboundedSender, unbounded};
use jiff::Timestamp;
use kube::{Client, Config};
use parking_lot::Mutex;
use plan::cluster::components::LeaseSeen;
use plan::cluster::{NodeSeen, Seen};
use sha2::{Digest, Sha256};

use crate::client;
use crate::error::{Error, ResultExt};
use crate::kubeconfig::check::Checked;
use crate::leader::Gate;
pub use key::Key;
use nodes::Following;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
const WRITE_TIMEOUT: Duration = Duration::from_secs(10);
/// What is said of a cluster's Nodes waits so long for their first list.
const LIST_TIMEOUT: Duration = Duration::from_secs(5);

/// Something behind a Cluster changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// The Cluster.
    pub cluster: Key,
    /// The Node; `None`: all of them may have.
    pub node: Option<String>,
}

/// All clusters that can be reached; clones are the same one.
#[derive(Clone)]
pub struct Registry {
    gate: Gate,
    entries: Arc<Mutex<HashMap<Key, Entry>>>,
    /// Clusters that were looked at, whether they answered or not.
    looked_at: Arc<Mutex<HashSet<Key>>>,
    subscribers: Arc<Mutex<Vec<UnboundedSender<Change>>>>,
}

struct Entry {
    /// Of the kubeconfig: another one makes a new client.
    fingerprint: [u8; 32],
    client: Client,
    following: Option<Following>,
    last_probe: Option<(Timestamp, Seen)>,
    leases: HashMap<&'static str, LeaseSeen>,
    /// Size of its etcd, and when the API server was asked; none: it did not say.
    etcd_size: Option<(Timestamp, Option<i64>)>,
}

impl Entry {
    fn new(fingerprint: [u8; 32], client: Client) -> Self {
        Self { fingerprint, client, following: None, last_probe: None, leases: HashMap::new(), etcd_size: None }
    }
}

impl Registry {
    /// Without clusters. Their clients write while the gate is open.
    pub fn new(gate: Gate) -> Self {
        Self { gate, entries: Arc::default(), looked_at: Arc::default(), subscribers: Arc::default() }
    }

    /// What changes from now on, of any cluster.
    pub fn changes(&self) -> impl Stream<Item = Change> + Send + use<> {
        let (sender, receiver) = unbounded();
        self.subscribers.lock().push(sender);
        receiver
    }

    /// The Nodes of a cluster in the order of their names; `None` while they are not known: never read, or no contact.
    pub fn nodes(&self, namespace: &str, cluster: &str) -> Option<Vec<NodeSeen>> {
        let entries = self.entries.lock();
        entries.get(&Key::new(namespace, cluster))?.following.as_ref()?.nodes()
    }

    /// One Node of a cluster; `None` while the Nodes are not known, `Some(None)` when there is none of this name.
    pub fn node(&self, namespace: &str, cluster: &str, node: &str) -> Option<Option<NodeSeen>> {
        let entries = self.entries.lock();
        entries.get(&Key::new(namespace, cluster))?.following.as_ref()?.node(node)
    }

    /// A client of a cluster that there is contact with.
    pub fn client(&self, namespace: &str, cluster: &str) -> Option<Client> {
        let entries = self.entries.lock();
        let entry = entries.get(&Key::new(namespace, cluster))?;
        entry.following.as_ref().map(|_| entry.client.clone())
    }

    /// The client that this kubeconfig makes: the one there is, or a new one in place of an older kubeconfig's.
    pub(crate) fn connect(&self, cluster: &Key, checked: &Checked) -> Result<Client, Error> {
        let fingerprint = fingerprint(checked)?;
        let known = |entry: &&Entry| entry.fingerprint == fingerprint;
        if let Some(entry) = self.entries.lock().get(cluster).filter(known) {
            return Ok(entry.client.clone());
        }
        let client = client_of(checked, &format!("cluster {}", cluster.name), &self.gate)?;
        let entry = Entry::new(fingerprint, client.clone());
        self.entries.lock().insert(cluster.clone(), entry);
        Ok(client)
    }

    /// There is contact: the Nodes are watched from now on.
    pub(crate) fn made(&self, cluster: &Key, now: Timestamp, seen: Seen, leases: HashMap<&'static str, LeaseSeen>) {
        let mut entries = self.entries.lock();
        let Some(entry) = entries.get_mut(cluster) else {
            return;
        };
        entry.last_probe = Some((now, seen));
        entry.leases = leases;
        if entry.following.is_none() {
            let (registry, key) = (self.clone(), cluster.clone());
            let tell = move |node| registry.tell(&key, node);
            entry.following = Some(Following::start(entry.client.clone(), cluster.clone(), tell));
        }
    }

    /// Contact is lost: what was known of the Nodes is not known any more.
    pub(crate) fn lost(&self, cluster: &Key) {
        let following = self.entries.lock().get_mut(cluster).and_then(|entry| {
            entry.last_probe = None;
            entry.following.take()
        });
        if following.is_some() {
            self.tell(cluster, None);
        }
    }

    /// A look at the cluster has ended: what is known of it, or that nothing is, counts from now on.
    pub(crate) fn looked(&self, cluster: &Key) {
        if self.looked_at.lock().insert(cluster.clone()) {
            self.tell(cluster, None);
        }
    }

    /// Whether a look at the cluster has ended since the operator started.
    pub(crate) fn was_looked_at(&self, cluster: &Key) -> bool {
        self.looked_at.lock().contains(cluster)
    }

    /// Waits until the Nodes of a cluster that there is contact with were listed once, but not for long.
    pub(crate) async fn listed(&self, cluster: &Key) {
        let listed = self.entries.lock().get(cluster).and_then(|entry| Some(entry.following.as_ref()?.listed()));
        if let Some(mut listed) = listed {
            // One that does not answer in time is not known, as one that has ended.
            let _ = tokio::time::timeout(LIST_TIMEOUT, listed.wait_for(|listed| *listed)).await;
        }
    }

    /// The Cluster object is gone, or its kubeconfig is not to be used.
    pub(crate) fn forget(&self, cluster: &Key) {
        let known = self.entries.lock().remove(cluster);
        if known.is_some_and(|entry| entry.following.is_some()) {
            self.tell(cluster, None);
        }
    }

    /// What the last probe saw, and when, if there was contact.
    pub(crate) fn last_probe(&self, cluster: &Key) -> Option<(Timestamp, Seen)> {
        self.entries.lock().get(cluster)?.last_probe.clone()
    }

    /// UID of the cluster that answered the last probe.
    pub(crate) fn cluster_uid(&self, cluster: &Key) -> Option<String> {
        let entries = self.entries.lock();
        let (_, seen) = entries.get(cluster)?.last_probe.as_ref()?;
        seen.cluster_uid.clone()
    }

    /// The leases as last seen.
    pub(crate) fn leases(&self, cluster: &Key) -> HashMap<&'static str, LeaseSeen> {
        let entries = self.entries.lock();
        entries.get(cluster).map(|entry| entry.leases.clone()).unwrap_or_default()
    }

    /// Size of its etcd as the API server said last, and when it was asked.
    pub(crate) fn etcd_size(&self, cluster: &Key) -> Option<(Timestamp, Option<i64>)> {
        self.entries.lock().get(cluster)?.etcd_size
    }

    /// The API server was asked for the size of its etcd.
    pub(crate) fn sized(&self, cluster: &Key, now: Timestamp, size: Option<i64>) {
        if let Some(entry) = self.entries.lock().get_mut(cluster) {
            entry.etcd_size = Some((now, size));
        }
    }

    /// A cluster that a client is there for.
    #[cfg(test)]
    pub(crate) fn put(&self, cluster: &Key, client: Client) {
        let entry = Entry::new([0; 32], client);
        self.entries.lock().insert(cluster.clone(), entry);
    }

    /// There is contact, and these are its Nodes.
    #[cfg(test)]
    pub(crate) fn show(&self, cluster: &Key, nodes: Vec<NodeSeen>) {
        if let Some(entry) = self.entries.lock().get_mut(cluster) {
            entry.following = Some(Following::shown(nodes));
        }
    }

    fn tell(&self, cluster: &Key, node: Option<String>) {
        let change = Change { cluster: cluster.clone(), node };
        self.subscribers.lock().retain(|subscriber| subscriber.unbounded_send(change.clone()).is_ok());
    }
}

/// Another one of another kubeconfig.
pub(crate) fn fingerprint(checked: &Checked) -> Result<[u8; 32], Error> {
    let text = serde_json::to_vec(&checked.kubeconfig).doing(|| "read the kubeconfig".into())?;
    Ok(Sha256::digest(&text).into())
}

/// A client of what messages call so, which gives up soon, does not retry by itself, and writes while the gate is open.
pub(crate) fn client_of(checked: &Checked, title: &str, gate: &Gate) -> Result<Client, Error> {
    let doing = || format!("make a client of {title}");
    let mut config = Config::try_from(checked.kubeconfig.clone())
        .map_err(|source| Error::Failed { action: doing(), source: Box::new(source) })?;
    config.connect_timeout = Some(CONNECT_TIMEOUT);
    config.write_timeout = Some(WRITE_TIMEOUT);
    config.default_retry = false;
    Ok(client::builder(&config, gate).doing(doing)?.with_layer(gate).build())
}

#[cfg(test)]
mod tests;
