//! One kind that is watched: its store, and who follows its changes.

use std::sync::Arc;

use crds::FormerRef;
use futures::Stream;
use futures::channel::mpsc::unbounded;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::runtime::reflector::store::Writer;
use kube::runtime::reflector::{ObjectRef, Store};
use kube::runtime::watcher::Config;
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Api, ResourceExt};
use parking_lot::{Mutex, RwLock};
use plan::undecodable::Undecodable;
use tokio::task::JoinSet;

use super::follow::{Follower, Subscribers, report};
use super::index::Index;
use super::keys::IndexKey;
use super::kind::Kind;
use super::register::Register;
use super::source::Source;
use crate::decoding::Decoded;

/// One kind that is watched.
pub struct Watched<K: Kind> {
    pub(super) store: Store<K>,
    pub(super) index: Arc<RwLock<Index<K>>>,
    pub(super) writer: Mutex<Option<Writer<K>>>,
    pub(super) subscribers: Subscribers<K>,
    pub(super) undecodable: Arc<Register>,
}

impl<K: Kind> Watched<K> {
    pub(super) fn new(undecodable: &Arc<Register>) -> Self {
        let writer = Writer::new(());
        Self {
            store: writer.as_reader(),
            index: Arc::default(),
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

    /// The objects of a namespace for which `wanted` holds, in the order of their names. It goes over all of them:
    /// where there is a key, [`Watched::with`] does not.
    pub fn list(&self, namespace: &str, wanted: impl Fn(&K) -> bool) -> Vec<Arc<K>> {
        let index = self.index.read();
        index.all(namespace).filter(|object| wanted(object)).cloned().collect()
    }

    /// Another one after each change.
    pub fn version(&self) -> u64 {
        self.index.read().version()
    }

    /// The objects of a namespace that have a key, in the order of their names.
    pub fn with(&self, namespace: &str, key: &IndexKey) -> Vec<Arc<K>> {
        self.index.read().with(namespace, key).cloned().collect()
    }

    /// Those of a ClusterDeployment, where the kind is looked up by that.
    pub fn of_cluster(&self, namespace: &str, cluster: &str) -> Vec<Arc<K>> {
        self.formed_by(namespace, FormerRef::cluster(cluster))
    }

    /// Those of what an object forms, where the kind is looked up by that.
    pub fn formed_by(&self, namespace: &str, former: FormerRef<'_>) -> Vec<Arc<K>> {
        self.with(namespace, &former.into())
    }

    /// All of every namespace that is watched, in the order of their namespaces and names.
    pub fn everywhere(&self) -> Vec<Arc<K>> {
        self.index.read().everywhere().cloned().collect()
    }

    /// Every object that is made, changed or gone from now on, and all that are there when the watch (re)starts.
    /// The store is never behind what comes out here.
    pub fn changes(&self) -> impl Stream<Item = Arc<K>> + Send + use<K> {
        let (sender, receiver) = unbounded();
        self.subscribers.lock().push(sender);
        receiver
    }

    /// Makes these the objects that were last seen.
    #[cfg(test)]
    pub(crate) fn fill(&self, objects: Vec<K>) {
        let mut writer = self.writer.lock();
        let writer = writer.as_mut().expect("a cache that follows nothing");
        writer.apply_watcher_event(&watcher::Event::Init);
        for object in objects {
            writer.apply_watcher_event(&watcher::Event::InitApply(object));
        }
        writer.apply_watcher_event(&watcher::Event::InitDone);
        self.index.write().replace(self.store.state());
    }

    pub(super) fn follow(&self, source: &Source, config: Config, tasks: &mut JoinSet<()>) {
        let Some(writer) = self.writer.lock().take() else {
            return;
        };
        let api = match &source.namespace {
            Some(namespace) => Api::<Decoded<K>>::namespaced(source.client.clone(), namespace),
            None => Api::all(source.client.clone()),
        };
        let events = watcher(api, config).default_backoff().modify(|object| object.managed_fields_mut().clear());
        let follower = Follower {
            writer,
            store: self.store.clone(),
            index: self.index.clone(),
            subscribers: self.subscribers.clone(),
            undecodable: self.undecodable.clone(),
            listed: Vec::new(),
        };
        let (events_of, stopped) = (source.events.clone(), source.stop.asked());
        let report = move |why: Undecodable, metadata: ObjectMeta| report::<K>(&events_of, why, metadata);
        tasks.spawn(async move {
            tokio::select! {
                () = follower.follow(events, report) => {}
                () = stopped => {}
            }
        });
    }
}

#[cfg(test)]
mod tests;
