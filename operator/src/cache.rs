//! What is watched in the metadata cluster: one watch for each kind, whose store every controller reads and whose
//! changes every controller may follow.

mod follow;

use std::fmt::Debug;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crds::names::label;
use crds::{Cluster, ClusterDeployment, Host, Machine, MachineSet, PlaybookRun, RemediationPolicy};
use futures::Stream;
use futures::channel::mpsc::{UnboundedSender, unbounded};
use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::runtime::reflector::store::Writer;
use kube::runtime::reflector::{ObjectRef, Store};
use kube::runtime::watcher::Config;
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Api, Resource, ResourceExt};
use plan::undecodable::Undecodable;
use serde::de::DeserializeOwned;
use tokio::sync::OnceCell;
use tokio::task::JoinSet;

use crate::context::Context;
use crate::decoding::Decoded;
use crate::undecodable::Register;
use follow::{Follower, tell};

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
    /// What is watched and cannot be decoded.
    pub undecodable: Arc<Register>,
    listed: OnceCell<()>,
}

impl Cache {
    pub(crate) fn new() -> Self {
        let undecodable = Arc::<Register>::default();
        Self {
            clusters: Watched::new(&undecodable),
            cluster_deployments: Watched::new(&undecodable),
            hosts: Watched::new(&undecodable),
            machines: Watched::new(&undecodable),
            machine_sets: Watched::new(&undecodable),
            runs: Watched::new(&undecodable),
            policies: Watched::new(&undecodable),
            jobs: Watched::new(&undecodable),
            pods: Watched::new(&undecodable),
            undecodable,
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
    undecodable: Arc<Register>,
}

impl<K: Kind> Watched<K> {
    fn new(undecodable: &Arc<Register>) -> Self {
        let writer = Writer::new(());
        Self {
            store: writer.as_reader(),
            writer: Mutex::new(Some(writer)),
            subscribers: Subscribers::default(),
            undecodable: undecodable.clone(),
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
        writer.apply_watcher_event(&watcher::Event::Init);
        for object in objects {
            writer.apply_watcher_event(&watcher::Event::InitApply(object));
        }
        writer.apply_watcher_event(&watcher::Event::InitDone);
    }

    fn follow(&self, ctx: &Arc<Context>, config: Config, tasks: &mut JoinSet<()>) {
        let Some(writer) = lock(&self.writer).take() else {
            return;
        };
        let api = match &ctx.settings.namespace {
            Some(namespace) => Api::<Decoded<K>>::namespaced(ctx.client.clone(), namespace),
            None => Api::all(ctx.client.clone()),
        };
        let events = watcher(api, config)
            .default_backoff()
            .modify(|object| object.managed_fields_mut().clear());
        let follower = Follower {
            writer,
            store: self.store.clone(),
            subscribers: self.subscribers.clone(),
            undecodable: self.undecodable.clone(),
            listed: Vec::new(),
        };
        let (teller, stopped) = (ctx.clone(), ctx.stopped());
        let tell = move |why: Undecodable, metadata: ObjectMeta| tell::<K>(&teller, why, metadata);
        tasks.spawn(async move {
            tokio::select! {
                () = follower.follow(events, tell) => {}
                () = stopped => {}
            }
        });
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
