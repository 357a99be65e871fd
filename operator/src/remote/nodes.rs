//! The watch of one cluster's Nodes: each is cut down to what is needed as it arrives.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures::{Stream, StreamExt};
use k8s_openapi::api::core::v1::Node;
use kube::runtime::watcher::{Config, Error, Event};
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Api, Client};
use parking_lot::Mutex;
use plan::cluster::NodeSeen;
use tokio::sync::watch;
use tokio::task::AbortHandle;

use super::key::Key;
use crate::error::chain;

/// A cluster that claims to have more Nodes than this is not believed.
const MOST_NODES: usize = 20_000;
/// Nodes in one answer.
const PAGE: u32 = 250;
/// A watch that is silent for longer is taken up again: its connection may be dead.
const WATCH_SECONDS: u32 = 90;

type Nodes = BTreeMap<String, NodeSeen>;

/// A watch that runs until this is dropped.
pub(super) struct Following {
    nodes: Arc<Mutex<Option<Nodes>>>,
    listed: watch::Receiver<bool>,
    task: AbortHandle,
}

impl Following {
    /// `tell` is called with the Node that has changed, or with `None` when all of them may have.
    pub(super) fn start(client: Client, cluster: Key, tell: impl Fn(Option<String>) + Send + 'static) -> Self {
        let nodes = Arc::new(Mutex::new(None));
        let config = Config::default().page_size(PAGE).timeout(WATCH_SECONDS);
        let events = watcher(Api::<Node>::all(client), config).default_backoff();
        let shared = nodes.clone();
        let (is_listed, listed) = watch::channel(false);
        let tell = move |node: Option<String>| {
            // All of them at once: they were listed.
            if node.is_none() {
                is_listed.send_replace(true);
            }
            tell(node);
        };
        let task = tokio::spawn(async move {
            follow(&shared, events, &cluster, tell).await;
        });
        Self { nodes, listed, task: task.abort_handle() }
    }

    /// These are the Nodes, and nothing is watched.
    #[cfg(test)]
    pub(super) fn shown(nodes: Vec<NodeSeen>) -> Self {
        let named = nodes.into_iter().map(|node| (node.name.clone(), node));
        let nodes = Arc::new(Mutex::new(Some(named.collect())));
        Self { nodes, listed: watch::channel(true).1, task: tokio::spawn(async {}).abort_handle() }
    }

    /// Whether they have been listed once.
    pub(super) fn listed(&self) -> watch::Receiver<bool> {
        self.listed.clone()
    }

    /// All of them; `None` while they have not been listed once.
    pub(super) fn nodes(&self) -> Option<Vec<NodeSeen>> {
        self.nodes.lock().as_ref().map(|nodes| nodes.values().cloned().collect())
    }

    /// One of them.
    pub(super) fn node(&self, name: &str) -> Option<Option<NodeSeen>> {
        self.nodes.lock().as_ref().map(|nodes| nodes.get(name).cloned())
    }
}

impl Drop for Following {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn follow(
    nodes: &Mutex<Option<Nodes>>,
    events: impl Stream<Item = Result<Event<Node>, Error>>,
    cluster: &Key,
    tell: impl Fn(Option<String>),
) {
    let mut events = std::pin::pin!(events);
    let mut listing = Nodes::new();
    while let Some(event) = events.next().await {
        match event {
            Ok(Event::Init) => listing = Nodes::new(),
            Ok(Event::InitApply(node)) => {
                keep(&mut listing, NodeSeen::from_node(node));
            }
            Ok(Event::InitDone) => {
                *nodes.lock() = Some(std::mem::take(&mut listing));
                tell(None);
            }
            Ok(Event::Apply(node)) => {
                let node = NodeSeen::from_node(node);
                let name = node.name.clone();
                if keep(nodes.lock().get_or_insert_default(), node) {
                    tell(Some(name));
                }
            }
            Ok(Event::Delete(node)) => {
                let name = node.metadata.name.unwrap_or_default();
                if nodes.lock().as_mut().and_then(|nodes| nodes.remove(&name)).is_some() {
                    tell(Some(name));
                }
            }
            Err(error) => {
                let (namespace, name, error) = (&cluster.namespace, &cluster.name, chain(&error));
                tracing::debug!(kind = "Cluster", namespace, name, error, "the watch of the Nodes is taken up again");
            }
        }
    }
}

/// True when more than a heartbeat changed.
fn keep(nodes: &mut Nodes, node: NodeSeen) -> bool {
    if nodes.len() >= MOST_NODES && !nodes.contains_key(&node.name) {
        return false;
    }
    let changed = nodes.get(&node.name).is_none_or(|old| !old.same_as(&node));
    nodes.insert(node.name.clone(), node);
    changed
}

#[cfg(test)]
mod tests {
    use parking_lot::Mutex;
    use std::cell::RefCell;

    use super::{Key, Node, follow};
    use futures::stream;
    use kube::runtime::watcher::Event;
    use serde_json::json;

    fn node(name: &str, version: &str, ready: &str) -> Node {
        serde_json::from_value(json!({
            "metadata": { "name": name, "resourceVersion": version },
            "status": { "conditions": [{ "type": "Ready", "status": ready }], "images": [{ "names": ["big"] }] },
        }))
        .unwrap()
    }

    #[tokio::test]
    async fn only_what_matters_is_told() {
        let nodes = Mutex::new(None);
        let told = RefCell::new(Vec::new());
        let events = [
            Event::Init,
            Event::InitApply(node("m1", "1", "True")),
            Event::InitApply(node("m2", "1", "True")),
            Event::InitDone,
            Event::Apply(node("m1", "2", "True")),
            Event::Apply(node("m1", "3", "False")),
            Event::Delete(node("m2", "4", "True")),
            Event::Delete(node("m2", "4", "True")),
        ];
        let key = Key { namespace: "fleet".into(), name: "a".into() };
        let tell = |node: Option<String>| told.borrow_mut().push(node.unwrap_or("all".into()));
        follow(&nodes, stream::iter(events.map(Ok)), &key, tell).await;
        assert_eq!(*told.borrow(), ["all", "m1", "m2"]);
        let nodes = nodes.into_inner().unwrap();
        assert_eq!(nodes.keys().collect::<Vec<_>>(), ["m1"]);
        assert_eq!((nodes["m1"].ready, nodes["m1"].resource_version.as_str()), (Some(false), "3"));
    }
}
