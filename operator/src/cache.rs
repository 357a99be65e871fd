//! What is watched in the metadata cluster: one watch for each kind, whose store every controller reads and whose
//! changes every controller may follow.

use std::fmt::Debug;
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crds::names::label;
use crds::{Cluster, ClusterDeployment, Host, Machine, MachineSet, PlaybookRun, RemediationPolicy};
use futures::channel::mpsc::{UnboundedSender, unbounded};
use futures::{Stream, StreamExt};
use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use kube::runtime::reflector::store::Writer;
use kube::runtime::reflector::{ObjectRef, Store};
use kube::runtime::watcher::{Config, Event};
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Api, Resource, ResourceExt};
use serde::de::DeserializeOwned;
use tokio::sync::OnceCell;
use tokio::task::JoinSet;

use crate::context::Context;
use crate::error::chain;

/// What a kind must be to be watched.
pub trait Kind:
    Resource<DynamicType = (), Scope = NamespaceResourceScope>
    + Clone
    + Debug
    + DeserializeOwned
    + Send
    + Sync
    + 'static
{
}
impl<K> Kind for K where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope>
        + Clone
        + Debug
        + DeserializeOwned
        + Send
        + Sync
        + 'static
{
}

/// The kinds that are watched. Reads may be behind: a step that cannot be taken back looks at the API first.
pub struct Cache {
    /// Clusters.
    pub clusters: Watched<Cluster>,
    /// ClusterDeployments.
    pub cluster_deployments: Watched<ClusterDeployment>,
    /// Hosts.
    pub hosts: Watched<Host>,
    /// Machines.
    pub machines: Watched<Machine>,
    /// MachineSets.
    pub machine_sets: Watched<MachineSet>,
    /// PlaybookRuns.
    pub runs: Watched<PlaybookRun>,
    /// RemediationPolicies.
    pub policies: Watched<RemediationPolicy>,
    /// Jobs of runs.
    pub jobs: Watched<Job>,
    /// Pods of runs.
    pub pods: Watched<Pod>,
    listed: OnceCell<()>,
}

impl Cache {
    pub(crate) fn new() -> Self {
        Self {
            clusters: Watched::new(),
            cluster_deployments: Watched::new(),
            hosts: Watched::new(),
            machines: Watched::new(),
            machine_sets: Watched::new(),
            runs: Watched::new(),
            policies: Watched::new(),
            jobs: Watched::new(),
            pods: Watched::new(),
            listed: OnceCell::new(),
        }
    }

    /// Starts the watches. Called once, when every controller has asked for its changes.
    pub(crate) fn follow(&self, ctx: &Arc<Context>, tasks: &mut JoinSet<()>) {
        let ours = Config::default().labels(label::RUN);
        self.clusters.follow(ctx, Config::default(), tasks);
        self.cluster_deployments.follow(ctx, Config::default(), tasks);
        self.hosts.follow(ctx, Config::default(), tasks);
        self.machines.follow(ctx, Config::default(), tasks);
        self.machine_sets.follow(ctx, Config::default(), tasks);
        self.runs.follow(ctx, Config::default(), tasks);
        self.policies.follow(ctx, Config::default(), tasks);
        self.jobs.follow(ctx, ours.clone(), tasks);
        self.pods.follow(ctx, ours, tasks);
    }

    /// Waits until every kind has been listed once.
    pub async fn ready(&self) {
        // A store wakes only the last of those who wait for it: one waits for all of us.
        self.listed.get_or_init(|| self.list_all()).await;
    }

    async fn list_all(&self) {
        // A store whose writer is gone never becomes ready: the program is stopping then.
        let _ = self.clusters.store.wait_until_ready().await;
        let _ = self.cluster_deployments.store.wait_until_ready().await;
        let _ = self.hosts.store.wait_until_ready().await;
        let _ = self.machines.store.wait_until_ready().await;
        let _ = self.machine_sets.store.wait_until_ready().await;
        let _ = self.runs.store.wait_until_ready().await;
        let _ = self.policies.store.wait_until_ready().await;
        let _ = self.jobs.store.wait_until_ready().await;
        let _ = self.pods.store.wait_until_ready().await;
    }
}

type Subscribers<K> = Arc<Mutex<Vec<UnboundedSender<Arc<K>>>>>;

/// One kind that is watched.
pub struct Watched<K: Kind> {
    store: Store<K>,
    writer: Mutex<Option<Writer<K>>>,
    subscribers: Subscribers<K>,
}

impl<K: Kind> Watched<K> {
    fn new() -> Self {
        let writer = Writer::new(());
        Self {
            store: writer.as_reader(),
            writer: Mutex::new(Some(writer)),
            subscribers: Subscribers::default(),
        }
    }

    /// The objects, as last seen.
    pub fn store(&self) -> &Store<K> {
        &self.store
    }

    /// The object of this name, as last seen.
    pub fn get(&self, namespace: &str, name: &str) -> Option<Arc<K>> {
        self.store.get(&ObjectRef::new(name).within(namespace))
    }

    /// The objects of a namespace for which `wanted` holds, in the order of their names.
    pub fn list(&self, namespace: &str, wanted: impl Fn(&K) -> bool) -> Vec<Arc<K>> {
        let in_namespace = |object: &K| object.meta().namespace.as_deref() == Some(namespace);
        let mut objects = self
            .store
            .state_filter(|object| in_namespace(object) && wanted(object));
        objects.sort_by_key(|object| object.name_any());
        objects
    }

    /// All of every namespace that is watched, in the order of their namespaces and names.
    pub fn everywhere(&self) -> Vec<Arc<K>> {
        let mut objects = self.store.state();
        objects.sort_by_key(|object| (object.namespace(), object.name_any()));
        objects
    }

    /// Every object that is made, changed or gone from now on, and all that are there when the watch (re)starts.
    /// The store is never behind what comes out here.
    pub fn changes(&self) -> impl Stream<Item = Arc<K>> + Send + use<K> {
        let (sender, receiver) = unbounded();
        lock(&self.subscribers).push(sender);
        receiver
    }

    /// Makes these the objects that were last seen.
    #[cfg(test)]
    pub(crate) fn fill(&self, objects: Vec<K>) {
        let mut writer = lock(&self.writer);
        let writer = writer.as_mut().expect("a cache that follows nothing");
        writer.apply_watcher_event(&Event::Init);
        for object in objects {
            writer.apply_watcher_event(&Event::InitApply(object));
        }
        writer.apply_watcher_event(&Event::InitDone);
    }

    fn follow(&self, ctx: &Arc<Context>, config: Config, tasks: &mut JoinSet<()>) {
        let Some(writer) = lock(&self.writer).take() else {
            return;
        };
        let api = match &ctx.settings.namespace {
            Some(namespace) => Api::<K>::namespaced(ctx.client.clone(), namespace),
            None => Api::all(ctx.client.clone()),
        };
        let events = watcher(api, config)
            .default_backoff()
            .modify(|object| object.managed_fields_mut().clear());
        let (store, subscribers) = (self.store.clone(), self.subscribers.clone());
        let stopped = ctx.stopped();
        tasks.spawn(async move {
            tokio::select! {
                () = follow(writer, store, subscribers, events) => {}
                () = stopped => {}
            }
        });
    }
}

async fn follow<K: Kind>(
    mut writer: Writer<K>,
    store: Store<K>,
    subscribers: Subscribers<K>,
    events: impl Stream<Item = Result<Event<K>, watcher::Error>>,
) where
    ObjectRef<K>: Hash + Eq,
{
    let mut events = std::pin::pin!(events);
    while let Some(event) = events.next().await {
        let event = match event {
            Ok(event) => event,
            Err(error) => {
                tracing::warn!(kind = %K::kind(&()), error = %chain(&error), "the watch failed; it is taken up again");
                continue;
            }
        };
        let before = if matches!(event, Event::InitDone) {
            store.state()
        } else {
            Vec::new()
        };
        writer.apply_watcher_event(&event);
        let changed = match event {
            Event::Apply(object) | Event::Delete(object) => vec![Arc::new(object)],
            Event::Init | Event::InitApply(_) => continue,
            Event::InitDone => {
                // What vanished while nobody watched would otherwise never be told.
                let gone = before
                    .into_iter()
                    .filter(|old| store.get(&ObjectRef::from_obj(&**old)).is_none());
                store.state().into_iter().chain(gone).collect()
            }
        };
        let mut subscribers = lock(&subscribers);
        subscribers.retain(|subscriber| {
            changed
                .iter()
                .all(|object| subscriber.unbounded_send(object.clone()).is_ok())
        });
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
