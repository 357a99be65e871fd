//! Changes that a pool counts: a Host is written at each of its probes, and a set whenever one of its Machines changes.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use crds::{Host, ObjectExt};
use kube::Resource;
use parking_lot::Mutex;
use plan::host_pool::class;

/// What was seen of each object last, by namespace and name.
#[derive(Default)]
pub(super) struct News(Mutex<HashMap<(String, String), u64>>);

impl News {
    /// Whether what counts of an object is another than it was; `None`: it is gone, which always is news.
    pub fn is_news(&self, object: &impl Resource, counts: Option<impl Hash>) -> bool {
        let key = (object.namespace().to_owned(), object.name().to_owned());
        let Some(counts) = counts else {
            self.0.lock().remove(&key);
            return true;
        };
        let mut hasher = DefaultHasher::new();
        counts.hash(&mut hasher);
        let digest = hasher.finish();
        self.0.lock().insert(key, digest) != Some(digest)
    }
}

/// What a pool counts of a Host: by what it is selected, and in which number it is.
pub(super) fn counted(host: &Host) -> impl Hash + use<> {
    let facts = host.status.as_ref().and_then(|status| status.facts.as_ref());
    let size = facts.map(|facts| (facts.cpus, facts.memory_mib));
    (host.metadata.labels.clone(), size, class(host))
}
