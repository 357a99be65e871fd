//! The objects that are watched and cannot be decoded.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;
use plan::undecodable::Undecodable;

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
        let mut objects = self.objects.lock();
        let told = objects
            .get(&key(object))
            .is_some_and(|known| (&known.field, &known.error) == (&object.field, &object.error));
        objects.insert(key(object), Arc::new(object.clone()));
        !told
    }

    /// Takes one out that can be decoded again, or is gone.
    pub(crate) fn remove(&self, kind: &str, namespace: &str, name: &str) -> bool {
        let key = (kind.to_owned(), namespace.to_owned(), name.to_owned());
        self.objects.lock().remove(&key).is_some()
    }

    /// Takes all of a kind out but these: names within namespaces.
    pub(crate) fn keep(&self, kind: &str, kept: &[(String, String)]) {
        self.objects
            .lock()
            .retain(|(of, namespace, name), _| of != kind || kept.contains(&(namespace.clone(), name.clone())));
    }

    /// How many there are, by kind.
    pub fn counts(&self) -> BTreeMap<String, usize> {
        let mut counts = BTreeMap::new();
        for (kind, _, _) in self.objects.lock().keys() {
            *counts.entry(kind.clone()).or_default() += 1;
        }
        counts
    }

    pub(super) fn find(&self, wanted: impl Fn(&Undecodable) -> bool) -> Option<Arc<Undecodable>> {
        self.objects.lock().values().find(|object| wanted(object)).cloned()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.objects.lock().is_empty()
    }
}
