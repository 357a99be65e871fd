//! The objects that are watched and cannot be decoded: who they are, who must wait for them, and who is told.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crds::{ClusterDeployment, Host};
use kube::ResourceExt;
use plan::undecodable::Undecodable;

use crate::cache::Cache;

type Key = (String, String, String);

/// Objects that cannot be decoded, by kind, namespace and name. One is in here before it leaves the store of its kind,
/// and leaves only when it is back there: whoever reads the stores first and asks here then misses none.
#[derive(Debug, Default)]
pub struct Register {
    objects: Mutex<BTreeMap<Key, Arc<Undecodable>>>,
}

fn key(object: &Undecodable) -> Key {
    (object.kind.clone(), object.namespace.clone(), object.name.clone())
}

impl Register {
    /// Adds one; false when the same was there already.
    pub(crate) fn add(&self, object: &Undecodable) -> bool {
        let mut objects = self.lock();
        let told = objects
            .get(&key(object))
            .is_some_and(|known| (&known.field, &known.error) == (&object.field, &object.error));
        objects.insert(key(object), Arc::new(object.clone()));
        !told
    }

    /// Takes one out that can be decoded again, or is gone.
    pub(crate) fn remove(&self, kind: &str, namespace: &str, name: &str) -> bool {
        let key = (kind.to_owned(), namespace.to_owned(), name.to_owned());
        self.lock().remove(&key).is_some()
    }

    /// Takes all of a kind out but these: names within namespaces.
    pub(crate) fn keep(&self, kind: &str, kept: &[(String, String)]) {
        self.lock().retain(|(of, namespace, name), _| {
            of != kind || kept.contains(&(namespace.clone(), name.clone()))
        });
    }

    /// How many there are, by kind.
    pub fn counts(&self) -> BTreeMap<String, usize> {
        let mut counts = BTreeMap::new();
        for (kind, _, _) in self.lock().keys() {
            *counts.entry(kind.clone()).or_default() += 1;
        }
        counts
    }

    fn find(&self, wanted: impl Fn(&Undecodable) -> bool) -> Option<Arc<Undecodable>> {
        self.lock().values().find(|object| wanted(object)).cloned()
    }

    fn is_empty(&self) -> bool {
        self.lock().is_empty()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<Key, Arc<Undecodable>>> {
        self.objects.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Cache {
    /// Whether this object would be missed in what is decided for the cluster.
    pub(crate) fn concerns(&self, object: &Undecodable, namespace: &str, cluster: &str) -> bool {
        let machines = self.machines.store().state();
        object.concerns_cluster(namespace, cluster, machines.iter().map(Arc::as_ref))
    }

    /// Why nothing must be done for a cluster now: an object that it is decided by cannot be decoded. To be asked after
    /// the stores were read, and before anything is done.
    pub fn hold_of_cluster(&self, namespace: &str, cluster: &str) -> Option<String> {
        if self.undecodable.is_empty() {
            return None;
        }
        let machines = self.machines.store().state();
        let machines = || machines.iter().map(Arc::as_ref);
        let found = self
            .undecodable
            .find(|object| object.concerns_cluster(namespace, cluster, machines()));
        found.map(|object| object.hold_message())
    }

    /// The same for a whole ClusterDeployment, which must not take the endpoint of one that cannot be decoded either.
    pub fn hold_of_deployment(&self, deployment: &ClusterDeployment) -> Option<String> {
        let namespace = deployment.namespace().unwrap_or_default();
        let of_cluster = self.hold_of_cluster(&namespace, &deployment.name_any());
        of_cluster.or_else(|| {
            let found = self
                .undecodable
                .find(|object| object.may_hold_endpoint_of(deployment));
            found.map(|object| object.hold_message())
        })
    }

    /// Why a Host must not be claimed now: one that cannot be decoded may be the same machine.
    pub fn hold_of_claim(&self, host: &Host) -> Option<String> {
        let found = self.undecodable.find(|object| object.may_be_machine_of(host));
        let name = host.name_any();
        found.map(|object| format!("{}; Host {name} may be the same machine", object.hold_message()))
    }

    /// Why nothing must be done for a run now: its Job or its Pod cannot be decoded.
    pub fn hold_of_run(&self, namespace: &str, run: &str) -> Option<String> {
        let found = self.undecodable.find(|object| object.is_of_run(namespace, run));
        found.map(|object| object.hold_message())
    }
}
